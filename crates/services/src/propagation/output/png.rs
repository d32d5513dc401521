//! A coverage as an image in the Portable Network Graphics format (W3C PNG, third edition): a pixel for each point.

use std::io::{self, Write as _};

use anemone_hub::run::{RunFailure, Stopped};
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Some colours of the map viridis of S. van der Walt and N. Smith, whose brightness rises evenly, so that the colour-blind can
/// read it, too. The others are between them.
const COLOURS: [[u8; 3]; 9] = [
    [68, 1, 84],
    [71, 44, 122],
    [59, 81, 139],
    [44, 113, 142],
    [33, 144, 141],
    [39, 173, 129],
    [92, 200, 99],
    [170, 220, 50],
    [253, 231, 37],
];

/// The pixels between two questions whether to go on.
const PIECE: usize = 4_096;

/// The values that are light.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Light {
    /// The largest: of a signal.
    Largest,
    /// The smallest: of a loss, so that light is a strong signal in every image.
    Smallest,
}

/// Returns about as many bytes as an image of so many points takes, in Base64: a coverage has smooth colours.
pub(super) fn bytes(points: usize) -> usize {
    points / 2
}

/// Draws values with the darkest colour at one end of their range, and the lightest at the other one.
///
/// # Errors
/// The end that `check` returned, or an image that could not be made.
pub(super) fn png(
    values: &[f32],
    columns: usize,
    light: Light,
    check: impl Fn() -> Result<(), Stopped>,
) -> Result<Vec<u8>, RunFailure> {
    let (low, high) =
        values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
    let scale = 255.0 / (high - low).max(f32::MIN_POSITIVE);
    let from_dark = |value: f32| match light {
        Light::Largest => value - low,
        Light::Smallest => high - value,
    };
    // A cast to a byte ends at both ends of its range.
    let pixel = |value: &f32| (from_dark(*value) * scale).round() as u8;
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut pixels = Vec::with_capacity(PIECE);
    for row in values.chunks(columns) {
        // Filter 0: the bytes as they are.
        rows.write_all(&[0]).map_err(no_image)?;
        for piece in row.chunks(PIECE) {
            check()?;
            pixels.clear();
            pixels.extend(piece.iter().map(pixel));
            rows.write_all(&pixels).map_err(no_image)?;
        }
    }
    // At most 1,500,000 points.
    let [width, height] = [columns, values.len() / columns].map(|side| (side as u32).to_be_bytes());
    // 8 bits, indices of a palette, and the only methods of compression, filters and interlacing.
    let header = [&width[..], &height, &[8, 3, 0, 0, 0]].concat();
    let mut image = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut image, b"IHDR", &header);
    chunk(&mut image, b"PLTE", &palette());
    chunk(&mut image, b"IDAT", &rows.finish().map_err(no_image)?);
    chunk(&mut image, b"IEND", &[]);
    Ok(image)
}

fn no_image(error: io::Error) -> RunFailure {
    RunFailure::new(format!("no image: {error}"))
}

/// Adds a chunk: its length, its type, its data, and their checksum (section 5.3).
fn chunk(image: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    // The largest is smaller than the points of a grid.
    image.extend((data.len() as u32).to_be_bytes());
    let begin = image.len();
    image.extend(kind);
    image.extend(data);
    let checksum = crc32fast::hash(&image[begin..]);
    image.extend(checksum.to_be_bytes());
}

/// Returns 256 colours, of three bytes each.
fn palette() -> Vec<u8> {
    let last = COLOURS.len() - 1;
    let colour = |at: usize| {
        let before = (at * last / 255).min(last - 1);
        let part = (at * last) as f64 / 255.0 - before as f64;
        [0, 1, 2].map(|channel| {
            let [from, to] = [before, before + 1].map(|at| f64::from(COLOURS[at][channel]));
            // Between two bytes.
            (from + part * (to - from)).round() as u8
        })
    };
    (0..256).flat_map(colour).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_image_has_a_pixel_for_each_point_in_the_colours_of_the_values() {
        for light in [Light::Largest, Light::Smallest] {
            check_image(light);
        }
    }

    fn check_image(light: Light) {
        let values = [-100.0, -50.0, -75.0, -100.0, -50.0, -50.0];
        let image = png(&values, 3, light, || Ok(())).unwrap();
        assert_eq!(&image[..8], b"\x89PNG\r\n\x1a\n");
        let (mut chunks, mut rest) = (Vec::new(), &image[8..]);
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk::<4>().unwrap();
            let (data, after) = after.split_at(4 + u32::from_be_bytes(*length) as usize);
            let (checksum, after) = after.split_first_chunk::<4>().unwrap();
            assert_eq!(crc32fast::hash(data).to_be_bytes(), *checksum);
            chunks.push(data.split_first_chunk::<4>().unwrap());
            rest = after;
        }
        let kinds: Vec<_> = chunks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [b"IHDR", b"PLTE", b"IDAT", b"IEND"]);
        assert_eq!(chunks[0].1, [0, 0, 0, 3, 0, 0, 0, 2, 8, 3, 0, 0, 0]);
        let colours = chunks[1].1;
        assert_eq!((&colours[..3], &colours[255 * 3..]), (&COLOURS[0][..], &COLOURS[8][..]));
        let mut pixels = Vec::new();
        flate2::read::ZlibDecoder::new(chunks[2].1).read_to_end(&mut pixels).unwrap();
        let expected = match light {
            Light::Largest => [0, 0, 255, 128, 0, 0, 255, 255],
            Light::Smallest => [0, 255, 0, 128, 0, 255, 0, 0],
        };
        assert_eq!(pixels, expected);
    }

    #[test]
    fn values_that_are_all_alike_make_an_image_too() {
        assert!(png(&[3.0; 4], 2, Light::Largest, || Ok(())).is_ok());
    }
}
