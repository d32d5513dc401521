//! The errors of a lab that have an exit status of their own.

/// A wrong command line or file of the user's.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub(crate) String);

/// The server or the agent does not answer as it must, so nothing can be measured.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NoServer(pub(crate) String);

/// The reports of these experiments were written, but their answers are not reliable.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("invalid: {0}")]
pub struct InvalidRun(pub(crate) String);
