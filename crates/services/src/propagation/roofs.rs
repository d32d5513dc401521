//! The map of roofs: which cells of an area lie within which building.
//!
//! The work is bounded by the sides of the buildings, and by the cells, each of which is drawn once however many buildings are
//! above each other: the highest comes first.

use std::ops::Range;

use super::area::{Area, Spot};
use super::terrain::HeightGrid;

const CELLS_MAX: f64 = 1_000_000.0;

/// The smallest cell: finer than most streets.
const CELL_M_MIN: f64 = 2.0;

/// The most sides, or crossings that are sorted or drawn, between two looks at whether to go on. Finding all the crossings that a
/// building may have takes some milliseconds.
const PIECE: usize = 1 << 14;

/// A roof: its height above ground, and the outlines and holes of its building. A place within an odd number of these is
/// below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roof<'a> {
    pub(super) height_m: f64,
    pub(super) rings: &'a [Vec<Spot>],
}

/// The cells of the map. A row is the line from west to east through the middles of its cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoofGrid {
    pub(super) cell_m: f64,
    /// The place of row 0.
    north_m: f64,
    columns: usize,
    rows: usize,
}

/// The place at which a side crosses a row.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    row: usize,
    x_m: f64,
}

/// The map while it is drawn.
struct Drawing {
    grid: RoofGrid,
    heights_m: Vec<f32>,
    /// For each cell, and for the end of each row: itself if it is free, or else a later cell that is not behind the next free one.
    free: Vec<u32>,
}

impl RoofGrid {
    pub(super) fn new(area: &Area) -> Self {
        let cell_m = (area.width_m * area.height_m / CELLS_MAX).sqrt().max(CELL_M_MIN);
        // At most about CELLS_MAX cells together, and at most 200 km / 2 m in one direction.
        let [columns, rows] =
            [area.width_m, area.height_m].map(|side_m| (side_m / cell_m) as usize + 2);
        Self { cell_m, north_m: (rows - 1) as f64 * cell_m, columns, rows }
    }

    /// Returns the bytes of the map, and those that it takes while it is drawn.
    pub(super) fn bytes(&self) -> [usize; 2] {
        let heights = self.rows * self.columns * size_of::<f32>();
        [heights, heights + self.rows * (self.columns + 1) * size_of::<u32>()]
    }

    /// Returns the rows that a side crosses: those at its lower end and above it, and below its upper end.
    fn rows_between(&self, from: Spot, to: Spot) -> Range<usize> {
        let next = |y_m: f64| {
            let row = ((self.north_m - y_m) / self.cell_m).floor() + 1.0;
            // Within the map.
            row.clamp(0.0, self.rows as f64) as usize
        };
        next(from.y_m.max(to.y_m))..next(from.y_m.min(to.y_m))
    }

    /// Returns how often the sides of rings cross a row.
    pub(super) fn crossings(&self, rings: &[Vec<Spot>]) -> usize {
        sides(rings).map(|(from, to)| self.rows_between(from, to).len()).sum()
    }

    /// Returns the crossings of the rings, by rows and from west to east.
    fn crossed<E>(
        &self,
        rings: &[Vec<Spot>],
        check: &impl Fn() -> Result<(), E>,
    ) -> Result<Vec<Crossing>, E> {
        let mut crossings = Vec::with_capacity(self.crossings(rings));
        for (number, (from, to)) in sides(rings).enumerate() {
            if number.is_multiple_of(PIECE) {
                check()?;
            }
            let slope = (to.x_m - from.x_m) / (to.y_m - from.y_m);
            for row in self.rows_between(from, to) {
                let y_m = self.north_m - row as f64 * self.cell_m;
                crossings.push(Crossing { row, x_m: from.x_m + slope * (y_m - from.y_m) });
            }
        }
        sort(&mut crossings, check)?;
        Ok(crossings)
    }

