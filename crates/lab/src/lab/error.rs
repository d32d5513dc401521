//! The errors of a lab that have an exit status of their own.

/// A command line or a file from the user is wrong.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub(crate) String);

/// The server or the agent does not answer as it should, so nothing can be measured.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NoServer(pub(crate) String);

/// The reports of some experiments were written, but their answers are not reliable. The text names them.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("invalid: {0}")]
pub struct InvalidRun(pub(crate) String);
