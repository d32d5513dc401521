//! A WebSocket in the logs: its client, its end, and the server's reason for ending it.

use std::cell::OnceCell;
use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anemone_hub::UnixTime;

use anemone_ws::proto::{CloseCode, CloseFrame, ProtocolError, Sender};
use anemone_ws::{Error, Lost};

use crate::Problem;
use crate::clients::access::{AccessLine, CLIENT_GONE};
use crate::clients::connections::closed::{Cause, EndedBy};
use crate::clients::connections::described::{Described, WireProtocol};
use crate::clients::refusals::RefusedRequest;
use crate::limits::LimitsTable;
use crate::site::Site;
use crate::transport_name::TransportName;

/// The log entry of one WebSocket. Nothing is logged after its end. There are many, so they are small.
#[derive(Debug)]
pub(crate) struct Visit {
    site: Arc<Site>,
    access: AccessLine,
    /// The first reason for its end, if that is not its client's.
    cause: OnceCell<Box<Cause>>,
    /// The time when it began, in seconds since 1970.
    since_secs: u32,
    port: u16,
    address: Option<IpAddr>,
    limits: LimitsTable,
    protocol: WireProtocol,
}

impl Visit {
    pub(crate) fn new(
        site: &Arc<Site>,
        client: Option<SocketAddr>,
        limits: LimitsTable,
        access: AccessLine,
        protocol: WireProtocol,
    ) -> Self {
        let since_secs = u32::try_from(UnixTime::now().as_micros() / MICROS).unwrap_or(u32::MAX);
        Self {
            site: Arc::clone(site),
            access,
            cause: OnceCell::new(),
            since_secs,
            port: client.map_or(0, |client| client.port()),
            address: client.map(|client| client.ip()),
            limits,
            protocol,
        }
    }

    fn client(&self) -> Option<SocketAddr> {
        self.address.map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Describes the WebSocket without its readers.
    pub(crate) fn describe(&self, transport: TransportName, path: &str) -> Described {
        Described::new(self.client(), (transport, self.protocol), path.to_owned())
    }

    fn set_cause(&self, cause: Cause) {
        // Fails if there is one: what follows from it is no reason.
        let _ = self.cause.set(Box::new(cause));
    }

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
        self.access.count_sent(sender.queued_bytes().saturating_sub(before));
        done
    }

    pub(crate) fn record_close(&self, frame: &CloseFrame) {
        let cause = Cause::new(EndedBy::Server, frame.reason.as_str().to_owned());
        self.set_cause(Cause { code: Some(frame.code), ..cause });
        if self.access.is_some() {
            self.access.set_end(format!("server closed {}: {}", frame.code, frame.reason.as_str()));
        }
    }

    /// Records that a message to `path` was refused.
    pub(crate) fn record_refusal(&self, problem: &Problem, path: &str) {
        self.site.refusals.note(problem, RefusedRequest::message(self.client(), path));
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
            Error::Lost(Lost::Ended) => {
                self.set_cause(Cause::new(
                    EndedBy::Client,
                    "the client has gone without a close frame",
                ));
                self.access.set_end(CLIENT_GONE);
            }
            error => {
                let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                self.access.set_end(format!("lost: {cause}"));
                self.set_cause(match error {
                    Error::Lost(Lost::Io(error)) => Cause::of_error(error, cause),
                    _ => Cause::new(EndedBy::Network, cause),
                });
            }
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
            let asked = RefusedRequest::message(self.client(), path);
            self.site.refusals.note_close(code, reason, limit, asked);
        }
    }

    /// Records its end; `frame` is the peer's close frame, unless it failed.
    pub(crate) fn record_end(&mut self, frame: Option<&CloseFrame>, described: &Described) {
        let by_client = || match frame {
            Some(frame) => Cause::of_client(frame.code, frame.reason.as_str()),
            None => Cause::new(EndedBy::Client, "the client has closed it without a code"),
        };
        let cause = self.cause.take().map_or_else(by_client, |cause| *cause);
        let since = UnixTime::from_micros(u64::from(self.since_secs) * MICROS);
        self.site.closed.add(described, Some(since), cause);
        let access = std::mem::take(&mut self.access);
        match frame {
            Some(frame) if access.is_some() => access.set_end(format!("closed {}", frame.code)),
            _ => access.set_end("closed"),
        }
    }
}

/// Microseconds in a second.
const MICROS: u64 = 1_000_000;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each WebSocket has one.
    #[test]
    fn a_visit_is_small() {
        assert!(size_of::<Visit>() <= 56, "{}", size_of::<Visit>());
    }
}
