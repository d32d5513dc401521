//! The server as a part of another program: with its routes, its listener or its runtime.

pub(crate) mod builder;
pub(crate) mod serve;
pub(crate) mod service;
