//! Buildings: polygons of GeoJSON (RFC 7946) with heights.

use super::area::{Area, Frame, Spot};
use super::terrain::HeightGrid;
use crate::reader::{Checked, Members, Node};

/// The most buildings.
const BUILDINGS_MAX: usize = 20_000;

/// The most corners of a ring, and the most rings of a building.
const CORNERS_MAX: usize = 10_000;

/// The most cells of the map of roofs.
const CELLS_MAX: f64 = 1_000_000.0;

/// The smallest cell of the map of roofs: finer than most streets.
const CELL_M_MIN: f64 = 2.0;

/// The height of a floor, for buildings that give their floors alone.
const FLOOR_M: f64 = 3.0;

/// The buildings of a request, on the map.
#[derive(Clone, Debug)]
pub(super) struct Buildings {
    buildings: Vec<Building>,
}

#[derive(Clone, Debug)]
struct Building {
    height_m: f64,
    /// Outlines and holes: a place within an odd number of them is inside.
    rings: Vec<Vec<Spot>>,
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
        let features = collection.require("features")?.items(1..=BUILDINGS_MAX)?;
        let buildings = features.map(|feature| Building::read(&feature, area));
        Ok(Self { buildings: buildings.collect::<Checked<_>>()? })
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

    /// Draws the roofs on a map, as heights above ground. Asks before each row of each building whether to go on.
    pub(super) fn roofs<E>(
        &self,
        area: &Area,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<HeightGrid, E> {
        let cell_m = (area.width_m * area.height_m / CELLS_MAX).sqrt().max(CELL_M_MIN);
        // At most about CELLS_MAX cells together, and at most 200 km / 2 m in one direction.
        let [columns, rows] =
            [area.width_m, area.height_m].map(|side_m| (side_m / cell_m) as usize + 2);
        let mut heights_m = vec![0.0_f32; columns * rows];
        let north_m = (rows - 1) as f64 * cell_m;
        for building in &self.buildings {
            building.draw(&mut heights_m, columns, north_m, cell_m, &mut check)?;
        }
        let corner = Spot { x_m: 0.0, y_m: north_m };
        Ok(HeightGrid { corner, x_step_m: cell_m, y_step_m: cell_m, columns, heights_m })
    }
}

impl Building {
    fn read(node: &Node<'_>, area: &Area) -> Checked<Self> {
        let feature = node.open_object()?;
        feature.word("type", &[("Feature", ())])?;
        let properties = feature.require("properties")?.open_object()?;
        let height_m = match properties.get("building:levels") {
            Some(levels) if properties.get("height").is_none() => {
                FLOOR_M * levels.number(1.0..=150.0, "levels")?
            }
            _ => properties.number("height", 1.0..=1_000.0, "m")?,
        };
        let geometry = feature.require("geometry")?.open_object()?;
        Ok(Self { height_m, rings: read_rings(&geometry, area)? })
    }

    /// The area within the rings, where holes run the other way round.
    fn area_m2(&self) -> f64 {
        let twice = |ring: &Vec<Spot>| -> f64 {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).map(|(from, to)| from.x_m * to.y_m - to.x_m * from.y_m).sum()
        };
        self.rings.iter().map(twice).sum::<f64>().abs() / 2.0
    }

    /// Draws the roof: in each row of cells between the crossings of the row with the rings.
    fn draw<E>(
        &self,
        heights_m: &mut [f32],
        columns: usize,
        north_m: f64,
        cell_m: f64,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let ys = || self.rings.iter().flatten().map(|spot| (north_m - spot.y_m) / cell_m);
        let rows = heights_m.len() / columns;
        // Saturates at 0, and ends at the last row.
        let (first, last) =
            (ys().fold(f64::MAX, f64::min).ceil() as usize, ys().fold(0.0, f64::max) as usize);
        for row in first..=last.min(rows - 1) {
            check()?;
            let mut crossings = self.crossings(north_m - row as f64 * cell_m);
            crossings.sort_by(f64::total_cmp);
            for pair in crossings.chunks_exact(2) {
                let cells = (pair[0] / cell_m).ceil().max(0.0) as usize
                    ..=(pair[1] / cell_m).max(0.0) as usize;
                for column in cells.take_while(|column| *column < columns) {
                    let cell = &mut heights_m[row * columns + column];
                    *cell = cell.max(self.height_m as f32);
                }
            }
        }
        Ok(())
    }

    /// The places at which the rings cross a line from west to east.
    fn crossings(&self, y_m: f64) -> Vec<f64> {
        let sides = self.rings.iter().flat_map(|ring| ring.iter().zip(ring.iter().cycle().skip(1)));
        let crossing = |(from, to): (&Spot, &Spot)| {
            let part = (y_m - from.y_m) / (to.y_m - from.y_m);
            ((from.y_m > y_m) != (to.y_m > y_m)).then_some(from.x_m + part * (to.x_m - from.x_m))
        };
        sides.filter_map(crossing).collect()
    }
}

