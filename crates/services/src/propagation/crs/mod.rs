//! Coordinate reference systems: whether a map can take the coordinates of a file.
//!
//! Owns the judgement on degrees, projections and units; those who read files find out which system a file has. The definitions of
//! EPSG's systems come from the library `crs-definitions`. Coordinates are never converted here: what a map cannot take is refused,
//! and what is not known is a doubt.

mod datum;
mod length;
mod name;
mod projection;
mod vertical;

pub(super) use self::datum::Datum;
pub(super) use self::length::{Length, METRES};
pub(super) use self::projection::{Lengths, Projection};
pub(super) use self::vertical::Vertical;
use super::area::{Area, Frame};

/// Systems of degrees within 2 m of WGS 84 that are younger than the definitions of the library: realizations of WGS 84, ITRS,
/// ETRS89, RGF93, SIRGAS and others (EPSG dataset, version 10.076).
const RECENT: [(u16, u16); 24] = [
    (8888, 8888),
    (8948, 8949),
    (8972, 8987),
    (9053, 9069),
    (9071, 9072),
    (9074, 9075),
    (9139, 9140),
    (9147, 9148),
    (9152, 9153),
    (9183, 9184),
    (9293, 9294),
    (9308, 9309),
    (9332, 9333),
    (9379, 9380),
    (9469, 9470),
    (9474, 9475),
    (9546, 9547),
    (9695, 9696),
    (9701, 9702),
    (9754, 9755),
    (9776, 9779),
    (9781, 9784),
    (9989, 9990),
    (20_040, 20_041),
];

/// A coordinate system of places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Crs {
    /// Longitudes and latitudes.
    Degrees(Datum),
    /// Lengths on a flat map.
    Projected(Projection),
}

/// A system, and how a file calls it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NamedCrs {
    pub(super) name: String,
    pub(super) crs: Crs,
}

impl Crs {
    /// Returns the system with this code: one of EPSG, or one of those for web maps that others have given to it.
    pub(super) fn of_epsg(code: u32) -> Option<Self> {
        if matches!(code, 900_913 | 102_100 | 102_113 | 54_004) {
            return Some(Self::Projected(Projection::MERCATOR));
        }
        let code = u16::try_from(code).ok()?;
        if RECENT.iter().any(|(first, last)| (*first..=*last).contains(&code)) {
            return Some(Self::Degrees(Datum::WGS84));
        }
        Self::of_definition(crs_definitions::from_code(code)?.proj4)
    }

    /// Reads a definition for PROJ: "+proj=utm +zone=32 +datum=WGS84".
    fn of_definition(definition: &'static str) -> Option<Self> {
        let value = |name: &str| {
            let mut parts = definition.split_ascii_whitespace();
            parts.find_map(|part| part.strip_prefix('+')?.strip_prefix(name)?.strip_prefix('='))
        };
        match value("proj")? {
            "longlat" => Datum::of_definition(value).map(Self::Degrees),
            "geocent" => None,
            _ => Projection::of_definition(value).map(Self::Projected),
        }
    }
}

impl NamedCrs {
    /// Returns a system by its code, with the name that people give it.
    pub(super) fn of_code(code: u32) -> Option<Self> {
        Some(Self { name: format!("EPSG {code}"), crs: Crs::of_epsg(code)? })
    }

    /// Returns a projection that a file itself describes.
    pub(super) fn of_projection(projection: Projection) -> Self {
        Self { name: "of its own".to_owned(), crs: Crs::Projected(projection) }
    }

    /// Checks that a map can take these coordinates. Returns what is doubtful about them.
    ///
    /// # Errors
    /// The end of a sentence about the file.
    pub(super) fn check(&self, area: &Area) -> Result<Option<String>, String> {
        let name = &self.name;
        match (self.crs, area.frame) {
            (Crs::Degrees(_), Frame::Local { .. }) => {
                Err(format!("has degrees ({name}), but the area is in metres: expected metres"))
            }
            (Crs::Projected(projection), Frame::Local { .. }) => projection_fault(projection, name),
            (Crs::Projected(projection), Frame::Wgs84 { .. }) => {
                let unit = projection.unit.name;
                Err(format!(
                    "has {unit} ({name}), but the area is in degrees: expected degrees of WGS 84, EPSG 4326"
                ))
            }
            (Crs::Degrees(datum), Frame::Wgs84 { .. }) => match datum.fault(area) {
                Some(fault) => Err(format!("{fault} ({name}): expected WGS 84, EPSG 4326")),
                None => Ok(None),
            },
        }
    }
}

fn projection_fault(projection: Projection, name: &str) -> Result<Option<String>, String> {
    let Projection { name: of, lengths, unit } = projection;
    if !unit.is_metre() {
        return Err(format!("has coordinates in {} ({name}), expected metres", unit.name));
    }
    match lengths {
        Lengths::True => Ok(None),
        Lengths::Uneven => Ok(Some(format!(
            "is in {of} ({name}): its distances can differ from those on the ground by some percent"
        ))),
        Lengths::Stretched => Err(format!(
            "is in {of} ({name}), whose metres are not those on the ground: expected a projection such as UTM, or degrees"
        )),
    }
}
