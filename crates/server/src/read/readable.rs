//! Topics and runs as they are read. A run is a topic that ends.

use std::sync::Arc;

use anemone_hub::run::Run;
use anemone_hub::{After, PageLimit, Position, ReadError, Topic, UnixTime};

use crate::request::own_path::ReadPath;

const ONE_EVENT: PageLimit = PageLimit { events_max: 1, bytes_max: 1 };

/// A topic or a run, to be read.
#[derive(Clone, Debug)]
pub(crate) struct Readable {
    topic: Arc<Topic>,
    kind: ReadableKind,
    /// Set if it is a run that belongs to its reader.
    _attachment: Option<Arc<Attachment>>,
}

/// Cancels a run when it is dropped, unless the run has ended.
#[derive(Debug)]
struct Attachment(Arc<Run>);

impl Drop for Attachment {
    fn drop(&mut self) {
        // An error means that the run has ended.
        let _ = self.0.abandon();
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReadableKind {
    Topic,
    Run,
}

impl From<Arc<Topic>> for Readable {
    fn from(topic: Arc<Topic>) -> Self {
        Self { topic, kind: ReadableKind::Topic, _attachment: None }
    }
}

impl From<&Run> for Readable {
    fn from(run: &Run) -> Self {
        Self { topic: Arc::clone(run.topic()), kind: ReadableKind::Run, _attachment: None }
    }
}

impl Readable {
    /// Creates a run that is cancelled when nobody has this any more.
    pub(crate) fn attached(run: &Arc<Run>) -> Self {
        let attachment = Arc::new(Attachment(Arc::clone(run)));
        Self { _attachment: Some(attachment), ..Self::from(&**run) }
    }

    /// Returns the topic, or the events of the run.
    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    pub(crate) fn is_run(&self) -> bool {
        self.kind == ReadableKind::Run
    }

    /// Returns true if it is a run that has ended, and nothing comes after `position`.
    pub(crate) fn is_over_at(&self, position: Position) -> bool {
        let read = || self.topic.read(UnixTime::now(), position, ONE_EVENT);
        self.is_run() && read() == Err(ReadError::Ended)
    }

    /// Returns its path for logs.
    pub(crate) fn path_in_log(&self) -> String {
        let name = self.topic.name().as_str();
        match self.kind {
            ReadableKind::Topic => ReadPath::Topic(name).in_log(),
            ReadableKind::Run => ReadPath::Run(name).in_log(),
        }
    }

    /// Returns the position at which reading begins without `after`, if that is the same on every transport: a run is
    /// read from its first event, and what it has lost of its beginning is a gap.
    pub(crate) fn beginning(&self) -> Option<After> {
        let before_first = || self.topic.info(UnixTime::now()).head.at(0);
        self.is_run().then(|| After::Position(before_first()))
    }
}
