//! The words of `docs/PROTOCOL.md` as types, each written and read in one place.
//!
//! A server writes most of them and a client reads them, so both ends use this crate, and neither spells anything
//! itself. Nothing here does IO, or knows who writes and who reads. Only `system` asks the system for anything.
//!
//! - [`Position`] and [`After`]: a place in a topic, and the place where reading begins.
//! - [`UnixTime`]: a moment.
//! - [`Gap`], [`EndReason`], [`Item`] and [`Page`]: what a server tells a reader.
//! - [`problem`]: what can be wrong with a request.
//! - [`multiplexed`]: many requests on one connection.
//! - [`framing`] and [`Lines`]: messages and lines out of a stream of bytes, however it is cut.
//!
//! The feature `system` adds `Epoch::random` and `UnixTime::now`.
#![forbid(unsafe_code)]

mod after;
mod end;
pub mod framing;
mod gap;
mod item;
mod lines;
mod malformed;
pub mod multiplexed;
mod page;
mod position;
pub mod problem;
#[cfg(test)]
mod testing;
mod time;

pub use after::{After, AfterError};
pub use end::EndReason;
pub use framing::TooLong;
pub use gap::{Gap, GapReason};
pub use item::Item;
pub use lines::Lines;
pub use malformed::Malformed;
pub use page::{Page, PageEvent};
pub use position::{Epoch, Position, PositionError};
pub use time::{UnixTime, UnixTimeError};