fn read_rings(geometry: &Members<'_>, area: &Area) -> Checked<Vec<Vec<Spot>>> {
    let is_one = geometry.word("type", &[("Polygon", true), ("MultiPolygon", false)])?;
    let coordinates = geometry.require("coordinates")?;
    let polygons: Vec<_> =
        if is_one { vec![coordinates] } else { coordinates.items(1..=CORNERS_MAX)?.collect() };
    let mut rings = Vec::new();
    for polygon in &polygons {
        for ring in polygon.items(1..=CORNERS_MAX)? {
            let corners = ring.items(4..=CORNERS_MAX)?;
            rings.push(corners.map(|corner| read_corner(&corner, area)).collect::<Checked<_>>()?);
        }
    }
    Ok(rings)
}

/// Reads a position. A building may reach beyond the area, but not far.
fn read_corner(node: &Node<'_>, area: &Area) -> Checked<Spot> {
    let mut parts = node.items(2..=3)?;
    let (range, unit) = match area.frame {
        Frame::Local => (-1e6..=1e6, "m"),
        Frame::Wgs84 { .. } => (-180.0..=180.0, "degrees"),
    };
    let mut next = || parts.next().map_or(Ok(0.0), |part| part.number(range.clone(), unit));
    let (east, north) = (next()?, next()?);
    Ok(area.frame.spot(east, north))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn area() -> Area {
        let request = json!({"area": {"width_m": 100, "height_m": 100}, "step_m": 10});
        Area::read(&Node::root(&request).open_object().unwrap()).unwrap()
    }

    fn never() -> Result<(), std::convert::Infallible> {
        Ok(())
    }

    fn square(x: f64, y: f64, side: f64) -> Value {
        json!([[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]])
    }

    fn house(height: &Value, rings: &Value) -> Value {
        json!({"type": "Feature", "properties": {"height": height}, "geometry": {"type": "Polygon", "coordinates": rings}})
    }

    fn read(features: &Value) -> Checked<Buildings> {
        let collection = json!({"type": "FeatureCollection", "features": features});
        Buildings::read(&Node::root(&collection), &area())
    }

    #[test]
    fn the_shape_of_a_city_is_that_of_its_squares() {
        // Four houses of 20 m x 20 m whose middles are 60 m apart, in a box of 80 m x 80 m.
        let houses = json!([
            house(&json!(10), &json!([square(0.0, 0.0, 20.0)])),
            house(&json!(20), &json!([square(60.0, 0.0, 20.0)])),
            house(&json!(10), &json!([square(0.0, 60.0, 20.0)])),
            {"type": "Feature", "properties": {"building:levels": 4},
             "geometry": {"type": "MultiPolygon", "coordinates": [[square(60.0, 60.0, 20.0)]]}},
        ]);
        let shape = read(&houses).unwrap().shape();
        assert_eq!(shape, Shape { height_m: 13.0, separation_m: 40.0, street_m: 20.0 });
    }

    #[test]
    fn roofs_cover_their_houses_and_not_the_yards() {
        let mut yard = square(40.0, 40.0, 20.0);
        yard.as_array_mut().unwrap().reverse();
        let houses = json!([house(&json!(15), &json!([square(20.0, 20.0, 60.0), yard]))]);
        let buildings = read(&houses).unwrap();
        let roofs = buildings.roofs(&area(), never).unwrap();
        for (x_m, y_m, height_m) in [
            (10.0, 50.0, 0.0),
            (30.0, 50.0, 15.0),
            (50.0, 50.0, 0.0),
            (70.0, 30.0, 15.0),
            (50.0, 90.0, 0.0),
        ] {
            assert_eq!(roofs.height_m(Spot { x_m, y_m }), height_m, "{x_m} {y_m}");
        }
        assert!((buildings.buildings[0].area_m2() - 3_200.0).abs() < 1e-6);
        // A house beyond the area draws nothing, and does not end the program.
        let far = json!([
            house(&json!(15), &json!([square(-900.0, -900.0, 10.0)])),
            house(&json!(15), &json!([square(900.0, 900.0, 10.0)]))
        ]);
        assert!(
            read(&far).unwrap().roofs(&area(), never).unwrap().heights_m.iter().all(|m| *m == 0.0)
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let good = json!([square(0.0, 0.0, 20.0)]);
        for (feature, place) in [
            (house(&json!(-3), &good), "/features/0/properties/height"),
            (house(&json!("12 m"), &good), "/features/0/properties/height"),
            (house(&Value::Null, &good), "/features/0/properties/height"),
            (
                house(&json!(3), &json!([[[0, 0], [1, 0], [0, 0]]])),
                "/features/0/geometry/coordinates/0",
            ),
            (
                house(&json!(3), &json!([[[0, 0], [1, "x"], [1, 1], [0, 0]]])),
                "/features/0/geometry/coordinates/0/1/1",
            ),
            (
                house(&json!(3), &json!([[[0, 0], [1], [1, 1], [0, 0]]])),
                "/features/0/geometry/coordinates/0/1",
            ),
            (
                json!({"type": "Feature", "properties": {"height": 3}, "geometry": {"type": "Point"}}),
                "/features/0/geometry/type",
            ),
            (json!({"type": "Feature", "geometry": null}), "/features/0/properties"),
        ] {
            let Err(anemone_hub::run::RunRefusal::Unprocessable { pointer, .. }) =
                read(&json!([feature]))
            else {
                panic!("{feature}")
            };
            assert_eq!(pointer.as_deref(), Some(place));
        }
    }
}
