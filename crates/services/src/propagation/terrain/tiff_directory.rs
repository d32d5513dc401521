//! The directories of a TIFF file (TIFF 6.0, section 2), checked before the library reads the first one.
//!
//! The library makes room for as many values of a tag as the directory says. It reads no image after the first, which may be the
//! mask of it.

/// The most values of a tag that the library reads: one for each strip or tile.
pub(super) const VALUES_MAX: u32 = 4_096;

/// The tags of the baseline and of its extensions, which the library reads.
const BASELINE: std::ops::RangeInclusive<u16> = 254..=531;

/// The tags that say where the grid lies and what its values are.
const PLACE: [u16; 8] = [33_550, 33_922, 34_264, 34_735, 34_736, 34_737, 42_112, 42_113];

/// The tag with the kind of an image, and the bit of those that are masks of another one.
const SUBFILE_TYPE: u16 = 254;
const IS_MASK: u32 = 4;

/// The most images of a file.
const DIRECTORIES_MAX: usize = 64;

/// The types of a text and of a short number.
const ASCII: u16 = 2;
const SHORT: u16 = 3;

const ENTRY_BYTES: usize = 12;

/// Numbers of a file, in its order of bytes.
#[derive(Clone, Copy, Debug)]
struct Numbers<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl Numbers<'_> {
    fn at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let mut bytes = *self.bytes.get(at..)?.first_chunk::<N>()?;
        if !self.is_little {
            bytes.reverse();
        }
        Some(bytes)
    }

    fn short(&self, at: usize) -> Option<u16> {
        self.at(at).map(u16::from_le_bytes)
    }

    fn long(&self, at: usize) -> Option<u32> {
        self.at(at).map(u32::from_le_bytes)
    }
}

/// Checks that no tag says more values than the file can have.
///
/// # Errors
/// A sentence that says what is wrong where.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let is_little = match bytes.first_chunk::<4>() {
        Some(b"II\x2a\0") => true,
        Some(b"MM\0\x2a") => false,
        Some(b"II\x2b\0" | b"MM\0\x2b") => {
            return Err("is a BigTIFF, which is for files above 4 GiB: expected a TIFF".to_owned());
        }
        _ => return Err("is no TIFF: expected II*\\0 or MM\\0* in front".to_owned()),
    };
    let file = Numbers { bytes, is_little };
    let first = check_first(&file)?;
    check_others(&file, first)
}

/// Checks the first directory. Returns the offset of the next one; 0 if there is none.
fn check_first(file: &Numbers<'_>) -> Result<u32, String> {
    let short = || "ends before the end of its directory".to_owned();
    // An offset of 32 bits.
    let begin = file.long(4).ok_or_else(short)? as usize;
    let count = file.short(begin).ok_or_else(short)?;
    for entry in 0..usize::from(count) {
        let at = begin + 2 + ENTRY_BYTES * entry;
        let fields = (file.short(at), file.short(at + 2), file.long(at + 4), file.long(at + 8));
        let (Some(tag), Some(kind), Some(values), Some(_)) = fields else { return Err(short()) };
        check_entry(tag, kind, values, file.bytes.len())?;
    }
    Ok(file.long(begin + 2 + ENTRY_BYTES * usize::from(count)).unwrap_or_default())
}

/// Looks for a mask in the directories from this offset on. One that is cut ends them.
fn check_others(file: &Numbers<'_>, mut offset: u32) -> Result<(), String> {
    for _ in 1..DIRECTORIES_MAX {
        let begin = offset as usize;
        let Some(count) = file.short(begin).filter(|_| offset != 0) else { return Ok(()) };
        let entries = (0..usize::from(count)).map(|entry| begin + 2 + ENTRY_BYTES * entry);
        for at in entries {
            if file.short(at) == Some(SUBFILE_TYPE) && is_mask(file, at) {
                return Err(
                    "has a mask, which is not read here: expected GDAL_NODATA in the cells without a height"
                        .to_owned(),
                );
            }
        }
        offset = file.long(begin + 2 + ENTRY_BYTES * usize::from(count)).unwrap_or_default();
    }
    Err(format!("has more than {DIRECTORIES_MAX} images"))
}

/// Returns true if the entry here says that its image is a mask.
fn is_mask(file: &Numbers<'_>, at: usize) -> bool {
    let value = match file.short(at + 2) {
        Some(SHORT) => file.short(at + 8).map(u32::from),
        _ => file.long(at + 8),
    };
    value.is_some_and(|value| value & IS_MASK != 0)
}

fn check_entry(tag: u16, kind: u16, values: u32, file_bytes: usize) -> Result<(), String> {
    let value_bytes = match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        _ => 8,
    };
    if u64::from(values) * value_bytes > file_bytes as u64 {
        return Err(format!("says that tag {tag} has {values} values, more than the file holds"));
    }
    let is_read = BASELINE.contains(&tag) || PLACE.contains(&tag);
    if is_read && kind != ASCII && values > VALUES_MAX {
        return Err(format!("has {values} values of tag {tag}, at most {VALUES_MAX} allowed"));
    }
    Ok(())
}
