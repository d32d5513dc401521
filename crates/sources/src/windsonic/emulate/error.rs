//! The causes for which an emulation does not begin.

use std::io;
use std::path::PathBuf;

use super::replay::ReplayError;

/// The reason why an emulation cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system gives no pseudo-terminal.
    #[error("no pseudo-terminal")]
    Pty(#[source] io::Error),
    /// The link's path is something else, which is left alone.
    #[error("{} exists and is not a symbolic link", .0.display())]
    LinkTaken(PathBuf),
    /// The link cannot be made.
    #[error("cannot create the link {}", path.display())]
    Link {
        /// The path at which it should be.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The recording cannot be replayed.
    #[error("cannot replay {}", path.display())]
    Replay {
        /// The recording.
        path: PathBuf,
        /// The fault in it.
        source: ReplayError,
    },
    /// The noise is not a probability.
    #[error("noise is {0}, expected a probability, 0 to 1")]
    Noise(f64),
}
