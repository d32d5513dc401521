//! One topic, read in every way there is: the same events, at the same positions.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod awaited;
mod begin;
mod content;
mod forged;
mod latest;
mod malformed;
mod page;
mod resume;
mod same;
mod slow;
mod stream;
mod websocket;
