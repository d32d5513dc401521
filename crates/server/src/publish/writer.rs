//! A connection that publishes repeatedly.

use std::sync::Arc;
use std::time::Duration;

use anemone_hub::{Data, NewEvent, Receipt, Topic, UnixTime};
use futures_util::FutureExt;

use super::keeping::{batch, behind, in_time};
use super::permit::PublishPermit;
use super::total::Admission;
use crate::{Limits, Problem};

/// A topic to which a connection may publish.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    permit: PublishPermit,
    topic: Arc<Topic>,
    pub(crate) event_bytes_max: usize,
    /// The limit on messages that wait while the topic is created.
    pub(crate) waiting_bytes_max: usize,
    timeout: Duration,
}

impl Writer {
    pub(crate) fn new(permit: PublishPermit, topic: &Arc<Topic>, limits: &Limits) -> Self {
        let (event_bytes_max, timeout) = (permit.event_bytes_max(), limits.publish_timeout);
        let (topic, waiting_bytes_max) = (Arc::clone(topic), limits.batch_bytes_max);
        Self { permit, topic, event_bytes_max, waiting_bytes_max, timeout }
    }

    /// Returns true if the topic is created. An awaited one is [created](Self::create) for the first event.
    pub(crate) fn is_created(&self) -> bool {
        self.topic.is_created()
    }

    /// Creates the topic, if there is room for its first event.
    pub(crate) async fn create(self, first: Data) -> Result<(), Problem> {
        let Self { permit, timeout, .. } = self;
        let _admission = permit.admit(None, std::slice::from_ref(&first))?;
        permit.create(batch(vec![first], None), timeout).await?;
        Ok(())
    }

    pub(crate) fn too_many_wait(&self) -> Problem {
        let limit = self.waiting_bytes_max;
        behind(format!("the topic is being created, and at most {limit} bytes may wait for that"))
    }

    /// Publishes one event, which has its place in the log on return. The log limits how many may wait to be kept.
    pub(crate) fn publish(&self, data: Data) -> Result<Handed, Problem> {
        let admission = self.permit.admit(Some(&self.topic), std::slice::from_ref(&data))?;
        let time = UnixTime::now();
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
    pub(crate) fn outcome(&mut self) -> Option<Result<(), Problem>> {
        let outcome = (&mut self.receipt).now_or_never()?;
        Some(outcome.map(|_| ()).map_err(Problem::from))
    }

    pub(crate) async fn kept(self) -> Result<(), Problem> {
        in_time(self.timeout, self.receipt).await??;
        Ok(())
    }
}
