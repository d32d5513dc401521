//! The receipt of a published batch.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::keys::Place;
use crate::{Epoch, Position, PublishError};

/// The place of a batch in its topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Published {
    /// The position of its first event.
    pub first: Position,
    /// The position of its last event.
    pub last: Position,
    /// True if its key was known: these are the positions of the first time, and nothing was appended.
    pub repeated: bool,
}

impl From<Published> for anemone_wire::Published {
    fn from(Published { first, last, .. }: Published) -> Self {
        Self { first, position: last }
    }
}

/// Completes when a batch is kept as the topic's log promises, or is refused.
///
/// # Cancel safety
/// Dropping it does not withdraw the batch, which may be kept or not.
#[derive(Debug)]
#[must_use = "whether the batch is kept is not known before this completes"]
pub struct Receipt {
    pub(crate) published: Published,
    outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Kept,
    /// The log will report it.
    Pending(oneshot::Receiver<Result<(), PublishError>>),
}

impl Receipt {
    pub(crate) fn new(epoch: Epoch, place: Place, repeated: bool, outcome: Outcome) -> Self {
        let position = |offset| Position { epoch, offset };
        let published =
            Published { first: position(place.first), last: position(place.last), repeated };
        Self { published, outcome }
    }
}

impl Future for Receipt {
    type Output = Result<Published, PublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Outcome::Pending(told) = &mut self.outcome {
            // The log was closed and dropped the sender.
            ready!(Pin::new(told).poll(context)).unwrap_or(Err(PublishError::Closed))?;
            self.outcome = Outcome::Kept;
        }
        Poll::Ready(Ok(self.published))
    }
}
