//! The arrival of a request: the gate admits it, its line in the access log begins, and it takes its place among its
//! client's requests. At the end, its reply is finished for the page that asked.
//!
//! Every kind of request takes the same steps in the same order. A request that is answered without the HTTP server
//! gets its line only then: any other request comes again through the HTTP server, which words the refusals.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};

use crate::clients::access::AccessLine;
use crate::clients::places::Place;
use crate::clients::refusals::RefusedRequest;
use crate::exchange::gate::{self, Admitted};
use crate::exchange::handoff::{Handoff, Reply};
use crate::peer::Peer;
use crate::reply::bodiless::head_alone;
use crate::reply::body::{Body, empty};
use crate::reply::protection::{protect, share};
use crate::reply::refusal_page;
use crate::request::body::check_transfer_coding;
use crate::request::client::Client;
use crate::request::handshake::Head;
use crate::request::origin::Verdict;
use crate::request::query::prefers_html;
use crate::request::{host, path};
use crate::site::Site;
use crate::{Kind, Problem};

/// A request that the gate has admitted.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) site: Arc<Site>,
    pub(crate) client: Client,
    verdict: Verdict,
    /// True if the content of its reply is not sent.
    is_head: bool,
    /// True if a browser opens the URL, so that a person sees a refusal.
    is_person: bool,
    /// Its place among the requests of a trusted proxy's client.
    place: Option<Place>,
    pub(crate) access: AccessLine,
}

impl Arrival {
    /// Admits a request of the HTTP server, and normalizes its path; returns the reply if it is refused.
    pub(crate) fn of<B>(
        site: &Arc<Site>,
        peer: Peer,
        request: &mut Request<B>,
    ) -> Result<Self, Box<Reply>> {
        let admitted = host::take_from_target(request)
            .and_then(|()| gate::admit(site, peer, &Head::of(request)));
        let Admitted { client, verdict } =
            admitted.map_err(|problem| Box::new(refuse(site, peer, request, problem)))?;
        let access = begin_line(site, client, request.method().as_str(), request.uri().path());
        let (site, is_head) = (Arc::clone(site), request.method() == Method::HEAD);
        let is_person = prefers_html(request.headers());
        let mut arrival = Self { site, client, verdict, is_head, is_person, place: None, access };
        let site = &arrival.site;
        let room = path::normalize(request.uri_mut())
            .and_then(|()| check_transfer_coding(request.headers()))
            .and_then(|()| gate::room(site, client, request.uri().path()));
        match room {
            Ok(place) => arrival.place = place,
            Err(problem) => {
                let (method, path) = (request.method().as_str(), request.uri().path());
                let refused = arrival.refuse(problem, method, path);
                return Err(arrival.finish(refused).into());
            }
        }
        Ok(arrival)
    }

    /// Admits a request that the HTTP server has not seen; `None` if the HTTP server is to refuse it.
    pub(crate) fn first(site: &Arc<Site>, peer: Peer, head: &Head<'_>) -> Option<Self> {
        let Admitted { client, verdict } = gate::admit(site, peer, head).ok()?;
        let place = gate::room(site, client, head.path).ok()?;
        let (site, access) = (Arc::clone(site), AccessLine::default());
        let is_head = head.method == "HEAD";
        Some(Self { site, client, verdict, is_head, is_person: false, place, access })
    }

    /// Begins its line in the access log, since it will be answered here.
    pub(crate) fn with_access_line(self, head: &Head<'_>) -> Self {
        let access = begin_line(&self.site, self.client, head.method, head.path);
        Self { access, ..self }
    }

    /// Returns the reply to a request that ends with a problem.
    pub(crate) fn refuse(&self, problem: Problem, method: &str, path: &str) -> Reply {
        note(&self.site, self.client, &problem, method, path);
        refusal_page::reply(problem, self.is_person).into()
    }

    /// Finishes the reply: removes the content of one to `HEAD`, adds the protective fields, lets a page of an allowed
    /// origin read it, and keeps the request's resources until it is over.
    pub(crate) fn finish(self, mut reply: Reply) -> Reply {
        let client = self.client.address();
        if self.is_head {
            reply.response = head_alone(reply.response);
        }
        let (reply, place, access) = self.allow_origin(reply);
        reply.keeping(access, client, place)
    }

