//! Forever-frame: the endless document of a hidden iframe, with a script for each event that calls a function of the
//! surrounding page. It is the oldest kind of push, and works in every browser.

use std::future::ready;

use anemone_wire::{Item, Token, TopicItem};
use http::{HeaderMap, HeaderValue, Response, header};

use crate::exchange::many_request::ManyRequest;
use crate::exchange::read_request::ReadRequest;
use crate::exchange::read_transport::{LaterAnswer, ReadAnswer, ReadTransport};
use crate::reply::body::Body;
use crate::request::query::{FrameName, Need, Representation, frame_missing};
use crate::stop::Stop;
use crate::stream::TextEncoding;
use crate::stream::many::ManyEncoding;
use crate::transport_name::{TransportName, TransportWords};
use crate::{Kind, Problem, stream};

pub(super) static TRANSPORT: ReadTransport = ReadTransport {
    name: TransportName::new(&TransportWords {
        name: "forever-frame",
        why: "Accept: text/html and frame=",
    }),
    representation: Representation {
        media_type: "text/html",
        ranges: &["text/*", "*/*"],
        needs: Some(Need::Frame),
    },
    // Each reader's calls use its own function name, so readers cannot share pages, and the loop cannot carry it.
    answer: ReadAnswer::Now(answer),
    many,
};

/// Sends the events of several topics.
fn many<'a>(read: &'a ManyRequest, headers: &'a HeaderMap, stop: Stop) -> LaterAnswer<'a> {
    Box::pin(ready(answer_many(read, headers, stop)))
}

fn answer_many(
    read: &ManyRequest,
    headers: &HeaderMap,
    stop: Stop,
) -> Result<Response<Body>, Problem> {
    check_place(headers)?;
    let name = read.query.frame.clone().ok_or_else(frame_missing)?;
    let append = move |item: &TopicItem<'_>, token: &Token, _: bool, out: &mut String| {
        let mut json = String::new();
        item.write(token, &mut json);
        script(&name, matches!(item, TopicItem::Begin), &json, out);
    };
    let encoding = ManyEncoding { append, has_tokens: false };
    let mut response = stream::many::answer(read, TRANSPORT.name, CONTENT_TYPE, stop, encoding)?;
    protect(response.headers_mut());
    Ok(response)
}

const CONTENT_TYPE: &str = "text/html; charset=utf-8";
/// Browsers begin to run a document after this much of it.
const PADDING_BYTES: usize = 1024;
/// A document in its own window is its own parent, and must not call anything there. The name can be reassigned (HTML
/// section 7.2.2.2), and then all calls fail.
const GUARD: &str = "<script>parent===window&&(parent=null)</script>";

/// Without `after`, sends future events.
fn answer(read: &ReadRequest, headers: &HeaderMap, stop: Stop) -> Result<Response<Body>, Problem> {
    check_place(headers)?;
    let name = read.query.frame.clone().ok_or_else(frame_missing)?;
    let append = Box::new(move |item: &Item<'_>, out: &mut String| {
        let mut json = String::new();
        item.write(&mut json);
        script(&name, matches!(item, Item::Begin(_)), &json, out);
    });
    let encoding = TextEncoding::Own(append);
    let mut response = stream::answer(read, TRANSPORT.name, CONTENT_TYPE, stop, encoding)?;
    protect(response.headers_mut());
    Ok(response)
}

/// Checks that a browser requests the document for an iframe in a page of the same site. In its own window, a link
/// could otherwise make it call anything. Browsers that do not send these fields are too old, or use plain HTTP to
/// another machine.
fn check_place(headers: &HeaderMap) -> Result<(), Problem> {
    let says = |name, values: &[&str]| {
        headers.get(name).is_some_and(|said: &HeaderValue| values.iter().any(|value| said == value))
    };
    if says("sec-fetch-dest", &["iframe"]) && says("sec-fetch-site", &["same-origin", "same-site"])
    {
        return Ok(());
    }
    let detail = "with frame, a topic is only for an iframe in a page of the same site, but Sec-Fetch-Dest and \
                  Sec-Fetch-Site do not say that this is one";
    Err(Problem::new(Kind::FrameRefused, detail))
}

/// The script calls a function from its URL, so only pages of this origin may run it, and only within them.
fn protect(headers: &mut HeaderMap) {
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    let policy = "frame-ancestors 'self'; default-src 'none'; script-src 'unsafe-inline'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    // In its own window it is its own parent, and must not reach its opener either.
    let alone = HeaderValue::from_static("same-origin");
    headers.insert("cross-origin-opener-policy", alone);
    // Without this, a page that is isolated from other origins, as the server's own is, may not embed it.
    let isolated = HeaderValue::from_static("require-corp");
    headers.insert("cross-origin-embedder-policy", isolated);
}

/// Appends the call with an item. A heartbeat is a call too, since browsers do not report a broken connection to the page.
fn script(name: &FrameName, is_begin: bool, json: &str, out: &mut String) {
    if is_begin {
        out.push_str(GUARD);
        padding(out);
    }
    out.push_str("<script>parent.");
    out.push_str(name.as_str());
    out.push('(');
    escape(json, out);
    out.push_str(")</script>\n");
}

/// Appends a comment that ends with a line break.
fn padding(out: &mut String) {
    let (begin, end) = ("<!--", "-->\n");
    out.push_str(begin);
    out.extend(std::iter::repeat_n(' ', PADDING_BYTES - begin.len() - end.len()));
    out.push_str(end);
}

/// Appends JSON that is safe in a script in HTML. The escaped characters only occur in JSON strings: `</script>`
/// would end the script, and before ECMAScript 2019 U+2028 and U+2029 were line breaks.
fn escape(json: &str, out: &mut String) {
    for character in json.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_script_or_a_line_is_escaped_and_means_the_same() {
        let json = "{\"a\":\"</script><!-- & \u{2028}\u{2029} \\u003c é 🎈 \\\\\"}";
        let mut out = String::new();
        escape(json, &mut out);
        assert!(!out.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{out}");
        let meaning = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(meaning(&out), meaning(json));
    }

    #[test]
    fn the_comment_is_one_kibibyte_and_closed() {
        let mut out = String::new();
        padding(&mut out);
        assert_eq!(out.len(), 1024);
        assert!(out.starts_with("<!--") && out.ends_with("-->\n"));
    }
}
