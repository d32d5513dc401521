//! The server as a part of a program: beside its routes, over its listener, on its runtime.

pub(crate) mod builder;
pub(crate) mod serve;
pub(crate) mod service;
