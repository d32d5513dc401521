//! From events to their place in a log: how long that may take, and what is told when it fails.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{
    Batch, CreateError, Data, DeleteError, IdempotencyKey, NewEvent, Position, PublishError,
    Receipt, StorageError, Topic,
};
use futures_util::FutureExt;
use http::HeaderValue;
use tokio::time::timeout;

use super::total::Admission;
use super::{Outcome, PublishPermit, Published};
use crate::reading::now;
use crate::{Kind, Problem};

/// Appends events in a row, at one time, and waits until they are kept.
pub(super) async fn append(
    topic: &Topic,
    events: Vec<Data>,
    (key, heads): (Option<IdempotencyKey>, Option<Vec<Position>>),
    limit: Duration,
) -> Result<Outcome, Problem> {
    let (time, count) = (now(), events.len());
    let events = events.into_iter().map(|data| NewEvent { time, data }).collect();
    let batch = Batch { key, heads, ..Batch::new(events) };
    match in_time(limit, topic.publish_kept(time, &batch)).await? {
        Ok(anemone_hub::Published { first, last, repeated }) => {
            let published = Published { first, last };
            let outcome = if repeated { Outcome::Repeated } else { Outcome::Published };
            Ok(outcome(published))
        }
        Err(error @ PublishError::TooBig { .. }) if count > 1 => {
            Err(Problem::new(Kind::BodyTooBig, error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// The outcome of handing something in, if that is known in time.
async fn in_time<T>(limit: Duration, kept: impl Future<Output = T>) -> Result<T, Problem> {
    timeout(limit, kept).await.map_err(|_| {
        let detail = format!("the disk is behind: not kept within {limit:?}, but it may be yet");
        behind(detail)
    })
}

/// The disk takes its time. It may not later.
fn behind(detail: String) -> Problem {
    let problem = Problem::new(Kind::StorageFailed, detail);
    problem.field("retry-after", HeaderValue::from_static("1"))
}

/// A topic that a connection may publish to.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(super) permit: PublishPermit,
    pub(super) topic: Arc<Topic>,
    /// Bound on each event's data.
    pub(crate) event_bytes_max: usize,
    /// Bound on what waits while the topic is created.
    pub(crate) waiting_bytes_max: usize,
    pub(super) timeout: Duration,
}

impl Writer {
    /// Whether the topic is there. One that is only awaited is [created](Self::create) for the first event.
    pub(crate) fn is_created(&self) -> bool {
        self.topic.is_created()
    }

    /// Creates the topic, if there is room for its first event.
    pub(crate) async fn create(self, first: Data) -> Result<(), Problem> {
        let Self { permit, timeout, .. } = self;
        let _admission = permit.admit(None, &[first])?;
        in_time(timeout, permit.create()).await??;
        Ok(())
    }

    /// That no more messages can wait until it is created.
    pub(crate) fn too_many_wait(&self) -> Problem {
        let limit = self.waiting_bytes_max;
        behind(format!("the topic is being created, and at most {limit} bytes may wait for that"))
    }

    /// Publishes one event, which has its place in the log on return. How many may wait to be kept is the
    /// log's limit.
    pub(crate) fn publish(&self, data: Data) -> Result<Handed, Problem> {
        let admission = self.permit.admit(Some(&self.topic), std::slice::from_ref(&data))?;
        let time = now();
        let receipt = self.topic.append(time, &NewEvent { time, data }.into())?;
        Ok(Handed { receipt, timeout: self.timeout, _admission: admission })
    }
}

/// An event that was handed to its log.
#[derive(Debug)]
pub(crate) struct Handed {
    receipt: Receipt,
    timeout: Duration,
    _admission: Option<Admission>,
}

impl Handed {
    /// The outcome, if that is known already.
    pub(crate) fn outcome(&mut self) -> Option<Result<(), Problem>> {
        let outcome = (&mut self.receipt).now_or_never()?;
        Some(outcome.map(|_| ()).map_err(Problem::from))
    }

    /// Waits until it is kept.
    pub(crate) async fn kept(self) -> Result<(), Problem> {
        in_time(self.timeout, self.receipt).await??;
        Ok(())
    }
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
            CreateError::Storage { error, .. } => failed(error),
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

fn failed(error: &StorageError) -> Kind {
    if error.is_full() { Kind::StorageFull } else { Kind::StorageFailed }
}
