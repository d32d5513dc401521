//! One feature of GeoJSON: a building, or what else maps have.

use serde_json::Value;

use super::height::Height;
use crate::propagation::area::{Area, Spot};
use crate::reader::Node;

/// The most corners of a ring, and the most rings of a building.
const CORNERS_MAX: usize = 10_000;

/// The corners of a ring: RFC 7946 has the first one again at its end.
const CORNERS_MIN: usize = 4;

/// The smallest area of a building. Those in degrees, taken for metres, have less.
const AREA_M2_MIN: f64 = 0.1;

/// The longest side of the box around a building. What is larger is a district or a mistake.
const SIDE_M_MAX: f64 = 10_000.0;

/// Outlines and holes.
pub(super) type Rings = Vec<Vec<Spot>>;

/// The use of a feature for a map.
#[derive(Clone, Debug)]
pub(super) enum Feature {
    Building {
        rings: Rings,
        height: Height,
    },
    /// A building of which no part can be in the area; one of its corners, in its own coordinates.
    Outside([f64; 2]),
    /// No polygon, or none as large as a building is.
    Odd,
}

impl Feature {
    pub(super) fn read(node: &Node<'_>, area: &Area) -> Self {
        let feature = node.value();
        let is_feature = feature.get("type").and_then(Value::as_str) == Some("Feature");
        let corners = feature.get("geometry").filter(|_| is_feature).and_then(read_corners);
        let Some(corners) = corners else { return Self::Odd };
        let Some(first) = corners.first().and_then(|(_, ring)| ring.first()).copied() else {
            return Self::Odd;
        };
        let rings = corners.into_iter().map(|(is_outline, ring)| {
            let ring = ring.into_iter().map(|[east, north]| area.frame.spot(east, north));
            turned(ring.collect(), is_outline)
        });
        let rings = rings.collect();
        let [low, high] = corners_of_box(&rings);
        if low.x_m > area.width_m || low.y_m > area.height_m || high.x_m < 0.0 || high.y_m < 0.0 {
            return Self::Outside(first);
        }
        let is_small = high.x_m - low.x_m <= SIDE_M_MAX && high.y_m - low.y_m <= SIDE_M_MAX;
        if !is_small || area_m2(&rings) < AREA_M2_MIN {
            return Self::Odd;
        }
        Self::Building { rings, height: Height::read(feature.get("properties")) }
    }
}

/// Reads the rings of a geometry, and whether each is an outline. `None` if it is no polygon.
fn read_corners(geometry: &Value) -> Option<Vec<(bool, Vec<[f64; 2]>)>> {
    let coordinates = geometry.get("coordinates")?;
    let polygons = match geometry.get("type")?.as_str()? {
        "Polygon" => std::slice::from_ref(coordinates),
        "MultiPolygon" => coordinates.as_array()?,
        _ => return None,
    };
    let mut rings = Vec::new();
    for polygon in polygons {
        for (number, ring) in polygon.as_array()?.iter().enumerate() {
            let ring = ring.as_array()?;
            if !(CORNERS_MIN..=CORNERS_MAX).contains(&ring.len()) || rings.len() == CORNERS_MAX {
                return None;
            }
            rings.push((number == 0, ring.iter().map(read_corner).collect::<Option<_>>()?));
        }
    }
    Some(rings)
}

fn read_corner(corner: &Value) -> Option<[f64; 2]> {
    Some([corner.get(0)?.as_f64()?, corner.get(1)?.as_f64()?])
}

/// Returns the corners of the box around rings, in the south-west and the north-east.
fn corners_of_box(rings: &Rings) -> [Spot; 2] {
    let none = |metres| Spot { x_m: metres, y_m: metres };
    let spots = rings.iter().flatten();
    spots.fold([none(f64::INFINITY), none(f64::NEG_INFINITY)], |[low, high], spot| {
        [
            Spot { x_m: low.x_m.min(spot.x_m), y_m: low.y_m.min(spot.y_m) },
            Spot { x_m: high.x_m.max(spot.x_m), y_m: high.y_m.max(spot.y_m) },
        ]
    })
}

pub(super) fn area_m2(rings: &Rings) -> f64 {
    rings.iter().map(|ring| turn(ring)).sum::<f64>() / 2.0
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
