//! A WebSocket in the logs: its client, its end, and the server's reason for ending it.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anemone_ws::proto::{CloseCode, CloseFrame, ProtocolError, Sender};
use anemone_ws::{Error, Lost};

use crate::Problem;
use crate::clients::access::{AccessLine, CLIENT_GONE};
use crate::clients::refusals::RefusedRequest;
use crate::limits::LimitsTable;
use crate::site::Site;

/// The log entry of one WebSocket. Nothing is logged after its end.
#[derive(Debug)]
pub(crate) struct Visit {
    site: Arc<Site>,
    client: Option<SocketAddr>,
    /// The limits that apply to it.
    limits: LimitsTable,
    access: AccessLine,
}

impl Visit {
    pub(crate) fn new(
        site: &Arc<Site>,
        client: Option<SocketAddr>,
        limits: LimitsTable,
        access: AccessLine,
    ) -> Self {
        Self { site: Arc::clone(site), client, limits, access }
    }

    /// Returns its line in the access log.
    pub(crate) fn access(&self) -> &AccessLine {
        &self.access
    }

    /// Runs `work`, which may send, and counts the bytes it sent, including frame headers.
    pub(crate) fn counted<T>(&self, sender: &mut Sender, work: impl FnOnce(&mut Sender) -> T) -> T {
        if !self.access.is_some() {
            return work(sender);
        }
        let before = sender.queued_bytes();
        let done = work(sender);
        self.access.sent(sender.queued_bytes().saturating_sub(before));
        done
    }

    /// Records that the server closes it with this frame.
    pub(crate) fn record_close(&self, frame: &CloseFrame) {
        if self.access.is_some() {
            self.access.set_end(format!("server closed {}: {}", frame.code, frame.reason.as_str()));
        }
    }

    /// Records that a message to `path` was refused.
    pub(crate) fn record_refusal(&self, problem: &Problem, path: &str) {
        self.site.refusals.note(problem, RefusedRequest::message(self.client, path));
    }

    /// Records that it failed.
    pub(crate) fn record_error(&self, error: &Error, path: &str) {
        tracing::debug!(error = error as &dyn std::error::Error, "WebSocket connection failed");
        match error {
            Error::Protocol(error) => {
                let table = self.limits.name();
                let limit = limit(error).map(|key| format!("{key} in [limits.{table}]"));
                self.record_limit(error.close_code(), &error.to_string(), limit.as_deref(), path);
            }
            Error::Lost(lost @ Lost::Overloaded) => {
                let code = CloseCode::TRY_AGAIN_LATER;
                self.record_limit(code, &lost.to_string(), Some("memory_max"), path);
            }
            Error::Lost(Lost::Ended) => self.access.set_end(CLIENT_GONE),
            error if self.access.is_some() => {
                let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                self.access.set_end(format!("lost: {cause}"));
            }
            _ => {}
        }
    }

    /// Records that the server closes it because of a limit.
    pub(crate) fn record_limit(
        &self,
        code: CloseCode,
        reason: &str,
        limit: Option<&str>,
        path: &str,
    ) {
        self.record_close(&CloseFrame::new(code, reason));
        if let Some(limit) = limit {
            let asked = RefusedRequest::message(self.client, path);
            self.site.refusals.note_close(code, reason, limit, asked);
        }
    }

    /// Records its end; `frame` is the peer's close frame, unless it failed.
    pub(crate) fn record_end(&mut self, frame: Option<&CloseFrame>) {
        let access = std::mem::take(&mut self.access);
        match frame {
            Some(frame) if access.is_some() => access.set_end(format!("closed {}", frame.code)),
            _ => access.set_end("closed"),
        }
    }
}

/// Returns the key of the limit that a peer exceeded, if that is the error.
fn limit(error: &ProtocolError) -> Option<&'static str> {
    Some(match error {
        ProtocolError::FrameTooBig { .. } => "frame_bytes_max",
        ProtocolError::MessageTooBig { .. } | ProtocolError::InflatedTooBig { .. } => {
            "message_bytes_max"
        }
        ProtocolError::TooManyFragments { .. } => "fragments_max",
        ProtocolError::MessageTimeout { .. } => "message_timeout",
        _ => return None,
    })
}
