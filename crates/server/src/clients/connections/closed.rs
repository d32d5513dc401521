//! The last connections and streams that were closed: who ended them, and why.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anemone_hub::{Position, UnixTime};
use anemone_ws::proto::CloseCode;
use serde_json::{Value, json};

use crate::clients::access::CLIENT_GONE;
use crate::clients::connections::described::{Described, WireProtocol};
use crate::clients::readers::in_words;
use crate::transport_name::TransportName;

/// The most closed connections that are kept.
pub(crate) const CLOSED_MAX: usize = 1_000;
/// The most bytes of a path, and of a reason, that are kept.
const TEXT_BYTES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EndedBy {
    Client,
    Server,
    /// Nobody said anything: the connection broke.
    Network,
}

impl EndedBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Network => "network",
        }
    }
}

/// The reason for the end of a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Cause {
    pub(crate) by: EndedBy,
    pub(crate) code: Option<CloseCode>,
    pub(crate) reason: Cow<'static, str>,
}

impl Cause {
    pub(crate) fn new(by: EndedBy, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { by, code: None, reason: reason.into() }
    }

    /// Returns the cause for an error of a connection, whose reason is `words`. A peer whose system says that it is not there any more has
    /// left, as every page does that is closed with a request on its way; any other error is the network's.
    pub(crate) fn of_error(
        error: &(dyn Error + 'static),
        words: impl Into<Cow<'static, str>>,
    ) -> Self {
        let by = if says_left(error) { EndedBy::Client } else { EndedBy::Network };
        Self::new(by, words)
    }

    pub(crate) fn of_client(code: CloseCode, reason: &str) -> Self {
        let reason: Cow<'static, str> = match reason {
            "" if code == CloseCode::GOING_AWAY => LEFT_A_PAGE.into(),
            reason => reason.to_owned().into(),
        };
        Self { code: Some(code), ..Self::new(EndedBy::Client, reason) }
    }

    /// Returns true if the client has only left, as people leave a page: nothing is wrong.
    pub(crate) fn is_left(&self) -> bool {
        let is_usual = |code| code == CloseCode::NORMAL || code == CloseCode::GOING_AWAY;
        self.by == EndedBy::Client && self.code.is_none_or(is_usual)
    }

    /// Returns the cause for the words of the access log.
    pub(crate) fn of_stream(why: &'static str) -> Self {
        let by = if why == CLIENT_GONE { EndedBy::Client } else { EndedBy::Server };
        Self::new(by, why)
    }
}

/// The reason of a client that closes a WebSocket with 1001 (RFC 6455 section 7.4.1).
const LEFT_A_PAGE: &str = "the page was left";

/// Returns true for an error which says that the peer is not there any more, itself or by what has caused it.
fn says_left(error: &(dyn Error + 'static)) -> bool {
    is_left(error) || error.source().is_some_and(says_left)
}

fn is_left(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return error.is_incomplete_message();
    }
    let io = error.downcast_ref::<io::Error>();
    let io = io.or_else(|| error.downcast_ref::<h2::Error>().and_then(h2::Error::get_io));
    io.is_some_and(|error| LEAVING.contains(&error.kind()))
}

/// The errors of a connection whose peer has closed it without waiting for what is on its way.
const LEAVING: [io::ErrorKind; 4] = [
    io::ErrorKind::ConnectionReset,
    io::ErrorKind::ConnectionAborted,
    io::ErrorKind::BrokenPipe,
    io::ErrorKind::UnexpectedEof,
];

#[derive(Debug)]
struct Closed {
    time: UnixTime,
    since: Option<UnixTime>,
    client: Option<SocketAddr>,
    transport: TransportName,
    protocol: WireProtocol,
    path: Option<String>,
    position: Option<Position>,
    cause: Cause,
}

/// The last connections that were closed, the newest last.
#[derive(Debug, Default)]
pub(crate) struct ClosedConnections(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    all: VecDeque<Closed>,
    count: u64,
}

impl ClosedConnections {
    /// Adds one that is closed now, and that has been open since some time if that is known. The oldest is forgotten
    /// above [`CLOSED_MAX`].
    pub(crate) fn add(&self, connection: &Described, since: Option<UnixTime>, cause: Cause) {
        let position = match &connection.reads[..] {
            [one] if connection.readers == 1 => Some(one.position),
            _ => None,
        };
        let path = connection.path.as_deref();
        let closed = Closed {
            time: UnixTime::now(),
            since,
            client: connection.client,
            transport: connection.transport,
            protocol: connection.protocol,
            path: path.map(|path| start(path).to_owned()),
            position,
            cause: Cause { reason: cut(cause.reason), ..cause },
        };
        let mut ring = self.ring();
        if ring.all.len() == CLOSED_MAX {
            ring.all.pop_front();
        }
        ring.all.push_back(closed);
        ring.count += 1;
    }

