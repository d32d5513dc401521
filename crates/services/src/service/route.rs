//! From the method and the path of a request to a method of the resource.

use anemone_wire::problem::Kind;
use http::request::Parts;
use http::{HeaderValue, header};

use super::body::Types;
use super::reply::{Refusal, nothing_at, options, refusal};
use crate::error::details;
use crate::escape::unescaped;
use crate::{Method, Methods};

/// The target of a request.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) call: MethodCall,
    pub(super) is_head: bool,
}

/// A method of the resource, with the id of the record.
#[derive(Debug)]
pub(super) enum MethodCall {
    Find,
    Create,
    Get(String),
    Update(String),
    Patch(String),
    Remove(String),
}

impl MethodCall {
    /// Returns the types of the record in the body; `None` if the method takes none.
    pub(super) fn takes_record(&self) -> Option<Types> {
        match self {
            Self::Create | Self::Update(_) => Some(Types::Json),
            Self::Patch(_) => Some(Types::JsonOrMergePatch),
            Self::Find | Self::Get(_) | Self::Remove(_) => None,
        }
    }
}

/// The methods of HTTP for all records, and those for one, in the order of `Allow`.
const FOR_ALL: [(&str, Method); 3] =
    [("GET", Method::Find), ("HEAD", Method::Find), ("POST", Method::Create)];
const FOR_ONE: [(&str, Method); 5] = [
    ("GET", Method::Get),
    ("HEAD", Method::Get),
    ("PUT", Method::Update),
    ("PATCH", Method::Patch),
    ("DELETE", Method::Remove),
];

impl Route {
    pub(super) fn of(head: &Parts, path: &str, offered: Methods) -> Result<Self, Refusal> {
        let whole = head.uri.path();
        let below = whole.strip_prefix(path).ok_or_else(|| nothing_at(whole))?;
        let id = match below.strip_prefix('/') {
            None if below.is_empty() => None,
            Some(id) if !id.is_empty() && !id.contains('/') => {
                Some(decode(id).ok_or_else(bad_name)?)
            }
            _ => return Err(nothing_at(whole)),
        };
        let table: &[(&str, Method)] = if id.is_some() { &FOR_ONE } else { &FOR_ALL };
        let offered: Vec<_> = table.iter().filter(|(_, method)| offered.has(*method)).collect();
        if head.method == http::Method::OPTIONS {
            return Err(options(&names(&offered)));
        }
        let is_asked = |entry: &&&(&str, Method)| entry.0 == head.method.as_str();
        let Some((_, method)) = offered.iter().find(is_asked) else {
            return Err(not_allowed(&names(&offered)));
        };
        let id = id.unwrap_or_default();
        let call = match method {
            Method::Find => MethodCall::Find,
            Method::Create => MethodCall::Create,
            Method::Get => MethodCall::Get(id),
            Method::Update => MethodCall::Update(id),
            Method::Patch => MethodCall::Patch(id),
            Method::Remove => MethodCall::Remove(id),
        };
        Ok(Self { call, is_head: head.method == http::Method::HEAD })
    }
}

fn names(offered: &[&(&str, Method)]) -> String {
    offered.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn not_allowed(allow: &str) -> Refusal {
    let detail = format!("this path takes {allow}");
    let mut refused = refusal(details(Kind::MethodNotAllowed, detail, None));
    if let Ok(allow) = HeaderValue::from_str(allow) {
        refused.headers_mut().insert(header::ALLOW, allow);
    }
    refused.into()
}

fn bad_name() -> Refusal {
    let detail = "two hexadecimal digits must follow each % in a path, and encode text without / and control characters";
    refusal(details(Kind::BadName, detail.to_owned(), None)).into()
}

fn decode(text: &str) -> Option<String> {
    let is_text =
        |id: &String| !id.chars().any(|character| character == '/' || character.is_control());
    unescaped(text).filter(is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_decoded_once() {
        for (text, decoded) in [
            ("testing", Some("testing")),
            ("%74esting", Some("testing")),
            ("%2525", Some("%25")),
            ("%C3%a4", Some("ä")),
            ("%2F", None),
            ("%00", None),
            ("%", None),
            ("%4", None),
            ("%+1", None),
            ("%C3", None),
        ] {
            assert_eq!(decode(text).as_deref(), decoded, "{text}");
        }
    }
}
