//! The outputs that a request asks for.

use super::area::Area;
use super::measure::Measure;
use super::reader::{Checked, Members};

/// The most points of GeoJSON and of CSV, so that the result stays far below what a run may keep.
const GEOJSON_POINTS_MAX: usize = 20_000;
const CSV_POINTS_MAX: usize = 100_000;

/// The most contours.
const LEVELS_MAX: usize = 32;

/// A form of the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    GeoJson,
    Csv,
    Png,
}

/// The outputs, as they were checked.
#[derive(Clone, Debug)]
pub(super) struct OutputOptions {
    pub(super) formats: Vec<Format>,
    /// The index of the quantity that is drawn.
    pub(super) measure: usize,
    /// The values of the contours; without one, GeoJSON has the points.
    pub(super) levels: Vec<f64>,
}

impl OutputOptions {
    /// Reads `output`; `None` without it.
    pub(super) fn read(
        request: &Members<'_>,
        area: &Area,
        measures: &[Measure],
    ) -> Checked<Option<Self>> {
        let Some(node) = request.get("output") else { return Ok(None) };
        let output = node.object(&["formats", "quantity", "levels"])?;
        let names: Vec<_> =
            measures.iter().enumerate().map(|(at, measure)| (measure.name(), at)).collect();
        let measure = output.word_or("quantity", 0, &names)?;
        let levels = output.get("levels").map(|levels| levels.items(1..=LEVELS_MAX)).transpose()?;
        let levels = levels.unwrap_or_default();
        let levels = levels
            .iter()
            .map(|level| level.number(-1_000.0..=1_000.0, ""))
            .collect::<Checked<Vec<_>>>()?;
        let known = [("geojson", Format::GeoJson), ("csv", Format::Csv), ("png", Format::Png)];
        let mut formats = Vec::new();
        for item in output.require("formats")?.items(1..=known.len())? {
            let format = item.word(&known)?;
            let most = match format {
                Format::GeoJson if levels.is_empty() => GEOJSON_POINTS_MAX,
                Format::Csv => CSV_POINTS_MAX,
                _ => usize::MAX,
            };
            if area.points() > most {
                let points = area.points();
                return Err(
                    item.unfit(format!("takes at most {most} points, and the grid has {points}"))
                );
            }
            formats.push(format);
        }
        Ok(Some(Self { formats, measure, levels }))
    }
}
