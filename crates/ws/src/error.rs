//! The ends of a connection other than by a closing handshake.

use std::io;

use anemone_proto::{MisuseError, ProtocolError};

/// A connection that ended badly, or a call that it could not take.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer broke the protocol or a limit; it was told with a close frame.
    #[error("peer violated the protocol")]
    Protocol(#[from] ProtocolError),
    /// Nothing more can be sent: the closing handshake has begun, or the connection is over.
    #[error("connection is closing or closed")]
    Closed,
    /// The caller asked for what the connection's state does not allow.
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

/// The way in which a stream was lost.
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
    /// This process holds too much for its peers, and for this one as well.
    #[error("the process holds too much data for its peers")]
    Overloaded,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
