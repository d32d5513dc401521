//! The area of a coverage: its coordinates, and the grid of points in it.

use serde::Serialize;

use crate::reader::{Checked, Members, Node, brief};

pub(super) const POINTS_MAX: usize = 1_500_000;

/// The longest side of an area: up to this, a flat map is true to about 0.1 %.
const SIDE_M_MAX: f64 = 200_000.0;

/// The farthest corner from the origin of a projection: those of the Earth have less.
pub(super) const CORNER_M_MAX: f64 = 30_000_000.0;

/// The distance beyond the edge at which a coordinate still counts as on it, in its unit.
const EDGE: f64 = 1e-8;

/// The coordinates of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "coordinates", rename_all = "snake_case")]
pub(super) enum Frame {
    /// Metres to the east and to the north: of the south-west corner, or of the origin of the projection in which the corner is here.
    Local { x_m: f64, y_m: f64 },
    /// Degrees of WGS84. Within the area, a degree has the same length everywhere.
    Wgs84 {
        /// The longitude of the south-west corner.
        west: f64,
        /// Its latitude.
        south: f64,
        /// The length of a degree of longitude.
        lon_m: f64,
        /// The length of a degree of latitude.
        lat_m: f64,
    },
}

/// A place on the map: metres to the east and to the north of the south-west corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) x_m: f64,
    pub(super) y_m: f64,
}

/// The area, and the grid of points in it. Row 0 is the northernmost; the last row and the first column are on the
/// southern and the western edge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Area {
    #[serde(flatten)]
    pub(super) frame: Frame,
    pub(super) width_m: f64,
    pub(super) height_m: f64,
    pub(super) step_m: f64,
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Frame {
    /// The frame with this corner and this latitude in its middle. The lengths of the degrees are those of the ellipsoid,
    /// by their usual series.
    fn wgs84(west: f64, south: f64, middle: f64) -> Self {
        let angle = middle.to_radians();
        let cos = |times: f64| (times * angle).cos();
        Self::Wgs84 {
            west,
            south,
            lon_m: 111_412.84 * cos(1.0) - 93.5 * cos(3.0) + 0.118 * cos(5.0),
            lat_m: 111_132.92 - 559.82 * cos(2.0) + 1.175 * cos(4.0),
        }
    }

    /// Returns the place with these coordinates: to the east, and to the north.
    pub(super) fn spot(&self, east: f64, north: f64) -> Spot {
        match *self {
            Self::Local { x_m, y_m } => Spot { x_m: east - x_m, y_m: north - y_m },
            Self::Wgs84 { west, south, lon_m, lat_m } => {
                Spot { x_m: (east - west) * lon_m, y_m: (north - south) * lat_m }
            }
        }
    }

    /// Returns the coordinates of a place: to the east, and to the north.
    pub(super) fn coordinates(&self, spot: Spot) -> (f64, f64) {
        match *self {
            Self::Local { x_m, y_m } => (x_m + spot.x_m, y_m + spot.y_m),
            Self::Wgs84 { west, south, lon_m, lat_m } => {
                (west + spot.x_m / lon_m, south + spot.y_m / lat_m)
            }
        }
    }

    /// Returns the names of the coordinates in requests.
    pub(super) fn names(&self) -> [&'static str; 2] {
        match self {
            Self::Local { .. } => ["x_m", "y_m"],
            Self::Wgs84 { .. } => ["lon", "lat"],
        }
    }

    fn unit(&self) -> &'static str {
        match self {
            Self::Local { .. } => "m",
            Self::Wgs84 { .. } => "degrees",
        }
    }
}

impl Area {
    /// Reads the area and the step of its grid.
    pub(super) fn read(request: &Members<'_>) -> Checked<Self> {
        let node = request.require("area")?;
        let (frame, width_m, height_m) = read_bounds(&node)?;
        let step_m = request.number("step_m", 0.1..=SIDE_M_MAX, "m")?;
        let [columns, rows] = counts([width_m, height_m], step_m);
        if columns * rows > POINTS_MAX as f64 {
            let least_m = least_step_m([width_m, height_m]);
            return Err(request.require("step_m")?.unfit(format!(
                "gives {columns} x {rows} points, at most {POINTS_MAX} allowed: expected {} m or more",
                brief(least_m)
            )));
        }
        // Both are whole numbers of at most POINTS_MAX.
        Ok(Self {
            frame,
            width_m,
            height_m,
            step_m,
            columns: columns as usize,
            rows: rows as usize,
        })
    }

