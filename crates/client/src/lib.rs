//! Reads and publishes over every transport, and never loses its place.
//!
//! - [`Subscribe`] starts a [`Subscription`], which yields [`Item`]s: events, each once and in order, and what
//!   is to be known about them, above all which ones are missing. When a connection breaks it opens another one
//!   and reads on from where it was; it tells of that too.
//! - [`Publisher`] puts events into a topic, each once, however often it has to try.
//! - [`Topics`] lists what topics a server has.
//! - [`Via`] names the transports. A position is good on all of them, so a subscription may change to another
//!   one between two events, and does so by itself unless told which to use.
//!
//! ```no_run
//! # async fn example() -> Result<(), anemone_client::Error> {
//! use anemone_client::{Content, Item, Publisher, Subscribe};
//!
//! let mut publisher = Publisher::new("http://127.0.0.1:8080/topics/scratch-a")?;
//! let published = publisher.publish(Content::Json, r#"{"text":"hi"}"#).await?;
//!
//! let url = format!("http://127.0.0.1:8080/topics/scratch-a?after={}", published.position);
//! let mut subscription = Subscribe::new(url).start()?;
//! while let Some(item) = subscription.next().await? {
//!     match item {
//!         Item::Event { data, .. } => println!("{data}"),
//!         Item::Gap(gap) => println!("{gap}"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The words of servers are taken apart by parsers that do no IO and keep no more than [`Limits`] allow; what follows
//! on what is decided in one place for all transports.
#![forbid(unsafe_code)]

mod address;
mod backoff;
mod error;
mod hole;
mod http;
mod item;
mod options;
mod publisher;
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
    Published, UnixTime,
};
/// The TLS library, for [`Subscribe::tls`].
pub use anemone_ws::rustls;
pub use backoff::Retry;
pub use error::{Error, Foreign, Refused};
pub use hole::Hole;
pub use item::Item;
pub use options::{Limits, Timeouts};
pub use publisher::{Content, Publisher};
pub use subscription::{Subscribe, Subscription};
pub use text::{json_or_string, one_line};
pub use topics::{ListedTopic, Topics};
pub use via::Via;
