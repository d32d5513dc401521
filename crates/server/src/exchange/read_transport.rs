//! The descriptor of a transport that answers `GET` for a topic.

use futures_util::future::BoxFuture;
use http::{HeaderMap, Response};

use crate::Problem;
use crate::exchange::many_request::ManyRequest;
use crate::exchange::read_request::ReadRequest;
use crate::read::pages::ItemEncoding;
use crate::reply::body::Body;
use crate::request::query::Representation;
use crate::stop::Stop;
use crate::transport_name::TransportName;

/// A transport that answers `GET` for a topic.
#[derive(Debug)]
pub(crate) struct ReadTransport {
    pub(crate) name: TransportName,
    pub(crate) representation: Representation,
    pub(crate) answer: ReadAnswer,
    /// The reply with several topics.
    pub(crate) many: ManyAnswer,
}

/// Answers a `GET` of several topics; the header fields are those of the request.
pub(crate) type ManyAnswer = for<'a> fn(&'a ManyRequest, &'a HeaderMap, Stop) -> LaterAnswer<'a>;

/// The way in which a transport answers.
#[derive(Debug)]
pub(crate) enum ReadAnswer {
    /// An immediate reply.
    Now(fn(&ReadRequest, &HeaderMap, Stop) -> Result<Response<Body>, Problem>),
    /// A reply that takes time.
    Later(for<'a> fn(&'a ReadRequest, Stop) -> LaterAnswer<'a>),
    /// An endless reply in this encoding, which the thread's loop can carry.
    Stream(ItemEncoding),
}

/// A reply that takes time.
pub(crate) type LaterAnswer<'a> = BoxFuture<'a, Result<Response<Body>, Problem>>;

impl AsRef<Representation> for ReadTransport {
    fn as_ref(&self) -> &Representation {
        &self.representation
    }
}
