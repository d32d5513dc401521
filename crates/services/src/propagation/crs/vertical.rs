//! Vertical coordinate systems: what a height of theirs is.

use super::length::{BRITISH_FEET, FEET, Length, METRES, SURVEY_FEET};

/// The values of a vertical coordinate system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::propagation) enum Vertical {
    /// They are larger upwards.
    Heights(Length),
    /// They are larger downwards.
    Depths,
}

/// The systems with heights in metres (EPSG dataset, version 10.076). Codes between them are those of feet and depths, or of no
/// vertical system.
const OF_METRES: [(u16, u16); 47] = [
    (3855, 3900),
    (4440, 4458),
    (5193, 5237),
    (5317, 5317),
    (5597, 5611),
    (5613, 5613),
    (5615, 5621),
    (5701, 5701),
    (5703, 5705),
    (5709, 5714),
    (5716, 5733),
    (5735, 5738),
    (5740, 5753),
    (5755, 5788),
    (5790, 5829),
    (5843, 5843),
    (5868, 5872),
    (5874, 5874),
    (5941, 5941),
    (6178, 6187),
    (6638, 6647),
    (6693, 6695),
    (6916, 6916),
    (7446, 7447),
    (7651, 7652),
    (7699, 7707),
    (7832, 7841),
    (7888, 7890),
    (7962, 7968),
    (7979, 7979),
    (8089, 8089),
    (8266, 8267),
    (8357, 8357),
    (8434, 8434),
    (8675, 8691),
    (8841, 8841),
    (8881, 8881),
    (8904, 8911),
    (9130, 9130),
    (9245, 9279),
    (9303, 9402),
    (9451, 9471),
    (9650, 9669),
    (9675, 9681),
    (9721, 9722),
    (9923, 9927),
    (20_000, 20_036),
];

/// The vertical systems of GeoTIFF 1.0: ellipsoids, and the seas of a few countries.
const OF_GEOTIFF: [(u16, u16); 2] = [(5001, 5033), (5101, 5106)];

impl Vertical {
    pub(in crate::propagation) fn of_code(code: u16) -> Option<Self> {
        let is_of_metres = || {
            let mut ranges = OF_METRES.iter().chain(&OF_GEOTIFF);
            ranges.any(|(first, last)| (*first..=*last).contains(&code))
        };
        match code {
            6130..=6132 | 8050 | 8228 => Some(Self::Heights(FEET)),
            5702 | 6360 | 8052 => Some(Self::Heights(SURVEY_FEET)),
            5754 => Some(Self::Heights(BRITISH_FEET)),
            5336
            | 5612
            | 5614
            | 5706
            | 5715
            | 5734
            | 5739
            | 5789
            | 5831
            | 5861..=5867
            | 5873
            | 6357..=6359
            | 7976
            | 8051
            | 8053
            | 8358
            | 8378
            | 8897
            | 9287
            | 9288
            | 9672 => Some(Self::Depths),
            _ => is_of_metres().then_some(Self::Heights(METRES)),
        }
    }

    /// Returns the heights of the compound system with this code of EPSG, if they are no metres.
    pub(in crate::propagation) fn of_compound(code: u16) -> Option<Self> {
        match code {
            8700..=8711 | 9502..=9504 => Some(Self::Heights(FEET)),
            7406 | 7407 | 8712..=8800 => Some(Self::Heights(SURVEY_FEET)),
            _ => None,
        }
    }

    /// Returns the system of which a text speaks, if that is none of heights in metres.
    pub(in crate::propagation) fn odd_within(text: &str) -> Option<Self> {
        if text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word == "depth") {
            return Some(Self::Depths);
        }
        Length::feet_within(text).map(Self::Heights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_in_feet_and_depths_are_known_by_their_codes() {
        for (code, found) in [
            (6360, Some(Vertical::Heights(SURVEY_FEET))),
            (8228, Some(Vertical::Heights(FEET))),
            (5754, Some(Vertical::Heights(BRITISH_FEET))),
            (5703, Some(Vertical::Heights(METRES))),
            (3855, Some(Vertical::Heights(METRES))),
            (5773, Some(Vertical::Heights(METRES))),
            (5030, Some(Vertical::Heights(METRES))),
            (5715, Some(Vertical::Depths)),
            (6359, Some(Vertical::Depths)),
            (65_000, None),
        ] {
            assert_eq!(Vertical::of_code(code), found, "{code}");
        }
        assert_eq!(Vertical::of_compound(8720), Some(Vertical::Heights(SURVEY_FEET)));
        assert_eq!(Vertical::of_compound(9518), None);
    }
}
