//! A coverage as CSV (RFC 4180): a line for each point.

use std::fmt::Write as _;

use super::field::Field;
use crate::propagation::coverage::Coverage;

/// Writes the header and the points.
pub(super) fn csv(coverage: &Coverage, field: &Field) -> String {
    let [east, north] = coverage.area.frame.names();
    let mut text = format!("{east},{north}");
    for measure in &coverage.measures {
        text.push(',');
        text.push_str(measure.name());
    }
    text.push_str(",server\r\n");
    for point in 0..field.servers.len() {
        let spot = coverage.area.spot(point % field.columns, point / field.columns);
        let (east, north) = coverage.area.frame.coordinates(spot);
        // Writing to a string cannot fail.
        let _ = write!(text, "{},{}", rounded(east), rounded(north));
        for values in &field.measures {
            let _ = write!(text, ",{:.2}", values[point]);
        }
        let _ = write!(text, ",{}\r\n", field.servers[point]);
    }
    text
}

/// Rounds a coordinate: to 0.1 m in degrees.
pub(super) fn rounded(coordinate: f64) -> f64 {
    (coordinate * 1e6).round() / 1e6
}
