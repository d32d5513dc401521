//! The replies of a resource.

use anemone_wire::problem::{Details, Kind};
use http::{HeaderValue, Response, StatusCode, header};

use super::reply_body::ReplyBody;
use crate::error::details;
use crate::{Changed, Condition, Found, Query, Record};

/// A reply to a request that does not reach the resource.
pub(super) type Refusal = Box<Response<ReplyBody>>;

pub(crate) fn refusal(problem: Details<'_>) -> Response<ReplyBody> {
    let body = problem.to_json() + "\n";
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = reply(status, "application/problem+json", "no-store", body);
    if let Some(kind) = problem.kind() {
        reply.extensions_mut().insert(kind);
    }
    if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    reply
}

pub(super) fn nothing_at(path: &str) -> Refusal {
    let path: String = path.chars().take(80).collect();
    refusal(details(Kind::UnknownPath, format!("there is nothing at {path}"), None)).into()
}

/// Returns the reply to OPTIONS, which also answers a browser's preflight request (Fetch, section 3.2.2). The server says
/// which origins are allowed.
pub(super) fn options(allow: &str) -> Refusal {
    let mut reply = Response::new(ReplyBody::default());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let headers = reply.headers_mut();
    for name in [header::ALLOW, header::ACCESS_CONTROL_ALLOW_METHODS] {
        headers.extend(HeaderValue::from_str(allow).ok().map(|allow| (name, allow)));
    }
    let fields = "Content-Type, Idempotency-Key, If-Match, If-None-Match, Prefer";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(fields));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    reply.into()
}

pub(super) fn found(query: &Query, found: Found) -> Response<ReplyBody> {
    reply(StatusCode::OK, "application/json", "no-cache", ReplyBody::page(query, found))
}

/// Returns the record, or 304 if the client already has it.
pub(super) fn got(record: Record, condition: &Condition) -> Response<ReplyBody> {
    let is_known = condition.is_known(record.tag.as_ref());
    let mut reply = of_record(record);
    if is_known {
        *reply.status_mut() = StatusCode::NOT_MODIFIED;
        reply.headers_mut().remove(header::CONTENT_TYPE);
        *reply.body_mut() = ReplyBody::default();
    }
    reply
}

/// Returns the new record with its location, or that of the first create with this key.
pub(super) fn created(created: Changed, path: &str) -> Response<ReplyBody> {
    // Relative to the URL of the request, whatever a proxy puts before it.
    let name = path.rsplit('/').next().unwrap_or_default();
    let id = created.record.fields.get("id").and_then(|id| id.as_str()).unwrap_or_default();
    let location = HeaderValue::from_str(&format!("{name}/{id}"));
    let status = if created.is_replayed { StatusCode::OK } else { StatusCode::CREATED };
    let mut reply = changed(created);
    *reply.status_mut() = status;
    if let Ok(location) = location {
        reply.headers_mut().insert(header::LOCATION, location);
    }
    reply
}

/// Returns the record that a change has left or removed, also to a change that is repeated.
pub(super) fn changed(Changed { record, is_replayed }: Changed) -> Response<ReplyBody> {
    let mut reply = of_record(record);
    if is_replayed {
        reply.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    }
    reply
}

/// Returns the record, with its tag if it is stored.
fn of_record(record: Record) -> Response<ReplyBody> {
    let body = serde_json::Value::Object(record.fields).to_string();
    let mut reply = reply(StatusCode::OK, "application/json", "no-cache", body);
    let tag = record.tag.and_then(|tag| HeaderValue::from_str(&tag.to_string()).ok());
    if let Some(tag) = tag {
        reply.headers_mut().insert(header::ETAG, tag);
    }
    reply
}

/// Removes the body for HEAD, and says how long it is.
pub(super) fn without_body(reply: Response<ReplyBody>) -> Response<ReplyBody> {
    let (mut head, body) = reply.into_parts();
    if head.status != StatusCode::NOT_MODIFIED {
        let bytes = http_body::Body::size_hint(&body).exact().unwrap_or_default();
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    }
    Response::from_parts(head, ReplyBody::default())
}

fn reply(
    status: StatusCode,
    kind: &'static str,
    cache: &'static str,
    body: impl Into<ReplyBody>,
) -> Response<ReplyBody> {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    reply
}
