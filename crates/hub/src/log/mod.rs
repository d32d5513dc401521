//! Logs, which store the events of topics. [`Log`] is their interface; each log is a module.

mod disk;
mod filling;
mod interface;
mod memory;
mod none;
mod progress;
mod ring;
mod shared_bytes;

#[cfg(test)]
mod contract;

pub use disk::{DataDir, DataOptions, Fsync};
#[cfg(feature = "testing")]
pub use disk::{DiskFault, FailingDisk};
pub(crate) use interface::{Extent, Log, Slice, WhenFull};
pub(crate) use memory::{MemoryLog, batch_bytes};
pub(crate) use none::NoLog;
pub(crate) use progress::TopicProgress;
pub(crate) use ring::cost_bytes;
pub(crate) use shared_bytes::SharedBytes;
