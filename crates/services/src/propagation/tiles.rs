//! The tiles of a grid, from coarse to fine.
//!
//! The first level has every `stride`-th point of each direction, for the largest stride. Each further level halves the
//! stride and has the points that no level before it has. So all levels together have each point exactly once.

use std::ops::Range;

use serde::Serialize;

/// The points of a side of a tile at its own stride.
const SIDE: usize = 64;

/// The most points of the first level, which should be there at once.
const FIRST_POINTS_MAX: usize = 1_024;

/// A part of one level: its points within a rectangle of the grid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Tile {
    /// 0 for the coarsest level.
    pub(super) level: usize,
    /// The distance between points of this level and those before it, in steps of the grid.
    pub(super) stride: usize,
    pub(super) column: usize,
    pub(super) row: usize,
    pub(super) columns: usize,
    pub(super) rows: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Tiles {
    columns: usize,
    rows: usize,
    first: usize,
    levels: Vec<Range<usize>>,
}

impl Tiles {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let mut first = 1;
        while columns.div_ceil(first) * rows.div_ceil(first) > FIRST_POINTS_MAX {
            first *= 2;
        }
        let mut tiles = Self { columns, rows, first, levels: Vec::new() };
        let (mut stride, mut begin) = (first, 0);
        while stride > 0 {
            let side = SIDE * stride;
            let end = begin + columns.div_ceil(side) * rows.div_ceil(side);
            tiles.levels.push(begin..end);
            (stride, begin) = (stride / 2, end);
        }
        tiles
    }

    pub(super) fn len(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end)
    }

    pub(super) fn levels(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<Tile> {
        let level = self.levels.iter().position(|level| level.contains(&number))?;
        let stride = self.first >> level;
        let (side, at) = (SIDE * stride, number - self.levels[level].start);
        let across = self.columns.div_ceil(side);
        let (column, row) = (at % across * side, at / across * side);
        Some(Tile {
            level,
            stride,
            column,
            row,
            columns: side.min(self.columns - column),
            rows: side.min(self.rows - row),
        })
    }
}

impl Tile {
    /// Returns its rows that have points, each with the columns of these: from the first one, with this step.
    pub(super) fn rows(self) -> impl Iterator<Item = (usize, std::iter::StepBy<Range<usize>>)> {
        let rows = (self.row..self.row + self.rows).step_by(self.stride);
        rows.map(move |row| {
            let columns = self.column..self.column + self.columns;
            let is_new = self.level == 0 || !row.is_multiple_of(2 * self.stride);
            let (skip, step) =
                if is_new { (0, self.stride) } else { (self.stride, 2 * self.stride) };
            (row, (columns.start + skip..columns.end.max(columns.start + skip)).step_by(step))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(columns: usize, rows: usize) -> Vec<u8> {
        let tiles = Tiles::new(columns, rows);
        let mut seen = vec![0; columns * rows];
        for tile in (0..tiles.len()).filter_map(|number| tiles.get(number)) {
            for (row, of_row) in tile.rows() {
                of_row.for_each(|column| seen[row * columns + column] += 1);
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn all_tiles_together_have_each_point_once(columns in 1..400_usize, rows in 1..400_usize) {
            prop_assert!(seen(columns, rows).iter().all(|count| *count == 1));
        }
    }

    #[test]
    fn the_first_level_is_small_and_each_further_one_halves_the_stride() {
        let tiles = Tiles::new(1_000, 1_000);
        assert_eq!(
            tiles.get(0),
            Some(Tile { level: 0, stride: 32, column: 0, row: 0, columns: 1_000, rows: 1_000 })
        );
        assert_eq!(tiles.levels(), 6);
        let all: Vec<_> = (0..tiles.len()).filter_map(|number| tiles.get(number)).collect();
        assert!(all.windows(2).all(|pair| pair[0].level <= pair[1].level));
        let strides: std::collections::BTreeSet<_> = all.iter().map(|tile| tile.stride).collect();
        assert_eq!(strides.into_iter().collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
        assert!(all.iter().all(|tile| tile.columns.div_ceil(tile.stride) <= SIDE));
        assert_eq!(tiles.get(tiles.len()), None);
        assert!(seen(1_000, 1_000).iter().all(|count| *count == 1));
        for (columns, rows) in [(1, 1), (1_500_000, 1), (1, 1_500_000)] {
            assert!(seen(columns, rows).iter().all(|count| *count == 1));
        }
    }
}