    /// Draws roofs, as heights above ground. Asks before each and within it whether to go on.
    pub(super) fn draw<E>(
        self,
        mut roofs: Vec<Roof<'_>>,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<HeightGrid, E> {
        roofs.sort_by(|one, other| other.height_m.total_cmp(&one.height_m));
        // About CELLS_MAX.
        let ends = (self.rows * (self.columns + 1)) as u32;
        let heights_m = vec![0.0; self.rows * self.columns];
        let mut drawing = Drawing { grid: self, heights_m, free: (0..ends).collect() };
        for roof in roofs {
            for piece in self.crossed(roof.rings, &check)?.chunks(PIECE) {
                check()?;
                // A closed ring crosses a row an even number of times.
                for pair in piece.chunks_exact(2) {
                    drawing.fill(pair[0].row, pair[0].x_m, pair[1].x_m, roof.height_m as f32);
                }
            }
        }
        let corner = Spot { x_m: 0.0, y_m: self.north_m };
        let (step_m, columns, heights_m) = (self.cell_m, self.columns, drawing.heights_m);
        Ok(HeightGrid { corner, x_step_m: step_m, y_step_m: step_m, columns, heights_m })
    }
}

impl Drawing {
    /// Gives a height to the free cells of a row between two places.
    fn fill(&mut self, row: usize, west_m: f64, east_m: f64, height_m: f32) {
        let RoofGrid { cell_m, columns, .. } = self.grid;
        // A column, or the one behind the last.
        let column = |at: f64| at.clamp(0.0, columns as f64) as usize;
        let begin = row * (columns + 1);
        let end = begin + column((east_m / cell_m).floor() + 1.0);
        let mut at = self.next_free(begin + column((west_m / cell_m).ceil()));
        while at < end {
            self.heights_m[at - row] = height_m;
            self.free[at] += 1;
            at = self.next_free(at);
        }
    }

    /// Finds the next free cell, or the end of the row, and shortens the way there.
    fn next_free(&mut self, mut at: usize) -> usize {
        loop {
            let next = self.free[at] as usize;
            if next == at {
                return at;
            }
            self.free[at] = self.free[next];
            at = next;
        }
    }
}

/// Sorts crossings by rows, and from west to east.
fn sort<E>(crossings: &mut [Crossing], check: &impl Fn() -> Result<(), E>) -> Result<(), E> {
    check()?;
    let order = |one: &Crossing, other: &Crossing| {
        one.row.cmp(&other.row).then(one.x_m.total_cmp(&other.x_m))
    };
    if crossings.len() <= PIECE {
        crossings.sort_unstable_by(order);
        return Ok(());
    }
    // Both halves apart, so that none of the steps takes long.
    let (before, _, after) = crossings.select_nth_unstable_by(crossings.len() / 2, order);
    sort(before, check)?;
    sort(after, check)
}

