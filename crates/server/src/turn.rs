//! The time that a connection or a task may take of its thread at once.

use std::time::Duration;

/// After this time, the others of the thread have their turn. What was begun by then is completed.
pub(crate) const TURN_TIME: Duration = Duration::from_micros(100);
