//! The call of a service for a request that the HTTP server has not seen.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};

use super::{Asked, CalledRequest, PendingReply, mount_at};
use crate::exchange::arrival::Arrival;
use crate::peer::Peer;
use crate::reply::body::Body;
use crate::request::fields::Fields;
use crate::request::handshake::Head;
use crate::service::begun::{BegunService, FirstAnswer};
use crate::service::caller::Caller;
use crate::service::context::ServiceContext;
use crate::service::event_stream;
use crate::site::Site;
use crate::stop::Stop;

/// The result of a call.
pub(crate) enum FirstReply {
    /// The plain reply, without the protective fields.
    Whole(Response<Bytes>),
    /// The HTTP server carries the call on.
    Begun(Box<BegunCall>),
}

/// A call that has begun, for a request that the HTTP server gets next.
pub(crate) struct BegunCall {
    arrival: Arrival,
    service: BegunService,
}

impl fmt::Debug for BegunCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunCall").field("arrival", &self.arrival).finish_non_exhaustive()
    }
}

/// Calls the service that answers a `GET` without a body for this target; `None` if there is none, or if the HTTP server is
/// to refuse the request.
pub(crate) fn begin_call(
    site: &Arc<Site>,
    peer: Peer,
    head: &Head<'_>,
    target: &str,
) -> Option<FirstReply> {
    let mount = mount_at(site, head.path)?;
    if mount.is_run_service() || mount.has_page_at_root(head.path) {
        return None;
    }
    let request = request(head, target)?;
    let arrival = Arrival::first(site, peer, head).filter(Arrival::is_of_own_page)?;
    let arrival = arrival.with_access_line(head);
    let caller = Caller::new(arrival.client, "http");
    let context = ServiceContext::new(&site.limits, &site.memory);
    match mount.begin_call(request, caller, context) {
        FirstAnswer::Whole(Ok(reply)) => Some(FirstReply::Whole(reply)),
        FirstAnswer::Whole(Err(problem)) => {
            let reply = arrival.refuse(problem, head.method, head.path).response;
            let (head, mut body) = reply.into_parts();
            // That of a problem is whole. The service was called, and must not be called again.
            let body = body.take_whole(usize::MAX).unwrap_or_default();
            Some(FirstReply::Whole(Response::from_parts(head, body)))
        }
        FirstAnswer::Rest(service) => {
            Some(FirstReply::Begun(Box::new(BegunCall { arrival, service })))
        }
    }
}

/// Returns the request as the HTTP server passes it on; `None` if that would refuse it.
fn request(head: &Head<'_>, target: &str) -> Option<Request<Body>> {
    let Fields::Parsed(fields) = head.fields else { return None };
    let mut request = Request::new(Body::default());
    *request.method_mut() = Method::from_bytes(head.method.as_bytes()).ok()?;
    *request.uri_mut() = Uri::try_from(target).ok()?;
    let headers = request.headers_mut();
    headers.reserve(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        headers.append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(request)
}

impl BegunCall {
    /// Carries the call on, for the same request as the HTTP server has it.
    pub(crate) fn carry_on<B>(self, request: &Request<B>, stop: Stop) -> PendingReply {
        let Self { arrival, service } = self;
        let asked = Asked { arrival, method: request.method().clone(), uri: request.uri().clone() };
        let wants_events = event_stream::wants_events(request.headers().into());
        let answering = service.carry_on(stop.clone());
        PendingReply::Called(
            answering,
            Some(CalledRequest { asked, wants_events, is_page: false, stop }),
        )
    }
}