    /// Returns the last as JSON, the newest first, and the number of all since the server has started.
    pub(crate) fn list(&self, limit: usize) -> Value {
        let ring = self.ring();
        let closed = ring.all.iter().rev().take(limit).map(|closed| {
            json!({
                "time": closed.time,
                "since": closed.since,
                "client": closed.client.map(in_words),
                "transport": closed.transport.as_str(),
                "protocol": closed.protocol.name(),
                "tls": closed.protocol.is_secure(),
                "path": closed.path,
                "position": closed.position.map(|position| position.to_string()),
                "by": closed.cause.by.as_str(),
                "left": closed.cause.is_left(),
                "code": closed.cause.code.map(CloseCode::get),
                "reason": closed.cause.reason,
            })
        });
        json!({ "closed": closed.collect::<Vec<_>>(), "count": ring.count })
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // No method panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    match start(&text).len() {
        bytes if bytes == text.len() => text,
        bytes => format!("{}…", &text[..bytes]).into(),
    }
}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::connections::described::HTTP;

    fn described() -> Described {
        let client = "192.0.2.1:7".parse().ok();
        Described::new(client, (HTTP, WireProtocol::Http2), "/clock".to_owned())
    }

    #[test]
    fn the_last_are_kept_and_all_are_counted() {
        let closed = ClosedConnections::default();
        for n in 0..=CLOSED_MAX {
            let cause = Cause::new(EndedBy::Network, format!("number {n}"));
            closed.add(&described(), None, cause);
        }
        let list = closed.list(CLOSED_MAX + 1);
        let all = list["closed"].as_array().unwrap();
        assert_eq!((all.len(), &list["count"]), (CLOSED_MAX, &json!(CLOSED_MAX + 1)));
        assert_eq!(all[0]["reason"], format!("number {CLOSED_MAX}"));
        assert_eq!(all[CLOSED_MAX - 1]["reason"], "number 1");
        assert_eq!(closed.list(2)["closed"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_client_that_only_leaves_is_told_from_faults() {
        let of_io = |kind: io::ErrorKind| Cause::of_error(&io::Error::from(kind), "words");
        for kind in LEAVING {
            assert!(of_io(kind).is_left(), "{kind}");
        }
        assert!(!of_io(io::ErrorKind::TimedOut).is_left());
        assert_eq!(of_io(io::ErrorKind::HostUnreachable).by, EndedBy::Network);
        for (code, is_left) in [
            (CloseCode::NORMAL, true),
            (CloseCode::GOING_AWAY, true),
            (CloseCode::PROTOCOL_ERROR, false),
            (CloseCode::INTERNAL_ERROR, false),
        ] {
            assert_eq!(Cause::of_client(code, "").is_left(), is_left, "{code:?}");
        }
        assert_eq!(Cause::of_client(CloseCode::GOING_AWAY, "").reason, LEFT_A_PAGE);
        assert_eq!(Cause::of_client(CloseCode::GOING_AWAY, "bye").reason, "bye");
        assert!(Cause::of_stream(CLIENT_GONE).is_left());
        assert!(!Cause::of_stream("too slow").is_left());
        let by_server =
            Cause { by: EndedBy::Server, ..Cause::of_client(CloseCode::GOING_AWAY, "") };
        assert!(!by_server.is_left());
    }

    #[test]
    fn one_says_who_ended_it_and_why_in_at_most_so_many_bytes() {
        let closed = ClosedConnections::default();
        let reason = format!("{}é and more", "x".repeat(TEXT_BYTES_MAX - 1));
        let cause =
            Cause { code: Some(CloseCode::PROTOCOL_ERROR), ..Cause::new(EndedBy::Server, reason) };
        closed.add(&described(), Some(UnixTime::from_micros(5_000)), cause);
        closed.add(&described(), None, Cause::of_stream(CLIENT_GONE));
        let list = closed.list(9);
        let (gone, failed) = (&list["closed"][0], &list["closed"][1]);
        assert_eq!((&gone["by"], &gone["reason"]), (&json!("client"), &json!("client gone")));
        assert_eq!((&failed["by"], &failed["code"]), (&json!("server"), &json!(1002)));
        assert_eq!(failed["reason"], format!("{}…", "x".repeat(TEXT_BYTES_MAX - 1)));
        assert_eq!((&failed["since"], &failed["client"]), (&json!(5), &json!("192.0.2.1:7")));
    }
}
