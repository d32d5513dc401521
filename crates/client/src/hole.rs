//! Missing events that the server did not report as a gap.

use crate::Position;

/// Events are missing, and the server did not report a gap. A new connection may return them.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{found} arrived after {after}, and the server did not say what happened to the events in between"
)]
pub struct Hole {
    /// The position of the last event before the hole.
    pub after: Position,
    /// The position that the server sent next.
    pub found: Position,
}
