//! Keeps events within a time limit, and reports failures.

use std::pin::pin;
use std::time::Duration;

use anemone_hub::{
    Batch, CreateError, Data, DeleteError, IdempotencyKey, NewEvent, PublishError, Published,
    StorageError, Topic, UnixTime,
};
use futures_util::FutureExt;
use http::HeaderValue;
use tokio::time::timeout;

use crate::{Kind, Problem};

/// Returns a batch of events that happen now, all at one time.
pub(super) fn batch(events: Vec<Data>, key: Option<IdempotencyKey>) -> Batch {
    let time = UnixTime::now();
    let events = events.into_iter().map(|data| NewEvent { time, data }).collect();
    Batch { key, ..Batch::new(events) }
}

/// Appends a batch, and waits until it is kept.
pub(super) async fn append(
    topic: &Topic,
    batch: &Batch,
    limit: Duration,
) -> Result<Published, Problem> {
    let outcome = in_time(limit, topic.publish_kept(UnixTime::now(), batch)).await?;
    outcome.map_err(|error| refused(error, batch))
}

/// Returns the problem of a batch that is refused: of several events, the body is too big, and none of them alone.
pub(super) fn refused(error: PublishError, batch: &Batch) -> Problem {
    if matches!(error, PublishError::TooBig { .. }) && batch.events.len() > 1 {
        return Problem::new(Kind::BodyTooBig, error.to_string());
    }
    error.into()
}

/// Returns the outcome of a change, if it is known in time.
pub(super) async fn in_time<T>(
    limit: Duration,
    kept: impl Future<Output = T>,
) -> Result<T, Problem> {
    let mut kept = pin!(kept);
    // What is kept at once, as in memory, needs no timer.
    if let Some(outcome) = kept.as_mut().now_or_never() {
        return Ok(outcome);
    }
    timeout(limit, kept).await.map_err(|_| {
        let detail =
            format!("the disk is behind: not stored within {limit:?}, but it may be stored later");
        behind(detail)
    })
}

/// Returns the problem of a slow disk, which may succeed later.
pub(super) fn behind(detail: String) -> Problem {
    let problem = Problem::new(Kind::StorageFailed, detail);
    problem.field("retry-after", HeaderValue::from_static("1"))
}

impl From<PublishError> for Problem {
    fn from(error: PublishError) -> Self {
        let kind = match &error {
            PublishError::TooBig { .. } => Kind::EventTooBig,
            PublishError::Empty => Kind::BadEvent,
            PublishError::KeyReused => Kind::KeyReused,
            PublishError::HeadMoved { .. } => Kind::PreconditionFailed,
            PublishError::StorageFull(_) => Kind::StorageFull,
            PublishError::Deleted => Kind::TopicDeleted,
            PublishError::Ended => Kind::RunEnded,
            PublishError::Closed => Kind::Stopping,
            PublishError::Awaited => Kind::Internal,
            PublishError::Busy { .. } => return behind(error.to_string()),
            _ => Kind::StorageFailed,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<CreateError> for Problem {
    fn from(error: CreateError) -> Self {
        let kind = match &error {
            CreateError::Storage { error, .. } => storage_kind(error),
            CreateError::Closed => Kind::Stopping,
            _ => Kind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<DeleteError> for Problem {
    fn from(error: DeleteError) -> Self {
        let kind = match &error {
            DeleteError::Unknown(_) => Kind::UnknownTopic,
            _ => Kind::StorageFailed,
        };
        Self::new(kind, error.to_string())
    }
}

fn storage_kind(error: &StorageError) -> Kind {
    if error.is_full() { Kind::StorageFull } else { Kind::StorageFailed }
}
