//! GeoTIFF (OGC 19-008r4): a TIFF image whose values are heights, with tags that say where it lies.
//!
//! The library decodes the image. All that it makes is bounded before: the values of tags by `tiff_directory`, what is read by
//! `metered`, and the cells and what they are decoded from here and in `cells`.

use tiff::ColorType;
use tiff::decoder::{Decoder, Limits};
use tiff::tags::{CompressionMethod, PhotometricInterpretation, Tag};

use super::cells::{Cells, File, unreadable};
use super::file_grid::{CELLS_MAX, FileGrid, Heights, check_cell, check_coordinate, check_count};
use super::gdal_metadata::GdalMetadata;
use super::geo_coordinates::GeoCoordinates;
use super::geo_heights::{GeoHeights, ModelHeights};
use super::geo_keys::{self as key, GeoKeys};
use super::metered::Metered;
use super::tiff_directory;
use crate::reader::quoted;

/// The code of tie points that are the middles of cells, and not their corners.
const POINTS: u16 = 2;

/// The most bytes that a byte of compressed data stands for: a little above what LZW can reach, which is the most of all
/// methods.
const RATIO_MAX: f64 = 3_000.0;

/// The tags of the numbers and texts of geographic keys, and of GDAL's metadata.
const GEO_NUMBERS: Tag = Tag::GeoDoubleParamsTag;
const GEO_TEXTS: Tag = Tag::GeoAsciiParamsTag;
const GDAL_METADATA: Tag = Tag::Unknown(42_112);

/// The orientation of an image whose first row is at the top and whose first column is on the left.
const TOP_LEFT: u16 = 1;

/// A grid, and its coordinates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GeoTiff {
    pub(super) grid: FileGrid,
    pub(super) coordinates: GeoCoordinates,
}

/// Parses a file.
///
/// # Errors
/// The end of a sentence about the file, which says what is wrong and where.
pub(super) fn parse(bytes: &[u8]) -> Result<GeoTiff, String> {
    tiff_directory::check(bytes)?;
    let mut limits = Limits::default();
    limits.decoding_buffer_size = CELLS_MAX as usize * size_of::<f64>();
    limits.intermediate_buffer_size = bytes.len();
    let metered = Metered::new(bytes, tiff_directory::VALUES_MAX as usize);
    let mut file = Decoder::new(metered).map_err(unreadable)?.with_limits(limits);
    let (columns, rows) = check_form(&mut file)?;
    let cells = Cells::read(&mut file, columns, rows)?;
    check_length(&mut file, &cells, bytes.len())?;
    let keys = keys(&mut file)?;
    let coordinates = GeoCoordinates::read(&keys)?;
    let ([west, south, cell_width, cell_height], model) = place(&mut file, &keys, rows)?;
    let metadata = GdalMetadata::read(&text(&mut file, GDAL_METADATA)?.unwrap_or_default());
    let GeoHeights { scale, mut doubts } = GeoHeights::read(&keys, &metadata, model)?;
    doubts.extend(coordinates.doubt.clone());
    let heights = Heights::new(columns, columns * rows, no_data(&mut file)?).scaled(scale);
    let heights = cells.decode(&mut file, heights)?;
    let grid = FileGrid { west, south, cell_width, cell_height, columns, heights, doubts };
    Ok(GeoTiff { grid, coordinates })
}

/// Checks the form of the image. Returns its columns and rows.
fn check_form(file: &mut File<'_>) -> Result<(usize, usize), String> {
    let (columns, rows) = file.dimensions().map_err(unreadable)?;
    let columns = check_count("the number of columns", f64::from(columns))?;
    let rows = check_count("the number of rows", f64::from(rows))?;
    if columns * rows > CELLS_MAX {
        return Err(format!("has {columns} x {rows} heights, at most {CELLS_MAX} allowed"));
    }
    bytes_per_value(file)?;
    let mut code = |tag| file.find_tag_unsigned::<u16>(tag).map_err(unreadable);
    let orientation = code(Tag::Orientation)?.unwrap_or(TOP_LEFT);
    let meaning = code(Tag::PhotometricInterpretation)?;
    if orientation != TOP_LEFT {
        return Err(format!("has the orientation {orientation}, expected rows from the top"));
    }
    // The library would turn the values around.
    if meaning == Some(PhotometricInterpretation::WhiteIsZero.to_u16()) {
        return Err("has an image whose white is 0, expected one whose black is 0".to_owned());
    }
    // Both are whole numbers of at most CELLS_MAX.
    Ok((columns as usize, rows as usize))
}

