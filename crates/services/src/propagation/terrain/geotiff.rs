//! GeoTIFF (OGC 19-008r4): a TIFF image whose values are heights, with tags that say where it lies.
//!
//! The library decodes the image. All that it makes is bounded before: the values of tags by `tiff_directory`, what is read by
//! `metered`, and the cells and what they are decoded from here.

use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::{CompressionMethod, Tag};
use tiff::{ColorType, TiffError};

use super::file_grid::{CELLS_MAX, FileGrid, Heights, check_cell, check_coordinate, check_count};
use super::geo_keys::{FileCoordinates, GeoKeys};
use super::metered::Metered;
use super::tiff_directory;
use crate::reader::{brief, quoted};

/// The most cells of all strips or tiles together: tiles may reach beyond the edges of the grid.
const TILED_CELLS_MAX: f64 = 4.0 * CELLS_MAX;

/// The longest side of a tile.
const TILE_SIDE_MAX: u32 = 4_096;

/// The most bytes that a byte of compressed data stands for: a little above what LZW can reach, which is the most of all
/// methods.
const RATIO_MAX: f64 = 3_000.0;

/// The characters of an error of the library that are told.
const ERROR_CHARS_MAX: usize = 80;

type File<'a> = Decoder<Metered<'a>>;

/// Parses a grid, and returns also its coordinates.
///
/// # Errors
/// The end of a sentence about the file, which says what is wrong and where.
pub(super) fn parse(bytes: &[u8]) -> Result<(FileGrid, FileCoordinates), String> {
    tiff_directory::check(bytes)?;
    let mut limits = Limits::default();
    limits.decoding_buffer_size = CELLS_MAX as usize * size_of::<f64>();
    limits.intermediate_buffer_size = bytes.len();
    let metered = Metered::new(bytes, tiff_directory::VALUES_MAX as usize);
    let mut file = Decoder::new(metered).map_err(unreadable)?.with_limits(limits);
    let (columns, rows) = check_size(&mut file, bytes.len())?;
    let keys = file.find_tag_unsigned_vec(Tag::GeoKeyDirectoryTag).map_err(unreadable)?;
    let keys = GeoKeys::read(&keys.unwrap_or_default())?;
    let [west, south, cell_width, cell_height] = place(&mut file, &keys, rows)?;
    let heights = Heights::with_capacity(columns, columns * rows, no_data(&mut file)?);
    let heights = take(file.read_image().map_err(unreadable)?, heights)?;
    let grid = FileGrid { west, south, cell_width, cell_height, columns, heights };
    Ok((grid, keys.coordinates))
}

fn unreadable(error: TiffError) -> String {
    let said: String = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
    format!("cannot be read: {said}")
}

/// Checks the form of the image and the size of all that is decoded. Returns the columns and rows.
fn check_size(file: &mut File<'_>, file_bytes: usize) -> Result<(usize, usize), String> {
    let (columns, rows) = file.dimensions().map_err(unreadable)?;
    let columns = check_count("the number of columns", f64::from(columns))?;
    let rows = check_count("the number of rows", f64::from(rows))?;
    if columns * rows > CELLS_MAX {
        return Err(format!("has {columns} x {rows} heights, at most {CELLS_MAX} allowed"));
    }
    let bits = match file.colortype().map_err(unreadable)? {
        ColorType::Gray(bits @ (8 | 16 | 32 | 64)) => bits,
        ColorType::Gray(bits) => {
            return Err(format!("has values of {bits} bits, expected 8, 16, 32 or 64"));
        }
        _ => return Err("has colours or several bands, expected one band of heights".to_owned()),
    };
    check_tiles(file, columns, rows)?;
    let method = file.find_tag_unsigned(Tag::Compression).map_err(unreadable)?.unwrap_or(1_u16);
    let is_plain = method == CompressionMethod::None.to_u16();
    let most_bytes = file_bytes as f64 * if is_plain { 1.0 } else { RATIO_MAX };
    if columns * rows * f64::from(bits / 8) > most_bytes {
        return Err(format!("says {columns} x {rows} heights, but is too short for them"));
    }
    // Both are whole numbers of at most CELLS_MAX.
    Ok((columns as usize, rows as usize))
}

