use std::io::Write as _;

use proptest::prelude::*;

use super::*;

/// A TIFF file that is written by hand, so that it may lie.
#[derive(Clone, Debug)]
struct Draft {
    /// True if the high bytes come first.
    is_big: bool,
    /// Tag, type, number of values, and the bytes of these.
    tags: Vec<(u16, u16, u32, Vec<u8>)>,
    data: Vec<u8>,
}

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const DOUBLE: u16 = 12;
const DATA_AT: u32 = 8;

impl Draft {
    /// Three columns and two rows of signed numbers of 16 bits, in one strip, whose north-western corner is at (100, 220).
    fn new() -> Self {
        Self::of(&[1, 2, 3, -9999, 5, -6], 3)
    }

    fn of(heights: &[i16], columns: u32) -> Self {
        let data: Vec<u8> = heights.iter().flat_map(|height| height.to_le_bytes()).collect();
        let rows = heights.len() as u32 / columns;
        let mut draft = Self { is_big: false, tags: Vec::new(), data };
        for (tag, value) in [
            (256, columns),
            (257, rows),
            (258, 16),
            (259, 1),
            (262, 1),
            (273, DATA_AT),
            (277, 1),
            (278, rows),
            (279, draft.data.len() as u32),
            (339, 2),
        ] {
            draft = draft.long(tag, &[value]);
        }
        draft.double(33_550, &[10.0, 10.0, 0.0]).double(33_922, &[0.0, 0.0, 0.0, 100.0, 220.0, 0.0])
    }

    fn set(mut self, tag: u16, kind: u16, count: u32, bytes: Vec<u8>) -> Self {
        self.tags.retain(|set| set.0 != tag);
        self.tags.push((tag, kind, count, bytes));
        self.tags.sort_by_key(|set| set.0);
        self
    }

