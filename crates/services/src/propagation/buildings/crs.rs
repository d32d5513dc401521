//! The coordinate system that a `FeatureCollection` says (GeoJSON 2008, section 3). Since RFC 7946 it has no such member, and files
//! have it still.

use serde_json::Value;

use crate::propagation::area::Area;
use crate::propagation::crs::NamedCrs;
use crate::reader::{Checked, Members, quoted};

/// Checks that the coordinates are those of the area. Returns what is doubtful about them.
pub(super) fn check(collection: &Members<'_>, area: &Area) -> Checked<Option<String>> {
    let Some(node) = collection.get("crs").filter(|node| !node.is_null()) else { return Ok(None) };
    let properties = node.value().get("properties");
    let property = |name: &str| properties?.get(name);
    let name = property("name").and_then(Value::as_str);
    let code = property("code").and_then(Value::as_u64).and_then(|code| u32::try_from(code).ok());
    let known = match (name, code) {
        (Some(name), _) => NamedCrs::of_name(name),
        (None, Some(code)) => NamedCrs::of_code(code),
        (None, None) => None,
    };
    let Some(known) = known else {
        let name = name.map_or_else(|| "without a name".to_owned(), quoted);
        return Ok(Some(format!(
            "the crs of the buildings ({name}) is not known here: their coordinates count as those of the area"
        )));
    };
    let doubt = known.check(area).map_err(|fault| node.unfit(fault))?;
    Ok(doubt.map(|doubt| format!("the map of the buildings {doubt}")))
}
