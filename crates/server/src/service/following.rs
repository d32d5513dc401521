//! The events of a run as the reply to its start.

use std::io;
use std::sync::Arc;

use anemone_hub::run::Run;
use anemone_hub::{After, PageLimit};
use anemone_wire::Item;
use anemone_ws::Memory;
use futures_util::stream;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use crate::Problem;
use crate::memory::counted;
use crate::read::readable::Readable;
use crate::read::reader::{Page, ReadEnd, Reader};
use crate::reply::body::{Body, reply};

/// A run whose events are a reply. Among the extensions of the response, for transports that read runs in their own way;
/// for the others, its body has a line with the data of each event, or with the notice of a gap. The body fails unless
/// the whole run was read.
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
        let pieces = stream::unfold(Some((reader, following)), move |reading| {
            let memory = memory.clone();
            async move {
                let (mut reader, following) = reading?;
                reader.ready().await;
                match reader.read() {
                    Ok(page) => {
                        let piece = Frame::data(counted(&memory, lines(&page)));
                        Some((Ok(piece), (!page.is_last).then_some((reader, following))))
                    }
                    Err(ReadEnd::Complete) => None,
                    // Such as the end of the run's retention, before the client has all of it.
                    Err(ReadEnd::Failed(problem)) => {
                        Some((Err(io::Error::other(problem.detail().to_owned())), None))
                    }
                }
            }
        });
        let body = StreamBody::new(pieces).boxed_unsync();
        let mut response = reply("application/x-ndjson", "no-store", body);
        response.extensions_mut().insert(self);
        Ok(response)
    }
}

/// Returns the notice of a gap, if there is one, and the data of each event, each on a line of its own.
fn lines(page: &Page) -> String {
    let mut lines = String::with_capacity(page.text_bytes());
    for item in page.items() {
        match item {
            Item::Event { data, .. } => lines.push_str(&data),
            notice => notice.write(&mut lines),
        }
        lines.push('\n');
    }
    lines
}
