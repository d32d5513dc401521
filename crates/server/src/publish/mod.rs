//! The way of a client's events into a topic, whatever the transport.
//!
//! Owns who may, and which topics are created and deleted for it. That a batch goes in whole and once is
//! the hub's part; what the events are made of is in `content`.

mod content;
mod expected;
mod idempotency;
mod keeping;
mod permit;
mod rule;
mod total;
mod writer;

pub(crate) use content::{Content, of_message};
pub(crate) use expected::Expected;
pub(crate) use idempotency::{key, no_parameters, of_multiplexed};
pub(crate) use permit::{PublishPermit, Publishing, Refusal, Sent};
pub(crate) use writer::Writer;
