//! The record in the body of a request.

use std::error::Error;

use anemone_wire::problem::Kind;
use anemone_wire::{DEPTH_MAX, is_too_deep};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::reply::{Refusal, refusal};
use crate::error::details;
use crate::{Fields, Misfit, ResourceError, json};

pub(super) const BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) enum Types {
    Json,
    JsonOrMergePatch,
}

impl Types {
    fn list(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::JsonOrMergePatch => "application/merge-patch+json, application/json",
        }
    }

    /// The field that lists them in a refusal.
    fn field(self) -> &'static str {
        match self {
            Self::Json => "accept-post",
            Self::JsonOrMergePatch => "accept-patch",
        }
    }
}

/// Reads a body that is one JSON object.
pub(super) async fn read<B>(headers: &HeaderMap, body: B, types: Types) -> Result<Fields, Refusal>
where
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
{
    check_type(headers, types)?;
    if body.size_hint().lower() > BYTES_MAX as u64 {
        return Err(too_big());
    }
    let body = match Limited::new(body, BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(too_big()),
        Err(_) => {
            return Err(
                refusal(details(Kind::BadBody, "the body was cut short".into(), None)).into()
            );
        }
    };
    if is_too_deep(&body) {
        let detail = format!("the body is nested deeper than {DEPTH_MAX} arrays and objects");
        return Err(refusal(details(Kind::BadBody, detail, None)).into());
    }
    let misfit = |pointer, detail: &str| {
        let misfit = Misfit { pointer, detail: detail.to_owned() };
        Err(refusal(ResourceError::Misfit(misfit).details()).into())
    };
    match json::parse(&body) {
        Ok((_, twice)) if !twice.is_empty() => misfit(json::pointer(&twice), json::TWICE),
        Ok((Value::Object(record), _)) => Ok(record),
        Ok(_) => misfit(String::new(), "a record is a JSON object"),
        Err(error) => {
            // The message of serde_json ends with line and column.
            let detail = format!("the body is not valid JSON: {}", json::fault(&body, &error));
            Err(refusal(details(Kind::BadBody, detail, None)).into())
        }
    }
}

fn check_type(headers: &HeaderMap, types: Types) -> Result<(), Refusal> {
    let is_identity = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).into_iter().all(is_identity) {
        let detail = "send the body without Content-Encoding".to_owned();
        let mut refused = refusal(details(Kind::UnsupportedEncoding, detail, None));
        let identity = HeaderValue::from_static("identity");
        refused.headers_mut().insert(header::ACCEPT_ENCODING, identity);
        return Err(refused.into());
    }
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let given = given.to_str().unwrap_or_default();
    if is_one_of(given, types) {
        return Ok(());
    }
    let given: String = given.chars().take(80).collect();
    let detail = format!(
        "the type of the body may be {}, not {given:?}: send Content-Type: application/json (curl --json)",
        types.list()
    );
    let mut refused = refusal(details(Kind::UnsupportedType, detail, None));
    let list = HeaderValue::from_static(types.list());
    refused.headers_mut().insert(types.field(), list);
    Err(refused.into())
}

/// Returns true for one of the types, in UTF-8.
fn is_one_of(given: &str, types: Types) -> bool {
    let mut parts = given.split(';').map(|part| part.trim().to_ascii_lowercase());
    let kind = parts.next().unwrap_or_default();
    let is_utf8 = |parameter: String| match parameter.split_once('=') {
        Some((name, charset)) if name.trim() == "charset" => {
            charset.trim().trim_matches('"') == "utf-8"
        }
        _ => true,
    };
    types.list().split(", ").any(|known| known == kind) && parts.all(is_utf8)
}

fn too_big() -> Refusal {
    let detail = format!("the body has more than {BYTES_MAX} bytes");
    refusal(details(Kind::BodyTooBig, detail, None)).into()
}
