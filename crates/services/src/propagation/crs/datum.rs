//! Datums: how far the same degrees lie apart on the ground.

use crate::propagation::area::Area;

/// The equatorial radius in metres, and the inverse flattening, of WGS 84.
const WGS84: [f64; 2] = [6_378_137.0, 298.257_223_563];

/// The distance below which a datum counts as WGS 84: the continents move as far in some decades, and maps of heights have larger
/// cells.
pub(super) const NEAR_M: f64 = 2.0;

/// The ellipsoids by their names in PROJ 9 (`proj -le`).
const ELLIPSOIDS: [(&str, [f64; 2]); 22] = [
    ("WGS84", WGS84),
    ("GRS80", [6_378_137.0, 298.257_222_101]),
    ("GSK2011", [6_378_136.5, 298.256_415_1]),
    ("WGS72", [6_378_135.0, 298.26]),
    ("WGS66", [6_378_145.0, 298.25]),
    ("GRS67", [6_378_160.0, 298.247_167_427]),
    ("NWL9D", [6_378_145.0, 298.25]),
    ("aust_SA", [6_378_160.0, 298.25]),
    ("krass", [6_378_245.0, 298.3]),
    ("helmert", [6_378_200.0, 298.3]),
    ("intl", [6_378_388.0, 297.0]),
    ("clrk66", [6_378_206.4, 294.978_698_2]),
    ("clrk80", [6_378_249.145, 293.4663]),
    ("clrk80ign", [6_378_249.2, 293.466_021_3]),
    ("airy", [6_377_563.396, 299.324_964_6]),
    ("mod_airy", [6_377_340.189, 299.324_964_6]),
    ("bessel", [6_377_397.155, 299.152_812_8]),
    ("bess_nam", [6_377_483.865, 299.152_812_8]),
    ("evrst30", [6_377_276.345, 300.8017]),
    ("evrst48", [6_377_304.063, 300.8017]),
    ("evrst69", [6_377_295.664, 300.8017]),
    ("evrstSS", [6_377_298.556, 300.8017]),
];

/// The datums by their names in PROJ: the ellipsoid, and the way to WGS 84 (`pj_datums`). That of NAD27 is the mean of the
/// contiguous United States (NIMA TR8350.2).
const DATUMS: [(&str, &str, [f64; 7]); 10] = [
    ("WGS84", "WGS84", [0.0; 7]),
    ("NAD83", "GRS80", [0.0; 7]),
    ("NAD27", "clrk66", [-8.0, 160.0, 176.0, 0.0, 0.0, 0.0, 0.0]),
    ("GGRS87", "GRS80", [-199.87, 74.79, 246.62, 0.0, 0.0, 0.0, 0.0]),
    ("potsdam", "bessel", [598.1, 73.7, 418.2, 0.202, 0.045, -2.455, 6.7]),
    ("carthage", "clrk80ign", [-263.0, 6.0, 431.0, 0.0, 0.0, 0.0, 0.0]),
    ("hermannskogel", "bessel", [577.326, 90.129, 463.919, 5.137, 1.474, 5.297, 2.4232]),
    ("ire65", "mod_airy", [482.53, -130.596, 564.557, -1.042, -0.214, -0.631, 8.15]),
    ("nzgd49", "intl", [59.47, -5.04, 187.44, 0.47, -0.1, 1.024, -4.5993]),
    ("OSGB36", "airy", [446.448, -125.157, 542.06, 0.1502, 0.247, 0.8421, -20.4894]),
];

/// The reference of longitudes and latitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::propagation) struct Datum {
    /// The equatorial radius in metres, and the inverse flattening.
    ellipsoid: [f64; 2],
    /// The way to WGS 84, if it is known: metres along the axes of the Earth, seconds of arc around them, and parts in a million.
    shift: Option<[f64; 7]>,
    /// The meridian from which longitudes count, if it is not that of Greenwich.
    pub(super) meridian: Option<&'static str>,
}

impl Datum {
    pub(super) const WGS84: Self = Self { ellipsoid: WGS84, shift: Some([0.0; 7]), meridian: None };

    /// Reads the datum of a definition for PROJ, whose values `value` finds by their names.
    pub(super) fn of_definition(value: impl Fn(&str) -> Option<&'static str>) -> Option<Self> {
        let meridian = value("pm").filter(|name| *name != "0" && *name != "greenwich");
        if let Some(name) = value("datum") {
            let (_, ellipsoid, shift) = DATUMS.iter().find(|known| known.0 == name)?;
            return Some(Self { ellipsoid: named(ellipsoid)?, shift: Some(*shift), meridian });
        }
        let number = |name| value(name)?.parse::<f64>().ok();
        let ellipsoid = match (value("ellps"), number("a"), number("b")) {
            (Some(name), ..) => named(name)?,
            (None, Some(a), Some(b)) if a > b => [a, a / (a - b)],
            _ => return None,
        };
        // All systems on the ellipsoids of satellites lie around the centre of the Earth, if their definition says nothing else.
        let usual = (ellipsoid[0] == WGS84[0]).then_some([0.0; 7]);
        let shift = value("towgs84").map_or(usual, read_shift);
        Some(Self { ellipsoid, shift, meridian })
    }

