//! The errors of a lab that have an exit status of their own.

/// What was asked for makes no sense.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub(crate) String);

/// Nothing can be measured, since nothing answers as it must at the place of the server or of the agent.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NoServer(pub(crate) String);

/// The reports of these experiments were written, but their answers must not be relied on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("invalid: {0}")]
pub struct InvalidRun(pub(crate) String);
