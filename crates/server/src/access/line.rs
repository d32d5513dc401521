//! What a line of the access log says of a request.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Position;
use anemone_ws::Held;

use crate::readers::in_words;

/// The target of the access log's events, all of level info. The line of a request that begins is one of level debug, as
/// any other of this crate.
pub const ACCESS_TARGET: &str = "anemone::access";

/// A request, as its line has it.
#[derive(Debug)]
pub(super) struct AccessedRequest {
    pub(super) client: Option<SocketAddr>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) _held: Held,
}

/// What became of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestOutcome {
    pub(super) status: u16,
    pub(super) transport: &'static str,
    pub(super) bytes: u64,
    pub(super) position: Option<Position>,
    pub(super) end: Option<Cow<'static, str>>,
}

impl Default for RequestOutcome {
    fn default() -> Self {
        Self { status: 0, transport: "http", bytes: 0, position: None, end: None }
    }
}

/// All that is told of a request.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) request: Arc<AccessedRequest>,
    pub(super) outcome: RequestOutcome,
    pub(super) duration: Duration,
}

impl Line {
    /// `repeats` is how many there were like it since its last line that had none.
    pub(super) fn write(&self, repeats: u64) {
        let Self { request, outcome, duration } = self;
        let client = request.client.map(in_words);
        tracing::info!(
            target: ACCESS_TARGET,
            method = request.method,
            path = request.path,
            status = outcome.status,
            transport = %outcome.transport,
            client = client.as_ref().map(display),
            bytes = outcome.bytes,
            duration_ms = duration.as_micros() as f64 / 1000.0,
            position = outcome.position.map(display),
            end = outcome.end.as_deref(),
            repeats = (repeats > 0).then_some(repeats),
            "request"
        );
    }
}
