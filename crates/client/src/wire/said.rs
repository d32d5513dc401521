//! One thing that a server said of a topic.

use crate::{EndReason, Gap, Position, UnixTime};

/// One thing that a server says about a topic, whatever the transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wire {
    /// The position at which reading begins, or stands.
    Standing(Position),
    Event {
        position: Position,
        time: Option<UnixTime>,
        data: String,
    },
    Gap(Gap),
    /// This many were passed over before the next event.
    Skipped(u64),
    /// Nothing more will come.
    End(EndReason),
}
