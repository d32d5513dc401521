//! The keys of a GeoTIFF file that say which coordinates it has (OGC GeoTIFF 1.1, section 7).

/// The number of values of the header and of each entry.
const ENTRY: usize = 4;

const MODEL_TYPE: u16 = 1024;
const RASTER_TYPE: u16 = 1025;
const GEODETIC_CRS: u16 = 2048;
const ANGULAR_UNITS: u16 = 2054;
const LINEAR_UNITS: u16 = 3076;
const VERTICAL_UNITS: u16 = 4099;

const PROJECTED: u16 = 1;
const GEOGRAPHIC: u16 = 2;
const POINTS: u16 = 2;
const METRE: u16 = 9001;
const DEGREE: u16 = 9102;

/// WGS 84, and the systems of Europe and North America that differ from it by less than 2 m.
const LIKE_WGS84: [u16; 5] = [4326, 4979, 4258, 4937, 4269];

/// The coordinates of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FileCoordinates {
    /// The file does not say.
    Unknown,
    /// Degrees of WGS 84.
    Degrees,
    /// Metres of a projection.
    Metres,
}

/// The facts that the keys tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct GeoKeys {
    pub(super) coordinates: FileCoordinates,
    /// True if the tie point of a cell is its middle, and not its corner.
    pub(super) is_of_middles: bool,
}

impl GeoKeys {
    /// Reads the directory of keys, which may be empty.
    ///
    /// # Errors
    /// A sentence that says which coordinates or units are not known here.
    pub(super) fn read(directory: &[u16]) -> Result<Self, String> {
        let value = |key: u16| {
            let mut entries = directory.chunks_exact(ENTRY).skip(1);
            // An entry with a location has its value elsewhere; those of interest are all here.
            entries.find(|entry| entry[0] == key && entry[1] == 0).map(|entry| entry[3])
        };
        let expect = |key, names: &str, known: &[u16]| match value(key) {
            Some(found) if !known.contains(&found) => {
                let known: Vec<_> = known.iter().map(u16::to_string).collect();
                let known = known.join(", ");
                Err(format!("has {names} {found} of EPSG, expected one of {known}"))
            }
            _ => Ok(()),
        };
        expect(VERTICAL_UNITS, "heights in the unit", &[METRE])?;
        let coordinates = match value(MODEL_TYPE) {
            None => FileCoordinates::Unknown,
            Some(PROJECTED) => {
                expect(LINEAR_UNITS, "coordinates in the unit", &[METRE])?;
                FileCoordinates::Metres
            }
            Some(GEOGRAPHIC) => {
                expect(ANGULAR_UNITS, "coordinates in the unit", &[DEGREE])?;
                expect(GEODETIC_CRS, "coordinates of the system", &LIKE_WGS84)?;
                FileCoordinates::Degrees
            }
            Some(other) => {
                return Err(format!(
                    "has coordinates of the type {other}, expected 1 (projected) or 2 (geographic)"
                ));
            }
        };
        Ok(Self { coordinates, is_of_middles: value(RASTER_TYPE) == Some(POINTS) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_the_coordinates_and_those_that_are_not_known_are_refused() {
        use FileCoordinates::{Degrees, Metres, Unknown};
        let read = |keys: &[[u16; 2]]| {
            let entries = keys.iter().flat_map(|[key, value]| [*key, 0, 1, *value]);
            let header = [1, 1, 0, 9];
            GeoKeys::read(&header.into_iter().chain(entries).collect::<Vec<_>>())
        };
        for (keys, coordinates, is_of_middles) in [
            (&[][..], Unknown, false),
            (&[[1025, 2]], Unknown, true),
            (&[[1024, 2], [1025, 1], [2048, 4326], [2054, 9102]], Degrees, false),
            (&[[1024, 2], [2048, 4258]], Degrees, false),
            (&[[1024, 1], [3072, 25832], [3076, 9001], [4099, 9001]], Metres, false),
        ] {
            assert_eq!(read(keys), Ok(GeoKeys { coordinates, is_of_middles }));
        }
        for (keys, words) in [
            (
                &[[1024, 2], [2048, 4267]][..],
                "has coordinates of the system 4267 of EPSG, expected one of 4326,",
            ),
            (
                &[[1024, 2], [2054, 9101]],
                "has coordinates in the unit 9101 of EPSG, expected one of 9102",
            ),
            (&[[1024, 1], [3076, 9003]], "has coordinates in the unit 9003"),
            (&[[4099, 9002]], "has heights in the unit 9002"),
            (&[[1024, 3]], "has coordinates of the type 3,"),
        ] {
            let found = read(keys).unwrap_err();
            assert!(found.starts_with(words), "{found}");
        }
        // A directory that is cut, or shorter than its header says.
        let unknown = GeoKeys { coordinates: Unknown, is_of_middles: false };
        for directory in [&[][..], &[1], &[1, 1, 0, 9], &[1, 1, 0, 9, 1024, 0, 1]] {
            assert_eq!(GeoKeys::read(directory), Ok(unknown));
        }
    }
}
