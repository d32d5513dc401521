//! The descriptions of a resource: its paths in OpenAPI 3.1, and the JSON Schema of its events.

use serde_json::{Value, json};

use crate::{Method, Methods, Schema};

/// Returns the members of an OpenAPI object `paths` for a resource at this path.
pub(crate) fn openapi_paths(path: &str, schema: &Schema, offered: Methods) -> Value {
    let operations = |table: &[(&str, Method)]| -> Value {
        let offered = table.iter().filter(|(_, method)| offered.has(*method));
        let operation = |(name, method): &(&str, Method)| {
            ((*name).to_owned(), operation(*method, path, schema))
        };
        Value::Object(offered.map(operation).collect())
    };
    let all = operations(&[("get", Method::Find), ("post", Method::Create)]);
    let mut one = operations(&[
        ("get", Method::Get),
        ("put", Method::Update),
        ("patch", Method::Patch),
        ("delete", Method::Remove),
    ]);
    one["parameters"] = json!([{
        "name": "id", "in": "path", "required": true, "description": "The id of the record.",
        "schema": {"type": "string"},
    }]);
    json!({path: all, format!("{path}/{{id}}"): one})
}

pub(crate) fn event_schema(schema: &Schema) -> Value {
    let event = |name: &str| {
        json!({
            "type": "object", "required": [name], "additionalProperties": false,
            "properties": {name: schema.to_json_schema()},
        })
    };
    let mut kept = event("kept");
    kept["properties"]["of"] =
        json!({"type": "string", "description": "The position of its last change."});
    let changes = ["created", "updated", "patched", "removed"].map(event);
    json!({"title": format!("{}Event", schema.title()), "oneOf": [changes[0], changes[1], changes[2], changes[3], kept]})
}

fn operation(method: Method, path: &str, schema: &Schema) -> Value {
    let title = schema.title();
    let (verb, summary) = match method {
        Method::Find => ("find", "Finds records, in pages."),
        Method::Get => ("get", "Returns a record."),
        Method::Create => ("create", "Creates a record."),
        Method::Update => ("update", "Replaces a record."),
        Method::Patch => ("patch", "Merges a patch into a record (RFC 7396)."),
        Method::Remove => ("remove", "Removes a record, and returns it."),
    };
    let mut operation = json!({
        "operationId": format!("{verb}{}", path.replace('/', "_")),
        "tags": [title],
        "summary": summary,
        "parameters": parameters(method, schema),
        "responses": responses(method, schema),
    });
    if let Some(content) = body(method, schema) {
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}

fn body(method: Method, schema: &Schema) -> Option<Value> {
    let mut record = schema.to_json_schema();
    match method {
        Method::Create | Method::Update => {
            // The id may be missing.
            if let Some(required) = record["required"].as_array_mut() {
                required.retain(|name| name != "id");
            }
            Some(json!({"application/json": {"schema": record}}))
        }
        Method::Patch => {
            let schema = json!({"type": "object"});
            Some(
                json!({"application/merge-patch+json": {"schema": schema}, "application/json": {"schema": schema}}),
            )
        }
        Method::Find | Method::Get | Method::Remove => None,
    }
}

fn parameters(method: Method, schema: &Schema) -> Value {
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}});
    let key = || header("Idempotency-Key", "Makes a retry safe.");
    let condition = || header("If-Match", "412 unless the record has one of these tags.");
    match method {
        Method::Find => Value::Array(query(schema)),
        Method::Get => json!([header("If-None-Match", "304 if the record has one of these tags.")]),
        Method::Create => json!([key()]),
        Method::Update | Method::Patch | Method::Remove => json!([condition(), key()]),
    }
}

fn query(schema: &Schema) -> Vec<Value> {
    let parameter = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    let number = |most: Option<usize>| match most {
        Some(most) => json!({"type": "integer", "minimum": 0, "maximum": most}),
        None => json!({"type": "integer", "minimum": 0}),
    };
    let fields = schema.comparable().map(|(name, schema)| {
        let description = format!(
            "Records with this {name}. {name}[$ne], [$lt], [$lte], [$gt], [$gte], [$in][] and [$nin][] compare it in other ways, \
             and $or[0][{name}] is one of several conditions."
        );
        parameter(name, &description, schema)
    });
    let list = json!({"type": "array", "items": {"type": "string"}});
    let order =
        json!({"type": "object", "additionalProperties": {"type": "integer", "enum": [1, -1]}});
    let mut sort = parameter("$sort", "The fields to sort by: $sort[FIELD]=1 or -1.", order);
    sort["style"] = "deepObject".into();
    let own = [
        parameter("$limit", "The most records on the page.", number(Some(crate::Query::LIMIT_MAX))),
        parameter("$skip", "The number of records before the page.", number(None)),
        sort,
        parameter("$select[]", "The fields to return, besides the id.", list),
    ];
    fields.chain(own).collect()
}

fn responses(method: Method, schema: &Schema) -> Value {
    let header = |words: &str| json!({"description": words, "schema": {"type": "string"}});
    let tag = || header("The version of the record.");
    let replayed = || {
        header("true: this key was used for the same request before, and nothing was changed now.")
    };
    let location = || header("The URL of the record.");
    let content = |schema: Value| json!({"application/json": {"schema": schema}});
    let record = |words: &str, headers: Value| json!({"description": words, "headers": headers, "content": content(schema.to_json_schema())});
    let problem = json!({
        "description": "A problem (RFC 9457).",
        "content": {"application/problem+json": {"schema": {"type": "object"}}},
    });
    let mut responses = json!({"default": problem});
    match method {
        Method::Find => {
            let number = json!({"type": "integer"});
            // A page may have only selected fields.
            let page = json!({
                "type": "object", "required": ["total", "limit", "skip", "data"],
                "properties": {
                    "total": number, "limit": number, "skip": number,
                    "data": {"type": "array", "items": {"type": "object"}},
                },
            });
            responses["200"] =
                json!({"description": "A page of records.", "content": content(page)});
        }
        Method::Get => {
            // A record that is not stored may have nothing but its id.
            let any = content(json!({"type": "object", "required": ["id"]}));
            responses["200"] =
                json!({"description": "The record.", "headers": {"ETag": tag()}, "content": any});
            responses["304"] = json!({"description": "The client has this version."});
        }
        Method::Create => {
            let mut headers = json!({"ETag": tag(), "Location": location()});
            responses["201"] = record("The record, created.", headers.clone());
            headers["Idempotent-Replayed"] = replayed();
            let words = "The record that was created with this key before.";
            responses["200"] = record(words, headers);
        }
        Method::Update | Method::Patch => {
            let headers = json!({"ETag": tag(), "Idempotent-Replayed": replayed()});
            responses["200"] = record("The record as the change has made it.", headers);
        }
        Method::Remove => {
            let headers = json!({"Idempotent-Replayed": replayed()});
            responses["200"] = record("The removed record.", headers);
        }
    }
    responses
}
