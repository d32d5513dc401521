//! The words of `docs/PROTOCOL.md` as types, each written and read in one place.
//!
//! Server, client and hub use the same types, so each word is spelled once. The crate does no IO. Its readers of streams
//! take bytes in pieces of any size, and hold no more of them than their limit allows.
//!
//! - [`Position`] and [`After`]: a place in a topic, and the place where reading begins.
//! - [`Token`]: the places in several topics.
//! - [`Mode`]: the events that a reader who is behind gets.
//! - [`UnixTime`]: the time of an event.
//! - [`Gap`], [`EndReason`], [`Item`] and [`Page`]: what a server tells a reader, in JSON.
//! - [`TopicItem`] and [`ReadItem`]: what a server tells a reader of several topics.
//! - [`EventStream`] and [`ItemLines`]: items as server-sent events and as NDJSON.
//! - [`is_too_deep`]: the rule for the nesting of JSON.
//! - [`validate_idempotency_key`]: the rule for the keys of publishers.
//! - [`Published`]: what a server tells a publisher.
//! - [`ProgressLine`] and [`result_of_line`]: what a long computation says about its progress, and its result.
//! - [`RunState`] and [`RunMembers`]: the states and the events of runs.
//! - [`problem`]: the errors of requests.
//! - [`multiplexed`]: many requests on one connection.
//! - [`framing`]: messages in a stream of bytes.
//! - [`is_forwarding`]: the header fields of proxies.
//! - [`without_mark`] and [`TextFault`]: text as other programs write it.
//! - [`printable`]: makes foreign text safe for a terminal.
//!
//! ```
//! use anemone_wire::Item;
//!
//! let line = br#"{"position":"4zq81x-42","time":1789000000123.456,"data":{"speed":2.74}}"#;
//! let item = Item::parse(line)?;
//! assert!(matches!(&item, Some(Item::Event { position, .. }) if position.offset == 42));
//! # Ok::<(), anemone_wire::Malformed>(())
//! ```
//!
//! The feature `system` adds `Epoch::random` and `UnixTime::now`.
#![forbid(unsafe_code)]

mod after;
mod depth;
mod end;
mod event_stream;
mod foreign_text;
mod forwarding;
pub mod framing;
mod gap;
mod idempotency_key;
mod item;
mod item_lines;
mod malformed;
mod mode;
pub mod multiplexed;
mod page;
mod position;
mod printable;
pub mod problem;
mod progress_bar;
mod progress_line;
mod published;
mod read_item;
mod result_line;
mod run;
#[cfg(test)]
mod testing;
mod time;
mod token;
mod topic_item;

pub use after::{After, AfterError};
pub use depth::{DEPTH_MAX, is_too_deep};
pub use end::EndReason;
pub use event_stream::EventStream;
pub use foreign_text::{BYTE_ORDER_MARK, TextFault, without_mark};
pub use forwarding::is_forwarding;
pub use gap::{Gap, GapReason};
pub use idempotency_key::{IdempotencyKeyError, validate_idempotency_key};
pub use item::Item;
pub use item_lines::ItemLines;
pub use malformed::Malformed;
pub use mode::Mode;
pub use page::{Page, PageEvent};
pub use position::{Epoch, Position, PositionError};
pub use printable::printable;
pub use progress_line::ProgressLine;
pub use published::Published;
pub use read_item::ReadItem;
pub use result_line::result_of_line;
pub use run::{RunMembers, RunState};
pub use time::{UnixTime, UnixTimeError};
pub use token::{Token, TokenError};
pub use topic_item::{TopicItem, write_topics_page};
