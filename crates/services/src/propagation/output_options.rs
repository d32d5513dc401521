//! The outputs that a request asks for.

use super::area::Area;
use super::measure::Measure;
use crate::reader::{Checked, Members, Node};

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
        let levels = output.get("levels").map(|levels| read_levels(&levels)).transpose()?;
        let levels = levels.unwrap_or_default();
        let known = [("geojson", Format::GeoJson), ("csv", Format::Csv), ("png", Format::Png)];
        let node = output.require("formats")?;
        let formats = node.words(&known)?;
        for (item, format) in node.items(1..=known.len())?.zip(&formats) {
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
        }
        Ok(Some(Self { formats, measure, levels }))
    }
}

/// Reads the values of the contours.
fn read_levels(node: &Node<'_>) -> Checked<Vec<f64>> {
    let mut levels = Vec::new();
    for item in node.items(1..=LEVELS_MAX)? {
        let level = item.number(-1_000.0..=1_000.0, "")?;
        if levels.contains(&level) {
            return Err(item.unfit("is there already: expected each level once"));
        }
        levels.push(level);
    }
    Ok(levels)
}
