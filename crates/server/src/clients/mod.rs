//! The clients that are there: their permits, the list of readers, and the log of what they asked for.

pub(crate) mod access;
pub(crate) mod awaited;
pub(crate) mod permits;
pub(crate) mod places;
pub(crate) mod readers;
pub(crate) mod refusals;