fn bytes_per_value(file: &mut File<'_>) -> Result<f64, String> {
    match file.colortype().map_err(unreadable)? {
        ColorType::Gray(bits @ (8 | 16 | 32 | 64)) => Ok(f64::from(bits / 8)),
        ColorType::Gray(bits) => {
            Err(format!("has values of {bits} bits, expected 8, 16, 32 or 64"))
        }
        _ => Err("has colours or several bands, expected one band of heights".to_owned()),
    }
}

/// Checks that the file is long enough for its cells, so that a false size makes nothing large.
fn check_length(file: &mut File<'_>, cells: &Cells, file_bytes: usize) -> Result<(), String> {
    let method = file.find_tag_unsigned(Tag::Compression).map_err(unreadable)?.unwrap_or(1_u16);
    let is_plain = method == CompressionMethod::None.to_u16();
    let most_bytes = file_bytes as f64 * if is_plain { 1.0 } else { RATIO_MAX };
    if cells.count_stored() as f64 * bytes_per_value(file)? > most_bytes {
        let (columns, rows) = (cells.columns, cells.rows);
        return Err(format!("says {columns} x {rows} heights, but is too short for them"));
    }
    Ok(())
}

fn keys(file: &mut File<'_>) -> Result<GeoKeys, String> {
    let directory = file.find_tag_unsigned_vec(Tag::GeoKeyDirectoryTag).map_err(unreadable)?;
    let numbers = file.find_tag(GEO_NUMBERS).map_err(unreadable)?;
    let numbers = numbers.map(tiff::decoder::ifd::Value::into_f64_vec).transpose();
    Ok(GeoKeys {
        directory: directory.unwrap_or_default(),
        numbers: numbers.map_err(unreadable)?.unwrap_or_default(),
        texts: text(file, GEO_TEXTS)?.unwrap_or_default(),
    })
}

fn text(file: &mut File<'_>, tag: Tag) -> Result<Option<String>, String> {
    let value = file.find_tag(tag).map_err(unreadable)?;
    value.map(|value| value.into_string().map_err(unreadable)).transpose()
}

/// Returns the coordinates of the middles of the first column and the last row, the sides of a cell, and the scale of heights.
fn place(
    file: &mut File<'_>,
    keys: &GeoKeys,
    rows: usize,
) -> Result<([f64; 4], ModelHeights), String> {
    let mut numbers = |tag: Tag, name: &str| {
        let value = file.find_tag(tag).map_err(unreadable)?;
        let value =
            value.ok_or_else(|| format!("has no {name}: expected one that lies north up"))?;
        value.into_f64_vec().map_err(unreadable)
    };
    let scale = numbers(Tag::ModelPixelScaleTag, "ModelPixelScale")?;
    let tie = numbers(Tag::ModelTiepointTag, "ModelTiepoint")?;
    let [cell_width, cell_height, ref rest @ ..] = scale[..] else {
        return Err("has a ModelPixelScale of fewer than 2 values".to_owned());
    };
    let [column, row, value, x, y, z, ..] = tie[..] else {
        return Err("has a ModelTiepoint of fewer than 6 values".to_owned());
    };
    let cell_width = check_cell("the width of a cell", cell_width)?;
    let cell_height = check_cell("the height of a cell", cell_height)?;
    let middle = if keys.code(key::RASTER_TYPE) == Some(POINTS) { 0.0 } else { 0.5 };
    let west = x + (middle - column) * cell_width;
    let south = y - (middle - row + (rows - 1) as f64) * cell_height;
    let west = check_coordinate("the coordinate of the western edge", west)?;
    let south = check_coordinate("the coordinate of the southern edge", south)?;
    let scale = rest.first().copied().unwrap_or_default();
    Ok(([west, south, cell_width, cell_height], ModelHeights { scale, offset: z - value * scale }))
}

/// Returns the value that stands for no height.
fn no_data(file: &mut File<'_>) -> Result<Option<f64>, String> {
    let Some(text) = text(file, Tag::GdalNodata)? else { return Ok(None) };
    let number = text.trim().trim_end_matches('\0').trim().parse();
    number.map(Some).map_err(|_| format!("has a GDAL_NODATA that is no number: {}", quoted(&text)))
}

#[cfg(test)]
#[path = "geotiff/tests.rs"]
mod tests;
