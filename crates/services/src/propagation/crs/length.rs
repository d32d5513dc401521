//! Units of length, by the names and codes that files give them.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::propagation) struct Length {
    /// The name of several.
    pub(in crate::propagation) name: &'static str,
    pub(in crate::propagation) metres: f64,
}

const fn length(name: &'static str, metres: f64) -> Length {
    Length { name, metres }
}

pub(in crate::propagation) const METRES: Length = length("metres", 1.0);
pub(super) const FEET: Length = length("feet", 0.3048);
pub(super) const SURVEY_FEET: Length = length("US survey feet", 1_200.0 / 3_937.0);
pub(super) const BRITISH_FEET: Length = length("British feet (1936)", 0.304_800_749_1);

/// The codes of the EPSG dataset (version 10.076, units of measure).
const BY_CODE: [(u16, Length); 20] = [
    (9001, METRES),
    (9031, length("German legal metres", 1.000_013_596_5)),
    (9002, FEET),
    (9003, SURVEY_FEET),
    (9005, length("Clarke's feet", 0.304_797_265_4)),
    (9041, length("British feet (Sears 1922)", 0.304_799_471_538_676)),
    (9051, length("British feet (Benoit 1895 A)", 0.304_799_733_333_333)),
    (9061, length("British feet (Benoit 1895 B)", 0.304_799_734_763_271)),
    (9070, length("British feet (1865)", 0.304_800_833_333_333)),
    (9080, length("Indian feet", 0.304_799_510_248_147)),
    (9081, length("Indian feet (1937)", 0.304_798_41)),
    (9082, length("Indian feet (1962)", 0.304_799_6)),
    (9083, length("Indian feet (1975)", 0.304_799_5)),
    (9094, length("Gold Coast feet", 0.304_799_710_181_509)),
    (9095, BRITISH_FEET),
    (9300, length("British feet (Sears 1922 truncated)", 0.304_799_333_333_333)),
    (9096, length("yards", 0.9144)),
    (9014, length("fathoms", 1.8288)),
    (1033, length("centimetres", 0.01)),
    (1025, length("millimetres", 0.001)),
];

/// The words for units, in small letters. Those of feet are apart, since there are two kinds of them.
const BY_WORD: [(&str, Length); 18] = [
    ("m", METRES),
    ("metre", METRES),
    ("metres", METRES),
    ("meter", METRES),
    ("meters", METRES),
    ("dm", length("decimetres", 0.1)),
    ("decimetre", length("decimetres", 0.1)),
    ("decimeter", length("decimetres", 0.1)),
    ("cm", length("centimetres", 0.01)),
    ("centimetre", length("centimetres", 0.01)),
    ("centimeter", length("centimetres", 0.01)),
    ("mm", length("millimetres", 0.001)),
    ("millimetre", length("millimetres", 0.001)),
    ("millimeter", length("millimetres", 0.001)),
    ("km", length("kilometres", 1_000.0)),
    ("kilometre", length("kilometres", 1_000.0)),
    ("fathom", length("fathoms", 1.8288)),
    ("yard", length("yards", 0.9144)),
];

const FOOT_WORDS: [&str; 5] = ["ft", "foot", "feet", "ftus", "usft"];
const SURVEY_WORDS: [&str; 4] = ["us", "survey", "ftus", "usft"];

impl Length {
    pub(in crate::propagation) fn of_code(code: u16) -> Option<Self> {
        BY_CODE.iter().find(|known| known.0 == code).map(|known| known.1)
    }

    /// Returns the unit that a text is: "ft", "US survey foot", "metre".
    pub(in crate::propagation) fn of_name(name: &str) -> Option<Self> {
        let trimmed = name.trim();
        if trimmed == "'" {
            return Some(FEET);
        }
        let lower = trimmed.to_lowercase();
        let known = BY_WORD.iter().find(|known| known.0 == lower).map(|known| known.1);
        known.or_else(|| Self::feet_within(&lower))
    }

    /// Returns the kind of feet of which a text speaks: "NAVD88 height (ftUS)".
    pub(in crate::propagation) fn feet_within(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        let words = || text.split(|c: char| !c.is_alphanumeric());
        let has = |known: &[&str]| words().any(|word| known.contains(&word));
        has(&FOOT_WORDS).then(|| if has(&SURVEY_WORDS) { SURVEY_FEET } else { FEET })
    }

    /// Returns true if the unit is the metre, but for parts in a million.
    pub(in crate::propagation) fn is_metre(self) -> bool {
        (self.metres - 1.0).abs() < 1e-4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_by_the_names_that_files_give_them() {
        for (name, metres) in [
            ("m", Some(1.0)),
            ("Metre", Some(1.0)),
            ("meters", Some(1.0)),
            ("ft", Some(0.3048)),
            ("'", Some(0.3048)),
            ("Feet", Some(0.3048)),
            ("international foot", Some(0.3048)),
            ("US survey foot", Some(SURVEY_FEET.metres)),
            ("us-ft", Some(SURVEY_FEET.metres)),
            ("Foot_US", Some(SURVEY_FEET.metres)),
            ("cm", Some(0.01)),
            ("dBm", None),
            ("", None),
        ] {
            assert_eq!(Length::of_name(name).map(|found| found.metres), metres, "{name}");
        }
        assert_eq!(Length::of_code(9003), Some(SURVEY_FEET));
        assert_eq!(Length::of_code(9102), None);
        assert!((SURVEY_FEET.metres - 0.304_800_609_601_219).abs() < 1e-15);
    }

    #[test]
    fn a_text_speaks_of_feet_in_whole_words() {
        for (text, found) in [
            ("NAVD88 height (ftUS)", Some(SURVEY_FEET)),
            ("NAVD88 - Geoid03 (Feet)", Some(FEET)),
            ("UNIT[\"Foot_US\",0.3048006096012192]", Some(SURVEY_FEET)),
            ("NAVD88 height", None),
            ("Craft height of the shift", None),
        ] {
            assert_eq!(Length::feet_within(text), found, "{text}");
        }
    }
}
