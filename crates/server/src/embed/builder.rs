//! The builder of a server that is part of a program.

use std::net::SocketAddr;
use std::num::NonZero;

use anemone_hub::Hub;

use crate::listen::bind_error::BindError;
use crate::listen::listener::Server;
use crate::options::Options;
use crate::{
    AllowedHost, AllowedOrigin, Limits, ListenAt, Mount, StaticDir, Tls, TopicRules, UnixSocket,
};

/// The options of a new server. By default it listens nowhere, has no page, no `/echo` and no `/broadcast`, and
/// clients may read all topics and publish to none.
///
/// ```
/// use std::num::NonZero;
/// use anemone_hub::{Epoch, Hub};
/// use anemone_server::{BindError, Limits, Server};
///
/// let builder = Server::builder(Hub::new(Epoch::random()?))
///     .listen(([127, 0, 0, 1], 0).into()) // a free port
///     .threads(NonZero::<usize>::MIN)
///     .allow_host("wind.example".parse()?);
/// let server = builder.clone().bind()?;
/// assert_ne!(server.local_addr().unwrap().port(), 0);
///
/// let no_limit = Limits { connections_max: 0, ..Limits::default() };
/// assert!(matches!(builder.limits(no_limit).bind(), Err(BindError::Limit(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    hub: Hub,
    options: Options,
}

impl Server {
    /// Creates a builder for a server of this hub's topics.
    pub fn builder(hub: Hub) -> Builder {
        Builder { hub, options: Options::default() }
    }
}

impl Builder {
    /// Listens on one more address; port 0 takes a free one. Default: none.
    pub fn listen(self, address: SocketAddr) -> Self {
        self.with(|options| options.listen.push(address.into()))
    }

    /// Listens on one more Unix socket, without TLS. Default: none.
    pub fn unix(self, socket: UnixSocket) -> Self {
        self.with(|options| options.listen.push(socket.into()))
    }

    /// Listens on one more place for this machine alone ([`Options::listen_local`](crate::Options::listen_local)). Default:
    /// none.
    pub fn listen_local(self, place: impl Into<ListenAt>) -> Self {
        self.with(|options| options.listen_local.push(place.into()))
    }

    /// Sets the number of threads that serve connections. Default: one for each processor. [`Server::serve`] always
    /// uses one.
    pub fn threads(self, threads: NonZero<usize>) -> Self {
        self.with(|options| options.threads = Some(threads))
    }

    /// Sets the limits on clients.
    pub fn limits(self, limits: Limits) -> Self {
        self.with(|options| options.limits = limits)
    }

    /// Sets the topics to which clients may publish, and creates those that are declared by name.
    pub fn topics(self, topics: TopicRules) -> Self {
        self.with(|options| options.topics = topics)
    }

    /// Accepts requests for one more host, besides `localhost` and the addresses on which it listens.
    pub fn allow_host(self, host: AllowedHost) -> Self {
        self.with(|options| options.allowed_hosts.push(host))
    }

    /// Allows the pages of one more origin to read, and to publish where clients may.
    pub fn allow_origin(self, origin: AllowedOrigin) -> Self {
        self.with(|options| options.allowed_origins.push(origin))
    }

    /// Uses TLS with this certificate. Default: plain HTTP.
    pub fn tls(self, tls: Tls) -> Self {
        self.with(|options| options.tls = Some(tls))
    }

    /// Serves the files of one more directory.
    pub fn files(self, dir: StaticDir) -> Self {
        self.with(|options| options.static_dirs.push(dir))
    }

    /// Mounts one more service, for example an axum `Router`, at a path of its own, or at `/` for all paths that have
    /// nothing else.
    pub fn mount(self, mount: Mount) -> Self {
        self.with(|options| options.mounts.push(mount))
    }

    /// Changes any of the [`Options`].
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Binds the addresses, and creates the topics that are declared by name.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn bind(self) -> Result<Server, BindError> {
        Server::bind(self.options, self.hub)
    }
}
