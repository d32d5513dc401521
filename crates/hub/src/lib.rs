//! Topics, positions and logs: append, read on from a position.
//!
//! A **topic** is an append-only log of **events**, limited by count, bytes and age. A reader is only a [`Position`].
//! It has no queue, so a slow reader costs no memory, and a reader continues after a lost connection. Polling and
//! streaming are the same operation, "read on from position P" ([`Topic::read`]).
//!
//! Reading never skips events silently: if events are missing, the [`Page`] begins with a [`Gap`].
//!
//! A log is in memory, or on disk in a [`DataDir`], where it survives the end of the process. Publishing is the same
//! for both: [`Topic::publish`] hands an event over; [`Topic::append`] and [`Topic::publish_kept`] also report
//! whether it is kept.
//!
//! A [`run`] is a computation with a topic that ends. [`Turns`] let clients take turns at any other work, as those who
//! start runs do.
//!
//! This crate uses no socket, and no clock except for the disk, for runs and for the [index](Hub::index): the times of events and reads are
//! arguments, usually [`UnixTime::now`]. Two types are asynchronous and work with any runtime: [`Head`], which reports that a topic has
//! grown, and [`Receipt`], which reports that a batch is kept.
//!
//! ```
//! use anemone_hub::{After, Data, Epoch, Hub, Retention, UnixTime};
//!
//! // A new epoch for each start: it shows a reader that its position belongs to another log.
//! let hub = Hub::new(Epoch::random()?);
//! let wind = hub.create("wind".parse()?, Retention::default())?;
//! wind.publish(UnixTime::now(), Data::json(&serde_json::json!({ "speed": 2.74 }))?)?;
//!
//! let now = UnixTime::now();
//! let start = wind.start(now, After::Earliest)?;
//! let page = wind.read(now, start, Default::default())?;
//! assert_eq!(page.next.offset, 1);
//! assert_eq!(page.events[0].data.as_str(), r#"{"speed":2.74}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `testing` adds a disk that fails on demand, for tests of programs that store topics.
#![forbid(unsafe_code)]

mod allowances;
mod awaited;
mod batch;
mod digest;
mod error;
mod event;
mod health;
mod hub;
mod idempotency_key;
mod index;
mod keeps;
mod keys;
mod log;
mod note;
mod options;
mod page;
mod receipt;
mod retention;
pub mod run;
mod start;
#[cfg(test)]
mod testing;
mod topic;
mod topic_name;
mod turns;

pub use anemone_wire::{
    After, DEPTH_MAX, Epoch, Gap, GapReason, IdempotencyKeyError, Position, PositionError,
    ProgressLine, UnixTime,
};
pub use batch::{Batch, NewEvent};
pub use error::{
    CreateError, DataError, DeleteError, OpenError, PublishError, ReadError, StorageError,
};
pub use event::{Data, Event};
pub use health::Health;
pub use hub::Hub;
pub use idempotency_key::IdempotencyKey;
pub use keeps::Keeps;
pub use keys::KeyWindow;
pub use log::{DataDir, DataOptions, Fsync};
#[cfg(feature = "testing")]
pub use log::{DiskFault, FailingDisk};
pub use note::{Note, NoteError};
pub use options::{Storage, TopicOptions};
pub use page::{Page, PageLimit};
pub use receipt::{Published, Receipt};
pub use retention::Retention;
pub use start::Start;
pub use topic::{Head, Lag, Topic, TopicInfo};
pub use topic_name::{TopicName, TopicNameError};
pub use turns::{TooManyWait, Turn, TurnLimits, Turns, Waiter};
