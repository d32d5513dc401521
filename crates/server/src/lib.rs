//! One listener that offers topics over every transport.
//!
//! [`Server::bind`] takes an address and a [`Hub`](anemone_hub::Hub); [`Server::start`] runs one
//! current-thread runtime per thread, each with its own listener on that address, and a connection
//! never changes thread.
//!
//! A request goes through `routes` to the one file of its transport. All of these read through one
//! core, `read`: "from this position to the head"; what clients publish goes in through
//! `publish`. Whatever goes wrong is a [`problem`](Problem), RFC 9457, with the same body everywhere.
#![forbid(unsafe_code)]

mod alarms;
mod clients;
mod cost;
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
mod mode;
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

pub use clients::access::{ACCESS_TARGET, AccessLog};
pub use fallback::Fallback;
pub use files::{
    CacheControl, CacheControlError, StaticDir, StaticDirError, StaticDirsError, StaticPath,
    StaticPathError,
};
pub use limits::{Limit, LimitError, Limits, Unit};
pub use listen::listener::{Options, Running, Server};
pub use peer::ClientAddress;
pub use reply::body::{Body, full};
pub use reply::entity_tag::is_known;
pub use reply::kind::Kind;
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