    pub(super) fn points(&self) -> usize {
        self.columns * self.rows
    }

    /// Returns the coordinates of its middle: to the east, and to the north.
    pub(super) fn middle(&self) -> (f64, f64) {
        self.frame.coordinates(Spot { x_m: self.width_m / 2.0, y_m: self.height_m / 2.0 })
    }

    /// Returns the place of a point of the grid.
    pub(super) fn spot(&self, column: usize, row: usize) -> Spot {
        let y_m = (self.rows - 1).saturating_sub(row) as f64 * self.step_m;
        Spot { x_m: column as f64 * self.step_m, y_m }
    }

    /// Reads a place within the area from two members of an object.
    pub(super) fn read_spot(&self, members: &Members<'_>) -> Checked<Spot> {
        let [east, north] = self.frame.names();
        let corners = [Spot { x_m: 0.0, y_m: 0.0 }, Spot { x_m: self.width_m, y_m: self.height_m }];
        let [low, high] = corners.map(|corner| self.frame.coordinates(corner));
        let unit = self.frame.unit();
        // From metres to degrees and back, a coordinate of the edge may change by its last digit.
        let east = members.number(east, low.0..=high.0 + EDGE, unit)?;
        let north = members.number(north, low.1..=high.1 + EDGE, unit)?;
        Ok(self.frame.spot(east, north))
    }
}

/// Returns the columns and rows of the grid with this step.
fn counts(sides_m: [f64; 2], step_m: f64) -> [f64; 2] {
    sides_m.map(|side_m| (side_m / step_m + 1e-9).floor() + 1.0)
}

/// Returns a step, in tenths of a metre, that gives no more points than there may be, and hardly fewer.
fn least_step_m([width_m, height_m]: [f64; 2]) -> f64 {
    // (width / step + 1)(height / step + 1) is at most POINTS_MAX for the solution of this equation and for larger steps.
    let (most, sum, product) = ((POINTS_MAX - 1) as f64, width_m + height_m, width_m * height_m);
    let step_m = (sum + (sum * sum + 4.0 * most * product).sqrt()) / (2.0 * most);
    (step_m * 10.0).ceil() / 10.0
}

