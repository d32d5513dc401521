//! The paths of this server in OpenAPI 3.1.

use serde_json::{Value, json};

use crate::PublishRight;
use crate::request::methods::Methods;
use crate::site::Site;

/// All paths that a server may have, without those of its mounts.
const TEMPLATE: &str = include_str!("openapi.json");

/// Returns the document: the paths that this server offers, and those that its mounts describe.
pub(in crate::exchange) fn openapi(site: &Site) -> Value {
    let mut document: Value = serde_json::from_str(TEMPLATE).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    let Some(paths) = document["paths"].as_object_mut() else { return document };
    if !site.offered.contains(&"/echo") {
        paths.remove("/echo");
    }
    let rules = || site.publishing.rules().filter(|rule| rule.publish != PublishRight::Nobody);
    let methods = match (rules().next(), rules().any(|rule| rule.topics.name().is_none())) {
        (None, _) => Methods::Read,
        (_, false) => Methods::Publish,
        (_, true) => Methods::Delete,
    };
    if let Some(topic) = paths.get_mut("/topics/{name}").and_then(Value::as_object_mut) {
        topic.retain(|name, _| match &**name {
            "post" => methods != Methods::Read,
            "delete" => methods == Methods::Delete,
            _ => true,
        });
    }
    for mount in site.mounts.all() {
        match mount.description().and_then(Value::as_object) {
            Some(own) => paths.extend(own.iter().map(|(path, item)| (path.clone(), item.clone()))),
            // The one at / answers for what is no path of an interface: pages.
            None if mount.path() == "/" => {}
            None => {
                let item = json!({"description": "A service that has not described itself."});
                paths.insert(mount.path().to_owned(), item);
            }
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_json_and_has_only_the_servers_own_paths() {
        let template: Value = serde_json::from_str(TEMPLATE).unwrap();
        for path in template["paths"].as_object().unwrap().keys() {
            assert!(crate::request::own_path::OwnPath::at(path).is_some(), "{path}");
        }
    }
}
