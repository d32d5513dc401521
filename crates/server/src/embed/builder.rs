//! The options of a server that is part of a program, one after the other.

use std::net::SocketAddr;
use std::num::NonZero;

use anemone_hub::Hub;
use bytes::Bytes;
use http::{Request, Response};

use crate::fallback::Fallback;
use crate::listen::bind_error::BindError;
use crate::listen::listener::Server;
use crate::listen::options::Options;
use crate::reply::body::{Body, BoxError};
use crate::{AllowedHost, AllowedOrigin, Limits, StaticDir, Tls, TopicRules, UnixSocket};

/// A server to be. By default it listens nowhere, has no page, no `/echo` and no `/broadcast`, and clients may read all topics and
/// publish to none.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    hub: Hub,
    options: Options,
}

impl Server {
    /// Begins with the topics of this hub.
    pub fn builder(hub: Hub) -> Builder {
        Builder { hub, options: Options::default() }
    }
}

impl Builder {
    /// Listens at this address; port 0 takes a free one. Default: nowhere.
    pub fn listen(self, address: SocketAddr) -> Self {
        self.with(|options| options.listen = Some(address))
    }

    /// Listens at this Unix socket, too, without TLS. Default: none.
    pub fn unix(self, socket: UnixSocket) -> Self {
        self.with(|options| options.unix = Some(socket))
    }

    /// Serves connections on so many threads. Default: one for each processor. [`Server::serve`] has one, whatever this says.
    pub fn threads(self, threads: NonZero<usize>) -> Self {
        self.with(|options| options.threads = Some(threads))
    }

    /// Bounds what clients can have it hold.
    pub fn limits(self, limits: Limits) -> Self {
        self.with(|options| options.limits = limits)
    }

    /// Says which topics clients may publish to, and creates those that are declared by name.
    pub fn topics(self, topics: TopicRules) -> Self {
        self.with(|options| options.topics = topics)
    }

    /// Answers for one host more, beside `localhost` and the addresses it listens at.
    pub fn allow_host(self, host: AllowedHost) -> Self {
        self.with(|options| options.allowed_hosts.push(host))
    }

    /// Lets the pages of one origin more read, and publish where clients may.
    pub fn allow_origin(self, origin: AllowedOrigin) -> Self {
        self.with(|options| options.allowed_origins.push(origin))
    }

    /// Speaks TLS with this certificate. Default: plain HTTP.
    pub fn tls(self, tls: Tls) -> Self {
        self.with(|options| options.tls = Some(tls))
    }

    /// Serves the files of one directory more.
    pub fn files(self, dir: StaticDir) -> Self {
        self.with(|options| options.static_dirs.push(dir))
    }

    /// Has this service, an axum `Router` for instance, answer for every path that is not the server's own
    /// ([`OWN_PATHS`](crate::OWN_PATHS)); see [`Fallback`]. Default: such a path is answered 404.
    pub fn fallback<S, B>(self, service: S) -> Self
    where
        S: tower_service::Service<Request<Body>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.with(|options| options.fallback = Some(Fallback::new(service)))
    }

    /// Changes any of the [`Options`].
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Takes the addresses, and creates the topics that are declared by name.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn bind(self) -> Result<Server, BindError> {
        Server::bind(self.options, self.hub)
    }
}
