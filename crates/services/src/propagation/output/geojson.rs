//! A coverage as GeoJSON (RFC 7946): contour lines, or points. A map of its own has its metres in place of degrees.

use anemone_hub::run::Stopped;
use serde_json::{Map, Value, json};

use super::contour::{Vertex, contours};
use super::csv::rounded;
use super::field::Field;
use crate::propagation::area::Spot;
use crate::propagation::coverage::Coverage;
use crate::propagation::output_options::OutputOptions;

/// The most vertices of all contours.
const VERTICES_MAX: usize = 200_000;

/// Writes a `FeatureCollection`; `None` if the contours have more vertices than may be.
pub(super) fn geojson(
    coverage: &Coverage,
    field: &Field,
    options: &OutputOptions,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Option<Value>, Stopped> {
    let mut features = Vec::new();
    if options.levels.is_empty() {
        features.extend((0..field.servers.len()).map(|point| of_point(coverage, field, point)));
    }
    let name = coverage.measures[options.measure].name();
    let mut left = VERTICES_MAX;
    for level in &options.levels {
        let values = &field.measures[options.measure];
        let Some(lines) = contours(values, field.columns, *level, left, &check)? else {
            return Ok(None);
        };
        left = left.saturating_sub(lines.iter().map(Vec::len).sum());
        let lines: Vec<Vec<Value>> = lines
            .iter()
            .map(|line| line.iter().map(|at| position(coverage, *at)).collect())
            .collect();
        features.push(json!({
            "type": "Feature",
            "properties": { name: level },
            "geometry": { "type": "MultiLineString", "coordinates": lines },
        }));
    }
    Ok(Some(json!({ "type": "FeatureCollection", "features": features })))
}

fn of_point(coverage: &Coverage, field: &Field, point: usize) -> Value {
    let mut properties = Map::new();
    for (measure, values) in coverage.measures.iter().zip(&field.measures) {
        let value = (f64::from(values[point]) * 100.0).round() / 100.0;
        properties.insert(measure.name().to_owned(), value.into());
    }
    properties.insert("server".to_owned(), field.servers[point].into());
    let at = ((point % field.columns) as f64, (point / field.columns) as f64);
    let geometry = json!({ "type": "Point", "coordinates": position(coverage, at) });
    json!({ "type": "Feature", "properties": properties, "geometry": geometry })
}

/// Returns the coordinates of a place between the points of the grid.
fn position(coverage: &Coverage, (column, row): Vertex) -> Value {
    let area = &coverage.area;
    let y_m = ((area.rows - 1) as f64 - row) * area.step_m;
    let (east, north) = area.frame.coordinates(Spot { x_m: column * area.step_m, y_m });
    json!([rounded(east), rounded(north)])
}