    /// Returns the metres on the ground between a place and the one that has the same degrees of WGS 84, if they are known.
    pub(super) fn distance_m(&self, lon: f64, lat: f64) -> Option<f64> {
        let [x, y, z, rx, ry, rz, ppm] = self.shift?;
        let [rx, ry, rz] = [rx, ry, rz].map(|seconds| (seconds / 3_600.0).to_radians());
        let scale = 1.0 + ppm * 1e-6;
        let [from_x, from_y, from_z] = position(self.ellipsoid, lon, lat);
        // Rotations of the position vector (EPSG method 9606), as `+towgs84` has them.
        let to = [
            x + scale * (from_x - rz * from_y + ry * from_z),
            y + scale * (rz * from_x + from_y - rx * from_z),
            z + scale * (-ry * from_x + rx * from_y + from_z),
        ];
        let [x, y, z] = position(WGS84, lon, lat);
        let [x, y, z] = [to[0] - x, to[1] - y, to[2] - z];
        let ([sin_lon, cos_lon], [sin_lat, cos_lat]) = (sin_cos(lon), sin_cos(lat));
        let east = y * cos_lon - x * sin_lon;
        let north = z * cos_lat - sin_lat * (x * cos_lon + y * sin_lon);
        Some(east.hypot(north))
    }

    /// Returns why a map of WGS 84 cannot take degrees of this datum; `None` if it can.
    pub(super) fn fault(&self, area: &Area) -> Option<String> {
        if let Some(meridian) = self.meridian {
            return Some(format!(
                "counts longitudes from another meridian than Greenwich ({meridian})"
            ));
        }
        let (lon, lat) = area.middle();
        match self.distance_m(lon, lat) {
            Some(metres) if metres <= NEAR_M => None,
            Some(metres) => {
                Some(format!("has degrees that lie {metres:.0} m from the same degrees of WGS 84"))
            }
            None => Some(
                "has degrees of another datum than WGS 84, often 100 m or more away".to_owned(),
            ),
        }
    }
}

fn named(ellipsoid: &str) -> Option<[f64; 2]> {
    ELLIPSOIDS.iter().find(|known| known.0 == ellipsoid).map(|known| known.1)
}

/// Reads three or seven numbers.
fn read_shift(text: &str) -> Option<[f64; 7]> {
    let mut shift = [0.0; 7];
    for (at, number) in text.split(',').enumerate() {
        *shift.get_mut(at)? = number.parse().ok()?;
    }
    Some(shift)
}

fn sin_cos(degrees: f64) -> [f64; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [sin, cos]
}

/// Returns the metres from the centre of an ellipsoid to a place on it: along the axes to 0° E, to 90° E and to the North Pole.
fn position([radius, inverse_flattening]: [f64; 2], lon: f64, lat: f64) -> [f64; 3] {
    let flattening = inverse_flattening.recip();
    let squared = flattening * (2.0 - flattening);
    let ([sin_lon, cos_lon], [sin_lat, cos_lat]) = (sin_cos(lon), sin_cos(lat));
    let normal = radius / (1.0 - squared * sin_lat * sin_lat).sqrt();
    [normal * cos_lat * cos_lon, normal * cos_lat * sin_lon, normal * (1.0 - squared) * sin_lat]
}

#[cfg(test)]
mod tests {
    use super::super::Crs;
    use super::*;

    fn datum(code: u32) -> Datum {
        let Some(Crs::Degrees(datum)) = Crs::of_epsg(code) else { panic!("{code}") };
        datum
    }

    #[test]
    fn datums_of_satellites_are_within_2_m_of_wgs84() {
        for code in [
            4326, 4979, 9057, 9755, 4269, 6318, 6319, 4617, 4258, 4937, 4171, 9777, 9702, 4283,
            7844, 4612, 6668, 4167, 4674, 4490, 4737, 4148, 9990, 7912, 4151, 4133,
        ] {
            let metres = datum(code).distance_m(8.0, 47.0).unwrap();
            assert!(metres <= NEAR_M, "{code}: {metres}");
        }
    }

    /// The places are those of PROJ 9.1.1 for the same parameters (`cs2cs`).
    #[test]
    fn older_datums_lie_as_far_away_as_the_library_of_the_field_says() {
        for (code, lon, lat, expected_m) in [
            (4277, -1.5, 52.0, 111.5),
            (4230, 8.0, 47.0, 131.7),
            (4301, 139.7, 35.7, 462.7),
            (4267, -100.0, 40.0, 35.6),
            (4284, 37.6, 55.7, 117.4),
            (4314, 10.0, 51.0, 163.0),
        ] {
            let metres = datum(code).distance_m(lon, lat).unwrap();
            assert!((metres - expected_m).abs() < 1.0, "{code}: {metres}");
        }
        assert_eq!(datum(4807).meridian, Some("paris"));
    }
}
