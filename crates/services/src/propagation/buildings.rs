//! Buildings: polygons of GeoJSON (RFC 7946) with heights.

use std::ops::RangeInclusive;

use super::area::{Area, CORNER_M_MAX, Frame, Spot};
use super::roofs::{Roof, RoofGrid};
use super::terrain::HeightGrid;
use crate::reader::{Checked, Members, Node, brief};

/// The most buildings.
const BUILDINGS_MAX: usize = 20_000;

/// The most corners of a ring, and the most rings of a building.
const CORNERS_MAX: usize = 10_000;

/// The most rows of the map of roofs that the sides of all buildings may cross together: what a few milliseconds suffice for,
/// and more than a city within a request has.
const CROSSINGS_MAX: usize = 1_000_000;

/// The height of a floor, for buildings that give their floors alone.
const FLOOR_M: f64 = 3.0;

/// The buildings of a request, on the map.
#[derive(Clone, Debug)]
pub(super) struct Buildings {
    buildings: Vec<Building>,
    /// The number of those that give no height, of which maps have many: they have the mean of the others.
    assumed: usize,
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
        let grid = RoofGrid::new(area);
        let (mut buildings, mut crossings) = (Vec::with_capacity(features.len()), 0);
        let (mut known_m, mut unknown) = (0.0, Vec::new());
        for (index, feature) in features.enumerate() {
            let (height_m, rings) = read_building(&feature, area)?;
            crossings += grid.crossings(&rings);
            known_m += height_m.unwrap_or_default();
            if height_m.is_none() {
                unknown.push(index);
            }
            buildings.push(Building { height_m: height_m.unwrap_or_default(), rings });
            if crossings > CROSSINGS_MAX {
                let most = brief(CROSSINGS_MAX as f64 * grid.cell_m / 1e3);
                return Err(feature.unfit(format!(
                    "with this building, the sides of all lead over more than {most} km from south to north, which is the most"
                )));
            }
        }
        let known = buildings.len() - unknown.len();
        if known == 0 {
            return Err(collection
                .unfit("features", "none of the buildings has a height, or building:levels"));
        }
        for &index in &unknown {
            buildings[index].height_m = known_m / known as f64;
        }
        Ok(Self { buildings, assumed: unknown.len() })
    }

    /// Returns what there is to say about the heights that were assumed, if there are any.
    pub(super) fn doubt(&self) -> Option<String> {
        let (assumed, all) = (self.assumed, self.buildings.len());
        (assumed > 0).then(|| {
            format!(
                "buildings without a height: {assumed} of {all}; each counts with the mean of the others"
            )
        })
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

    /// Returns the bytes of memory that they take.
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
    /// The area within the rings.
    fn area_m2(&self) -> f64 {
        self.rings.iter().map(|ring| turn(ring)).sum::<f64>() / 2.0
    }
}

/// Reads the height of a building, if it gives one, and its rings.
fn read_building(node: &Node<'_>, area: &Area) -> Checked<(Option<f64>, Vec<Vec<Spot>>)> {
    let feature = node.open_object()?;
    feature.word("type", &[("Feature", ())])?;
    let properties = feature.require("properties")?;
    let height_m = match properties.is_null() {
        true => None,
        false => read_height(&properties.open_object()?)?,
    };
    let geometry = feature.require("geometry")?.open_object()?;
    Ok((height_m, read_rings(&geometry, area)?))
}

fn read_height(properties: &Members<'_>) -> Checked<Option<f64>> {
    let is_empty = |value: &Node<'_>| value.is_null() || value.as_text() == Some("");
    let has = |name| properties.get(name).is_some_and(|value| !is_empty(&value));
    if has("height") {
        return read_tag(properties, "height", 1.0..=1_000.0, "m").map(Some);
    }
    if has("building:levels") {
        let levels = read_tag(properties, "building:levels", 1.0..=150.0, "levels")?;
        return Ok(Some(FLOOR_M * levels));
    }
    Ok(None)
}

/// Reads a number, or a text of one: converters of OpenStreetMap write tags as texts, and heights may have their unit.
fn read_tag(
    properties: &Members<'_>,
    name: &str,
    range: RangeInclusive<f64>,
    unit: &str,
) -> Checked<f64> {
    let text = properties.get(name).and_then(|tag| tag.as_text());
    let text = text.map(|text| text.strip_suffix('m').filter(|_| unit == "m").unwrap_or(text));
    let number =
        text.and_then(|text| text.trim().parse().ok()).filter(|number| range.contains(number));
    number.map_or_else(|| properties.number(name, range, unit), Ok)
}

/// Twice the area within a ring: positive if it runs counterclockwise.
fn turn(ring: &[Spot]) -> f64 {
    let next = ring.iter().cycle().skip(1);
    ring.iter().zip(next).map(|(from, to)| from.x_m * to.y_m - to.x_m * from.y_m).sum()
}

/// Lets outlines run counterclockwise, and holes clockwise. Files should have them so, and many do not (RFC 7946 section 3.1.6).
fn turned(mut ring: Vec<Spot>, is_outline: bool) -> Vec<Spot> {
    if (turn(&ring) > 0.0) != is_outline {
        ring.reverse();
    }
    ring
}