    fn long(self, tag: u16, values: &[u32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.set(tag, LONG, values.len() as u32, bytes)
    }

    fn double(self, tag: u16, values: &[f64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.set(tag, DOUBLE, values.len() as u32, bytes)
    }

    fn shorts(self, tag: u16, values: &[u16]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.set(tag, SHORT, values.len() as u32, bytes)
    }

    fn text(self, tag: u16, text: &str) -> Self {
        self.set(tag, ASCII, text.len() as u32, text.into())
    }

    fn without(mut self, tag: u16) -> Self {
        self.tags.retain(|set| set.0 != tag);
        self
    }

    fn data(mut self, data: Vec<u8>) -> Self {
        self.data = data;
        self
    }

    /// With these tags and data in tiles in place of strips.
    fn tiled(self, width: u32, height: u32, offsets: &[u32], data: Vec<u8>) -> Self {
        let draft = self.without(273).without(278).without(279).data(data);
        let bytes = vec![draft.data.len() as u32; offsets.len()];
        draft.long(322, &[width]).long(323, &[height]).long(324, offsets).long(325, &bytes)
    }

    fn bytes(&self) -> Vec<u8> {
        let number = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            if self.is_big {
                bytes.reverse();
            }
            bytes
        };
        let numbers = |kind: u16, bytes: &[u8]| -> Vec<u8> {
            let size = match kind {
                SHORT => 2,
                LONG => 4,
                DOUBLE => 8,
                _ => 1,
            };
            bytes.chunks(size).flat_map(number).collect()
        };
        let mut file = if self.is_big { b"MM\0\x2a" } else { b"II\x2a\0" }.to_vec();
        let mut values_at = DATA_AT as usize + self.data.len();
        values_at += values_at % 2;
        let values = self.tags.iter().filter(|tag| tag.3.len() > 4);
        let values_bytes: usize = values.map(|tag| tag.3.len()).sum();
        file.extend(number(&((values_at + values_bytes) as u32).to_le_bytes()));
        file.extend(numbers(SHORT, &self.data));
        file.resize(values_at, 0);
        let mut directory = number(&(self.tags.len() as u16).to_le_bytes());
        for (tag, kind, count, bytes) in &self.tags {
            directory.extend(number(&tag.to_le_bytes()));
            directory.extend(number(&kind.to_le_bytes()));
            directory.extend(number(&count.to_le_bytes()));
            if bytes.len() > 4 {
                directory.extend(number(&(file.len() as u32).to_le_bytes()));
                file.extend(numbers(*kind, bytes));
            } else {
                directory.extend(numbers(*kind, bytes));
                directory.resize(directory.len() + 4 - bytes.len(), 0);
            }
        }
        file.extend(directory);
        file.extend([0; 4]);
        file
    }

    /// The file with another directory behind its own, which has the kind of an image alone.
    fn bytes_with_another(&self, kind: u16) -> Vec<u8> {
        let mut file = self.bytes();
        let next = file.len() as u32;
        file.truncate(file.len() - 4);
        file.extend(next.to_le_bytes());
        file.extend([1, 0, 254, 0, 3, 0, 1, 0, 0, 0]);
        file.extend(u32::from(kind).to_le_bytes());
        file.extend([0; 4]);
        file
    }

    fn parse(&self) -> Result<FileGrid, String> {
        parse(&self.bytes()).map(|found| found.grid)
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_grid_is_read_with_the_middles_of_its_cells() {
    let grid = Draft::new().text(42_113, "-9999\0").parse().unwrap();
    assert_eq!((grid.west, grid.south), (105.0, 205.0));
    assert_eq!((grid.cell_width, grid.cell_height, grid.columns), (10.0, 10.0, 3));
    let Heights { metres, unknown, .. } = grid.heights;
    assert_eq!((&metres[..], unknown), (&[1.0, 2.0, 3.0, 0.0, 5.0, -6.0][..], 1));
    let big = Draft { is_big: true, ..Draft::new().text(42_113, "-9999\0") }.parse().unwrap();
    assert_eq!((big.west, big.heights.metres), (105.0, metres));
    // The tie point is the middle of the cell in column 1 and row 1.
    let grid = Draft::of(&[1, 2, 3, 4], 2)
        .shorts(34_735, &[1, 1, 0, 1, 1025, 0, 1, 2])
        .double(33_550, &[10.0, 20.0, 0.0])
        .double(33_922, &[1.0, 1.0, 0.0, 100.0, 200.0, 0.0]);
    let grid = grid.parse().unwrap();
    assert_eq!(
        (grid.west, grid.south, grid.cell_width, grid.cell_height),
        (90.0, 200.0, 10.0, 20.0)
    );
}

#[test]
fn all_kinds_of_numbers_and_methods_give_the_same_heights() {
    let heights = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let of = |bits: u32, format: u32, data: Vec<u8>| {
        let length = data.len() as u32;
        Draft::new().long(258, &[bits]).long(339, &[format]).long(279, &[length]).data(data)
    };
    let bytes = |write: &dyn Fn(f64) -> Vec<u8>| heights.iter().flat_map(|h| write(*h)).collect();
    let (unsigned, signed, float) = (1, 2, 3);
    let mut drafts: Vec<Draft> = vec![
        of(8, unsigned, bytes(&|h| vec![h as u8])),
        of(8, signed, bytes(&|h| vec![h as u8])),
        of(16, unsigned, bytes(&|h| (h as u16).to_le_bytes().into())),
        of(16, signed, bytes(&|h| (h as i16).to_le_bytes().into())),
        of(32, unsigned, bytes(&|h| (h as u32).to_le_bytes().into())),
        of(32, signed, bytes(&|h| (h as i32).to_le_bytes().into())),
        of(64, unsigned, bytes(&|h| (h as u64).to_le_bytes().into())),
        of(64, signed, bytes(&|h| (h as i64).to_le_bytes().into())),
        of(32, float, bytes(&|h| (h as f32).to_le_bytes().into())),
        of(64, float, bytes(&|h| h.to_le_bytes().into())),
    ];
    let plain = bytes(&|h| (h as i16).to_le_bytes().into());
    let packed = [&[11][..], &plain].concat();
    drafts.push(of(16, signed, packed).long(259, &[32_773]));
    drafts.push(of(16, signed, deflated(&plain)).long(259, &[8]));
    // Differences of neighbours.
    let differences =
        [1_i16, 1, 1, 4, 1, 1].iter().flat_map(|h| h.to_le_bytes()).collect::<Vec<_>>();
    drafts.push(of(16, signed, deflated(&differences)).long(259, &[8]).long(317, &[2]));
    // Two tiles of 2 x 2 cells, of which the second reaches beyond the edge.
    let tiles = [1_i16, 2, 4, 5, 3, 0, 6, 0].iter().flat_map(|h| h.to_le_bytes()).collect();
    drafts.push(Draft::new().tiled(2, 2, &[8, 16], tiles));
    // A strip that says it has more rows than there are.
    drafts.push(of(16, signed, plain).long(278, &[u32::MAX]));
    for draft in drafts {
        let grid = draft.parse().unwrap_or_else(|error| panic!("{error}: {draft:?}"));
        assert_eq!(grid.heights.metres, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{draft:?}");
    }
}

#[test]
fn what_is_wrong_is_told() {
    let good = Draft::new;
    let float = |values: [f32; 6]| {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let length = data.len() as u32;
        good().long(258, &[32]).long(339, &[3]).long(279, &[length]).data(data)
    };
    let many = vec![8; 5_000];
    for (draft, words) in [
        (good(), "row 2, column 1 is -9999, expected a height from -500 to 9000 m"),
        (float([1.0, 1.0, 1.0, 1.0, 1.0, f32::INFINITY]), "row 2, column 3 is inf, expected"),
        (float([1e30; 6]), "row 1, column 1 is 1.000e30, expected"),
        (good().text(42_113, "nothing\0"), "has a GDAL_NODATA that is no number: nothing"),
        (
            good().long(256, &[u32::MAX]),
            "the number of columns is 4294967295, expected a whole number from 2 to 1000000",
        ),
        (good().long(256, &[1]), "the number of columns is 1, expected"),
        (good().long(256, &[0]), "cannot be read: "),
        (good().long(256, &[1_000_000]), "has 1000000 x 2 heights, at most 1000000 allowed"),
        (good().long(256, &[500_000]), "says 500000 x 2 heights, but is too short for them"),
        (good().long(256, &[500_000]).long(259, &[8]), "says 500000 x 2 heights, but is too short"),
        (good().long(258, &[4]), "has values of 4 bits, expected 8, 16, 32 or 64"),
        (good().long(262, &[2]).long(277, &[3]), "has colours or several bands"),
        (good().long(277, &[2]), "has colours or several bands"),
        (good().long(259, &[7]), "cannot be read: "),
        (good().long(259, &[8]), "cannot be read: "),
        (good().long(259, &[5]), "cannot be read: "),
        (good().long(273, &[u32::MAX]), "cannot be read: "),
        (good().long(273, &[4_000]), "cannot be read: "),
        (
            good().long(273, &many).long(279, &many),
            "has 5000 values of tag 273, at most 4096 allowed",
        ),
        (
            good().set(273, LONG, u32::MAX, vec![8; 4]),
            "says that tag 273 has 4294967295 values, more than the file holds",
        ),
        (good().set(256, ASCII, 300_000_000, vec![8; 4]), "says that tag 256 has 300000000 values"),
        (
            good().tiled(1 << 31, 2, &[8], vec![0; 64]),
            "has tiles of 2147483648 x 2 cells, at most 4096 x 4096 allowed",
        ),
        (
            good().tiled(4_096, 4_096, &[8], vec![0; 64]),
            "has tiles of 16777216 cells together, at most 4000000 allowed",
        ),
        (good().without(33_550), "has no ModelPixelScale: expected one that lies north up"),
        (good().without(33_922), "has no ModelTiepoint"),
        (good().double(33_550, &[10.0]), "has a ModelPixelScale of fewer than 2 values"),
        (good().double(33_922, &[10.0]), "has a ModelTiepoint of fewer than 6 values"),
        (
            good().double(33_550, &[f64::NAN, 10.0]),
            "the width of a cell is NaN, expected 0.000001 to 100000",
        ),
        (good().double(33_550, &[10.0, -10.0]), "the height of a cell is -10, expected"),
        (
            good().double(33_922, &[0.0, 0.0, 0.0, 1e308, 0.0, 0.0]),
            "the coordinate of the western edge is 1.000e308, expected",
        ),
        (
            good().double(33_922, &[0.0, 0.0, 0.0, 0.0, f64::NAN, 0.0]),
            "the coordinate of the southern edge is NaN, expected",
        ),
        (good().shorts(34_735, &[1, 1, 0, 1, 4099, 0, 1, 9102]), "has heights in the unit 9102"),
        (good().shorts(34_735, &[1, 1, 0, 1, 4096, 0, 1, 5715]), "has depths below a level"),
        (good().long(274, &[3]), "has the orientation 3, expected rows from the top"),
        (good().long(262, &[0]), "has an image whose white is 0"),
        (good().long(278, &[0]), "cannot be read: "),
        (good().tiled(2, 2, &[8], vec![0; 8]), "cannot be read: "),
        (good().text(42_112, "<Item role=\"scale\">x</Item>"), "has a scale of heights of NaN"),
        (
            good()
                .shorts(34_735, &[1, 1, 0, 1, 4099, 0, 1, 9002])
                .text(42_112, "<Item role=\"offset\">40000</Item>"),
            "row 1, column 1 is 1, which is 12192.3048 m, expected a height from -500 to 9000 m",
        ),
    ] {
        let found = draft.parse().unwrap_err();
        assert!(found.starts_with(words), "{found}, expected {words}");
        assert!(found.len() < 150, "{found}");
    }
    for (bytes, words) in [
        (&b""[..], "is no TIFF"),
        (b"GIF89a", "is no TIFF"),
        (b"II\x2b\0\x08\0\0\0", "is a BigTIFF"),
        (b"II\x2a\0\xff\xff\xff\xff", "ends before the end of its directory"),
        (b"MM\0\x2a\0\0\0\x08\0\x01", "ends before the end of its directory"),
    ] {
        let found = parse(bytes).unwrap_err();
        assert!(found.starts_with(words), "{found}");
    }
}

#[test]
fn values_become_metres_as_the_file_says() {
    let feet = |draft: Draft| draft.shorts(34_735, &[1, 1, 0, 1, 4099, 0, 1, 9002]);
    let scaled = |draft: Draft| {
        draft.text(42_112, "<GDALMetadata><Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.5</Item><Item name=\"OFFSET\" sample=\"0\" role=\"offset\">100</Item></GDALMetadata>\0")
    };
    let draft = || Draft::new().text(42_113, "-9999\0");
    for (draft, metres, doubts) in [
        (feet(draft()), [0.3048, 0.6096, 0.9144, 0.0, 1.524, -1.8288], 1),
        (scaled(draft()), [100.5, 101.0, 101.5, 0.0, 102.5, 97.0], 0),
        (feet(scaled(draft())), [30.6324, 30.7848, 30.9372, 0.0, 31.242, 29.5656], 1),
    ] {
        let FileGrid { heights, doubts: found, .. } = draft.parse().unwrap();
        assert_eq!((heights.metres, heights.unknown), (metres.map(|m: f64| m as f32).to_vec(), 1));
        assert_eq!(found.len(), doubts, "{found:?}");
    }
}

#[test]
fn a_value_that_is_no_number_is_no_height() {
    let values = [1.0, f32::NAN, 3.0, 4.0, 5.0, f32::NAN];
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let draft = Draft::new().long(258, &[32]).long(339, &[3]).long(279, &[24]).data(data);
    for draft in [draft.clone(), draft.text(42_113, "nan\0")] {
        let heights = draft.parse().unwrap().heights;
        assert_eq!((heights.metres, heights.unknown), (vec![1.0, 0.0, 3.0, 4.0, 5.0, 0.0], 2));
    }
}

#[test]
fn parts_that_a_sparse_file_leaves_out_have_no_heights() {
    // The first of two tiles, and the second of two strips.
    let tile = [1_i16, 2, 4, 5].iter().flat_map(|h| h.to_le_bytes()).collect::<Vec<_>>();
    let tiled = Draft::new().tiled(2, 2, &[8, 0], tile).long(325, &[8, 0]);
    let strip = [4_i16, 5, 6].iter().flat_map(|h| h.to_le_bytes()).collect::<Vec<_>>();
    let strips = Draft::new().long(278, &[1]).long(273, &[0, 8]).long(279, &[0, 6]).data(strip);
    for (draft, metres, unknown) in
        [(tiled, [1.0, 2.0, 0.0, 4.0, 5.0, 0.0], 2), (strips, [0.0, 0.0, 0.0, 4.0, 5.0, 6.0], 3)]
    {
        let heights = draft.parse().unwrap().heights;
        assert_eq!((heights.metres, heights.unknown), (metres.to_vec(), unknown));
    }
}

#[test]
fn a_mask_is_refused_and_overviews_are_not() {
    let read = |kind| parse(&Draft::new().text(42_113, "-9999\0").bytes_with_another(kind));
    for kind in [0, 1, 2] {
        assert!(read(kind).is_ok(), "{kind}");
    }
    for kind in [4, 5] {
        let found = read(kind).unwrap_err();
        assert!(found.starts_with("has a mask, which is not read here"), "{found}");
    }
    // A directory that leads to itself.
    let mut endless = Draft::new().text(42_113, "-9999\0").bytes_with_another(0);
    let at = endless.len() as u32 - 18;
    let end = endless.len() - 4;
    endless[end..].copy_from_slice(&at.to_le_bytes());
    assert_eq!(parse(&endless).unwrap_err(), "has more than 64 images");
}

#[test]
fn a_small_file_that_grows_without_end_is_cut_where_its_grid_ends() {
    // 1,000,000 cells of zeros take 2 kB, and what follows them is not decoded.
    let zeros = vec![0; 40_000_000];
    let data = deflated(&zeros);
    let length = data.len() as u32;
    let draft = Draft::of(&[0; 6], 3)
        .long(256, &[1_000])
        .long(257, &[1_000])
        .long(259, &[8])
        .long(278, &[1_000])
        .long(279, &[length])
        .data(data);
    assert!(length < 50_000, "{length}");
    assert_eq!(draft.parse().unwrap().heights.metres.len(), 1_000_000);
    let short = draft.data(deflated(&zeros[..1_999_999])).parse().unwrap_err();
    assert!(short.starts_with("cannot be read: "), "{short}");
}

#[test]
fn a_small_file_whose_strips_are_all_the_same_bytes_is_not_read_for_each_of_them() {
    // The row of each strip is at the end of the same bytes, after blocks of Deflate that give nothing.
    let strips = |rows: usize| {
        let mut data = vec![0x78, 0x9c];
        data.extend([0x00, 0x00, 0x00, 0xff, 0xff].repeat(18_000));
        data.extend(&deflated(&[0; 6])[2..]);
        let length = data.len() as u32;
        Draft::of(&[0; 6], 3)
            .long(257, &[rows as u32])
            .long(259, &[8])
            .long(273, &vec![DATA_AT; rows])
            .long(278, &[1])
            .long(279, &vec![length; rows])
            .data(data)
    };
    assert_eq!(strips(20).parse().unwrap().heights.metres, vec![0.0; 60]);
    let error = strips(4_000).parse().unwrap_err();
    assert!(error.contains("cannot be read: ") && error.contains("lie over each other"), "{error}");
}

proptest! {
    #[test]
    fn a_file_that_is_cut_or_changed_anywhere_is_read_or_refused(
        method in prop::sample::select(vec![1_u32, 5, 8, 32_773]),
        is_tiled in any::<bool>(),
        predictor in 1..4_u32,
        changes in prop::collection::vec((0..600_usize, any::<u8>()), 0..6),
        cut in prop::option::of(0..600_usize),
    ) {
        let plain: Vec<u8> = (0..24).collect();
        let data = if method == 8 { deflated(&plain) } else { plain };
        let length = data.len() as u32;
        let mut draft = Draft::new().long(259, &[method]).long(317, &[predictor]).long(279, &[length]);
        draft = if is_tiled { draft.tiled(2, 2, &[8, 8], data) } else { draft.data(data) };
        let mut bytes = draft.bytes();
        let length = bytes.len();
        for (at, byte) in changes {
            bytes[at % length] = byte;
        }
        bytes.truncate(cut.unwrap_or(length).min(length));
        if let Ok(GeoTiff { grid, .. }) = parse(&bytes) {
            prop_assert!(grid.heights.metres.len() <= 1_000_000);
        }
    }
}
