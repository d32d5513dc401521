//! A grid as a file has it, in the coordinates of the file, and the limits of all forms of files.

use std::ops::RangeInclusive;

use crate::reader::brief;

/// The heights that a grid may have: from below the Dead Sea to above Mount Everest.
const HEIGHTS_M: RangeInclusive<f64> = -500.0..=9_000.0;

/// The most heights of a grid.
pub(super) const CELLS_MAX: f64 = 1_000_000.0;

/// The sides that a cell may have, in the unit of its coordinates.
const CELL_SIDES: RangeInclusive<f64> = 1e-6..=100_000.0;

/// The largest coordinate of a grid: more than the metres around the Earth.
const COORDINATE_MAX: f64 = 100_000_000.0;

/// A grid in the coordinates of its file. A height is the value in the middle of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileGrid {
    /// The coordinate of the middle of the first column.
    pub(super) west: f64,
    /// The coordinate of the middle of the last row.
    pub(super) south: f64,
    /// The width of a cell.
    pub(super) cell_width: f64,
    /// The height of a cell on the map.
    pub(super) cell_height: f64,
    pub(super) columns: usize,
    pub(super) heights: Heights,
}

/// The heights of a grid, in rows from north to south.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heights {
    pub(super) metres: Vec<f32>,
    /// The number of cells without a height, which count as 0 m.
    pub(super) unknown: usize,
    columns: usize,
    no_data: Option<f64>,
}

/// Checks the number of columns or rows.
pub(super) fn check_count(name: &str, count: f64) -> Result<f64, String> {
    let fits = (2.0..=CELLS_MAX).contains(&count) && count.fract() == 0.0;
    fits.then_some(count).ok_or_else(|| {
        let found = brief(count);
        format!("{name} is {found}, expected a whole number from 2 to {CELLS_MAX}")
    })
}

/// Checks the side of a cell.
pub(super) fn check_cell(name: &str, side: f64) -> Result<f64, String> {
    let (least, most) = (CELL_SIDES.start(), CELL_SIDES.end());
    CELL_SIDES.contains(&side).then_some(side).ok_or_else(|| {
        let found = brief(side);
        format!("{name} is {found}, expected {least} to {most}")
    })
}

/// Checks a coordinate.
pub(super) fn check_coordinate(name: &str, at: f64) -> Result<f64, String> {
    (at.abs() <= COORDINATE_MAX).then_some(at).ok_or_else(|| {
        let found = brief(at);
        format!("{name} is {found}, expected -{COORDINATE_MAX} to {COORDINATE_MAX}")
    })
}

impl Heights {
    /// Makes room for this many heights, which the caller has checked.
    pub(super) fn with_capacity(columns: usize, cells: usize, no_data: Option<f64>) -> Self {
        Self { metres: Vec::with_capacity(cells), unknown: 0, columns, no_data }
    }

    /// Takes the next height. `text` is how the file writes it.
    pub(super) fn push(
        &mut self,
        height_m: f64,
        text: impl FnOnce() -> String,
    ) -> Result<(), String> {
        if self.no_data.is_some_and(|none| is_same(none, height_m)) {
            self.unknown += 1;
            self.metres.push(0.0);
            return Ok(());
        }
        if HEIGHTS_M.contains(&height_m) {
            self.metres.push(height_m as f32);
            return Ok(());
        }
        let (row, column) =
            (self.metres.len() / self.columns + 1, self.metres.len() % self.columns + 1);
        let (min, max) = (HEIGHTS_M.start(), HEIGHTS_M.end());
        let found = text();
        Err(format!(
            "row {row}, column {column} is {found}, expected a height from {min} to {max} m"
        ))
    }
}

/// Returns true if a height is the value that stands for none, in the precision of either.
fn is_same(none: f64, height_m: f64) -> bool {
    none as f32 == height_m as f32 || (none.is_nan() && height_m.is_nan())
}
