//! Contour lines by marching squares.

use std::collections::HashMap;

use anemone_hub::run::Stopped;

use super::check::check_at;

/// A point of a line, in columns and rows of the grid.
pub(super) type Vertex = (f64, f64);

/// The edge between a point of the grid and the next one to the right (even) or below (odd): twice the index of the point.
type Edge = usize;

/// The edges to which lines lead from each: at most one on either side, and [`NONE`] for the others.
type Links = HashMap<Edge, [Edge; 2]>;

const NONE: Edge = Edge::MAX;

/// The sides of a square, clockwise from the top.
const SIDES: usize = 4;

/// Returns the lines along which a field has this value, at most `vertices_max` vertices; `None` if there are more. A
/// closed line ends at its first vertex.
///
/// # Errors
/// The end that `check` returned; it is asked before each row.
pub(super) fn contours(
    values: &[f32],
    columns: usize,
    level: f64,
    vertices_max: usize,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Option<Vec<Vec<Vertex>>>, Stopped> {
    let mut links = Links::new();
    let rows = values.len() / columns;
    for row in 1..rows {
        check()?;
        for column in 1..columns {
            check_at(column, &check)?;
            let corner = (row - 1) * columns + column - 1;
            for [from, to] in segments(values, columns, corner, level) {
                link(&mut links, from, to);
                link(&mut links, to, from);
            }
            if links.len() > vertices_max {
                return Ok(None);
            }
        }
    }
    let place = |edge: Edge| place(values, columns, edge, level);
    let join = |line: Vec<Edge>| line.into_iter().map(place).collect();
    Ok(Some(lines(links, check)?.into_iter().map(join).collect()))
}

/// Returns the segments within the square whose first corner, in the north-west, is this point.
fn segments(
    values: &[f32],
    columns: usize,
    corner: usize,
    level: f64,
) -> impl Iterator<Item = [Edge; 2]> {
    let corners = [corner, corner + 1, corner + columns + 1, corner + columns];
    let heights = corners.map(|point| f64::from(values[point]));
    let is_high = heights.map(|height| height >= level);
    // From the top clockwise. Side `n` lies between the corners `n` and `n + 1`.
    let sides = [2 * corner, 2 * (corner + 1) + 1, 2 * (corner + columns), 2 * corner + 1];
    let is_cut = |side: usize| is_high[side] != is_high[(side + 1) % SIDES];
    let cut: Vec<_> = (0..SIDES).filter(|side| is_cut(*side)).map(|side| sides[side]).collect();
    let found = match cut[..] {
        [from, to] => vec![[from, to]],
        [top, right, bottom, left] => {
            // A saddle: the middle says which corners belong together.
            let middle = heights.iter().sum::<f64>() / 4.0 >= level;
            if middle == is_high[0] {
                vec![[top, right], [bottom, left]]
            } else {
                vec![[left, top], [right, bottom]]
            }
        }
        _ => Vec::new(),
    };
    found.into_iter()
}

/// Adds a link to one that may have one already.
fn link(links: &mut Links, from: Edge, to: Edge) {
    let of = links.entry(from).or_insert([NONE; 2]);
    if of[0] == NONE {
        of[0] = to;
    } else {
        of[1] = to;
    }
}

fn unlink(links: &mut Links, from: Edge) -> Option<Edge> {
    let of = links.get_mut(&from)?;
    let found = of.iter_mut().rev().find(|to| **to != NONE)?;
    Some(std::mem::replace(found, NONE))
}

fn unlink_from(links: &mut Links, from: Edge, to: Edge) {
    let found = links.get_mut(&from).and_then(|of| of.iter_mut().find(|edge| **edge == to));
    if let Some(found) = found {
        *found = NONE;
    }
}

/// Joins segments to lines: first those with ends, then the closed ones.
fn lines(
    mut links: Links,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Vec<Vec<Edge>>, Stopped> {
    let mut starts: Vec<_> = links.keys().copied().collect();
    starts.sort_unstable_by_key(|edge| (links[edge][1] != NONE, *edge));
    let mut lines = Vec::new();
    for (number, start) in starts.into_iter().enumerate() {
        check_at(number, &check)?;
        let mut line = vec![start];
        let mut at = start;
        while let Some(next) = unlink(&mut links, at) {
            check_at(line.len(), &check)?;
            unlink_from(&mut links, next, at);
            line.push(next);
            at = next;
        }
        if line.len() > 1 {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Returns the place on an edge at which the field has this value.
fn place(values: &[f32], columns: usize, edge: Edge, level: f64) -> Vertex {
    let point = edge / 2;
    let (column, row) = ((point % columns) as f64, (point / columns) as f64);
    let is_right = edge.is_multiple_of(2);
    let next = if is_right { point + 1 } else { point + columns };
    let [from, to] = [point, next].map(|point| f64::from(values[point]));
    let part = (level - from) / (to - from);
    if is_right { (column + part, row) } else { (column, row + part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[f32], columns: usize, level: f64) -> Vec<Vec<Vertex>> {
        contours(values, columns, level, 10_000, || Ok(())).unwrap().unwrap()
    }

    #[test]
    fn a_slope_has_a_straight_line_from_edge_to_edge() {
        let values = [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0];
        let mut lines = found(&values, 3, 1.25);
        lines[0].sort_by(|a, b| a.1.total_cmp(&b.1));
        assert_eq!(lines, [vec![(1.25, 0.0), (1.25, 1.0), (1.25, 2.0)]]);
        assert!(found(&values, 3, 5.0).is_empty());
    }

    #[test]
    fn a_cone_has_a_closed_circle() {
        let side = 41_usize;
        let height = |at: usize| ((at % side) as f32 - 20.0).hypot((at / side) as f32 - 20.0);
        let values: Vec<f32> = (0..side * side).map(height).collect();
        let lines = found(&values, side, 12.5);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].first(), lines[0].last());
        for (column, row) in &lines[0] {
            assert!(((column - 20.0).hypot(row - 20.0) - 12.5).abs() < 0.02);
        }
        let most = contours(&values, side, 12.5, 10, || Ok(())).unwrap();
        assert!(most.is_none(), "there are more than 10 vertices");
    }

    #[test]
    fn a_saddle_is_divided_as_its_middle_says() {
        for (values, count) in [([2.0, 0.0, 0.0, 2.0], 2), ([0.0, 2.0, 2.0, 0.0], 2)] {
            for level in [0.9, 1.1] {
                let lines = found(&values, 2, level);
                assert_eq!(lines.len(), count);
                // Each line goes around one corner: its ends are on two sides that meet.
                for line in lines {
                    let [from, to] = line[..] else { panic!("{line:?}") };
                    assert!(from.0 != to.0 && from.1 != to.1, "{from:?} {to:?}");
                }
            }
        }
    }
}
