//! Topics and runs as they are read. A run is a topic that ends.

use std::sync::Arc;

use anemone_hub::run::{Attachment, Run};
use anemone_hub::{After, PageLimit, Position, ReadError, Topic, UnixTime};

use crate::request::own_path::ReadPath;
use crate::{Kind, Problem};

const ONE_EVENT: PageLimit = PageLimit { events_max: 1, bytes_max: 1 };

/// A topic or a run, to be read.
#[derive(Clone, Debug)]
pub(crate) struct Readable {
    topic: Arc<Topic>,
    kind: ReadableKind,
    /// Set if it is a run that belongs to its reader.
    attachment: Option<Arc<Attachment>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReadableKind {
    Topic,
    Run,
    /// The run that the request has started: its events are the reply.
    StartedRun,
}

impl From<Arc<Topic>> for Readable {
    fn from(topic: Arc<Topic>) -> Self {
        Self { topic, kind: ReadableKind::Topic, attachment: None }
    }
}

impl From<&Run> for Readable {
    fn from(run: &Run) -> Self {
        Self { topic: Arc::clone(run.topic()), kind: ReadableKind::Run, attachment: None }
    }
}

impl Readable {
    /// Creates the reply of a start. A run with an attachment belongs to it while somebody has this.
    pub(crate) fn started(run: &Run, attachment: Option<Attachment>) -> Self {
        let kind = ReadableKind::StartedRun;
        Self { kind, attachment: attachment.map(Arc::new), ..Self::from(run) }
    }

    /// Returns the topic, or the events of the run.
    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    pub(crate) fn is_run(&self) -> bool {
        self.kind != ReadableKind::Topic
    }

    /// Returns true if it is a run that the request for it has started.
    pub(crate) fn is_started(&self) -> bool {
        self.kind == ReadableKind::StartedRun
    }

    /// Returns true if it is a run that has ended, and nothing comes after `position`.
    pub(crate) fn is_over_at(&self, position: Position) -> bool {
        let read = || self.topic.read(UnixTime::now(), position, ONE_EVENT);
        self.is_run() && read() == Err(ReadError::Ended)
    }

    /// Gives up its part of an attachment.
    pub(crate) fn detach(&mut self) {
        self.attachment = None;
    }

    pub(crate) fn problem(&self, error: ReadError) -> Problem {
        match error {
            ReadError::Deleted if self.is_run() => {
                Problem::new(Kind::TopicDeleted, "the run is no longer kept")
            }
            error => error.into(),
        }
    }

    pub(crate) fn path_in_log(&self) -> String {
        let name = self.topic.name().as_str();
        match self.kind {
            ReadableKind::Topic => ReadPath::Topic(name).in_log(),
            ReadableKind::Run | ReadableKind::StartedRun => ReadPath::Run(name).in_log(),
        }
    }

    /// Returns the position at which reading begins without `after`, if that is the same on every transport: a run is
    /// read from its first event, and what it has lost of its beginning is a gap.
    pub(crate) fn beginning(&self) -> Option<After> {
        let before_first = || self.topic.info(UnixTime::now()).head.at(0);
        self.is_run().then(|| After::Position(before_first()))
    }
}
