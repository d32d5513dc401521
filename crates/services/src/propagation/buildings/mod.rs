//! Buildings: polygons of GeoJSON (RFC 7946) with heights.
//!
//! Maps have odd features, and one of them does not spoil a city: it is left out and counted. Only where none is left, the request
//! is refused.

mod crs;
mod feature;
mod height;
mod left_out;

use self::feature::{Feature, Rings};
use self::left_out::LeftOut;
use super::area::{Area, Spot};
use super::roofs::{Roof, RoofGrid};
use super::terrain::HeightGrid;
use crate::reader::{Checked, Node, brief};

const BUILDINGS_MAX: usize = 20_000;

/// The most rows of the map of roofs that the sides of all buildings may cross together. So many take a few milliseconds, and no
/// city that fits a request has more.
const CROSSINGS_MAX: usize = 1_000_000;

#[derive(Clone, Debug)]
pub(super) struct Buildings {
    buildings: Vec<Building>,
    /// The doubts about them, in sentences.
    doubts: Vec<String>,
}

#[derive(Clone, Debug)]
struct Building {
    height_m: f64,
    /// Outlines and holes: a place within an odd number of them is inside.
    rings: Rings,
}

/// The figures that the urban model needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// The mean height, by the areas of the buildings.
    pub(super) height_m: f64,
    /// The separation of buildings: the side of the square that each has for itself.
    pub(super) separation_m: f64,
    /// The part of that side which a building of mean area leaves free.
    pub(super) street_m: f64,
}

impl Buildings {
    /// Reads a `FeatureCollection`.
    pub(super) fn read(node: &Node<'_>, area: &Area) -> Checked<Self> {
        let collection = node.open_object()?;
        collection.word("type", &[("FeatureCollection", ())])?;
        let mut doubts: Vec<_> = crs::check(&collection, area)?.into_iter().collect();
        let features = collection.require("features")?.items(1..=BUILDINGS_MAX)?;
        let grid = RoofGrid::new(area);
        let (mut left_out, mut crossings) = (LeftOut::new(features.len()), 0);
        let (mut rings, mut heights) = (Vec::new(), Vec::new());
        for (index, node) in features.enumerate() {
            let found = match Feature::read(&node, area) {
                Feature::Building { rings, height } => (rings, height),
                Feature::Outside(corner) => {
                    left_out.count_outside(corner, area);
                    continue;
                }
                Feature::Odd => {
                    left_out.count_odd(index);
                    continue;
                }
            };
            crossings += grid.crossings(&found.0);
            if crossings > CROSSINGS_MAX {
                let most = brief(CROSSINGS_MAX as f64 * grid.cell_m / 1e3);
                return Err(node.unfit(format!(
                    "with this building, the sides of all lead over more than {most} km from south to north, which is the most"
                )));
            }
            rings.push(found.0);
            heights.push(found.1);
        }
        if rings.is_empty() {
            return Err(collection.unfit("features", left_out.fault(area)));
        }
        let Some(metres) = height::in_metres(&heights) else {
            let fault = "none of the buildings has a height in metres, or building:levels";
            return Err(collection.unfit("features", fault));
        };
        doubts.extend(left_out.doubts());
        doubts.extend(height::doubts(&heights));
        let buildings = rings.into_iter().zip(metres);
        let buildings = buildings.map(|(rings, height_m)| Building { height_m, rings }).collect();
        Ok(Self { buildings, doubts })
    }

    /// Returns what there is to say about them, in sentences.
    pub(super) fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Returns the mean shape of the city. The ground of the buildings is the box around all of them.
    pub(super) fn shape(&self) -> Shape {
        let areas: Vec<f64> = self.buildings.iter().map(Building::area_m2).collect();
        let built_m2: f64 = areas.iter().sum::<f64>().max(1.0);
        let heights =
            self.buildings.iter().zip(&areas).map(|(building, area)| building.height_m * area);
        let count = self.buildings.len() as f64;
        let spots = || self.buildings.iter().flat_map(|building| building.rings.iter().flatten());
        let side = |of: fn(&Spot) -> f64| {
            let (low, high) = spots()
                .map(of)
                .fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
            high - low
        };
        let ground_m2 = (side(|spot| spot.x_m) * side(|spot| spot.y_m)).max(built_m2);
        let separation_m = (ground_m2 / count).sqrt().clamp(1.0, 1_000.0);
        Shape {
            height_m: (heights.sum::<f64>() / built_m2).clamp(1.0, 500.0),
            separation_m,
            street_m: (separation_m - (built_m2 / count).sqrt()).clamp(1.0, 500.0),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let of_ring = |ring: &Vec<Spot>| size_of_val(ring) + ring.capacity() * size_of::<Spot>();
        let rings = self.buildings.iter().map(|building| {
            let spare = building.rings.capacity() - building.rings.len();
            spare * size_of::<Vec<Spot>>() + building.rings.iter().map(of_ring).sum::<usize>()
        });
        rings.sum::<usize>() + self.buildings.capacity() * size_of::<Building>()
    }

    /// Draws the roofs on a map, as heights above ground. Asks again and again whether to go on.
    pub(super) fn roofs<E>(
        &self,
        area: &Area,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<HeightGrid, E> {
        let roofs = self.buildings.iter();
        let roofs = roofs.map(|of| Roof { height_m: of.height_m, rings: &of.rings });
        RoofGrid::new(area).draw(roofs.collect(), check)
    }
}

impl Building {
    fn area_m2(&self) -> f64 {
        feature::area_m2(&self.rings)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
