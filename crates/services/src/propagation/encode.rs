//! The events of a coverage.

use anemone_hub::Data;
use anemone_hub::run::RunFailure;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::area::Area;
use super::coverage::Coverage;
use super::loss::Land;
use super::terrain::HeightGrid;
use super::tiles::{Tile, Tiles};
use super::values::Values;

/// The value of a point that has none, and one more than the smallest of all others.
const SMALLEST: f32 = -32_767.0;

/// The most columns and rows of the terrain that is told.
const TOLD_SIDE: usize = 200;

/// Writes bytes in Base64 (RFC 4648 section 4).
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Writes values in hundredths, each in 16 bits with the low ones first.
fn hundredths(values: &[f32]) -> String {
    let bytes = values
        .iter()
        .flat_map(|value| ((value * 100.0).round().max(SMALLEST) as i16).to_le_bytes());
    base64(&bytes.collect::<Vec<_>>())
}

/// Returns the first event: what is computed, and the document that asked for it.
pub(super) fn plan(
    coverage: &Coverage,
    land: &Land,
    tiles: &Tiles,
    document: Option<&Data>,
) -> Result<Data, RunFailure> {
    let transmitters = coverage.transmitters.iter().map(|transmitter| {
        let mut value = json!(transmitter);
        let [east, north] = coverage.area.frame.names();
        let (x, y) = coverage.area.frame.coordinates(transmitter.spot);
        (value[east], value[north]) = (json!(x), json!(y));
        value
    });
    let names: Vec<_> = coverage.measures.iter().map(|measure| measure.name()).collect();
    let plan = data(&json!({
        "area": coverage.area,
        "levels": tiles.levels(),
        "tiles": tiles.len(),
        "quantities": names,
        "receiver": coverage.receiver,
        "transmitters": transmitters.collect::<Vec<_>>(),
        "street": coverage.streets,
        "terrain": land.terrain.as_ref().map(|grid| terrain(grid, &coverage.area)),
        "warnings": coverage.warnings,
    }))?;
    let document = document.map(|document| ("document", document));
    let members: Vec<_> = std::iter::once(("coverage", &plan)).chain(document).collect();
    Ok(Data::object(&members))
}

/// Describes the terrain within the area, in whole metres.
fn terrain(grid: &HeightGrid, area: &Area) -> Value {
    let (columns, rows) = (area.columns.min(TOLD_SIDE), area.rows.min(TOLD_SIDE));
    let spread = |at: usize, told: usize, all: usize| at * (all - 1) / (told - 1).max(1);
    let heights = (0..rows).flat_map(|row| {
        (0..columns).flat_map(move |column| {
            let spot =
                area.spot(spread(column, columns, area.columns), spread(row, rows, area.rows));
            // From -500 to 9,000, with hills of a valley up to 3,840.
            (grid.height_m(spot).round() as i16).to_le_bytes()
        })
    });
    json!({ "columns": columns, "rows": rows, "heights_m": base64(&heights.collect::<Vec<_>>()) })
}

pub(super) fn tile(coverage: &Coverage, tile: Tile, values: &Values) -> Result<Data, RunFailure> {
    let mut event = Map::new();
    event.insert("tile".to_owned(), json!(tile));
    for (measure, values) in coverage.measures.iter().zip(&values.measures) {
        event.insert(measure.name().to_owned(), hundredths(values).into());
    }
    if coverage.transmitters.len() > 1 {
        event.insert("server".to_owned(), base64(&values.servers).into());
    }
    data(&Value::Object(event))
}

pub(super) fn data(value: &impl Serialize) -> Result<Data, RunFailure> {
    Data::json(value).map_err(|error| RunFailure::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hundredths_and_large_ones_are_cut() {
        assert_eq!(hundredths(&[1.0, -1.28]), base64(&[100, 0, 0x80, 0xff]));
        assert_eq!(hundredths(&[1e9, -1e9]), base64(&[0xff, 0x7f, 0x01, 0x80]));
    }
}
