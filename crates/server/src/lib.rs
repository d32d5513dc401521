#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! [`Server::bind`] or [`Server::builder`] binds addresses and takes a [`Hub`](anemone_hub::Hub). One of these then
//! serves:
//!
//! - [`Server::start`]: the server's own threads, each with a runtime and a listener; a connection never changes
//!   thread.
//! - [`Server::serve`]: the caller's runtime, on the thread that polls it.
//! - [`Running::service`]: a [`Service`] for the caller's HTTP server. The server then needs no listener.
//!
//! A [`Mount`] is a service at a path of its own, or at `/` for all paths that are not among [`OWN_PATHS`]. There is no page, no `/echo` and
//! no `/broadcast` unless [`Options`] add them, and clients publish only where [`TopicRules`] allow it. The program
//! itself publishes to any topic through the hub.
//!
//! # Hosts and origins
//!
//! A request names a host: `localhost`, an address on which the server listens, or one of [`Options::allowed_hosts`];
//! any other gets 421. A page of another origin gets 403, unless [`Options::allowed_origins`] has its origin. Both
//! rules also apply to the caller's routes behind the listener. A client counts as one of the server's own machine
//! only if its address shows that: behind another HTTP server, the address comes from [`ConnectionEnds`].
//!
//! # Stopping
//!
//! [`Running::stop`] accepts no more connections, closes WebSockets with 1001, ends streams, answers waiting
//! requests, gives the rest [`Limits::shutdown_grace`] to finish, and cuts what is left, which [`Stopped`] counts.
//!
//! # Inside
//!
//! `routes` passes a request to the one file of its transport. All transports read through one core, `read`: "from
//! this position to the head". Clients publish through `publish`. Every error is a [`problem`](Problem) (RFC 9457)
//! with the same body everywhere.
#![forbid(unsafe_code)]

mod alarms;
mod clients;
mod cost;
mod embed;
mod essential;
mod exchange;
mod files;
mod health;
mod limits;
mod listen;
mod local;
mod memory;
mod options;
mod owner;
mod peer;
mod publish;
mod read;
mod reply;
mod request;
mod rounds;
mod routes;
mod service;
mod site;
mod socket;
mod source;
mod stop;
mod stream;
mod tls;
mod topics;
mod transport;
mod transport_name;
mod turn;

pub use anemone_wire::problem::Kind;
pub use clients::access::{ACCESS_TARGET, AccessLog};
pub use clients::connections::view_right::ViewRight;
pub use embed::builder::Builder;
pub use embed::service::Service;
pub use files::{
    CacheControl, CacheControlError, StaticDir, StaticDirError, StaticDirsError, StaticPath,
    StaticPathError,
};
pub use limits::{Limit, LimitError, Limits, Unit};
pub use listen::bind_error::BindError;
pub use listen::listener::Server;
pub use listen::running::{Running, Stopped};
pub use options::Options;
pub use peer::ConnectionEnds;
pub use reply::body::{Body, full};
pub use reply::entity_tag::is_known;
pub use reply::problem::Problem;
pub use request::allowed_origin::{AllowedOrigin, OriginError};
pub use request::coding::ContentCoding;
pub use request::host::{AllowedHost, HostError};
pub use request::methods::reading_only;
pub use request::own_path::OWN_PATHS;
pub use request::proxies::{TrustedProxy, TrustedProxyError};
pub use request::query::prefers_html;
pub use service::caller::{Caller, Identity};
pub use service::mount::Mount;
pub use service::mount_path::MountError;
pub use service::start_right::StartRight;
pub use socket::listen_at::ListenAt;
pub use socket::unix_socket::UnixSocket;
pub use tls::{Tls, TlsError};
pub use topics::{
    PublishRight, PublishRightError, SlowReader, SlowReaderError, TopicPattern, TopicPatternError,
    TopicRule, TopicRules, TopicRulesError,
};
