//! The errors of an open connection.

use std::io;

use anemone_proto::{MisuseError, ProtocolError};

/// An error that ended a connection, or that a call caused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer violated the protocol or a limit, and was told with a close frame.
    #[error("peer violated the protocol")]
    Protocol(#[from] ProtocolError),
    /// Nothing more can be sent: the closing handshake has begun, or the connection is over.
    #[error("connection is closing or closed")]
    Closed,
    /// The state of the connection does not allow the call.
    #[error(transparent)]
    Misuse(MisuseError),
    /// The stream ended without a closing handshake (close code 1006 to an application).
    #[error("connection lost")]
    Lost(#[from] Lost),
}

impl From<MisuseError> for Error {
    fn from(error: MisuseError) -> Self {
        match error {
            MisuseError::Closing => Self::Closed,
            error => Self::Misuse(error),
        }
    }
}

/// A reason for losing a stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// The peer closed the stream without a close frame.
    #[error("stream ended without a close frame")]
    Ended,
    /// The peer did not answer our close frame.
    #[error("close frame was not answered within {millis} ms")]
    CloseUnanswered {
        /// `close_timeout`.
        millis: u128,
    },
    /// The process holds too much data for its peers, including this one.
    #[error("the process holds too much data for its peers")]
    Overloaded,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
