//! The result as a document: GeoJSON, CSV or PNG.

mod check;
mod contour;
mod csv;
mod field;
mod geojson;
mod png;
mod write;

pub(super) use self::field::Field;
pub(super) use self::write::{Outputs, bytes, write};
