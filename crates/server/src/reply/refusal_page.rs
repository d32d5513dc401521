//! The page for a person whose browser is refused: the same problem, in words, without scripts and styles of its own.

use http::{HeaderValue, Response, header};

use crate::reply::body::{Body, full};
use crate::reply::kind;
use crate::{Kind, Problem};

/// Allows the page nothing: it is sent in place of another site's page.
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the reply about a problem: for a person, the page about a refusal that a setting of the server changes.
pub(crate) fn reply(problem: Problem, is_person: bool) -> Response<Body> {
    let kind = problem.kind();
    let has_setting = matches!(
        kind,
        Kind::Misdirected | Kind::OriginRefused | Kind::LocalOnly | Kind::PublishRefused
    );
    if is_person && has_setting { page(problem) } else { problem.into_response() }
}

fn page(problem: Problem) -> Response<Body> {
    let (kind, detail) = (problem.kind(), sentence(problem.detail()));
    let title = escape(kind.title());
    let advice = escape(kind::advice(kind));
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <h1>{title}</h1>\n<p>{detail}</p>\n<p>{advice}</p>\n</html>\n",
        detail = escape(&detail),
    );
    let mut response = problem.into_response();
    *response.body_mut() = full(page);
    let fields = response.headers_mut();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    fields.insert(header::CONTENT_TYPE, html);
    fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Returns a detail with a capital letter and a full stop.
fn sentence(detail: &str) -> String {
    let mut characters = detail.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).chain(['.']).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
