//! Topics, positions and logs: append, read on from a position.
//!
//! A **topic** is an append-only log of **events**, bounded by count, bytes and age. A reader is
//! nothing but a [`Position`]: no queue is kept for it, so a slow reader costs no memory, a lost
//! connection resumes where it was, and polling and streaming are the same operation, "read on
//! from position P" ([`Topic::read`]).
//!
//! Reading never loses anything silently: where events are missing, the [`Page`] carries a [`Gap`]
//! that says so before anything else.
//!
//! This crate sees no socket and no clock. The time of an event and the time of a read are
//! arguments ([`UnixTime`]); the only asynchronous thing is [`Head`], which tells when a topic has
//! grown.
//!
//! ```
//! use anemone_hub::{After, Data, Epoch, Hub, Retention, UnixTime};
//!
//! let hub = Hub::new(Epoch::from_bits(7));
//! let wind = hub.create("wind".parse()?, Retention::default())?;
//! let now = UnixTime::from_micros(1_789_000_000_123_456);
//! wind.publish(now, Data::json(&serde_json::json!({ "speed": 2.74 }))?)?;
//!
//! let start = wind.start(now, After::Earliest)?;
//! let page = wind.read(now, start, Default::default())?;
//! assert_eq!(page.next.to_string(), "7-1");
//! assert_eq!(page.events[0].data.as_str(), r#"{"speed":2.74}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod event;
mod hub;
mod log;
mod position;
mod retention;
mod time;
mod topic;

pub use error::{CreateError, DataError, PublishError, ReadError};
pub use event::{Data, Event};
pub use hub::Hub;
pub use position::{After, Epoch, Position, PositionError};
pub use retention::Retention;
pub use time::UnixTime;
pub use topic::{
    Gap, GapReason, Head, Page, PageLimit, Topic, TopicInfo, TopicName, TopicNameError,
};
