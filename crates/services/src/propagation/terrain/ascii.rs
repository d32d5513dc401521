//! The ASCII grid of Esri: a header of `name value` lines, and then the heights, in rows from north to south.

use std::str::SplitAsciiWhitespace;

use super::file_grid::{CELLS_MAX, FileGrid, Heights, check_cell, check_coordinate, check_count};
use crate::reader::quoted;

#[derive(Clone, Copy, Debug, Default)]
struct Header {
    columns: Option<f64>,
    rows: Option<f64>,
    /// The coordinate, and true if it is that of a corner and not of the middle of a cell.
    west: Option<(f64, bool)>,
    south: Option<(f64, bool)>,
    cell: Option<f64>,
    no_data: Option<f64>,
}

/// Parses a grid.
///
/// # Errors
/// A sentence that says what is wrong where.
pub(super) fn parse(text: &str) -> Result<FileGrid, String> {
    let mut words = text.split_ascii_whitespace();
    let (header, first) = parse_header(&mut words)?;
    let missing = |name: &str| format!("the header has no {name}");
    let count = |value: Option<f64>, name| check_count(name, value.ok_or_else(|| missing(name))?);
    let (columns, rows) = (count(header.columns, "ncols")?, count(header.rows, "nrows")?);
    let cells = columns * rows;
    if cells > CELLS_MAX {
        return Err(format!(
            "the header says {columns} x {rows} heights, at most {CELLS_MAX} allowed"
        ));
    }
    // Each height takes a digit and a space, so a header that lies makes nothing large.
    if cells > text.len() as f64 / 2.0 + 1.0 {
        return Err(format!(
            "the header says {columns} x {rows} heights, but the text is too short for them"
        ));
    }
    let cell = check_cell("cellsize", header.cell.ok_or_else(|| missing("cellsize"))?)?;
    let middle = |edge: Option<(f64, bool)>, names| {
        let (edge, is_corner) = edge.ok_or_else(|| missing(names))?;
        let edge = check_coordinate(names, edge)?;
        Ok::<_, String>(if is_corner { edge + cell / 2.0 } else { edge })
    };
    let west = middle(header.west, "xllcorner or xllcenter")?;
    let south = middle(header.south, "yllcorner or yllcenter")?;
    // Both are whole numbers of at most CELLS_MAX.
    let (columns, cells) = (columns as usize, cells as usize);
    let heights = Heights::with_capacity(columns, cells, header.no_data);
    let heights = parse_heights(first.into_iter().chain(words), cells, heights)?;
    Ok(FileGrid { west, south, cell_width: cell, cell_height: cell, columns, heights })
}

/// Parses the names and values in front, and returns also the first word after them.
fn parse_header<'a>(
    words: &mut SplitAsciiWhitespace<'a>,
) -> Result<(Header, Option<&'a str>), String> {
    let mut header = Header::default();
    loop {
        let Some(word) = words.next() else { return Ok((header, None)) };
        // No height begins with a letter, but for those that are no number.
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) || is_no_number(word) {
            return Ok((header, Some(word)));
        }
        let value = words.next().unwrap_or_default();
        let number = value.parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| {
            format!("{} in the header is no number: {}", quoted(word), quoted(value))
        })?;
        match word.to_ascii_lowercase().as_str() {
            "ncols" => header.columns = Some(number),
            "nrows" => header.rows = Some(number),
            "xllcorner" => header.west = Some((number, true)),
            "xllcenter" => header.west = Some((number, false)),
            "yllcorner" => header.south = Some((number, true)),
            "yllcenter" => header.south = Some((number, false)),
            "cellsize" => header.cell = Some(number),
            "nodata_value" => header.no_data = Some(number),
            _ => return Err(format!("the header has the unknown name {}", quoted(word))),
        }
    }
}

fn is_no_number(word: &str) -> bool {
    word.parse().is_ok_and(|number: f64| !number.is_finite())
}

/// Parses the heights.
fn parse_heights<'a>(
    words: impl Iterator<Item = &'a str>,
    cells: usize,
    mut heights: Heights,
) -> Result<Heights, String> {
    for (at, word) in words.enumerate() {
        if at == cells {
            return Err(format!("there are more heights than the {cells} that the header says"));
        }
        heights.push(word.parse().unwrap_or(f64::NAN), || quoted(word))?;
    }
    match heights.metres.len() {
        found if found < cells => {
            Err(format!("there are {found} heights, the header says {cells}"))
        }
        _ => Ok(heights),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: &str = "ncols 3\nNROWS 2\nxllcorner 100\nyllcenter 200.5\ncellsize 10\nNODATA_value -9999\n1 2 3\n-9999 5.5 -6\n";

    #[test]
    fn a_grid_is_read_with_the_middles_of_its_cells() {
        let grid = parse(GRID).unwrap();
        assert_eq!((grid.west, grid.south), (105.0, 200.5));
        assert_eq!((grid.cell_width, grid.cell_height), (10.0, 10.0));
        let Heights { metres, unknown, .. } = grid.heights;
        assert_eq!((grid.columns, metres, unknown), (3, vec![1.0, 2.0, 3.0, 0.0, 5.5, -6.0], 1));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (old, new, words) in [
            ("5.5", "NaN", "row 2, column 2 is NaN, expected a height from -500 to 9000 m"),
            ("1 2 3", "nan 2 3", "row 1, column 1 is nan,"),
            ("1 2 3", "inf 2 3", "row 1, column 1 is inf,"),
            ("5.5", "9000.1", "row 2, column 2 is 9000.1,"),
            ("5.5", "abc", "row 2, column 2 is abc,"),
            ("-6\n", "", "there are 5 heights, the header says 6"),
            ("-6\n", "-6 7", "there are more heights than the 6 that the header says"),
            (
                "ncols 3",
                "ncols 1000000000",
                "ncols is 1000000000, expected a whole number from 2 to 1000000",
            ),
            (
                "ncols 3",
                "ncols 1000000",
                "the header says 1000000 x 2 heights, at most 1000000 allowed",
            ),
            (
                "ncols 3",
                "ncols 500000",
                "the header says 500000 x 2 heights, but the text is too short for them",
            ),
            ("ncols 3", "ncols 2.5", "ncols is 2.5,"),
            ("ncols 3", "ncols -3", "ncols is -3,"),
            ("ncols 3", "ncols x", "ncols in the header is no number: x"),
            ("ncols 3\n", "", "the header has no ncols"),
            ("cellsize 10", "cellsize 0", "cellsize is 0, expected"),
            (
                "xllcorner 100",
                "xllcorner 1e308",
                "xllcorner or xllcenter is 1.000e308, expected -100000000 to 100000000",
            ),
            ("ncols 3", "ncols 1e308", "ncols is 1.000e308,"),
            ("cellsize 10", "cellsize 1e-300", "cellsize is 1.000e-300,"),
            ("cellsize 10\n", "", "the header has no cellsize"),
            ("xllcorner", "xcorner", "the header has the unknown name xcorner"),
            ("xllcorner 100\n", "", "the header has no xllcorner or xllcenter"),
            (GRID, "", "the header has no ncols"),
        ] {
            let found = parse(&GRID.replace(old, new)).unwrap_err();
            assert!(found.starts_with(words), "{new}: {found}");
        }
    }
}
