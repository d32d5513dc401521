//! The ASCII grid of Esri: a header of `name value` lines, and then the heights, in rows from north to south.
//!
//! Programs write it in several ways: with `dx` and `dy` where cells are no squares (GDAL), with a comma in numbers, with comments,
//! and with `nan` for heights that are missing. Without a `NODATA_value`, -9999 stands for none, as Esri has it.

use super::file_grid::{CELLS_MAX, FileGrid, Heights, check_cell, check_coordinate, check_count};
use crate::reader::quoted;

/// The value that stands for no height where the header names none.
const NO_DATA_USUAL: f64 = -9_999.0;

const COMMENTS: [&str; 4] = ["#", ";", "!", "//"];

#[derive(Clone, Copy, Debug, Default)]
struct Header {
    columns: Option<f64>,
    rows: Option<f64>,
    /// The coordinate, and true if it is that of a corner and not of the middle of a cell.
    west: Option<(f64, bool)>,
    south: Option<(f64, bool)>,
    cell: Option<f64>,
    cell_width: Option<f64>,
    cell_height: Option<f64>,
    no_data: Option<f64>,
}

/// Parses a grid.
///
/// # Errors
/// A sentence that says what is wrong where.
pub(super) fn parse(text: &str) -> Result<FileGrid, String> {
    let mut words = words(text);
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
    let side = |own: Option<f64>, name: &str| match own.or(header.cell) {
        Some(side) => check_cell(if own.is_some() { name } else { "cellsize" }, side),
        None => Err(missing("cellsize")),
    };
    let (cell_width, cell_height) =
        (side(header.cell_width, "dx")?, side(header.cell_height, "dy")?);
    let middle = |edge: Option<(f64, bool)>, side: f64, names| {
        let (edge, is_corner) = edge.ok_or_else(|| missing(names))?;
        let edge = check_coordinate(names, edge)?;
        Ok::<_, String>(if is_corner { edge + side / 2.0 } else { edge })
    };
    let west = middle(header.west, cell_width, "xllcorner or xllcenter")?;
    let south = middle(header.south, cell_height, "yllcorner or yllcenter")?;
    // Both are whole numbers of at most CELLS_MAX.
    let (columns, cells) = (columns as usize, cells as usize);
    let no_data = header.no_data.unwrap_or(NO_DATA_USUAL);
    let heights = Heights::new(columns, cells, Some(no_data));
    let heights = parse_heights(first.into_iter().chain(words), cells, heights)?;
    Ok(FileGrid { west, south, cell_width, cell_height, columns, heights, doubts: Vec::new() })
}

/// Returns the words of all lines but those that are comments.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_comment = |line: &str| COMMENTS.iter().any(|mark| line.trim_start().starts_with(mark));
    let lines = text.lines().filter(move |line| !is_comment(line));
    lines.flat_map(str::split_ascii_whitespace)
}

/// Parses the names and values in front, and returns also the first word after them.
fn parse_header<'a>(
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(Header, Option<&'a str>), String> {
    let mut header = Header::default();
    loop {
        let Some(word) = words.next() else { return Ok((header, None)) };
        // No height begins with a letter, but for those that are no number.
        if !word.starts_with(|c: char| c.is_ascii_alphabetic())
            || number(word).is_some_and(|number| !number.is_finite())
        {
            return Ok((header, Some(word)));
        }
        let value = words.next().unwrap_or_default();
        let name = word.to_ascii_lowercase();
        let is_no_data = matches!(name.as_str(), "nodata_value" | "nodata");
        let found = number(value).filter(|number| number.is_finite() || is_no_data);
        let found = found.ok_or_else(|| {
            format!("{} in the header is no number: {}", quoted(word), quoted(value))
        })?;
        match name.as_str() {
            "ncols" => header.columns = Some(found),
            "nrows" => header.rows = Some(found),
            "xllcorner" => header.west = Some((found, true)),
            "xllcenter" => header.west = Some((found, false)),
            "yllcorner" => header.south = Some((found, true)),
            "yllcenter" => header.south = Some((found, false)),
            "cellsize" => header.cell = Some(found),
            "dx" => header.cell_width = Some(found),
            "dy" => header.cell_height = Some(found),
            _ if is_no_data => header.no_data = Some(found),
            _ => return Err(format!("the header has the unknown name {}", quoted(word))),
        }
    }
}

/// Reads a number with a point or a comma in it. C programs on Windows write one that is none as `-1.#IND` or `1.#QNAN`.
fn number(word: &str) -> Option<f64> {
    let parsed = word.parse().ok();
    parsed.or_else(|| {
        let upper = word.to_ascii_uppercase();
        if upper.contains("#IND") || upper.contains("#QNAN") || upper.contains("#SNAN") {
            return Some(f64::NAN);
        }
        let (whole, part) = word.split_once(',').filter(|_| !word.contains('.'))?;
        format!("{whole}.{part}").parse().ok()
    })
}

fn parse_heights<'a>(
    words: impl Iterator<Item = &'a str>,
    cells: usize,
    mut heights: Heights,
) -> Result<Heights, String> {
    let mut found = 0;
    for word in words {
        if found == cells {
            return Err(format!("there are more heights than the {cells} that the header says"));
        }
        // What is no number is no height that may be.
        heights.take(found, number(word).unwrap_or(f64::INFINITY), || quoted(word))?;
        found += 1;
    }
    match found {
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
    fn grids_are_read_in_all_the_ways_in_which_programs_write_them() {
        let plain = parse(GRID).unwrap();
        for (old, new) in [
            ("cellsize 10", "dx 10\ndy 10"),
            ("cellsize 10", "cellsize 1.0E+01"),
            ("-6", "-6,000"),
            ("5.5", "5,5"),
            ("-9999 5.5", "nan 5.5"),
            ("-9999 5.5", "-NaN 5.5"),
            ("-9999 5.5", "-1.#IND 5.5"),
            ("NODATA_value -9999\n", ""),
            ("NODATA_value -9999", "NODATA_value nan\n# a comment with 7 words in it"),
            ("NODATA_value -9999", "nodata -9999.0"),
            ("ncols 3", "\u{feff}ncols        3"),
            ("ncols 3", "// made by hand\n ; in 2026\nncols 3"),
            ("\n", "\r\n"),
        ] {
            let text = GRID.replace(old, new);
            // With another value for none, -9999 would be a height.
            let text =
                if new.contains("nan\n") { text.replace("-9999 5.5", "nan 5.5") } else { text };
            let found = parse(&text).unwrap_or_else(|error| panic!("{new}: {error}"));
            assert_eq!((found.west, found.south), (plain.west, plain.south), "{new}");
            assert_eq!(found.heights.metres, plain.heights.metres, "{new}");
            assert_eq!(found.heights.unknown, 1, "{new}");
        }
        let oblong = parse(&GRID.replace("cellsize 10", "dx 10 dy 20.5")).unwrap();
        assert_eq!((oblong.cell_width, oblong.cell_height), (10.0, 20.5));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (old, new, words) in [
            ("1 2 3", "inf 2 3", "row 1, column 1 is inf, expected a height from -500 to 9000 m"),
            ("5.5", "1.#INF", "row 2, column 2 is 1.#INF,"),
            ("5.5", "1,2,3", "row 2, column 2 is 1,2,3,"),
            ("5.5", "1.234,5", "row 2, column 2 is 1.234,5,"),
            ("-9999 5.5", "-8888 5.5", "row 2, column 1 is -8888,"),
            ("cellsize 10", "dx 10", "the header has no cellsize"),
            ("cellsize 10", "dx 10 dy 0", "dy is 0, expected"),
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