fn read_rings(geometry: &Members<'_>, area: &Area) -> Checked<Vec<Vec<Spot>>> {
    let is_one = geometry.word("type", &[("Polygon", true), ("MultiPolygon", false)])?;
    let coordinates = geometry.require("coordinates")?;
    let polygons: Vec<_> =
        if is_one { vec![coordinates] } else { coordinates.items(1..=CORNERS_MAX)?.collect() };
    let mut rings = Vec::new();
    for polygon in &polygons {
        for (number, ring) in polygon.items(1..=CORNERS_MAX)?.enumerate() {
            let corners = ring.items(4..=CORNERS_MAX)?;
            let corners =
                corners.map(|corner| read_corner(&corner, area)).collect::<Checked<_>>()?;
            rings.push(turned(corners, number == 0));
        }
    }
    Ok(rings)
}

/// Reads a position. A building may reach beyond the area, but not far.
fn read_corner(node: &Node<'_>, area: &Area) -> Checked<Spot> {
    let mut parts = node.items(2..=3)?;
    let (range, unit) = match area.frame {
        Frame::Local { .. } => (-2.0 * CORNER_M_MAX..=2.0 * CORNER_M_MAX, "m"),
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
    fn a_tag_may_be_a_text_as_openstreetmap_has_it() {
        for (properties, height_m) in [
            (json!({"height": "12"}), 12.0),
            (json!({"height": "12.5 m"}), 12.5),
            (json!({"height": " 12m"}), 12.0),
            (json!({"height": "", "building:levels": "4"}), 12.0),
            (json!({"building:levels": "4"}), 12.0),
            (json!({"height": null, "building:levels": 4}), 12.0),
            (json!({"building:levels": "1.5"}), 4.5),
        ] {
            let mut house = house(&Value::Null, &json!([square(0.0, 0.0, 20.0)]));
            house["properties"] = properties;
            assert_eq!(read(&json!([house])).unwrap().buildings[0].height_m, height_m);
        }
        // One without a height, or without properties, has the mean of the others.
        let houses = [json!(10), json!(20), Value::Null]
            .map(|height| house(&height, &json!([square(0.0, 0.0, 20.0)])));
        let mut bare = houses[2].clone();
        bare["properties"] = Value::Null;
        assert_eq!(read(&json!([houses[1], bare])).unwrap().buildings[1].height_m, 20.0);
        let found = read(&json!(houses)).unwrap();
        assert_eq!(found.buildings[2].height_m, 15.0);
        let words = "buildings without a height: 1 of 3; each counts with the mean of the others";
        assert_eq!(found.doubt().as_deref(), Some(words));
        assert_eq!(read(&json!(houses[..2])).unwrap().doubt(), None);
        let Err(anemone_hub::run::RunRefusal::Unprocessable { pointer, detail }) =
            read(&json!([houses[2]]))
        else {
            panic!("there is no height")
        };
        assert_eq!(pointer.as_deref(), Some("/features"));
        assert_eq!(detail, "none of the buildings has a height, or building:levels");
        // In the same words as a number.
        for height in [json!("1001"), json!(1001)] {
            let house = house(&height, &json!([square(0.0, 0.0, 20.0)]));
            let Err(anemone_hub::run::RunRefusal::Unprocessable { detail, .. }) =
                read(&json!([house]))
            else {
                panic!("{height}")
            };
            assert_eq!(detail, "expected a number from 1 to 1000 m");
        }
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
    fn the_sides_of_all_buildings_cross_as_many_rows_as_they_may_and_no_more() {
        // From below the area to above it, and back: each side crosses its 52 rows.
        let zigzag = |sides: usize| {
            let corner =
                |at: usize| json!([at % 100, if at.is_multiple_of(2) { -10 } else { 110 }]);
            house(&json!(3), &json!([(0..sides).map(corner).collect::<Vec<_>>()]))
        };
        let sides = CROSSINGS_MAX / 52;
        let most = [zigzag(10_000), zigzag(sides - 10_000)];
        assert!(read(&json!(most)).is_ok());
        let Err(anemone_hub::run::RunRefusal::Unprocessable { pointer, detail }) =
            read(&json!([most[0], zigzag(sides - 10_000 + 2)]))
        else {
            panic!()
        };
        assert_eq!(pointer.as_deref(), Some("/features/1"));
        assert!(detail.contains("more than 2000 km from south to north"), "{detail}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let good = json!([square(0.0, 0.0, 20.0)]);
        for (feature, place) in [
            (house(&json!(-3), &good), "/features/0/properties/height"),
            (house(&json!("0.5 m"), &good), "/features/0/properties/height"),
            (house(&json!("40 ft"), &good), "/features/0/properties/height"),
            (house(&json!("NaN"), &good), "/features/0/properties/height"),
            (house(&json!("m"), &good), "/features/0/properties/height"),
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
            (
                json!({"type": "Feature", "properties": {"building:levels": "4 m"}}),
                "/features/0/properties/building:levels",
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
