//! A grid as a file has it, in the coordinates of the file, and the limits of all forms of files.

use std::ops::RangeInclusive;

use super::geo_heights::HeightScale;
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
    pub(super) cell_width: f64,
    pub(super) cell_height: f64,
    pub(super) columns: usize,
    pub(super) heights: Heights,
    /// The doubts about the file: the ends of sentences about it.
    pub(super) doubts: Vec<String>,
}

/// The heights of a grid, in rows from north to south.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heights {
    pub(super) metres: Vec<f32>,
    /// The number of cells without a height, which count as 0 m.
    pub(super) unknown: usize,
    columns: usize,
    no_data: Option<f64>,
    scale: HeightScale,
}

/// Checks the number of columns or rows.
pub(super) fn check_count(name: &str, count: f64) -> Result<f64, String> {
    let fits = (2.0..=CELLS_MAX).contains(&count) && count.fract() == 0.0;
    fits.then_some(count).ok_or_else(|| {
        let found = brief(count);
        format!("{name} is {found}, expected a whole number from 2 to {CELLS_MAX}")
    })
}

pub(super) fn check_cell(name: &str, side: f64) -> Result<f64, String> {
    let (least, most) = (CELL_SIDES.start(), CELL_SIDES.end());
    CELL_SIDES.contains(&side).then_some(side).ok_or_else(|| {
        let found = brief(side);
        format!("{name} is {found}, expected {least} to {most}")
    })
}

pub(super) fn check_coordinate(name: &str, at: f64) -> Result<f64, String> {
    (at.abs() <= COORDINATE_MAX).then_some(at).ok_or_else(|| {
        let found = brief(at);
        format!("{name} is {found}, expected -{COORDINATE_MAX} to {COORDINATE_MAX}")
    })
}

impl Heights {
    /// Makes room for this many heights, which the caller has checked. None is known at first.
    pub(super) fn new(columns: usize, cells: usize, no_data: Option<f64>) -> Self {
        let scale = HeightScale::METRES;
        Self { metres: vec![0.0; cells], unknown: cells, columns, no_data, scale }
    }

    /// With the way from a value of the file to a height.
    pub(super) fn scaled(self, scale: HeightScale) -> Self {
        Self { scale, ..self }
    }

    /// Takes the value of a cell, each once. One that is no number, or stands for none, is no height. `text` is how the file writes
    /// it.
    pub(super) fn take(
        &mut self,
        cell: usize,
        value: f64,
        text: impl FnOnce() -> String,
    ) -> Result<(), String> {
        if value.is_nan() || self.no_data.is_some_and(|none| is_same(none, value)) {
            return Ok(());
        }
        let HeightScale { factor, offset_m } = self.scale;
        let height_m = value * factor + offset_m;
        if HEIGHTS_M.contains(&height_m) {
            self.metres[cell] = height_m as f32;
            self.unknown -= 1;
            return Ok(());
        }
        let (row, column) = (cell / self.columns + 1, cell % self.columns + 1);
        let (min, max) = (HEIGHTS_M.start(), HEIGHTS_M.end());
        let found = text();
        let as_metres = match self.scale {
            HeightScale::METRES => String::new(),
            _ => format!(", which is {} m", brief(height_m)),
        };
        Err(format!(
            "row {row}, column {column} is {found}{as_metres}, expected a height from {min} to {max} m"
        ))
    }
}

/// Returns true if a value is the one that stands for none, in the precision of either.
fn is_same(none: f64, value: f64) -> bool {
    none as f32 == value as f32
}
