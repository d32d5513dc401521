//! A run that belongs to a client.

use std::fmt;
use std::sync::Arc;

use super::run::Run;

/// The belonging of a run to the client that waits for it. Dropping it cancels the run, unless the run has ended or a
/// later start has taken it over. A repeat of the start then starts another run.
pub struct Attachment {
    run: Arc<Run>,
    number: u64,
}

impl Attachment {
    /// Takes the run over from its earlier attachment, if there is one.
    pub(crate) fn new(run: &Arc<Run>) -> Self {
        Self { run: Arc::clone(run), number: run.attach() }
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.run.abandon(self.number);
    }
}
