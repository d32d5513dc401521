//! The values of all points of a coverage.

use crate::propagation::coverage::Coverage;
use crate::propagation::tiles::Tile;
use crate::propagation::values::Values;

/// The values of all points, in rows from north to south.
#[derive(Clone, Debug)]
pub(in crate::propagation) struct Field {
    /// For each quantity of the coverage.
    pub(super) measures: Vec<Vec<f32>>,
    pub(super) servers: Vec<u8>,
    pub(super) columns: usize,
}

impl Field {
    pub(in crate::propagation) fn new(coverage: &Coverage) -> Self {
        let points = coverage.area.points();
        Self {
            measures: vec![vec![f32::NAN; points]; coverage.measures.len()],
            servers: vec![0; points],
            columns: coverage.area.columns,
        }
    }

    pub(in crate::propagation) fn bytes(coverage: &Coverage) -> usize {
        coverage.area.points() * (coverage.measures.len() * size_of::<f32>() + 1)
    }

    pub(in crate::propagation) fn add(&mut self, tile: Tile, values: &Values) {
        let columns = self.columns;
        let points =
            tile.rows().flat_map(|(row, of_row)| of_row.map(move |column| row * columns + column));
        for (at, point) in points.enumerate() {
            self.servers[point] = values.servers[at];
            for (all, new) in self.measures.iter_mut().zip(&values.measures) {
                all[point] = new[at];
            }
        }
    }
}