/// Returns the sides of all rings. The last corner of a ring is joined to the first.
fn sides(rings: &[Vec<Spot>]) -> impl Iterator<Item = (Spot, Spot)> {
    let of_ring = |ring: &'_ Vec<Spot>| {
        let last = ring.len().saturating_sub(1);
        (last, ring.first().copied())
    };
    rings.iter().flat_map(move |ring| {
        let (last, first) = of_ring(ring);
        let next = move |at: usize| if at == last { first } else { ring.get(at + 1).copied() };
        ring.iter().enumerate().filter_map(move |(at, from)| Some((*from, next(at)?)))
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::f64::consts::{FRAC_1_PI, FRAC_1_SQRT_2};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::reader::Node;

    fn area() -> Area {
        let request = json!({"area": {"width_m": 60, "height_m": 40}, "step_m": 10});
        Area::read(&Node::root(&request).open_object().unwrap()).unwrap()
    }

    /// Returns true if a line from a place to the east crosses the rings an odd number of times.
    fn is_within(rings: &[Vec<Spot>], x_m: f64, y_m: f64) -> bool {
        let crosses = |ring: &Vec<Spot>| {
            let next = ring.iter().cycle().skip(1);
            let sides = ring.iter().zip(next);
            let cut = sides.filter(|(from, to)| (from.y_m > y_m) != (to.y_m > y_m));
            let east = cut.filter(|(from, to)| {
                let slope = (to.x_m - from.x_m) / (to.y_m - from.y_m);
                from.x_m + slope * (y_m - from.y_m) > x_m
            });
            east.count()
        };
        rings.iter().map(crosses).sum::<usize>() % 2 == 1
    }

    #[test]
    fn a_building_with_many_crossings_asks_again_and_again() {
        // Each side crosses all rows of the map.
        let grid = RoofGrid::new(&area());
        let corner = |at: usize| Spot {
            x_m: (at * 7 % 61) as f64 + FRAC_1_PI,
            y_m: if at.is_multiple_of(2) { -10.0 } else { 70.0 },
        };
        let rings = [(0..300_000 / grid.rows).map(corner).collect::<Vec<_>>()];
        let count = grid.crossings(&rings);
        assert!(count > 290_000, "{count}");
        let roof = || vec![Roof { height_m: 9.0, rings: &rings }];
        let asked = std::cell::Cell::new(0);
        let ask = |until: usize| {
            asked.set(0);
            let check = || {
                asked.set(asked.get() + 1);
                if asked.get() < until { Ok(()) } else { Err(until) }
            };
            grid.draw(roof(), check).map(drop)
        };
        assert_eq!(ask(usize::MAX), Ok(()));
        let all = asked.get();
        // When the crossings are found, in each step of the sort, and when they are drawn.
        assert!(all > 2 * count / PIECE, "asks {all} times");
        for until in [1, 2, all / 2, all] {
            assert_eq!((ask(until), asked.get()), (Err(until), until), "it stops at once");
        }
        let sorted = grid.crossed(&rings, &|| Ok::<_, Infallible>(())).unwrap();
        assert!(sorted.is_sorted_by(|one, other| (one.row, one.x_m) <= (other.row, other.x_m)));
    }

    proptest! {
        #[test]
        fn each_cell_has_the_highest_roof_above_it(
            roofs in prop::collection::vec(
                (1..9_u8, prop::collection::vec(
                    // Corners off the middles of cells by irrational parts, so that no side goes through one: there the two
                    // ways may differ.
                    prop::collection::vec((-30_i32..90, -30_i32..70), 3..9), 1..3)),
                0..6,
            ),
        ) {
            let spot = |(x, y): &(i32, i32)| Spot {
                x_m: f64::from(*x) + FRAC_1_PI,
                y_m: f64::from(*y) + FRAC_1_SQRT_2,
            };
            let rings = |rings: &Vec<Vec<(i32, i32)>>| -> Vec<Vec<Spot>> {
                rings.iter().map(|ring| ring.iter().map(spot).collect()).collect()
            };
            let roofs: Vec<_> =
                roofs.iter().map(|(height, of)| (f64::from(*height), rings(of))).collect();
            let all = roofs.iter().map(|(height_m, rings)| Roof { height_m: *height_m, rings });
            let grid = RoofGrid::new(&area());
            let Ok(map) = grid.draw(all.collect(), || Ok::<_, Infallible>(()));
            for (at, found) in map.heights_m.iter().enumerate() {
                let (column, row) = (at % map.columns, at / map.columns);
                let (x_m, y_m) = (column as f64 * 2.0, grid.north_m - row as f64 * 2.0);
                let above = roofs.iter().filter(|(_, rings)| is_within(rings, x_m, y_m));
                let highest = above.map(|(height_m, _)| *height_m).fold(0.0, f64::max);
                prop_assert_eq!(f64::from(*found), highest, "column {}, row {}", column, row);
            }
        }
    }
}
