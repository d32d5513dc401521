//! The parts of a server that its mounts need to start runs.

use anemone_hub::run::Runs;

use crate::Limits;
use crate::request::body::BodyBounds;

/// Starts runs, within the limits of a server.
#[derive(Clone, Debug)]
pub(crate) struct RunStarter {
    pub(super) runs: Runs,
    /// The limits on the body of a request, which is held while the run waits and works.
    pub(super) body: BodyBounds,
}

impl RunStarter {
    pub(crate) fn new(runs: &Runs, limits: &Limits) -> Self {
        Self { runs: runs.clone(), body: BodyBounds::new(limits, limits.batch_bytes_max) }
    }
}
