//! `anemone.v1`: many requests on one connection. What can be asked over both carriers is asked over both.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod calls;
mod finals;
mod limits;
mod publishing;
mod reading;
mod requests;
mod stuck;
mod tcp;

use std::num::NonZero;

use anemone_hub::Retention;
use anemone_server::{Limits, Options};
use anemone_testing::Fixture;

/// With a TCP port, and one thread, so that every connection of a test is in the same loop.
fn start(change: impl FnOnce(&mut Options), retention: Retention) -> Fixture {
    Fixture::with(
        |options| {
            options.threads = NonZero::new(1);
            options.tcp = Some("127.0.0.1:0".parse().unwrap());
            change(options);
        },
        retention,
    )
}

fn started() -> Fixture {
    start(|_| {}, Retention::default())
}

fn with_limits(change: impl FnOnce(&mut Limits)) -> Fixture {
    start(|options| change(&mut options.limits), Retention::default())
}
