//! The strips or tiles of a TIFF image, and the cells in them.
//!
//! A sparse file leaves out those without data: their offset and length are 0.

use tiff::TiffError;
use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::tags::Tag;

use super::file_grid::{CELLS_MAX, Heights};
use super::metered::Metered;
use crate::reader::brief;

/// The most cells of all strips or tiles together: tiles may reach beyond the edges of the grid.
const TILED_CELLS_MAX: f64 = 4.0 * CELLS_MAX;

const TILE_SIDE_MAX: u32 = 4_096;

/// The characters of an error of the library that are told.
const ERROR_CHARS_MAX: usize = 80;

pub(super) type File<'a> = Decoder<Metered<'a>>;

/// Tells an error of the library, as the end of a sentence about the file.
pub(super) fn unreadable(error: TiffError) -> String {
    let said: String = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
    format!("cannot be read: {said}")
}

/// The parts of an image, in rows from west to east.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The columns and rows of a part.
    width: usize,
    height: usize,
    /// True for each part that the file has, and false for each that it leaves out.
    is_stored: Vec<bool>,
}

/// A part that the file has: its number, its first column and row, and its columns and rows within the grid.
#[derive(Clone, Copy, Debug)]
struct StoredPart {
    number: usize,
    column: usize,
    row: usize,
    columns: usize,
    rows: usize,
}

impl Cells {
    /// Finds out which parts the file has.
    pub(super) fn read(file: &mut File<'_>, columns: usize, rows: usize) -> Result<Self, String> {
        let is_strip = file.get_chunk_type() == ChunkType::Strip;
        let (width, height) = file.chunk_dimensions();
        if width == 0 || height == 0 {
            return Err("has strips or tiles without cells".to_owned());
        }
        if !is_strip {
            check_tiles([columns, rows], [width, height])?;
        }
        let (offsets, lengths) = if is_strip {
            (Tag::StripOffsets, Tag::StripByteCounts)
        } else {
            (Tag::TileOffsets, Tag::TileByteCounts)
        };
        let mut numbers = |tag| {
            let found = file.find_tag_unsigned_vec::<u64>(tag).map_err(unreadable)?;
            Ok::<_, String>(found.unwrap_or_default())
        };
        let (offsets, lengths) = (numbers(offsets)?, numbers(lengths)?);
        let (width, height) = (width as usize, height as usize);
        let count = columns.div_ceil(width) * rows.div_ceil(height);
        if offsets.len() < count || lengths.len() < count {
            let found = offsets.len().min(lengths.len());
            return Err(format!("has {found} strips or tiles, and needs {count}"));
        }
        let is_stored = offsets.iter().zip(&lengths).take(count);
        let is_stored = is_stored.map(|(offset, length)| (*offset, *length) != (0, 0)).collect();
        Ok(Self { columns, rows, width, height, is_stored })
    }

    /// Returns the number of cells in the parts that the file has.
    pub(super) fn count_stored(&self) -> usize {
        self.stored().map(|part| part.columns * part.rows).sum()
    }

    /// Decodes one part after the other.
    pub(super) fn decode(
        &self,
        file: &mut File<'_>,
        mut heights: Heights,
    ) -> Result<Heights, String> {
        for part in self.stored() {
            // At most as many as the tag has values.
            let values = file.read_chunk(part.number as u32).map_err(unreadable)?;
            take(&values, |at, value| {
                let (row, column) = (at / part.columns, at % part.columns);
                if row >= part.rows {
                    return Ok(());
                }
                let cell = (part.row + row) * self.columns + part.column + column;
                heights.take(cell, value, || brief(value))
            })?;
        }
        Ok(heights)
    }

    fn stored(&self) -> impl Iterator<Item = StoredPart> {
        let across = self.columns.div_ceil(self.width);
        let numbers = self.is_stored.iter().enumerate().filter(|(_, is_stored)| **is_stored);
        numbers.map(move |(number, _)| {
            let (column, row) = (number % across * self.width, number / across * self.height);
            StoredPart {
                number,
                column,
                row,
                columns: self.width.min(self.columns - column),
                rows: self.height.min(self.rows - row),
            }
        })
    }
}

/// Checks the tiles, which may reach beyond the edges of the grid. Strips do not.
fn check_tiles(sides: [usize; 2], tile: [u32; 2]) -> Result<(), String> {
    let [width, height] = tile;
    if width.max(height) > TILE_SIDE_MAX {
        let most = TILE_SIDE_MAX;
        return Err(format!(
            "has tiles of {width} x {height} cells, at most {most} x {most} allowed"
        ));
    }
    let all = |side: usize, tile: u32| side.div_ceil(tile as usize) as f64 * f64::from(tile);
    let cells = all(sides[0], width) * all(sides[1], height);
    if cells > TILED_CELLS_MAX {
        return Err(format!(
            "has tiles of {cells} cells together, at most {TILED_CELLS_MAX} allowed"
        ));
    }
    Ok(())
}

fn take(
    values: &DecodingResult,
    take: impl FnMut(usize, f64) -> Result<(), String>,
) -> Result<(), String> {
    match values {
        DecodingResult::U8(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::U16(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::U32(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::U64(values) => each(values, |value| *value as f64, take),
        DecodingResult::I8(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::I16(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::I32(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::I64(values) => each(values, |value| *value as f64, take),
        DecodingResult::F16(values) => each(values, |value| value.to_f64(), take),
        DecodingResult::F32(values) => each(values, |value| f64::from(*value), take),
        DecodingResult::F64(values) => each(values, |value| *value, take),
    }
}

fn each<T>(
    values: &[T],
    number: impl Fn(&T) -> f64,
    mut take: impl FnMut(usize, f64) -> Result<(), String>,
) -> Result<(), String> {
    values.iter().enumerate().try_for_each(|(at, value)| take(at, number(value)))
}
