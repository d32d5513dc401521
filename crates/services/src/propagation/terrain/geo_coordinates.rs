//! The coordinates of a GeoTIFF file, by its keys.
//!
//! A file may say nothing, or a part: then its coordinates are those of the request. What it says and is not known here is a doubt.

use super::geo_keys::{self as key, GeoKeys};
use crate::propagation::crs::{Length, NamedCrs, Projection};
use crate::reader::{brief, quoted};

const PROJECTED: u16 = 1;
const GEOGRAPHIC: u16 = 2;
const DEGREES: [u16; 2] = [9102, 9122];
const GREENWICH: u16 = 8901;

const OF_PROJECTIONS: [u16; 4] =
    [key::PROJECTED_CRS, key::PROJECTED_CITATION, key::PROJECTION, key::PROJECTION_METHOD];

/// The codes of UTM's zones as `ProjectionGeoKey` has them.
const UTM_ZONES: [std::ops::RangeInclusive<u16>; 2] = [16_001..=16_060, 16_101..=16_160];

/// The scale factors of projections whose metres are those on the ground.
const SCALES: std::ops::RangeInclusive<f64> = 0.99..=1.01;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FileCoordinates {
    /// The file does not say.
    Unknown,
    Degrees,
    Metres,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct GeoCoordinates {
    pub(super) kind: FileCoordinates,
    /// Their system, if the file says it and it is known here.
    pub(super) crs: Option<NamedCrs>,
    pub(super) doubt: Option<String>,
}

impl GeoCoordinates {
    /// Reads them.
    ///
    /// # Errors
    /// The end of a sentence about the file, which says which coordinates or units cannot be used.
    pub(super) fn read(keys: &GeoKeys) -> Result<Self, String> {
        match keys.known_code(key::MODEL_TYPE).or_else(|| implied(keys)) {
            None => Ok(Self { kind: FileCoordinates::Unknown, crs: None, doubt: None }),
            Some(PROJECTED) => projected(keys),
            Some(GEOGRAPHIC) => geographic(keys),
            Some(other) => Err(format!(
                "has coordinates of the type {other}, expected 1 (projected) or 2 (geographic)"
            )),
        }
    }
}

/// Returns the type of the model that other keys imply. The projections that GDAL can only describe in words have the type of none.
fn implied(keys: &GeoKeys) -> Option<u16> {
    match () {
        () if tells_projection(keys) => Some(PROJECTED),
        () if keys.code(key::GEODETIC_CRS).is_some() => Some(GEOGRAPHIC),
        () if keys.code(key::LINEAR_UNITS).is_some() => Some(PROJECTED),
        () if keys.code(key::ANGULAR_UNITS).is_some() => Some(GEOGRAPHIC),
        () => keys.code(key::MODEL_TYPE),
    }
}

fn tells_projection(keys: &GeoKeys) -> bool {
    let is_there = |key: &u16| keys.code(*key).is_some() || keys.text(*key).is_some();
    OF_PROJECTIONS.iter().any(is_there)
}

fn projected(keys: &GeoKeys) -> Result<GeoCoordinates, String> {
    check_unit(keys)?;
    for key in [key::SCALE_AT_ORIGIN, key::SCALE_AT_CENTER] {
        if let Some(scale) = keys.number(key).filter(|scale| !SCALES.contains(scale)) {
            let scale = brief(scale);
            return Err(format!(
                "is in a projection with the scale factor {scale}, whose metres are not those on the ground"
            ));
        }
    }
    let coded = keys.known_code(key::PROJECTED_CRS);
    let crs = coded
        .and_then(|code| NamedCrs::of_code(code.into()))
        .or_else(|| described(keys).map(NamedCrs::of_projection));
    let is_zone = || {
        let zone = keys.code(key::PROJECTION);
        zone.is_some_and(|code| UTM_ZONES.iter().any(|zones| zones.contains(&code)))
    };
    let doubt = match (&crs, coded) {
        (Some(_), _) => None,
        (None, Some(code)) => Some(format!(
            "is in EPSG {code}, which is not known here: its coordinates count as metres on the ground"
        )),
        (None, None) => {
            (tells_projection(keys) && !is_zone()).then(|| {
                "is in a projection that is not known here: its coordinates count as metres on the ground".to_owned()
            })
        }
    };
    Ok(GeoCoordinates { kind: FileCoordinates::Metres, crs, doubt })
}

/// Returns the projection that other keys than that of its code tell.
fn described(keys: &GeoKeys) -> Option<Projection> {
    let method = keys.known_code(key::PROJECTION_METHOD).and_then(Projection::of_method);
    let cited = || {
        let texts = [key::PROJECTED_CITATION, key::CITATION].map(|key| keys.text(key));
        texts.into_iter().flatten().find_map(Projection::within)
    };
    method.or_else(cited)
}

fn check_unit(keys: &GeoKeys) -> Result<(), String> {
    let Some(code) = keys.code(key::LINEAR_UNITS) else {
        let texts = [key::PROJECTED_CITATION, key::CITATION].map(|key| keys.text(key));
        let feet = texts.into_iter().flatten().find_map(|text| {
            // What comes behind is about heights.
            let end = text.find("VERT").or_else(|| text.find(" + ")).unwrap_or(text.len());
            Length::feet_within(&text[..end])
        });
        return match feet {
            Some(feet) => Err(format!("has coordinates in {}, expected metres", feet.name)),
            None => Ok(()),
        };
    };
    let unit = match keys.number(key::LINEAR_UNIT_SIZE) {
        Some(metres) if code == key::USER_DEFINED => {
            Some(Length { name: "a unit of their own", metres })
        }
        _ => Length::of_code(code),
    };
    match unit {
        Some(unit) if unit.is_metre() => Ok(()),
        Some(unit) => Err(format!("has coordinates in {}, expected metres", unit.name)),
        None => Err(format!("has coordinates in the unit {code} of EPSG, expected metres, 9001")),
    }
}

fn geographic(keys: &GeoKeys) -> Result<GeoCoordinates, String> {
    if let Some(unit) = keys.code(key::ANGULAR_UNITS).filter(|unit| !DEGREES.contains(unit)) {
        return Err(format!("has coordinates in the unit {unit} of EPSG, expected degrees, 9102"));
    }
    if let Some(meridian) = keys.code(key::PRIME_MERIDIAN).filter(|code| *code != GREENWICH) {
        return Err(format!(
            "counts longitudes from the meridian {meridian} of EPSG, expected Greenwich, 8901"
        ));
    }
    let coded = keys.known_code(key::GEODETIC_CRS);
    // The codes of the first datums are 2000 above those of their systems of degrees.
    let of_datum = || keys.known_code(key::GEODETIC_DATUM)?.checked_sub(2_000);
    let crs = coded.or_else(of_datum).and_then(|code| NamedCrs::of_code(code.into()));
    let doubt = match (&crs, coded) {
        (Some(_), _) => None,
        (None, Some(code)) => {
            Some(format!("is in EPSG {code}, which is not known here: it counts as WGS 84"))
        }
        (None, None) => {
            (keys.code(key::GEODETIC_CRS).is_some() && !is_of_satellites(keys)).then(|| {
                let name = keys.text(key::CITATION).map(|text| format!(" ({})", quoted(text)));
                format!(
                    "has degrees of a datum that is not known here{}: it counts as WGS 84",
                    name.unwrap_or_default()
                )
            })
        }
    };
    Ok(GeoCoordinates { kind: FileCoordinates::Degrees, crs, doubt })
}

/// Returns true for the ellipsoids of WGS 84 and of GRS 80, around which all datums lie near each other.
fn is_of_satellites(keys: &GeoKeys) -> bool {
    let number = |key| keys.number(key).unwrap_or(f64::NAN);
    let is_near = |number: f64, sought: f64| (number - sought).abs() < 1e-3;
    matches!(keys.code(key::ELLIPSOID), Some(7030 | 7019))
        || (is_near(number(key::SEMI_MAJOR_AXIS), 6_378_137.0)
            && is_near(number(key::INVERSE_FLATTENING), 298.257))
}

#[cfg(test)]
mod tests {
    use super::FileCoordinates::{Degrees, Metres, Unknown};
    use super::*;

    fn read(codes: &[[u16; 2]]) -> Result<GeoCoordinates, String> {
        GeoCoordinates::read(&GeoKeys::of(codes, &[]))
    }

    #[test]
    fn the_kind_of_coordinates_is_that_of_the_keys() {
        for (codes, kind, name) in [
            (&[][..], Unknown, None),
            (&[[1025, 2]], Unknown, None),
            (&[[1024, 2]], Degrees, None),
            (&[[1024, 1]], Metres, None),
            (&[[1024, 2], [2048, 4326], [2054, 9102]], Degrees, Some("EPSG 4326")),
            (&[[1024, 2], [2048, 7844], [2054, 9122]], Degrees, Some("EPSG 7844")),
            (&[[1024, 2], [2048, 32_767], [2050, 6326]], Degrees, Some("EPSG 4326")),
            (&[[1024, 1], [3072, 25_832], [3076, 9001]], Metres, Some("EPSG 25832")),
            (&[[1024, 1], [3072, 32_767], [3075, 1]], Metres, Some("of its own")),
            (&[[1024, 1], [3072, 32_767], [3074, 16_032]], Metres, None),
            // Without the type of the model, the key of the system tells it.
            (&[[3072, 25_832], [2048, 4258]], Metres, Some("EPSG 25832")),
            (&[[2048, 4258]], Degrees, Some("EPSG 4258")),
            (&[[3076, 9001]], Metres, None),
            (&[[2054, 9102]], Degrees, None),
        ] {
            let found = read(codes).unwrap();
            let found_name = found.crs.as_ref().map(|crs| crs.name.as_str());
            assert_eq!((found.kind, found_name, found.doubt), (kind, name, None), "{codes:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_doubt() {
        for (codes, words) in [
            (&[[1024, 1], [3072, 19_999]][..], "is in EPSG 19999, which is not known here"),
            (&[[1024, 1], [3072, 32_767]], "is in a projection that is not known here"),
            (&[[1024, 1], [3072, 32_767], [3074, 12_345]], "is in a projection that"),
            (&[[1024, 2], [2048, 4999]], ""),
            (&[[1024, 2], [2048, 1]], "is in EPSG 1, which is not known here: it counts as WGS 84"),
            (&[[1024, 2], [2048, 32_767]], "has degrees of a datum that is not known here"),
        ] {
            let doubt = read(codes).unwrap().doubt.unwrap_or_default();
            assert!(doubt.starts_with(words), "{codes:?}: {doubt}");
        }
    }

    #[test]
    fn units_and_meridians_that_cannot_be_used_are_refused() {
        for (codes, words) in [
            (&[[1024, 2], [2054, 9101]][..], "has coordinates in the unit 9101 of EPSG"),
            (&[[1024, 2], [2051, 8903]], "counts longitudes from the meridian 8903 of EPSG"),
            (&[[1024, 1], [3076, 9003]], "has coordinates in US survey feet, expected metres"),
            (&[[3076, 9002]], "has coordinates in feet, expected metres"),
            (&[[1024, 1], [3076, 9999]], "has coordinates in the unit 9999 of EPSG"),
            (&[[1024, 3]], "has coordinates of the type 3,"),
        ] {
            let found = read(codes).unwrap_err();
            assert!(found.starts_with(words), "{found}");
        }
        let with_number = |codes: &[[u16; 2]], key, number| {
            GeoCoordinates::read(&GeoKeys::of(codes, &[]).with_number(key, number))
        };
        let feet = with_number(&[[1024, 1], [3076, 32_767]], key::LINEAR_UNIT_SIZE, 0.3048);
        assert_eq!(feet, Err("has coordinates in a unit of their own, expected metres".to_owned()));
        let metres = with_number(&[[1024, 1], [3076, 32_767]], key::LINEAR_UNIT_SIZE, 1.0);
        assert_eq!(metres.map(|found| found.kind), Ok(Metres));
        let half = with_number(&[[1024, 1]], key::SCALE_AT_ORIGIN, 0.5).unwrap_err();
        assert!(half.contains("the scale factor 0.5"), "{half}");
        assert!(with_number(&[[1024, 1]], key::SCALE_AT_ORIGIN, 0.9996).is_ok());
    }

    #[test]
    fn a_projection_is_known_by_its_method_or_its_citation() {
        let crs = |codes: &[[u16; 2]], text: &str| {
            let keys = GeoKeys::of(codes, &[(key::PROJECTED_CITATION, text)]);
            let found = GeoCoordinates::read(&keys).unwrap();
            (found.crs.map(|named| named.crs), found.doubt)
        };
        let of = |code| Projection::of_method(code).map(crate::propagation::crs::Crs::Projected);
        assert_eq!(crs(&[[1024, 1], [3072, 32_767], [3075, 7]], ""), (of(7), None));
        for text in ["WGS 84 / Pseudo-Mercator", "PROJECTION[\"Mercator_Auxiliary_Sphere\"]"] {
            assert_eq!(crs(&[[1024, 1], [3072, 32_767]], text), (of(7), None));
            assert_eq!(crs(&[[1024, 1], [3072, 64_000]], text), (of(7), None));
            assert_eq!(crs(&[[1024, 32_767], [2048, 4326]], text), (of(7), None));
        }
        let (none, doubt) = crs(&[[1024, 32_767], [2048, 4326]], "PROJECTION[\"Mine\"]");
        assert!(none.is_none() && doubt.is_some());
        assert_eq!(crs(&[[1024, 1], [3072, 32_767], [3075, 9815]], ""), (of(3), None));
        // Without a key for the unit, the text may tell it.
        for (text, is_read) in [
            ("PROJCS[\"x\",UNIT[\"Foot_US\",0.3048006]]", false),
            ("NAD83 / Texas Central (ftUS)", false),
            ("WGS 84 / UTM zone 32N + NAVD88 height (ftUS)", true),
            ("PROJCS[\"x\",UNIT[\"Meter\",1]],VERTCS[\"y\",UNIT[\"Foot_US\",0.3048006]]", true),
        ] {
            let keys = GeoKeys::of(&[[1024, 1]], &[(key::PROJECTED_CITATION, text)]);
            assert_eq!(GeoCoordinates::read(&keys).is_ok(), is_read, "{text}");
        }
    }
}
