//! The paths of this server in OpenAPI 3.1.

use serde_json::{Value, json};

use crate::PublishRight;
use crate::request::methods::Methods;
use crate::service::mount::Mount;
use crate::site::Site;

/// All paths that a server may have, without those of its mounts.
const TEMPLATE: &str = include_str!("openapi.json");

/// The summary of a run service that does not say what it does: people read it beside the form that starts a run.
const RUNS: &str = "Starts a computation, which shows its progress and its results as they come.";

/// The description of a POST to a run service.
const STARTS: &str =
    "The reply has the events of the run, or with Prefer: respond-async its state.";

/// Returns the document: the paths that this server offers, and those that its mounts describe.
pub(super) fn openapi(site: &Site) -> Value {
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
            None => drop(paths.insert(mount.path().to_owned(), undescribed(mount))),
        }
    }
    document
}

/// Returns the item of a mount that does not describe itself.
fn undescribed(mount: &Mount) -> Value {
    if !mount.is_run_service() {
        return json!({"description": "A service that has not described itself."});
    }
    let any = || json!({"schema": {}});
    let header = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    let applied = json!({"description": "respond-async", "schema": {"type": "string"}});
    let mut item = json!({"post": {
        "operationId": format!("start{}", mount.path().replace('/', "_")),
        "tags": ["runs"],
        "summary": RUNS,
        "description": STARTS,
        "parameters": [
            {"name": "Prefer", "in": "header", "description": "respond-async: the run is watched at Location.", "schema": {"type": "string"}},
            {"name": "Idempotency-Key", "in": "header", "description": "Makes a retry safe.", "schema": {"type": "string"}},
            {"name": "attach", "in": "query", "description": "The run ends with this reply.", "allowEmptyValue": true, "schema": {"type": "string"}},
            {"name": "name", "in": "query", "description": "A name of the run for people.", "schema": {"type": "string", "minLength": 1, "maxLength": 100}},
        ],
        "requestBody": {"content": {"application/json": any(), "text/plain": any(), "application/octet-stream": any()}},
        "responses": {
            "200": {
                "description": "The events of the run.",
                "headers": {"Location": header("run"), "Idempotent-Replayed": header("replayed")},
                "content": {"application/x-ndjson": any(), "text/event-stream": any()},
            },
            "202": {
                "description": "The run has been started.",
                "headers": {
                    "Location": header("run"),
                    "Idempotent-Replayed": header("replayed"),
                    "Preference-Applied": applied,
                },
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Run"}}},
            },
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }});
    if let Some(parameters) = item["post"]["parameters"].as_array_mut() {
        parameters.extend_from_slice(mount.described_parameters());
    }
    if let Some((sentence, example)) = mount.says() {
        let post = &mut item["post"];
        post["summary"] = sentence.into();
        if !example.is_null() {
            post["requestBody"]["content"]["application/json"]["example"] = example.clone();
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use anemone_hub::run::{RunInput, RunRefusal};

    use super::*;

    #[test]
    fn a_run_service_has_its_own_sentence_and_example_or_none() {
        let mount = || {
            let refuse = |_: RunInput| Err(RunRefusal::BadBody(String::new()));
            Mount::run("/primes", refuse).unwrap()
        };
        let said = |mount: &Mount| {
            let post = undescribed(mount)["post"].clone();
            assert_eq!(post["description"], STARTS);
            let example = &post["requestBody"]["content"]["application/json"]["example"];
            (post["summary"].as_str().unwrap().to_owned(), example.clone())
        };
        assert_eq!(said(&mount()), (RUNS.to_owned(), Value::Null));
        assert_eq!(said(&mount().about("Counts.", 7.into())), ("Counts.".to_owned(), 7.into()));
        let silent = mount().about("Counts.", Value::Null);
        assert_eq!(said(&silent), ("Counts.".to_owned(), Value::Null));
        let content = &undescribed(&silent)["post"]["requestBody"]["content"];
        assert_eq!(content["application/json"].get("example"), None);
    }

    #[test]
    fn the_template_is_json_and_has_only_the_servers_own_paths() {
        let template: Value = serde_json::from_str(TEMPLATE).unwrap();
        for path in template["paths"].as_object().unwrap().keys() {
            assert!(crate::request::own_path::OwnPath::at(path).is_some(), "{path}");
        }
    }
}
