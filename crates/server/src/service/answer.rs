//! The answer of a mount.

use http::{HeaderMap, Response};

use crate::read::readable::Readable;
use crate::reply::body::Body;

#[derive(Debug)]
pub(crate) enum Answer {
    Reply(Response<Body>),
    /// The events of a run, which each transport reads as it reads every run.
    Run(StartedRun),
}

/// A run that a request has started, and whose events are the reply.
#[derive(Debug)]
pub(crate) struct StartedRun {
    pub(crate) events: Readable,
    /// The fields of the reply about the start.
    pub(crate) fields: HeaderMap,
}
