//! The heights of a GeoTIFF file: from the values of its cells to metres.
//!
//! The unit is that of GDAL's metadata, of the keys, or of a text, in this order. Two that contradict each other are a doubt.

use super::gdal_metadata::GdalMetadata;
use super::geo_keys::{self as key, GeoKeys};
use crate::propagation::crs::{Length, METRES, Vertical};
use crate::reader::{brief, quoted};

/// The way from a value to a height in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HeightScale {
    pub(super) factor: f64,
    pub(super) offset_m: f64,
}

impl HeightScale {
    pub(super) const METRES: Self = Self { factor: 1.0, offset_m: 0.0 };
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct GeoHeights {
    pub(super) scale: HeightScale,
    pub(super) doubts: Vec<String>,
}

/// The scale of heights in `ModelPixelScale`, and the height of the value 0 by it and by `ModelTiepoint`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ModelHeights {
    pub(super) scale: f64,
    pub(super) offset: f64,
}

impl GeoHeights {
    /// Reads them.
    ///
    /// # Errors
    /// The end of a sentence about the file, which says which heights cannot be used.
    pub(super) fn read(
        keys: &GeoKeys,
        metadata: &GdalMetadata,
        model: ModelHeights,
    ) -> Result<Self, String> {
        let mut doubts = metadata.doubts.clone();
        let unit = unit(keys, metadata, &mut doubts)?;
        let (scale, offset) = scale(keys, metadata, model, &mut doubts)?;
        let scale = HeightScale { factor: scale * unit.metres, offset_m: offset * unit.metres };
        Ok(Self { scale, doubts })
    }
}

/// Finds the unit in all places that may have it; the first one counts.
fn unit(
    keys: &GeoKeys,
    metadata: &GdalMetadata,
    doubts: &mut Vec<String>,
) -> Result<Length, String> {
    let mut found = Vec::new();
    if let Some(name) = &metadata.unit {
        match Length::of_name(name) {
            Some(unit) => found.push(unit),
            None => doubts.push(format!(
                "has heights in a unit that is not known here ({}): they count as metres",
                quoted(name)
            )),
        }
    }
    if let Some(code) = keys.code(key::VERTICAL_UNITS) {
        let unit = Length::of_code(code).ok_or_else(|| {
            format!("has heights in the unit {code} of EPSG, expected metres, 9001, or feet, 9002")
        })?;
        found.push(unit);
    }
    if let Some(code) = keys.known_code(key::VERTICAL_CRS) {
        match Vertical::of_code(code) {
            Some(vertical) => found.push(heights(vertical)?),
            None if found.is_empty() => doubts.push(format!(
                "has heights of EPSG {code}, which is not known here: they count as metres"
            )),
            None => {}
        }
    }
    // A compound system in the place of its horizontal one.
    for key in [key::PROJECTED_CRS, key::GEODETIC_CRS] {
        if let Some(vertical) = keys.known_code(key).and_then(Vertical::of_compound) {
            found.push(heights(vertical)?);
        }
    }
    if let Some(vertical) = cited(keys) {
        found.push(heights(vertical)?);
    }
    let unit = found.first().copied().unwrap_or(METRES);
    if let Some(other) = found.iter().find(|other| (other.metres / unit.metres - 1.0).abs() > 1e-3)
    {
        doubts.push(format!(
            "says that its heights are {}, and also {}: they count as {}",
            unit.name, other.name, unit.name
        ));
    } else if !unit.is_metre() {
        doubts.push(format!("has heights in {}: they are converted to metres", unit.name));
    }
    Ok(unit)
}

fn heights(vertical: Vertical) -> Result<Length, String> {
    match vertical {
        Vertical::Heights(unit) => Ok(unit),
        Vertical::Depths => Err("has depths below a level, expected heights above it".to_owned()),
    }
}

/// Returns the vertical system of which a text speaks: its citation, or the part of another one that is about heights.
fn cited(keys: &GeoKeys) -> Option<Vertical> {
    let of_heights = |text: &'_ str| -> Option<String> {
        let upper = text.to_uppercase();
        let named = ["VERT_CS[", "VERTCS[", "VERTCRS["];
        let begin = named.iter().find_map(|name| upper.find(name));
        let begin = begin.or_else(|| text.find(" + "))?;
        upper.get(begin..).map(str::to_owned)
    };
    let own = keys.text(key::VERTICAL_CITATION).and_then(Vertical::odd_within);
    own.or_else(|| {
        let texts = [key::CITATION, key::PROJECTED_CITATION].map(|key| keys.text(key));
        texts
            .into_iter()
            .flatten()
            .filter_map(of_heights)
            .find_map(|text| Vertical::odd_within(&text))
    })
}

