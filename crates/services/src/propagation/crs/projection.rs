//! Projections: whether a metre of their coordinates is a metre on the ground.

use super::length::{FEET, Length, METRES, SURVEY_FEET};

/// The relation of lengths on the map to those on the ground.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::propagation) enum Lengths {
    /// They are the same but for some tenths of a percent, in the country or zone that the projection is made for.
    True,
    /// They differ by some percent away from the middle of the projection.
    Uneven,
    /// They are far from those on the ground nearly everywhere, as in maps of the world.
    Stretched,
}

use Lengths::{Stretched, True, Uneven};

/// The projections by their names in PROJ, and in words.
const BY_NAME: [(&str, &str, Lengths); 27] = [
    ("utm", "UTM", True),
    ("tmerc", "a transverse Mercator projection", True),
    ("etmerc", "a transverse Mercator projection", True),
    ("lcc", "Lambert's conformal conic projection", True),
    ("omerc", "an oblique Mercator projection", True),
    ("somerc", "an oblique Mercator projection", True),
    ("labrd", "Laborde's oblique Mercator", True),
    ("sterea", "an oblique stereographic projection", True),
    ("krovak", "Krovak's projection", True),
    ("cass", "Cassini's projection", True),
    ("poly", "a polyconic projection", True),
    ("nzmg", "the New Zealand Map Grid", True),
    ("stere", "a stereographic projection", Uneven),
    ("laea", "Lambert's azimuthal equal-area projection", Uneven),
    ("aea", "Albers' equal-area projection", Uneven),
    ("aeqd", "an azimuthal equidistant projection", Uneven),
    ("eqdc", "an equidistant conic projection", Uneven),
    ("merc", "Mercator", Stretched),
    ("webmerc", "Mercator", Stretched),
    ("eqc", "an equidistant cylindrical projection", Stretched),
    ("cea", "a cylindrical equal-area projection", Stretched),
    ("mill", "Miller's cylindrical projection", Stretched),
    ("eqearth", "the Equal Earth projection", Stretched),
    ("sinu", "a sinusoidal projection", Stretched),
    ("robin", "Robinson's projection", Stretched),
    ("moll", "Mollweide's projection", Stretched),
    ("vandg", "Van der Grinten's projection", Stretched),
];

/// The codes of `ProjMethodGeoKey` (GeoTIFF 1.0, section 6.3.3.3, and two that GDAL has from EPSG), with the names in PROJ.
const BY_METHOD: [(u16, &str); 30] = [
    (1, "tmerc"),
    (2, "tmerc"),
    (3, "omerc"),
    (4, "labrd"),
    (5, "somerc"),
    (6, "omerc"),
    (7, "merc"),
    (8, "lcc"),
    (9, "lcc"),
    (10, "laea"),
    (11, "aea"),
    (12, "aeqd"),
    (13, "eqdc"),
    (14, "stere"),
    (15, "stere"),
    (16, "sterea"),
    (17, "eqc"),
    (18, "cass"),
    (19, "gnom"),
    (20, "mill"),
    (21, "ortho"),
    (22, "poly"),
    (23, "robin"),
    (24, "sinu"),
    (25, "vandg"),
    (26, "nzmg"),
    (27, "tmerc"),
    (28, "cea"),
    (9812, "omerc"),
    (9815, "omerc"),
];

/// The words for projections in texts, with the names in PROJ. The first that a text has counts: "transverse Mercator" is no Mercator.
const BY_WORD: [(&str, &str); 17] = [
    ("utm", "utm"),
    ("transverse", "tmerc"),
    ("gauss", "tmerc"),
    ("oblique", "omerc"),
    ("hotine", "omerc"),
    ("lambert conformal", "lcc"),
    ("mercator", "merc"),
    ("plate carree", "eqc"),
    ("equidistant cylindrical", "eqc"),
    ("equirectangular", "eqc"),
    ("cylindrical equal area", "cea"),
    ("behrmann", "cea"),
    ("mollweide", "moll"),
    ("sinusoidal", "sinu"),
    ("robinson", "robin"),
    ("miller", "mill"),
    ("equal earth", "eqearth"),
];

