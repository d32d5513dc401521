//! The facts about the server that the first page shows: the links by which others open it, their QR codes, and whether it has the
//! demo. They are at `/home/server.json` and `/home/code.svg?url=URL`.
//!
//! A program of this machine learns the machine's own address, if the server listens there. Everybody else learns no address: they
//! name the URL by which they came, `/home/server.json?url=URL`, and get the code of that one alone. It has no code if a proxy has
//! replaced its host.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};

use anemone_server::{Body, Caller, Problem, full, reading_only};
use http::{HeaderValue, Request, Response, Uri, header};
use qrcodegen::{Mask, QrCode, QrCodeEcc, QrSegment, Version};
use serde_json::json;

const FACTS: &str = "/home/server.json";
const CODE: &str = "/home/code.svg";

/// The longest URL that gets a code: the squares of a longer one are too small for many cameras.
const URL_BYTES_MAX: usize = 128;

/// The white squares around a code (ISO 18004 section 9.1).
const MARGIN: i32 = 4;

/// The facts about the server that the first page shows, besides its topics and services.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerFacts {
    /// The scheme and address of each place that the server lets everybody use; none before it listens.
    places: Arc<OnceLock<Vec<(&'static str, SocketAddr)>>>,
    demo: bool,
}

impl ServerFacts {
    pub(crate) fn new(demo: bool) -> Self {
        Self { demo, ..Self::default() }
    }

    /// Sets the scheme and address of each place, once the server listens.
    pub(crate) fn listens_at(&self, places: Vec<(&'static str, SocketAddr)>) {
        // Only the first call has an effect, and there is one.
        let _ = self.places.set(places);
    }

    /// Answers a request for the facts or a code; `None` for any other path.
    pub(super) fn answer(
        &self,
        request: &Request<Body>,
    ) -> Option<Result<Response<Body>, Problem>> {
        let reply = match request.uri().path() {
            FACTS => Ok(self.facts(request)),
            CODE => self.code(request).ok_or_else(|| Problem::nothing_at(CODE)),
            _ => return None,
        };
        Some(reading_only(request.method().as_str()).and(reply))
    }

    fn facts(&self, request: &Request<Body>) -> Response<Body> {
        let mut urls = self.urls_for(request);
        if urls.is_empty() {
            urls.extend(asked_url(request).filter(|url| has_come_by(request, url)));
        }
        let facts = json!({"urls": urls, "demo": self.demo});
        reply(format!("{facts}\n"), "application/json", "no-store")
    }

    /// Returns the URLs by which other devices open this server, if this client may know them.
    fn urls_for(&self, request: &Request<Body>) -> Vec<String> {
        if !request.extensions().get::<Caller>().is_some_and(Caller::is_local) {
            return Vec::new();
        }
        let places = self.places.get().map_or(&[][..], Vec::as_slice);
        let url = |(scheme, address): &(_, SocketAddr)| {
            for_others(*address).map(|address| format!("{scheme}://{address}/"))
        };
        places.iter().filter_map(url).collect()
    }

    /// Returns the code of the URL in the query, if this client has or may know that.
    fn code(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let url = asked_url(request)?;
        let is_known = has_come_by(request, &url) || self.urls_for(request).contains(&url);
        let code = is_known.then(|| code_of(&url)).flatten()?;
        Some(reply(svg(&code), "image/svg+xml", "private, max-age=86400"))
    }
}

/// Makes the code of a URL. Any of the eight masks makes a code that can be read; to look for the best one takes five times as long,
/// and anybody may ask for codes.
fn code_of(url: &str) -> Option<QrCode> {
    let segments = QrSegment::make_segments(url);
    let (least, most, mask) = (Version::MIN, Version::MAX, Some(Mask::new(0)));
    QrCode::encode_segments_advanced(&segments, QrCodeEcc::Medium, least, most, mask, false).ok()
}

/// Returns the URL in a query, unless it is too long for a code.
fn asked_url(request: &Request<Body>) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let (_, url) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "url")?;
    (url.len() <= URL_BYTES_MAX).then(|| url.into_owned())
}

/// Returns true for a URL of the host that a request is for, which the server has checked to be its own. One of this machine alone
/// is no link for others: a proxy has put it there, and it would tell them where the server listens.
fn has_come_by(request: &Request<Body>, url: &str) -> bool {
    let host = request.headers().get(header::HOST).map(HeaderValue::as_bytes);
    let Ok(url) = url.parse::<Uri>() else { return false };
    matches!(url.scheme_str(), Some("http" | "https"))
        && url.query().is_none()
        && url.authority().is_some_and(|own| host == Some(own.as_str().as_bytes()))
        && !url.host().is_some_and(is_of_this_machine)
}

fn is_of_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|ip| ip.to_canonical().is_loopback() || ip.is_unspecified())
}

/// Returns the address by which other devices reach a place that listens at this one; `None` if they cannot.
pub(crate) fn for_others(address: SocketAddr) -> Option<SocketAddr> {
    match address.ip().to_canonical() {
        ip if ip.is_loopback() => None,
        ip if ip.is_unspecified() => outside().map(|ip| SocketAddr::new(ip, address.port())),
        _ => Some(address),
    }
}

/// Returns the address by which others most likely reach this machine: the one from which it would send. Nothing is
/// sent to find it.
fn outside() -> Option<IpAddr> {
    // TEST-NET-1 (RFC 5737), which is outside of any local network.
    const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

/// Draws a code: a path with a square for each dark module.
fn svg(code: &QrCode) -> String {
    let size = code.size();
    let whole = size + 2 * MARGIN;
    let mut path = String::new();
    for (x, y) in (0..size).flat_map(|y| (0..size).map(move |x| (x, y))) {
        if code.get_module(x, y) {
            // Writing to a text does not fail.
            let _ = write!(path, "M{} {}h1v1h-1z", x + MARGIN, y + MARGIN);
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0 0h{whole}v{whole}H0z\"/><path d=\"{path}\"/></svg>\n"
    )
}

fn reply(text: String, kind: &'static str, cache: &'static str) -> Response<Body> {
    let mut response = Response::new(full(text));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_reach_what_listens_on_no_loopback_address() {
        let reached = |text: &str| for_others(text.parse().unwrap());
        for alone in ["127.0.0.1:80", "127.0.0.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            assert_eq!(reached(alone), None, "{alone}");
        }
        for there in ["192.0.2.7:80", "[2001:db8::7]:80"] {
            assert_eq!(reached(there).unwrap().to_string(), there);
        }
        let everywhere = outside().map(|ip| SocketAddr::new(ip, 80));
        assert_eq!([reached("0.0.0.0:80"), reached("[::]:80")], [everywhere, everywhere]);
    }

    #[test]
    fn a_code_is_black_squares_on_white_with_a_margin() {
        let code = code_of("http://192.0.2.7/").unwrap();
        let drawn = svg(&code);
        let dark = (0..code.size()).flat_map(|y| (0..code.size()).map(move |x| (x, y)));
        let dark = dark.filter(|(x, y)| code.get_module(*x, *y)).count();
        assert_eq!(drawn.matches("h1v1h-1z").count(), dark);
        // The first finder pattern, a ring of 7 by 7.
        assert!(drawn.contains("viewBox=\"0 0 33 33\"") && drawn.contains("d=\"M4 4h1"), "{drawn}");
    }
}
