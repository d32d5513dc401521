//! The events of a run as the reply to its start.

use std::sync::Arc;

use anemone_hub::run::Run;
use anemone_hub::{After, PageLimit};
use anemone_ws::Memory;
use futures_util::stream;
use http::Response;

use crate::Problem;
use crate::memory::counted;
use crate::read::readable::Readable;
use crate::read::reader::{Page, Reader};
use crate::reply::body::{self, Body, reply};

/// A run whose events are a reply. Among the extensions of the response, for transports that read runs in their own way;
/// for the others, its body has a line with the data of each event.
#[derive(Clone, Debug)]
pub(crate) struct Following {
    run: Arc<Run>,
    _attachment: Option<Arc<Attachment>>,
}

/// Cancels a run when it is dropped, unless the run has ended.
#[derive(Debug)]
struct Attachment(Arc<Run>);

impl Drop for Attachment {
    fn drop(&mut self) {
        // An error means that the run has ended.
        let _ = self.0.cancel();
    }
}

impl Following {
    /// Follows a run, which belongs to the reply if `is_attached`.
    pub(super) fn new(run: &Arc<Run>, is_attached: bool) -> Self {
        let attachment = || Arc::new(Attachment(Arc::clone(run)));
        Self { run: Arc::clone(run), _attachment: is_attached.then(attachment) }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the response with the events.
    pub(super) fn reply(
        self,
        limit: PageLimit,
        memory: &Memory,
    ) -> Result<Response<Body>, Problem> {
        let readable = Readable::from(&*self.run);
        let start = readable.beginning().unwrap_or(After::Earliest).into();
        let reader = Reader::open(readable, start, limit)?;
        let (memory, following) = (memory.clone(), self.clone());
        let pieces = stream::unfold((reader, following), move |(mut reader, following)| {
            let memory = memory.clone();
            async move {
                reader.ready().await;
                // Its end, and the end of its retention, end the reply.
                let page = reader.read().ok()?;
                Some((counted(&memory, lines(&page)), (reader, following)))
            }
        });
        let mut response = reply("application/x-ndjson", "no-store", body::stream(pieces));
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// Returns the data of each event on a line of its own.
fn lines(page: &Page) -> String {
    let mut lines = String::with_capacity(page.text_bytes());
    for event in &page.events {
        lines.push_str(event.data.as_str());
        lines.push('\n');
    }
    lines
}