    /// Returns the handoff of an accepted handshake's connection.
    pub(crate) fn hand_off(self, handoff: Handoff) -> Handoff {
        let Self { client, place, access, .. } = self;
        access.set_status(StatusCode::SWITCHING_PROTOCOLS.as_u16());
        handoff.keeping(access, client.address(), place)
    }

    /// Returns the head of a reply that keeps the request's resources itself.
    pub(crate) fn finish_head(self, head: Response<Body>) -> (Response<Body>, Option<Place>) {
        let (reply, place, _) = self.allow_origin(head.into());
        (reply.response, place)
    }

    fn allow_origin(self, mut reply: Reply) -> (Reply, Option<Place>, AccessLine) {
        let Self { verdict, place, access, .. } = self;
        let headers = reply.response.headers_mut();
        if reply.handoff.is_none() {
            if matches!(verdict, Verdict::Allowed(_)) {
                share(headers);
            }
            protect(headers);
        }
        if let Verdict::Allowed(origin) = verdict {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static(
                "ETag, Idempotent-Replayed, Link, Location, Preference-Applied, Retry-After",
            );
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
        (reply, place, access)
    }

    /// Returns true for a page of this server's own origin, which needs no permission to read.
    pub(crate) fn is_of_own_page(&self) -> bool {
        matches!(self.verdict, Verdict::Same)
    }

    /// Returns true for a browser's preflight request (Fetch, section 3.2.2).
    pub(crate) fn is_preflight(&self, method: &Method) -> bool {
        *method == Method::OPTIONS && matches!(self.verdict, Verdict::Allowed(_))
    }
}

/// Answers a request with a problem, before anything else is known about it.
pub(crate) fn refuse<B>(site: &Site, peer: Peer, request: &Request<B>, problem: Problem) -> Reply {
    let client = gate::address_of(site, peer, request.headers().into());
    let (method, path) = (request.method().as_str(), request.uri().path());
    let asked = RefusedRequest::request(client, method, path);
    let access = record(site, &problem, asked, (method, path));
    let refused = refusal_page::reply(problem, prefers_html(request.headers()));
    let refused = if request.method() == Method::HEAD { head_alone(refused) } else { refused };
    Reply::from(refused).keeping(access, client, None)
}

/// Refuses a request whose header is too long, or has too many fields, as the HTTP server refuses it over HTTP/1.1: without
/// looking at the header.
pub(crate) fn refuse_too_large<B>(site: &Site, peer: Peer, request: &Request<B>) -> Response<Body> {
    let mut response = empty(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    protect(response.headers_mut());
    site.accesses.begin(peer.address(), request.method().as_str(), "-").follow(response)
}

/// Records a request that is refused before anything else is known about it; returns its line in the access log.
pub(crate) fn record(
    site: &Site,
    problem: &Problem,
    asked: RefusedRequest<'_>,
    (method, path): (&str, &str),
) -> AccessLine {
    site.refusals.note(problem, asked);
    site.accesses.begin(asked.client, method, path)
}

/// Admits a request on a connection of its own client, if there is room: begins its line in the access log, and
/// normalizes its path.
pub(crate) fn enter<'p>(
    site: &Site,
    client: Client,
    method: &str,
    path: &'p str,
) -> (AccessLine, Result<Cow<'p, str>, Problem>) {
    let access = begin_line(site, client, method, path);
    let path =
        path::normal(path).and_then(|path| gate::check_memory(&site.memory, &path).map(|()| path));
    (access, path)
}

pub(crate) fn note(site: &Site, client: Client, problem: &Problem, method: &str, path: &str) {
    // `places` has logged too many connections itself, with the limit.
    if problem.kind() != Kind::TooManyConnections {
        site.refusals.note(problem, RefusedRequest::request(client.address(), method, path));
    }
}

fn begin_line(site: &Site, client: Client, method: &str, path: &str) -> AccessLine {
    site.accesses.begin(client.address(), method, path)
}
