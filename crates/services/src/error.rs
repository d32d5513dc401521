//! The errors of a resource's methods, and the problems that they become.

use anemone_hub::{PublishError, TooManyWait};
use anemone_wire::problem::{Details, Kind};

use crate::{Misfit, QueryError};

/// An error of a method of a resource. A client gets it as a problem.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// There is no record with this id (404).
    #[error("there is no record {0}")]
    Unknown(String),
    /// A record with this id exists (409).
    #[error("a record {0} exists already")]
    Conflict(String),
    /// The record is another version than the condition requires, or does not exist (412).
    #[error("the record is not the version that the request requires")]
    PreconditionFailed,
    /// The record does not fit its schema (422).
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The query has an error (400 or 422).
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A parameter or header field is invalid (400).
    #[error("{0}")]
    BadParameter(String),
    /// The idempotency key was used for another request (422).
    #[error("this idempotency key was used for another request a short while ago")]
    KeyReused,
    /// The request was carried out before, and its result is gone (422).
    #[error(
        "this request was carried out with this idempotency key before, and its result is no longer retained"
    )]
    NoLongerRetained,
    /// The client may not do this (403).
    #[error("{0}")]
    Refused(String),
    /// There is no room for another record, or for a bigger one (507).
    #[error("there is no room: {0}")]
    Full(String),
    /// The disk has no space left (507).
    #[error("there is no space to store the record")]
    StorageFull,
    /// Too many requests of the client wait for their turn already (429).
    #[error(transparent)]
    TooManyWait(#[from] TooManyWait),
    /// The change could not be stored (503).
    #[error("cannot store the record")]
    StorageFailed,
    /// The server is stopping (503).
    #[error("the server is stopping")]
    Stopping,
    /// The resource has an error of its own (500); the log has said which.
    #[error("the resource failed")]
    Failed,
}

impl ResourceError {
    /// Returns the kind of its problem.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Unknown(_) => Kind::UnknownRecord,
            Self::Conflict(_) => Kind::Conflict,
            Self::PreconditionFailed => Kind::PreconditionFailed,
            Self::Misfit(_) | Self::Query(QueryError::UnknownField(_)) => Kind::Unprocessable,
            Self::Query(_) | Self::BadParameter(_) => Kind::BadParameter,
            Self::KeyReused | Self::NoLongerRetained => Kind::KeyReused,
            Self::Refused(_) => Kind::StartRefused,
            Self::Full(_) | Self::StorageFull => Kind::StorageFull,
            Self::TooManyWait(_) => Kind::TooManyRequests,
            Self::StorageFailed => Kind::StorageFailed,
            Self::Stopping => Kind::Stopping,
            Self::Failed => Kind::Internal,
        }
    }

    /// Returns its problem.
    pub(crate) fn details(&self) -> Details<'static> {
        let pointer = match self {
            Self::Misfit(misfit) => Some(misfit.pointer.clone()),
            _ => None,
        };
        details(self.kind(), self.to_string(), pointer)
    }
}

pub(crate) fn details(kind: Kind, detail: String, pointer: Option<String>) -> Details<'static> {
    Details {
        name: kind.name().into(),
        title: kind.title().into(),
        status: kind.status(),
        detail: detail.into(),
        gap: None,
        pointer: pointer.map(Into::into),
    }
}

impl From<PublishError> for ResourceError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::KeyReused => Self::KeyReused,
            PublishError::StorageFull(_) => Self::StorageFull,
            PublishError::StorageFailed(_) | PublishError::Busy { .. } => Self::StorageFailed,
            PublishError::Closed => Self::Stopping,
            error => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the topic of a resource did not take a change");
                Self::Failed
            }
        }
    }
}
