//! The words of `docs/PROTOCOL.md` as types, each written and read in one place.
//!
//! A server writes most of them and a client reads them, so both ends use this crate, and neither spells anything
//! itself. Nothing here does IO, or knows who writes and who reads. Only `system` asks the system for anything.
//!
//! - [`Position`] and [`After`]: a place in a topic, and the place where reading begins.
//! - [`UnixTime`]: a moment.
//!
//! The feature `system` adds `Epoch::random` and `UnixTime::now`.
#![forbid(unsafe_code)]

mod after;
mod position;
mod time;

pub use after::{After, AfterError};
pub use position::{Epoch, Position, PositionError};
pub use time::{UnixTime, UnixTimeError};