/// Finds the scale and offset. GDAL has them in `ModelPixelScale` and `ModelTiepoint` if the file has a vertical system, and
/// otherwise in its metadata. Where a file has no vertical system, the former often have a number without a meaning.
fn scale(
    keys: &GeoKeys,
    metadata: &GdalMetadata,
    model: ModelHeights,
    doubts: &mut Vec<String>,
) -> Result<(f64, f64), String> {
    let has_vertical =
        [key::VERTICAL_CRS, key::VERTICAL_UNITS].iter().any(|key| keys.code(*key).is_some());
    let is_plain = model.scale == 0.0 || (model.scale == 1.0 && model.offset == 0.0);
    let (scale, offset) = match (metadata.scale, metadata.offset) {
        (None, None) if has_vertical && model.scale != 0.0 => (model.scale, model.offset),
        (None, None) => {
            if !is_plain {
                let scale = brief(model.scale);
                doubts.push(format!(
                    "has a scale of heights of {scale} in ModelPixelScale without a vertical system: it is not applied"
                ));
            }
            (1.0, 0.0)
        }
        (scale, offset) => (scale.unwrap_or(1.0), offset.unwrap_or(0.0)),
    };
    if scale == 0.0 || !(scale.is_finite() && offset.is_finite()) {
        let [scale, offset] = [scale, offset].map(brief);
        return Err(format!("has a scale of heights of {scale} and an offset of {offset}"));
    }
    Ok((scale, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ModelHeights = ModelHeights { scale: 0.0, offset: 0.0 };

    fn read(keys: &GeoKeys, metadata: &str) -> Result<GeoHeights, String> {
        GeoHeights::read(keys, &GdalMetadata::read(metadata), PLAIN)
    }

    fn unit_item(unit: &str) -> String {
        format!(
            "<GDALMetadata><Item name=\"UNITTYPE\" sample=\"0\" role=\"unittype\">{unit}</Item></GDALMetadata>"
        )
    }

    #[test]
    fn heights_in_feet_are_converted_wherever_the_file_says_so() {
        let survey = 1_200.0 / 3_937.0;
        let codes = |codes: &[[u16; 2]]| GeoKeys::of(codes, &[]);
        let texts = |key, text| GeoKeys::of(&[[1024, 1]], &[(key, text)]);
        for (keys, metadata, factor) in [
            (codes(&[[4099, 9001]]), String::new(), 1.0),
            (codes(&[[4096, 5703]]), String::new(), 1.0),
            (codes(&[[4099, 9002]]), String::new(), 0.3048),
            (codes(&[[4099, 9003]]), String::new(), survey),
            (codes(&[[4096, 6360]]), String::new(), survey),
            (codes(&[[4096, 8228]]), String::new(), 0.3048),
            (codes(&[[4096, 5754]]), String::new(), 0.304_800_749_1),
            (codes(&[[4096, 6360], [4099, 9003]]), String::new(), survey),
            (codes(&[[3072, 8720]]), String::new(), survey),
            (codes(&[]), unit_item("ft"), 0.3048),
            (codes(&[]), unit_item("US survey foot"), survey),
            (codes(&[]), unit_item("&apos;"), 0.3048),
            (codes(&[]), unit_item("m"), 1.0),
            (codes(&[]), unit_item(""), 1.0),
            (codes(&[]), "<Item name=\"units\">feet</Item>".to_owned(), 0.3048),
            (texts(key::VERTICAL_CITATION, "NAVD88 (Feet)"), String::new(), 0.3048),
            (texts(key::CITATION, "NAD83 + NAVD88 height (ftUS)"), String::new(), survey),
            (texts(key::CITATION, "NAD83 / Texas Central (ftUS)"), String::new(), 1.0),
            (
                texts(
                    key::PROJECTED_CITATION,
                    "ESRI PE String = PROJCS[\"x\"],VERTCS[\"y\",UNIT[\"Foot_US\",0.3]]",
                ),
                String::new(),
                survey,
            ),
        ] {
            let found = read(&keys, &metadata).unwrap();
            assert_eq!(found.scale, HeightScale { factor, offset_m: 0.0 }, "{keys:?} {metadata}");
            let is_told = found.doubts.iter().any(|doubt| doubt.contains("converted to metres"));
            assert_eq!(is_told, factor != 1.0, "{:?}", found.doubts);
        }
    }

    #[test]
    fn what_is_not_known_or_contradicts_itself_is_a_doubt() {
        for (keys, metadata, words) in [
            (
                GeoKeys::of(&[], &[]),
                unit_item("dBm"),
                "has heights in a unit that is not known here (dBm)",
            ),
            (GeoKeys::of(&[[4096, 65_000]], &[]), String::new(), "has heights of EPSG 65000,"),
            (
                GeoKeys::of(&[[4096, 6360]], &[]),
                unit_item("m"),
                "says that its heights are metres, and also US survey feet: they count as metres",
            ),
        ] {
            let found = read(&keys, &metadata).unwrap();
            assert_eq!(found.scale, HeightScale::METRES);
            assert!(found.doubts[0].starts_with(words), "{:?}", found.doubts);
        }
        for (keys, words) in [
            (GeoKeys::of(&[[4096, 5715]], &[]), "has depths"),
            (GeoKeys::of(&[[4099, 32_767]], &[]), "has heights in the unit 32767"),
            (GeoKeys::of(&[], &[(key::VERTICAL_CITATION, "MLLW depth")]), "has depths"),
        ] {
            let found = read(&keys, "").unwrap_err();
            assert!(found.starts_with(words), "{found}");
        }
    }

    #[test]
    fn a_scale_and_an_offset_are_applied_before_the_unit() {
        let scaled = "<Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item><Item name=\"OFFSET\" sample=\"0\" role=\"offset\">100</Item>";
        let keys = GeoKeys::of(&[[4099, 9002]], &[]);
        let found = read(&keys, scaled).unwrap().scale;
        assert!((found.factor - 0.03048).abs() < 1e-9 && (found.offset_m - 30.48).abs() < 1e-9);
        // In the tags of the place, they count if there is a vertical system.
        let model = ModelHeights { scale: 0.1, offset: 100.0 };
        let none = GdalMetadata::default();
        let vertical = GeoHeights::read(&GeoKeys::of(&[[4096, 5703]], &[]), &none, model).unwrap();
        assert_eq!(vertical.scale, HeightScale { factor: 0.1, offset_m: 100.0 });
        let without = GeoHeights::read(&GeoKeys::default(), &none, model).unwrap();
        assert_eq!(without.scale, HeightScale::METRES);
        assert!(without.doubts[0].contains("it is not applied"), "{:?}", without.doubts);
        let zero = read(&keys, "<Item role=\"scale\">0</Item>").unwrap_err();
        assert!(zero.starts_with("has a scale of heights of 0"), "{zero}");
    }
}
