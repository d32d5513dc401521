#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! [`Server::bind`], or [`Server::builder`], takes addresses and a [`Hub`](anemone_hub::Hub). What serves then is
//!
//! - [`Server::start`]: threads of its own, each with a runtime and a listener; a connection never changes thread.
//! - [`Server::serve`]: the caller's runtime, on the thread that polls it.
//! - [`Running::service`]: a [`Service`] for the caller's HTTP server. A server need not listen anywhere for that.
//!
//! Beside the topics a [`Fallback`] answers for every path that is not one of [`OWN_PATHS`]. There is no page, no `/echo` and no
//! `/broadcast` unless [`Options`] ask for them, and clients publish only where [`TopicRules`] let them. The program itself
//! publishes through the hub, to any topic.
//!
//! # Who is let in
//!
//! A request names a host: `localhost`, an address that is listened on, or one of [`Options::allowed_hosts`]; any other is answered 421.
//! A page of another origin is answered 403 unless [`Options::allowed_origins`] names its origin. Both hold for the caller's
//! routes behind the listener, too. A client is of the server's own machine only where its address says so: behind another HTTP
//! server that address comes from [`ConnectionEnds`].
//!
//! # The end
//!
//! [`Running::stop`] accepts nobody any more, closes WebSockets with 1001, ends streams, answers what waits, gives what is in flight
//! [`Limits::shutdown_grace`] and cuts the rest, which [`Stopped`] counts.
//!
//! # Inside
//!
//! A request goes through `routes` to the one file of its transport. All of these read through one
//! core, `read`: "from this position to the head"; what clients publish goes in through
//! `publish`. Whatever goes wrong is a [`problem`](Problem), RFC 9457, with the same body everywhere.
#![forbid(unsafe_code)]

mod alarms;
mod clients;
mod cost;
mod embed;
mod essential;
mod everyone;
mod exchange;
mod fallback;
mod files;
mod health;
mod limits;
mod listen;
mod local;
mod memory;
mod owner;
mod peer;
mod publish;
mod read;
mod reply;
mod request;
mod routes;
mod site;
mod socket;
mod stop;
mod stream;
mod tls;
mod topics;
mod transport;
mod transport_name;

pub use anemone_wire::problem::Kind;
pub use clients::access::{ACCESS_TARGET, AccessLog};
pub use embed::builder::Builder;
pub use embed::service::Service;
pub use fallback::Fallback;
pub use files::{
    CacheControl, CacheControlError, StaticDir, StaticDirError, StaticDirsError, StaticPath,
    StaticPathError,
};
pub use limits::{Limit, LimitError, Limits, Unit};
pub use listen::bind_error::BindError;
pub use listen::listener::Server;
pub use listen::options::Options;
pub use listen::running::{Running, Stopped};
pub use peer::{ClientAddress, ConnectionEnds};
pub use reply::body::{Body, full};
pub use reply::entity_tag::is_known;
pub use reply::problem::Problem;
pub use request::host::{AllowedHost, HostError};
pub use request::methods::reading_only;
pub use request::origin::{AllowedOrigin, OriginError};
pub use request::own_path::OWN_PATHS;
pub use request::proxies::{TrustedProxy, TrustedProxyError};
pub use socket::unix_socket::UnixSocket;
pub use tls::{Tls, TlsError};
pub use topics::{
    PublishRight, PublishRightError, SlowReader, SlowReaderError, TopicPattern, TopicPatternError,
    TopicRule, TopicRules, TopicRulesError,
};
