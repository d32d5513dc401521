//! A hole in what a server told.

use crate::Position;

/// Events are missing without notice. A new connection may bring them.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{found} arrived after {after}, and the server did not say what happened to the events in between"
)]
pub struct Hole {
    /// The last event seen.
    pub after: Position,
    /// The position that came then.
    pub found: Position,
}
