//! One listener that offers topics over every transport.
//!
//! [`Server::bind`] takes an address and a [`Hub`](anemone_hub::Hub); [`Server::start`] runs one
//! current-thread runtime per thread, each with its own listener on that address, and a connection
//! never changes thread.
//!
//! A request goes through `routes` to the one file of its transport. All of these read through one
//! core, `reading`: "from this position to the head"; what clients publish goes in through
//! `publishing`. Whatever goes wrong is a [`problem`](Problem), RFC 9457, with the same body everywhere.
#![forbid(unsafe_code)]

mod accept;
mod access;
mod ahead;
mod alarms;
mod assets;
mod awaited;
mod begun;
mod body;
mod change;
mod client;
mod connection;
mod cost;
mod encode;
mod entity_tag;
mod essential;
mod everyone;
mod fan;
mod fields;
mod files;
mod gap;
mod gate;
mod gathered;
mod handover;
mod handshake;
mod health;
mod host;
mod http2;
mod kind;
mod limits;
mod linger;
mod listener;
mod local;
mod memory;
mod methods;
mod mode;
mod names;
mod opening;
mod origin;
mod own_path;
mod owner;
mod pace;
mod path;
mod peer;
mod permits;
mod places;
mod problem;
mod protection;
mod proxies;
mod publishing;
mod query;
mod read_request;
mod readers;
mod reading;
mod refusals;
mod request_body;
mod resource;
mod routes;
mod secure;
mod site;
mod stop;
mod stream;
mod tls;
mod topics;
mod transport;
mod unix_socket;
mod unread;
mod visit;
mod write_deadline;

pub use access::{ACCESS_TARGET, AccessLog};
pub use files::{
    CacheControl, CacheControlError, StaticDir, StaticDirError, StaticDirsError, StaticPath,
    StaticPathError,
};
pub use host::{AllowedHost, HostError};
pub use kind::Kind;
pub use limits::{LimitError, Limits};
pub use listener::{Options, Running, Server};
pub use origin::{AllowedOrigin, OriginError};
pub use problem::Problem;
pub use proxies::{TrustedProxy, TrustedProxyError};
pub use tls::{Tls, TlsError};
pub use topics::{
    PublishRight, PublishRightError, SlowReader, SlowReaderError, TopicPattern, TopicPatternError,
    TopicRule, TopicRules, TopicRulesError,
};
pub use unix_socket::UnixSocket;
