//! Publishes a client's events to a topic, on any transport.
//!
//! Owns the permissions, and the creation and deletion of topics. The hub keeps a batch as a whole and once, and
//! `content` parses events.

mod content;
mod expected;
mod idempotency;
mod inbox;
mod keeping;
mod permit;
mod rule;
mod total;
mod writer;

pub(crate) use content::Content;
pub(crate) use expected::Expected;
pub(crate) use idempotency::{key, no_parameters, of_multiplexed};
pub(crate) use inbox::Inbox;
pub(crate) use permit::{PublishPermit, PublishRefusal, Publishing, SentBody};
pub(crate) use writer::Writer;
