//! A grid of heights on the map.

use crate::propagation::area::Spot;

/// Heights at the crossings of a grid of lines, in rows from north to south.
#[derive(Clone, Debug)]
pub(in crate::propagation) struct HeightGrid {
    /// The place of the first height, in the north-west.
    pub(in crate::propagation) corner: Spot,
    /// The distance between two columns.
    pub(in crate::propagation) x_step_m: f64,
    /// The distance between two rows.
    pub(in crate::propagation) y_step_m: f64,
    pub(in crate::propagation) columns: usize,
    pub(in crate::propagation) heights_m: Vec<f32>,
}

impl HeightGrid {
    pub(in crate::propagation) fn rows(&self) -> usize {
        self.heights_m.len() / self.columns.max(1)
    }

    pub(in crate::propagation) fn bytes(&self) -> usize {
        self.heights_m.capacity() * size_of::<f32>()
    }

    /// Returns the height of a place, interpolated between the four heights around it. Beyond the edge, the ground is as high as
    /// at the edge.
    pub(in crate::propagation) fn height_m(&self, spot: Spot) -> f64 {
        let along = |metres: f64, step_m: f64, count: usize| {
            let at = (metres / step_m).clamp(0.0, (count - 1) as f64);
            // A whole number within the grid.
            let before = (at as usize).min(count.saturating_sub(2));
            (before, at - before as f64)
        };
        let (column, right) = along(spot.x_m - self.corner.x_m, self.x_step_m, self.columns);
        let (row, down) = along(self.corner.y_m - spot.y_m, self.y_step_m, self.rows());
        let row_at = |row: usize| {
            let from = row * self.columns + column;
            let next = (from + 1).min((row + 1) * self.columns - 1);
            let (left_m, right_m) =
                (f64::from(self.heights_m[from]), f64::from(self.heights_m[next]));
            left_m + (right_m - left_m) * right
        };
        let (above_m, below_m) = (row_at(row), row_at((row + 1).min(self.rows() - 1)));
        above_m + (below_m - above_m) * down
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_interpolated_and_go_on_beyond_the_edge() {
        let grid = HeightGrid {
            corner: Spot { x_m: 0.0, y_m: 100.0 },
            x_step_m: 50.0,
            y_step_m: 100.0,
            columns: 3,
            heights_m: vec![0.0, 10.0, 20.0, 100.0, 110.0, 120.0],
        };
        for (x_m, y_m, height_m) in [
            (0.0, 100.0, 0.0),
            (100.0, 0.0, 120.0),
            (25.0, 100.0, 5.0),
            (75.0, 50.0, 65.0),
            (50.0, 25.0, 85.0),
            (-10.0, 500.0, 0.0),
            (1e9, -1e9, 120.0),
        ] {
            assert!((grid.height_m(Spot { x_m, y_m }) - height_m).abs() < 1e-9, "{x_m} {y_m}");
        }
        let one = HeightGrid { columns: 1, heights_m: vec![7.0], ..grid };
        assert_eq!(one.height_m(Spot { x_m: 3.0, y_m: 4.0 }), 7.0);
    }
}
