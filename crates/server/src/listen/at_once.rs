//! A call of a service over HTTP/1.1, answered where its request was read.
//!
//! Only a request about which both parsers agree comes here: a `GET` without a body that changes nothing about its
//! connection. The reply has the bytes that the HTTP server would write.

use std::sync::Arc;

use crate::listen::parsed::Request;
use crate::peer::Peer;
use crate::reply::plain;
use crate::request::fields::Fields;
use crate::routes::{self, BegunCall, FirstReply};
use crate::site::Site;

/// An answer to a request.
pub(super) enum AtOnce {
    Reply(Vec<u8>),
    /// The service was called, but there is no short and whole reply yet.
    Begun(Box<BegunCall>),
}

/// Calls the service that the request is for; `None` if it is for the HTTP server.
pub(super) fn answer(site: &Arc<Site>, peer: Peer, request: &Request<'_>) -> Option<AtOnce> {
    let limits = &site.limits;
    // The loop has one time limit for a peer that sends no request, or does not take its replies.
    if limits.write_timeout != limits.header_timeout || site.accesses.has_lines() {
        return None;
    }
    if request.head.method != "GET" || !is_plain(request) {
        return None;
    }
    Some(match routes::begin_call(site, peer, &request.head, request.target)? {
        FirstReply::Whole(reply) => AtOnce::Reply(plain::encode(&reply)),
        FirstReply::Begun(call) => AtOnce::Begun(call),
    })
}

/// Returns true if a request asks for nothing about its connection, and no parser can take it for another one.
fn is_plain(request: &Request<'_>) -> bool {
    let Fields::Parsed(fields) = request.head.fields else { return false };
    let is_plain_target =
        request.target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    is_plain_target
        && fields.iter().all(|field| {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            let is_usual = match field.name.len() {
                7 => !is("upgrade"),
                10 => !is("connection") || field.value.eq_ignore_ascii_case(b"keep-alive"),
                17 => !is("sec-websocket-key"),
                _ => true,
            };
            is_usual && field.value.is_ascii()
        })
}
