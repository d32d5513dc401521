#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! - [`Subscribe`] starts a [`Subscription`], which yields [`Item`]s: events, each once and in order, and notices,
//!   above all of missing events. When a connection breaks, the subscription reports that, opens another connection and
//!   continues from its position. [`Subscribe::topic`] reads several topics on one stream, for example all topics whose
//!   names have the same prefix.
//! - [`Publisher`] publishes each event once, with as many attempts as necessary.
//! - [`Topics`] lists the topics of a server.
//! - [`Client`] calls the services of a server, and makes a call again where that is safe. [`RunHandle`] is a run, a long
//!   computation on a server: watch it, cancel it, wait for its result.
//! - A URL may be that of a Unix socket: `unix:SOCKET:/topics/NAME`. All transports but TCP work over it.
//! - [`Via`] lists the transports. A position is valid on all transports, so a subscription can change its transport
//!   between two events. It does so by itself unless a transport is set.
//!
//! Parsers without IO read the messages of servers and keep no more than [`Limits`] allow. One place checks the order
//! of items for all transports.
#![forbid(unsafe_code)]

mod address;
mod backoff;
mod call;
mod error;
mod hole;
mod http;
mod item;
mod options;
mod places;
mod problem;
mod publisher;
mod refused;
mod run;
mod sent;
mod start;
mod subscription;
mod text;
mod topics;
mod tracker;
mod transport;
mod via;
mod web_socket;

pub use address::UrlError;
pub use anemone_wire::{
    After, AfterError, EndReason, Epoch, Gap, GapReason, Malformed, Mode, Position, PositionError,
    Published, RunState, Token, TokenError, UnixTime,
};
/// The TLS library, for [`Subscribe::tls`].
pub use anemone_ws::rustls;
pub use anemone_ws::split_unix_url;
pub use backoff::Retry;
pub use call::{Call, Client, Reply, ReplyItems, ReplyStream};
pub use error::{Error, Foreign};
pub use hole::Hole;
pub use item::Item;
pub use options::{Limits, Timeouts};
pub use problem::RunProblem;
pub use publisher::{Content, Publisher};
pub use refused::Refused;
pub use run::{RunChange, RunEvent, RunHandle, RunList, RunProgress, RunStatus};
pub use sent::CallMark;
pub use subscription::{Subscribe, Subscription};
pub use text::{json_or_string, one_line};
pub use topics::{ListedTopic, Topics};
pub use via::{CallVia, Via};