/// A projection, as far as a map needs to know it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::propagation) struct Projection {
    /// In words.
    pub(super) name: &'static str,
    pub(super) lengths: Lengths,
    pub(super) unit: Length,
}

impl Projection {
    pub(super) const MERCATOR: Self = Self { name: "Mercator", lengths: Stretched, unit: METRES };

    /// Reads the projection of a definition for PROJ, whose values `value` finds by their names.
    pub(super) fn of_definition(value: impl Fn(&str) -> Option<&'static str>) -> Option<Self> {
        let unit = match (value("units"), value("to_meter")) {
            (_, Some(metres)) => {
                Length { name: "a unit of their own", metres: metres.parse().ok()? }
            }
            (None | Some("m"), None) => METRES,
            (Some("ft"), None) => FEET,
            (Some("us-ft"), None) => SURVEY_FEET,
            (Some(name), None) => Length { name, metres: f64::NAN },
        };
        Some(Self { unit, ..Self::named(value("proj")?) })
    }

    /// Returns the projection of a method, in metres.
    pub(in crate::propagation) fn of_method(code: u16) -> Option<Self> {
        BY_METHOD.iter().find(|known| known.0 == code).map(|known| Self::named(known.1))
    }

    /// Returns the projection of which a text speaks, in metres: "WGS 84 / Pseudo-Mercator".
    pub(in crate::propagation) fn within(text: &str) -> Option<Self> {
        let text = text.to_lowercase().replace('_', " ");
        BY_WORD.iter().find(|known| text.contains(known.0)).map(|known| Self::named(known.1))
    }

    /// A projection that is not known here counts as one whose lengths are not true.
    fn named(name: &str) -> Self {
        let known = BY_NAME.iter().find(|known| known.0 == name);
        let (name, lengths) =
            known.map_or(("a projection that is rare", Uneven), |known| (known.1, known.2));
        Self { name, lengths, unit: METRES }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Crs;
    use super::*;

    #[test]
    fn lengths_of_zones_and_countries_are_true_and_those_of_the_world_are_stretched() {
        for (code, lengths) in [
            (32_632, True),
            (25_832, True),
            (2056, True),
            (27_700, True),
            (2154, True),
            (28_992, True),
            (5514, True),
            (2193, True),
            (3035, Uneven),
            (5070, Uneven),
            (3413, Uneven),
            (3857, Stretched),
            (3785, Stretched),
            (3395, Stretched),
            (3832, Stretched),
            (900_913, Stretched),
            (102_100, Stretched),
            (4087, Stretched),
            (6933, Stretched),
        ] {
            let Some(Crs::Projected(found)) = Crs::of_epsg(code) else { panic!("{code}") };
            assert_eq!((found.lengths, found.unit), (lengths, METRES), "{code}");
        }
    }

    #[test]
    fn units_of_state_planes_are_known() {
        for (code, unit) in [(2263, SURVEY_FEET), (2265, FEET), (6345, METRES)] {
            let Some(Crs::Projected(found)) = Crs::of_epsg(code) else { panic!("{code}") };
            assert_eq!(found.unit, unit, "{code}");
        }
        let Some(Crs::Projected(yards)) = Crs::of_epsg(3168) else { panic!() };
        assert!(!yards.unit.is_metre() || (yards.unit.metres - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_text_tells_mercator_from_its_transverse_and_oblique_kin() {
        for (text, lengths) in [
            ("WGS 84 / Pseudo-Mercator", Some(Stretched)),
            ("PROJECTION[\"Mercator_Auxiliary_Sphere\"]", Some(Stretched)),
            ("Popular Visualisation CRS / Mercator", Some(Stretched)),
            ("UTM Zone 32, Northern Hemisphere", Some(True)),
            ("PROJECTION[\"Transverse_Mercator\"]", Some(True)),
            ("PROJECTION[\"Hotine_Oblique_Mercator\"]", Some(True)),
            ("PROJECTION[\"Mollweide\"]", Some(Stretched)),
            ("PROJECTION[\"Plate_Carree\"]", Some(Stretched)),
            ("PROJECTION[\"Lambert_Conformal_Conic\"]", Some(True)),
            ("Mine", None),
        ] {
            assert_eq!(Projection::within(text).map(|found| found.lengths), lengths, "{text}");
        }
    }
}
