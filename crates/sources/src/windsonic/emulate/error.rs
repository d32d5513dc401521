//! The reasons why an emulation cannot begin.

use std::io;
use std::path::PathBuf;

use super::replay::ReplayError;

/// The reason why an emulation cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system cannot create a pseudo-terminal.
    #[error("no pseudo-terminal")]
    Pty(#[source] io::Error),
    /// The path of the link is a file or directory, which is not replaced.
    #[error("{} exists and is not a symbolic link", .0.display())]
    LinkTaken(PathBuf),
    /// The link cannot be created.
    #[error("cannot create the link {}", path.display())]
    Link {
        /// The path of the link.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The recording cannot be used.
    #[error("cannot replay {}", path.display())]
    Replay {
        /// The path of the recording.
        path: PathBuf,
        /// The fault of the recording.
        source: ReplayError,
    },
    /// The noise is not a probability.
    #[error("noise is {0}, expected a probability, 0 to 1")]
    Noise(f64),
}
