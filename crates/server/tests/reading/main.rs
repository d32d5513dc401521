//! One topic, read in every way there is: the same events, at the same positions.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod ways;

mod latest;
mod malformed;
mod page;
mod resume;
mod same;
mod slow;
mod stream;
mod websocket;
