//! The features that are left out: how many, and why.

use crate::propagation::area::{Area, Spot};
use crate::reader::brief;

#[derive(Clone, Copy, Debug)]
pub(super) struct LeftOut {
    /// The number of all features.
    all: usize,
    /// Those that are no building, and the index of the first of them.
    odd: usize,
    first_odd: usize,
    /// Buildings outside the area, and the ends of the coordinates of one corner of each: to the east, and to the north.
    outside: usize,
    low: [f64; 2],
    high: [f64; 2],
    /// Those that would be in the area with the other coordinate first.
    swapped: usize,
}

impl LeftOut {
    pub(super) fn new(all: usize) -> Self {
        let (low, high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        Self { all, odd: 0, first_odd: 0, outside: 0, low, high, swapped: 0 }
    }

    pub(super) fn count_odd(&mut self, index: usize) {
        if self.odd == 0 {
            self.first_odd = index;
        }
        self.odd += 1;
    }

    pub(super) fn count_outside(&mut self, corner: [f64; 2], area: &Area) {
        self.outside += 1;
        let Spot { x_m, y_m } = area.frame.spot(corner[1], corner[0]);
        let is_swapped =
            (0.0..=area.width_m).contains(&x_m) && (0.0..=area.height_m).contains(&y_m);
        self.swapped += usize::from(is_swapped);
        for (at, coordinate) in corner.into_iter().enumerate() {
            self.low[at] = self.low[at].min(coordinate);
            self.high[at] = self.high[at].max(coordinate);
        }
    }

    /// Returns what there is to say about them, in sentences.
    pub(super) fn doubts(&self) -> impl Iterator<Item = String> {
        let Self { all, odd, first_odd, outside, .. } = *self;
        let odd = (odd > 0).then(|| {
            format!(
                "features that are no polygon with the area of a building: {odd} of {all}, the first at /buildings/features/{first_odd}; they are left out"
            )
        });
        let outside = (outside > 0)
            .then(|| format!("buildings outside the area: {outside} of {all}; they are left out"));
        odd.into_iter().chain(outside)
    }

    /// Returns why no building is left.
    pub(super) fn fault(&self, area: &Area) -> String {
        if self.outside == 0 {
            return "none of the features is a polygon with the area of a building, in the unit of the map"
                .to_owned();
        }
        let [east, north] = area.frame.names();
        let [(west, south), (to_east, to_north)] =
            [self.low, self.high].map(|[east, north]| (east, north));
        let ends = |low: f64, high: f64| format!("from {} to {}", brief(low), brief(high));
        let hint = if 2 * self.swapped > self.outside {
            ": GeoJSON has the coordinate to the east first"
        } else {
            ""
        };
        format!(
            "all buildings are outside the area: {east} {}, {north} {}{hint}",
            ends(west, to_east),
            ends(south, to_north)
        )
    }
}
