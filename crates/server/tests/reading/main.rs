//! One topic, read in every way there is: the same events, at the same positions.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

// Of it all only what a reader needs.
#[allow(dead_code)]
#[path = "../multiplexed/client.rs"]
mod client;
#[path = "../common/mod.rs"]
mod common;
// Some of it is for other tests.
#[allow(dead_code)]
mod ways;

mod awaited;
mod begin;
mod content;
mod forged;
mod latest;
mod malformed;
mod page;
mod random;
mod resume;
mod same;
mod slow;
mod stream;
mod websocket;
