//! The keys of a GeoTIFF file that say which coordinates and heights it has (OGC GeoTIFF 1.1, section 7).
//!
//! Finds values. `geo_coordinates` and `geo_heights` judge them.

/// The number of values of the header and of each entry.
const ENTRY: usize = 4;

/// The tags in which entries have their numbers and texts.
const NUMBERS: u16 = 34_736;
const TEXTS: u16 = 34_737;

/// The code for a value that other keys describe.
pub(super) const USER_DEFINED: u16 = 32_767;

pub(super) const MODEL_TYPE: u16 = 1024;
pub(super) const RASTER_TYPE: u16 = 1025;
pub(super) const CITATION: u16 = 1026;
pub(super) const GEODETIC_CRS: u16 = 2048;
pub(super) const GEODETIC_DATUM: u16 = 2050;
pub(super) const PRIME_MERIDIAN: u16 = 2051;
pub(super) const ANGULAR_UNITS: u16 = 2054;
pub(super) const ELLIPSOID: u16 = 2056;
pub(super) const SEMI_MAJOR_AXIS: u16 = 2057;
pub(super) const INVERSE_FLATTENING: u16 = 2059;
pub(super) const PROJECTED_CRS: u16 = 3072;
pub(super) const PROJECTED_CITATION: u16 = 3073;
pub(super) const PROJECTION: u16 = 3074;
pub(super) const PROJECTION_METHOD: u16 = 3075;
pub(super) const LINEAR_UNITS: u16 = 3076;
pub(super) const LINEAR_UNIT_SIZE: u16 = 3077;
pub(super) const SCALE_AT_ORIGIN: u16 = 3092;
pub(super) const SCALE_AT_CENTER: u16 = 3093;
pub(super) const VERTICAL_CRS: u16 = 4096;
pub(super) const VERTICAL_CITATION: u16 = 4097;
pub(super) const VERTICAL_UNITS: u16 = 4099;

/// The keys, and the numbers and texts to which they lead. All may be missing.
#[derive(Clone, Debug, Default)]
pub(super) struct GeoKeys {
    pub(super) directory: Vec<u16>,
    pub(super) numbers: Vec<f64>,
    pub(super) texts: String,
}

impl GeoKeys {
    /// Returns the code of a key; 0 stands for none.
    pub(super) fn code(&self, key: u16) -> Option<u16> {
        self.entry(key, 0).map(|[_, value]| value).filter(|code| *code != 0)
    }

    /// Returns the code of a key if other keys do not describe its value.
    pub(super) fn known_code(&self, key: u16) -> Option<u16> {
        self.code(key).filter(|code| *code != USER_DEFINED)
    }

    pub(super) fn number(&self, key: u16) -> Option<f64> {
        let [_, at] = self.entry(key, NUMBERS)?;
        self.numbers.get(usize::from(at)).copied()
    }

    pub(super) fn text(&self, key: u16) -> Option<&str> {
        let [count, at] = self.entry(key, TEXTS)?;
        let at = usize::from(at);
        Some(self.texts.get(at..at + usize::from(count))?.trim_end_matches(['|', '\0']))
    }

    /// Returns the count and the value of the entry with this key whose value is in this tag, or for 0 here.
    fn entry(&self, key: u16, tag: u16) -> Option<[u16; 2]> {
        let mut entries = self.directory.chunks_exact(ENTRY).skip(1);
        entries.find(|entry| entry[0] == key && entry[1] == tag).map(|entry| [entry[2], entry[3]])
    }
}

#[cfg(test)]
impl GeoKeys {
    pub(super) fn of(codes: &[[u16; 2]], texts: &[(u16, &str)]) -> Self {
        let mut keys = Self { directory: vec![1, 1, 0, 9], ..Self::default() };
        keys.directory.extend(codes.iter().flat_map(|[key, value]| [*key, 0, 1, *value]));
        for (key, text) in texts {
            let at = keys.texts.len() as u16;
            keys.texts.push_str(text);
            keys.texts.push('|');
            keys.directory.extend([*key, TEXTS, text.len() as u16 + 1, at]);
        }
        keys
    }

    pub(super) fn with_number(mut self, key: u16, number: f64) -> Self {
        self.directory.extend([key, NUMBERS, 1, self.numbers.len() as u16]);
        self.numbers.push(number);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_here_and_in_other_tags() {
        let keys = GeoKeys::of(
            &[[MODEL_TYPE, 1], [PROJECTED_CRS, USER_DEFINED]],
            &[(CITATION, "a"), (PROJECTED_CITATION, "b c")],
        )
        .with_number(LINEAR_UNIT_SIZE, 0.3048);
        assert_eq!(keys.code(MODEL_TYPE), Some(1));
        assert_eq!(keys.known_code(PROJECTED_CRS), None);
        assert_eq!(keys.code(PROJECTED_CITATION), None);
        assert_eq!(keys.number(LINEAR_UNIT_SIZE), Some(0.3048));
        assert_eq!(keys.text(CITATION), Some("a"));
        assert_eq!(keys.text(PROJECTED_CITATION), Some("b c"));
    }

    #[test]
    fn a_directory_that_is_cut_or_leads_nowhere_has_no_values() {
        for directory in [vec![], vec![1], vec![1, 1, 0, 9], vec![1, 1, 0, 9, 1024, 0, 1]] {
            let keys = GeoKeys { directory, ..GeoKeys::default() };
            assert_eq!(keys.code(MODEL_TYPE), None);
        }
        let directory = vec![1, 1, 0, 2, 3077, 34_736, 1, 7, 1026, 34_737, 60_000, 60_000];
        let keys = GeoKeys { directory, ..GeoKeys::default() };
        assert_eq!((keys.number(LINEAR_UNIT_SIZE), keys.text(CITATION)), (None, None));
    }
}
