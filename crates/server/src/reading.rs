//! The one reading core under every transport: "from this position to the head".

use std::sync::Arc;
use std::time::SystemTime;

use anemone_hub::{After, Head, Page, PageLimit, Position, ReadError, Topic, UnixTime};

use crate::{Kind, Problem};

/// The wall clock, as events carry it.
pub(crate) fn now() -> UnixTime {
    SystemTime::now().into()
}

/// A reader: a topic, and how far it was read.
#[derive(Debug)]
pub(crate) struct Reader {
    topic: Arc<Topic>,
    head: Head,
    position: Position,
    limit: PageLimit,
}

impl Reader {
    /// Begins where `after` says.
    pub(crate) fn open(topic: Arc<Topic>, after: After, limit: PageLimit) -> Result<Self, Problem> {
        let position = topic.start(now(), after)?;
        let head = topic.head();
        Ok(Self { topic, head, position, limit })
    }

    /// What was read last, or where reading begins.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// The next page, maybe an empty one, and moves past it.
    pub(crate) fn read(&mut self) -> Result<Page, Problem> {
        let page = self.topic.read(now(), self.position, self.limit)?;
        self.position = page.next;
        Ok(page)
    }

    /// Waits until the next page holds an event or a gap. Cancel safe.
    pub(crate) async fn ready(&mut self) {
        self.head.passed(self.position).await;
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Ahead { .. } => Self::new(Kind::PositionAhead, error.to_string()),
            error => Self::new(Kind::Internal, error.to_string()),
        }
    }
}
