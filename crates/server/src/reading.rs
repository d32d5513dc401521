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
    /// Made when it is first waited for.
    head: Option<Head>,
    position: Position,
    limit: PageLimit,
}

impl Reader {
    /// Begins where `after` says.
    pub(crate) fn open(topic: Arc<Topic>, after: After, limit: PageLimit) -> Result<Self, Problem> {
        let position = topic.start(now(), after)?;
        Ok(Self { topic, head: None, position, limit })
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
        let topic = &self.topic;
        self.head.get_or_insert_with(|| topic.head()).passed(self.position).await;
    }

    /// Whether a page is one that the limit cut short, so that there may be more at once.
    pub(crate) fn is_cut(&self, page: &Page) -> bool {
        page.next != self.topic.info(now()).head
    }

    /// What is read.
    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.topic
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