/// Reads the bounds: the frame, the width, and the height.
fn read_bounds(node: &Node<'_>) -> Checked<(Frame, f64, f64)> {
    const OF_METRES: [&str; 4] = ["width_m", "height_m", "x_m", "y_m"];
    let area = node.object(&[&["west", "south", "east", "north"][..], &OF_METRES].concat())?;
    if OF_METRES.iter().any(|name| area.get(name).is_some()) {
        node.object(&OF_METRES)?;
        let side = |name| area.number(name, 1.0..=SIDE_M_MAX, "m");
        let corner = |name| area.number_or(name, 0.0, -CORNER_M_MAX..=CORNER_M_MAX, "m");
        let frame = Frame::Local { x_m: corner("x_m")?, y_m: corner("y_m")? };
        return Ok((frame, side("width_m")?, side("height_m")?));
    }
    let degrees = |name, most: f64| area.number(name, -most..=most, "degrees");
    let (south, north) = (degrees("south", 85.0)?, degrees("north", 85.0)?);
    let (west, east) = (degrees("west", 180.0)?, degrees("east", 180.0)?);
    if north <= south {
        let detail = format!("must be more than south, which is {}", brief(south));
        return Err(area.unfit("north", detail));
    }
    if east <= west {
        let detail = format!(
            "must be more than west, which is {}: an area does not reach across the longitude of 180 degrees",
            brief(west)
        );
        return Err(area.unfit("east", detail));
    }
    let frame = Frame::wgs84(west, south, f64::midpoint(south, north));
    let Spot { x_m, y_m } = frame.spot(east, north);
    for (side_m, name) in [(x_m, "east"), (y_m, "north")] {
        if !(1.0..=SIDE_M_MAX).contains(&side_m) {
            return Err(area
                .require(name)?
                .unfit(format!("gives a side of {side_m:.0} m, expected 1 to {SIDE_M_MAX} m")));
        }
    }
    Ok((frame, x_m, y_m))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(request: &Value) -> Checked<Area> {
        Area::read(&Node::root(request).open_object()?)
    }

    #[test]
    fn degrees_have_the_lengths_of_the_ellipsoid() {
        // The length of a degree at 0° and 45°, from tables of WGS84.
        for (middle, lon_m, lat_m) in [(0.0, 111_319.5, 110_574.3), (45.0, 78_846.8, 111_131.8)] {
            let Frame::Wgs84 { lon_m: lon, lat_m: lat, .. } = Frame::wgs84(0.0, 0.0, middle) else {
                panic!()
            };
            assert!(
                (lon - lon_m).abs() < 1.0 && (lat - lat_m).abs() < 1.0,
                "{middle}: {lon} {lat}"
            );
        }
        let frame = Frame::wgs84(8.0, 47.0, 47.05);
        let (east, north) = frame.coordinates(frame.spot(8.1, 47.1));
        assert!((east - 8.1).abs() < 1e-9 && (north - 47.1).abs() < 1e-9);
    }

    #[test]
    fn the_grid_has_points_on_its_edges() {
        let area =
            read(&json!({"area": {"width_m": 1000, "height_m": 500}, "step_m": 100})).unwrap();
        assert_eq!((area.columns, area.rows, area.points()), (11, 6, 66));
        assert_eq!(area.spot(0, 0), Spot { x_m: 0.0, y_m: 500.0 });
        assert_eq!(area.spot(10, 5), Spot { x_m: 1000.0, y_m: 0.0 });
        // A step that is no part of the side leaves the rest out.
        let area =
            read(&json!({"area": {"width_m": 1000, "height_m": 500}, "step_m": 300})).unwrap();
        assert_eq!((area.columns, area.rows), (4, 2));
    }

    #[test]
    fn the_grid_has_as_many_points_as_it_may_and_no_more() {
        // 1500 x 1000 points are as many as may be.
        let request =
            |height_m| json!({"area": {"width_m": 1499, "height_m": height_m}, "step_m": 1});
        assert_eq!(read(&request(999)).unwrap().points(), POINTS_MAX);
        let refused = read(&request(1000)).unwrap_err();
        let RunRefusal::Unprocessable { pointer, detail } = refused else { panic!() };
        assert_eq!(pointer.as_deref(), Some("/step_m"));
        assert!(detail.contains("1500 x 1001 points, at most 1500000 allowed"), "{detail}");
    }

    #[test]
    fn the_step_that_a_refusal_expects_is_taken_and_is_not_much_too_large() {
        let request = |[width_m, height_m]: [f64; 2], step_m: f64| json!({"area": {"width_m": width_m, "height_m": height_m}, "step_m": step_m});
        for sides in [
            [1_499.0, 1_000.0],
            [200_000.0, 200_000.0],
            [200_000.0, 1.0],
            [60_000.0, 24_000.0],
            [12_345.6, 65_432.1],
            [1_250.0, 1_250.0],
            [150.0, 200.0],
        ] {
            let RunRefusal::Unprocessable { detail, .. } = read(&request(sides, 0.1)).unwrap_err()
            else {
                panic!()
            };
            let advised = detail.split("expected ").nth(1).and_then(|rest| rest.split(' ').next());
            let step_m: f64 = advised.unwrap().parse().unwrap();
            assert!(read(&request(sides, step_m)).is_ok(), "{sides:?}: {detail}");
            assert!(read(&request(sides, step_m - 0.2)).is_err(), "{sides:?}: {detail}");
        }
    }

    use anemone_hub::run::RunRefusal;
}
