//! The memory of a coverage, which counts against the limits of runs: while it waits, and while it is computed.

use anemone_hub::Data;

use super::coverage::Coverage;
use super::output::{self, Field};
use super::roofs::RoofGrid;

/// The rest: lists of transmitters and warnings, and what threads have for a tile.
const REST_BYTES: usize = 16 << 10;

/// Returns the bytes that it holds while it waits.
pub(super) fn waiting(coverage: &Coverage, document: Option<&Data>) -> u64 {
    let [terrain, _] = terrain(coverage);
    (REST_BYTES + terrain + buildings(coverage) + text(document)) as u64
}

/// Returns the most bytes that it holds while it is computed.
pub(super) fn working(coverage: &Coverage, document: Option<&Data>) -> u64 {
    let [_, terrain] = terrain(coverage);
    let buildings = buildings(coverage);
    let [roofs, drawn_roofs] = match buildings {
        0 => [0; 2],
        _ => RoofGrid::new(&coverage.area).bytes(),
    };
    let (field, outputs) = match &coverage.output {
        Some(options) => (Field::bytes(coverage), output::bytes(coverage, options)),
        None => (0, 0),
    };
    // The document goes once it is told.
    let drawing = terrain + buildings + drawn_roofs + text(document);
    let most = drawing.max(terrain + roofs + field).max(field + outputs);
    (REST_BYTES + most) as u64
}

fn text(document: Option<&Data>) -> usize {
    document.map_or(0, |document| document.bytes().len())
}

fn terrain(coverage: &Coverage) -> [usize; 2] {
    coverage.terrain.as_ref().map_or([0; 2], |terrain| terrain.bytes())
}

fn buildings(coverage: &Coverage) -> usize {
    coverage.buildings.as_ref().map_or(0, |buildings| buildings.bytes())
}
