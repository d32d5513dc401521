//! Missing events that the server did not announce.

use crate::Position;

/// Events are missing without notice. A new connection may return them.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{found} arrived after {after}, and the server did not say what happened to the events in between"
)]
pub struct Hole {
    /// The position of the last event.
    pub after: Position,
    /// The position that came next.
    pub found: Position,
}
