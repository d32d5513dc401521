//! The names by which GeoJSON calls a coordinate system (GeoJSON 2008, section 3).

use super::{Crs, Datum, NamedCrs};

impl NamedCrs {
    /// Reads a name: "EPSG:25832", "urn:ogc:def:crs:EPSG::25832", "http://www.opengis.net/def/crs/OGC/1.3/CRS84". `None` if it is not
    /// known.
    pub(in crate::propagation) fn of_name(name: &str) -> Option<Self> {
        let parts: Vec<_> = name.trim().split([':', '/', '#']).collect();
        let last = parts.last()?;
        let is_of = |authority: &str| {
            let is_it = |part: &&str| {
                let part = part.strip_suffix(".xml").unwrap_or(part);
                part.eq_ignore_ascii_case(authority)
            };
            parts.iter().any(is_it)
        };
        // The URNs of EPSG's codes have "ogc" in them, too.
        if is_of("EPSG") || is_of("ESRI") {
            return Self::of_code(last.parse().ok()?);
        }
        if is_of("OGC") || parts.len() == 1 { Self::of_ogc(last) } else { None }
    }

    fn of_ogc(name: &str) -> Option<Self> {
        let crs = match name.to_ascii_uppercase().as_str() {
            "CRS84" | "CRS84H" | "WGS84" => Crs::Degrees(Datum::WGS84),
            "CRS83" => Crs::of_epsg(4269)?,
            "CRS27" => Crs::of_epsg(4267)?,
            _ => return None,
        };
        Some(Self { name: name.to_owned(), crs })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Projection;
    use super::*;

    #[test]
    fn names_are_read_in_all_their_forms() {
        let utm = Crs::of_epsg(25_832);
        let degrees = Some(Crs::Degrees(Datum::WGS84));
        for (name, crs) in [
            ("EPSG:25832", utm),
            ("epsg:25832", utm),
            ("urn:ogc:def:crs:EPSG::25832", utm),
            ("urn:ogc:def:crs:EPSG:9.9:25832", utm),
            ("urn:x-ogc:def:crs:EPSG:25832", utm),
            ("http://www.opengis.net/def/crs/EPSG/0/25832", utm),
            ("http://www.opengis.net/gml/srs/epsg.xml#25832", utm),
            ("EPSG:4326", degrees),
            ("urn:ogc:def:crs:OGC:1.3:CRS84", degrees),
            ("http://www.opengis.net/def/crs/OGC/1.3/CRS84", degrees),
            ("OGC:CRS84h", degrees),
            ("ESRI:102100", Some(Crs::Projected(Projection::MERCATOR))),
            ("EPSG:900913", Some(Crs::Projected(Projection::MERCATOR))),
            ("EPSG:1", None),
            ("EPSG:", None),
            ("MINE:25832", None),
            ("", None),
        ] {
            assert_eq!(NamedCrs::of_name(name).map(|found| found.crs), crs, "{name}");
        }
    }
}