/// Checks the tiles, which may reach beyond the edges of the grid. Strips do not.
fn check_tiles(file: &File<'_>, columns: f64, rows: f64) -> Result<(), String> {
    if file.get_chunk_type() == ChunkType::Strip {
        return Ok(());
    }
    let (width, height) = file.chunk_dimensions();
    if width.max(height) > TILE_SIDE_MAX {
        let most = TILE_SIDE_MAX;
        return Err(format!(
            "has tiles of {width} x {height} cells, at most {most} x {most} allowed"
        ));
    }
    let all = |side: f64, tile: u32| (side / f64::from(tile)).ceil() * f64::from(tile);
    let cells = all(columns, width) * all(rows, height);
    if cells > TILED_CELLS_MAX {
        return Err(format!(
            "has tiles of {cells} cells together, at most {TILED_CELLS_MAX} allowed"
        ));
    }
    Ok(())
}

/// Returns the coordinates of the middles of the first column and the last row, and the sides of a cell.
fn place(file: &mut File<'_>, keys: &GeoKeys, rows: usize) -> Result<[f64; 4], String> {
    let mut numbers = |tag: Tag, name: &str| {
        let value = file.find_tag(tag).map_err(unreadable)?;
        let value =
            value.ok_or_else(|| format!("has no {name}: expected one that lies north up"))?;
        value.into_f64_vec().map_err(unreadable)
    };
    let scale = numbers(Tag::ModelPixelScaleTag, "ModelPixelScale")?;
    let tie = numbers(Tag::ModelTiepointTag, "ModelTiepoint")?;
    let [cell_width, cell_height, ..] = scale[..] else {
        return Err("has a ModelPixelScale of fewer than 2 values".to_owned());
    };
    let [column, row, _, x, y, _, ..] = tie[..] else {
        return Err("has a ModelTiepoint of fewer than 6 values".to_owned());
    };
    let cell_width = check_cell("the width of a cell", cell_width)?;
    let cell_height = check_cell("the height of a cell", cell_height)?;
    let middle = if keys.is_of_middles { 0.0 } else { 0.5 };
    let west = x + (middle - column) * cell_width;
    let south = y - (middle - row + (rows - 1) as f64) * cell_height;
    let west = check_coordinate("the coordinate of the western edge", west)?;
    let south = check_coordinate("the coordinate of the southern edge", south)?;
    Ok([west, south, cell_width, cell_height])
}

/// Returns the value that stands for no height.
fn no_data(file: &mut File<'_>) -> Result<Option<f64>, String> {
    let Some(value) = file.find_tag(Tag::GdalNodata).map_err(unreadable)? else { return Ok(None) };
    let text = value.into_string().map_err(unreadable)?;
    let number = text.trim().parse();
    number.map(Some).map_err(|_| format!("has a GDAL_NODATA that is no number: {}", quoted(&text)))
}

/// Takes all values as heights.
fn take(image: DecodingResult, heights: Heights) -> Result<Heights, String> {
    match image {
        DecodingResult::U8(values) => push_all(values, heights, f64::from),
        DecodingResult::U16(values) => push_all(values, heights, f64::from),
        DecodingResult::U32(values) => push_all(values, heights, f64::from),
        DecodingResult::U64(values) => push_all(values, heights, |value| value as f64),
        DecodingResult::I8(values) => push_all(values, heights, f64::from),
        DecodingResult::I16(values) => push_all(values, heights, f64::from),
        DecodingResult::I32(values) => push_all(values, heights, f64::from),
        DecodingResult::I64(values) => push_all(values, heights, |value| value as f64),
        DecodingResult::F16(values) => push_all(values, heights, |value| value.to_f64()),
        DecodingResult::F32(values) => push_all(values, heights, f64::from),
        DecodingResult::F64(values) => push_all(values, heights, |value| value),
    }
}

fn push_all<T>(
    values: Vec<T>,
    mut heights: Heights,
    height_m: impl Fn(T) -> f64,
) -> Result<Heights, String> {
    for value in values {
        let height_m = height_m(value);
        heights.push(height_m, || brief(height_m))?;
    }
    Ok(heights)
}

#[cfg(test)]
#[path = "geotiff/tests.rs"]
mod tests;
