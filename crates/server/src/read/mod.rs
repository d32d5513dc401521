//! Reading a topic or a run: one core for all transports, woken by the fan.

pub(crate) mod fan;
pub(crate) mod many_reader;
pub(crate) mod merge;
pub(crate) mod pages;
pub(crate) mod readable;
pub(crate) mod reader;
mod size;
pub(crate) mod told_token;
