//! Logs: where a topic's events are kept.

mod memory;

pub(crate) use memory::MemoryLog;
