//! A coverage as GeoJSON (RFC 7946): contour lines, or points. A map of its own has its metres in place of degrees.

use std::fmt::Write as _;

use anemone_hub::run::Stopped;

use super::check::check_at;
use super::contour::{Vertex, contours};
use super::csv::{coordinate_bytes, rounded};
use super::field::Field;
use crate::propagation::area::Spot;
use crate::propagation::coverage::Coverage;
use crate::propagation::output_options::OutputOptions;

const VERTICES_MAX: usize = 200_000;

/// The bytes of a vertex with what finds it, and those of a point without its coordinates, and of each of its values.
const VERTEX_BYTES: usize = 40;
const POINT_BYTES: usize = 104;
const VALUE_BYTES: usize = 20;

/// Returns about as many bytes as the text takes, with the lines while they are found.
pub(super) fn bytes(coverage: &Coverage, options: &OutputOptions) -> usize {
    let points = coverage.area.points();
    if options.levels.is_empty() {
        let values = VALUE_BYTES * coverage.measures.len();
        return points * (POINT_BYTES + 2 * coordinate_bytes(coverage) + values);
    }
    // A contour is about as long as the edge of the area.
    let edge = 2 * (coverage.area.columns + coverage.area.rows);
    VERTICES_MAX.min(2 * edge * options.levels.len()) * VERTEX_BYTES
}

/// Writes a `FeatureCollection`; `None` if the contours have more vertices than may be.
pub(super) fn geojson(
    coverage: &Coverage,
    field: &Field,
    options: &OutputOptions,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Option<String>, Stopped> {
    let mut text = "{\"type\":\"FeatureCollection\",\"features\":[".to_owned();
    if options.levels.is_empty() {
        text.reserve_exact(bytes(coverage, options));
        for point in 0..field.servers.len() {
            check_at(point, &check)?;
            write_point(&mut text, coverage, field, point);
        }
    }
    let name = coverage.measures[options.measure].name();
    let mut left = VERTICES_MAX;
    for level in &options.levels {
        let values = &field.measures[options.measure];
        let Some(lines) = contours(values, field.columns, *level, left, &check)? else {
            return Ok(None);
        };
        left = left.saturating_sub(lines.iter().map(Vec::len).sum());
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{{\"type\":\"Feature\",\"properties\":{{\"{name}\":{level:?}}},\"geometry\":{{\"type\":\"MultiLineString\",\"coordinates\":["
        );
        for line in lines {
            text.push('[');
            for (number, at) in line.into_iter().enumerate() {
                check_at(number, &check)?;
                write_position(&mut text, coverage, at);
                text.push(',');
            }
            end_list(&mut text, "],");
        }
        end_list(&mut text, "]}},");
    }
    end_list(&mut text, "]}");
    Ok(Some(text))
}

fn write_point(text: &mut String, coverage: &Coverage, field: &Field, point: usize) {
    text.push_str("{\"type\":\"Feature\",\"properties\":{");
    for (measure, values) in coverage.measures.iter().zip(&field.measures) {
        let value = (f64::from(values[point]) * 100.0).round() / 100.0;
        // A value is finite.
        let _ = write!(text, "\"{}\":{value:?},", measure.name());
    }
    let _ = write!(text, "\"server\":{}}},", field.servers[point]);
    text.push_str("\"geometry\":{\"type\":\"Point\",\"coordinates\":");
    write_position(
        text,
        coverage,
        ((point % field.columns) as f64, (point / field.columns) as f64),
    );
    text.push_str("}},");
}

/// Writes the coordinates of a place between the points of the grid.
fn write_position(text: &mut String, coverage: &Coverage, (column, row): Vertex) {
    let area = &coverage.area;
    let y_m = ((area.rows - 1) as f64 - row) * area.step_m;
    let (east, north) = area.frame.coordinates(Spot { x_m: column * area.step_m, y_m });
    let _ = write!(text, "[{:?},{:?}]", rounded(east), rounded(north));
}

/// Ends a list: its last comma goes.
fn end_list(text: &mut String, end: &str) {
    if text.ends_with(',') {
        text.pop();
    }
    text.push_str(end);
}
