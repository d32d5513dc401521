//! A valley that the program makes itself, for demonstrations and tests.

use std::f64::consts::TAU;

use super::grid::HeightGrid;
use crate::propagation::area::{Area, Spot};

/// The columns and rows of the grid.
const SIDE: usize = 256;

pub(super) const VALLEY_BYTES: usize = SIDE * SIDE * size_of::<f32>();

/// Makes a valley that winds through the area from south to north between hills of this height.
pub(super) fn valley(area: &Area, depth_m: f64) -> HeightGrid {
    let last = (SIDE - 1) as f64;
    let height_m = |at: usize| {
        let (x, y) = ((at % SIDE) as f64 / last, 1.0 - (at / SIDE) as f64 / last);
        let middle = 0.5 + 0.14 * (TAU * 1.2 * y).sin();
        let away = ((x - middle).abs() / 0.38).min(1.0);
        let slope = away * away * (3.0 - 2.0 * away);
        let hills = 0.18 * (TAU * (2.3 * x + 0.7 * y)).sin() * (TAU * 2.9 * y).cos();
        (300.0 + depth_m * slope * (1.0 + hills)) as f32
    };
    HeightGrid {
        corner: Spot { x_m: 0.0, y_m: area.height_m },
        x_step_m: area.width_m / last,
        y_step_m: area.height_m / last,
        columns: SIDE,
        heights_m: (0..SIDE * SIDE).map(height_m).collect(),
    }
}
