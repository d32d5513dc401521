//! A coverage as CSV (RFC 4180): a line for each point.

use std::fmt::Write as _;

use anemone_hub::run::Stopped;

use super::check::check_at;
use super::field::Field;
use crate::propagation::area::Frame;
use crate::propagation::coverage::Coverage;

/// The characters of the transmitter with the end of the line, and of a value.
const END: usize = 6;
const VALUE: usize = 8;

/// Returns about as many bytes as the text takes.
pub(super) fn bytes(coverage: &Coverage) -> usize {
    let line = END + 2 * coordinate_bytes(coverage) + VALUE * coverage.measures.len();
    (coverage.area.points() + 1) * line
}

pub(super) fn coordinate_bytes(coverage: &Coverage) -> usize {
    match coverage.area.frame {
        Frame::Local { x_m, y_m } => {
            if (x_m, y_m) == (0.0, 0.0) {
                6
            } else {
                10
            }
        }
        Frame::Wgs84 { .. } => 11,
    }
}

/// Writes the header and the points, as a text of JSON. No character but the ends of lines needs an escape.
pub(super) fn csv(
    coverage: &Coverage,
    field: &Field,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<String, Stopped> {
    let [east, north] = coverage.area.frame.names();
    let mut text = String::with_capacity(bytes(coverage));
    text.extend(["\"", east, ",", north]);
    for measure in &coverage.measures {
        text.extend([",", measure.name()]);
    }
    text.push_str(",server\\r\\n");
    for point in 0..field.servers.len() {
        check_at(point, &check)?;
        let spot = coverage.area.spot(point % field.columns, point / field.columns);
        let (east, north) = coverage.area.frame.coordinates(spot);
        // Writing to a string cannot fail.
        let _ = write!(text, "{},{}", rounded(east), rounded(north));
        for values in &field.measures {
            let _ = write!(text, ",{:.2}", values[point]);
        }
        let _ = write!(text, ",{}\\r\\n", field.servers[point]);
    }
    text.push('"');
    Ok(text)
}

/// Rounds a coordinate: to 0.1 m in degrees.
pub(super) fn rounded(coordinate: f64) -> f64 {
    (coordinate * 1e6).round() / 1e6
}
