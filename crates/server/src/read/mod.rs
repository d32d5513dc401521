//! Reading a topic: one core for all transports, woken by the fan.

pub(crate) mod fan;
pub(crate) mod reader;
