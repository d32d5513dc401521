//! The heights of buildings: of their own, by their floors, or the mean of the others.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::propagation::crs::Length;
use crate::reader::quoted;

const HEIGHTS_M: RangeInclusive<f64> = 1.0..=1_000.0;
const LEVELS: RangeInclusive<f64> = 1.0..=150.0;

/// The height of a floor, for buildings that give their floors alone.
const FLOOR_M: f64 = 3.0;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Height {
    /// In metres, if the building gives it or its floors.
    known_m: Option<f64>,
    /// A value that is neither, as it is written.
    odd: Option<String>,
}

impl Height {
    /// Reads `height`, or else `building:levels`.
    pub(super) fn read(properties: Option<&Value>) -> Self {
        let tag = |name: &str| {
            let value = properties?.get(name)?;
            (!value.is_null() && value.as_str() != Some("")).then_some(value)
        };
        let (height, levels) = (tag("height"), tag("building:levels"));
        let within = |number: Option<f64>, range: &RangeInclusive<f64>| {
            number.filter(|number| range.contains(number))
        };
        let height_m = within(height.and_then(read_metres), &HEIGHTS_M);
        let floors = within(levels.and_then(read_number), &LEVELS);
        let odd_height = height.filter(|_| height_m.is_none());
        let odd_levels = levels.filter(|_| height_m.is_none() && floors.is_none());
        Self {
            known_m: height_m.or_else(|| floors.map(|floors| FLOOR_M * floors)),
            odd: odd_height.or(odd_levels).map(in_words),
        }
    }
}

/// Returns the heights of all buildings: one that is not known is the mean of the others. `None` if none is known.
pub(super) fn in_metres(heights: &[Height]) -> Option<Vec<f64>> {
    let known = || heights.iter().filter_map(|height| height.known_m);
    let count = known().count();
    let mean_m = known().sum::<f64>() / count as f64;
    (count > 0).then(|| heights.iter().map(|height| height.known_m.unwrap_or(mean_m)).collect())
}

/// Returns what there is to say about them, in sentences.
pub(super) fn doubts(heights: &[Height]) -> impl Iterator<Item = String> {
    let all = heights.len();
    let odd = heights.iter().filter(|height| height.odd.is_some()).count();
    let first = heights.iter().find_map(|height| height.odd.as_deref());
    let odd = first.map(|first| {
        format!(
            "heights that are no metres from 1 to 1000: {odd} of {all}, such as {first}; they count as missing"
        )
    });
    let unknown = heights.iter().filter(|height| height.known_m.is_none()).count();
    let unknown = (unknown > 0).then(|| {
        format!(
            "buildings without a height: {unknown} of {all}; each counts with the mean of the others"
        )
    });
    odd.into_iter().chain(unknown)
}

/// Reads a number, or a text of one: converters of OpenStreetMap write tags as texts.
fn read_number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Reads a number of metres, or a text with a unit: "12 m", "40 ft".
fn read_metres(value: &Value) -> Option<f64> {
    read_number(value).or_else(|| {
        let text = value.as_str()?;
        let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic() || c == '\'')?);
        Some(number.trim().parse::<f64>().ok()? * Length::of_name(unit)?.metres)
    })
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", quoted(text)),
        Value::Number(number) => quoted(&number.to_string()),
        Value::Bool(is_true) => is_true.to_string(),
        _ => "a list".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tag_may_be_a_text_as_openstreetmap_has_it() {
        for (properties, height_m) in [
            (json!({"height": 12}), 12.0),
            (json!({"height": "12"}), 12.0),
            (json!({"height": "12.5 m"}), 12.5),
            (json!({"height": " 12m"}), 12.0),
            (json!({"height": "12 metres"}), 12.0),
            (json!({"height": "100 ft"}), 30.48),
            (json!({"height": "100'"}), 30.48),
            (json!({"height": "", "building:levels": "4"}), 12.0),
            (json!({"building:levels": "4"}), 12.0),
            (json!({"height": null, "building:levels": 4}), 12.0),
            (json!({"building:levels": "1.5"}), 4.5),
        ] {
            let known_m = Some(height_m);
            assert_eq!(Height::read(Some(&properties)), Height { known_m, odd: None });
        }
        for properties in [json!({}), json!(null), json!([]), json!({"height": null})] {
            assert_eq!(Height::read(Some(&properties)), Height { known_m: None, odd: None });
        }
        assert_eq!(Height::read(None), Height { known_m: None, odd: None });
    }

    #[test]
    fn a_height_that_cannot_be_used_is_odd_and_the_floors_count() {
        for (height, words) in [
            (json!(-1), "-1"),
            (json!(0), "0"),
            (json!(1001), "1001"),
            (json!("12,5"), "\"12,5\""),
            (json!("unknown"), "\"unknown\""),
            (json!("NaN"), "\"NaN\""),
            (json!("inf"), "\"inf\""),
            (json!("m"), "\"m\""),
            (json!("3;4"), "\"3;4\""),
            (json!("5 acres"), "\"5 acres\""),
            (json!(true), "true"),
            (json!([12]), "a list"),
        ] {
            let odd = Some(words.to_owned());
            let alone = Height::read(Some(&json!({"height": height})));
            assert_eq!(alone, Height { known_m: None, odd: odd.clone() });
            let with_floors = json!({"height": height, "building:levels": "4"});
            assert_eq!(Height::read(Some(&with_floors)), Height { known_m: Some(12.0), odd });
        }
        let levels = Height::read(Some(&json!({"building:levels": "4 m"})));
        assert_eq!(levels.odd.as_deref(), Some("\"4 m\""));
    }

    #[test]
    fn unknown_heights_are_the_mean_of_the_others_and_are_told() {
        let of = |value: Value| Height::read(Some(&json!({ "height": value })));
        let heights = [of(json!(10)), of(json!(20)), of(json!(null)), of(json!("12,5"))];
        assert_eq!(in_metres(&heights), Some(vec![10.0, 20.0, 15.0, 15.0]));
        assert_eq!(
            doubts(&heights).collect::<Vec<_>>(),
            [
                "heights that are no metres from 1 to 1000: 1 of 4, such as \"12,5\"; they count as missing",
                "buildings without a height: 2 of 4; each counts with the mean of the others",
            ]
        );
        assert_eq!(doubts(&heights[..2]).count(), 0);
        assert_eq!(in_metres(&heights[2..]), None);
    }
}
