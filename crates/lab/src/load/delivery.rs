//! The ways in which a topic's events are delivered. Makes the requests, and parses the answers. Has no sockets.

use std::fmt;
use std::net::SocketAddr;

use anemone_ws::proto::{Header, Opcode};
use anyhow::{Context, bail, ensure};

use super::http;

/// The longest wait of a long poll, in seconds. No sample takes so long.
const WAIT_SECONDS: u32 = 120;

/// The way in which a reader gets a topic's events.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Delivery {
    WebSocket,
    Sse,
    Ndjson,
    LongPoll,
}

impl Delivery {
    pub(crate) const ALL: [Self; 4] = [Self::WebSocket, Self::Sse, Self::Ndjson, Self::LongPoll];

    /// Returns the first request of a reader over HTTP. A long poll needs a position, so its first request is a poll.
    pub(super) fn first_request(self, host: SocketAddr, topic: &str) -> Vec<u8> {
        let fields = match self {
            Self::WebSocket | Self::LongPoll => "",
            Self::Sse => "Accept: text/event-stream\r\n",
            Self::Ndjson => "Accept: application/x-ndjson\r\n",
        };
        http::request("GET", host, topic, fields, b"")
    }

    /// Removes the first message, chunk or response from the front of `bytes`, and calls `event` for each of its
    /// events. Returns `None` until it is complete.
    pub(super) fn take<'a>(
        self,
        bytes: &'a [u8],
        event: impl FnMut(&'a [u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<TakenMessage<'a>>> {
        match self {
            Self::WebSocket => message(bytes, event),
            Self::Sse => {
                let Some((text, len)) = http::chunk(bytes)? else { return Ok(None) };
                blocks(std::str::from_utf8(text)?, event)?;
                Ok(Some(TakenMessage { len, next: None }))
            }
            Self::Ndjson => {
                let Some((text, len)) = http::chunk(bytes)? else { return Ok(None) };
                lines(std::str::from_utf8(text)?, event)?;
                Ok(Some(TakenMessage { len, next: None }))
            }
            Self::LongPoll => page(bytes, event),
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WebSocket => "WebSocket",
            Self::Sse => "SSE",
            Self::Ndjson => "NDJSON",
            Self::LongPoll => "long poll",
        })
    }
}

/// A message, chunk or response that was removed.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct TakenMessage<'a> {
    pub(super) len: usize,
    /// The position for the next request; `None` if no request is necessary.
    pub(super) next: Option<&'a str>,
}

/// Returns a request that waits for events after a position.
pub(super) fn long_poll(host: SocketAddr, topic: &str, after: &str) -> Vec<u8> {
    let (target, wait) =
        (format!("{topic}?after={after}"), format!("Prefer: wait={WAIT_SECONDS}\r\n"));
    http::request("GET", host, &target, &wait, b"")
}

fn message<'a>(
    bytes: &'a [u8],
    mut event: impl FnMut(&'a [u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Option<TakenMessage<'a>>> {
    let Some((header, header_bytes)) = Header::decode(bytes)? else { return Ok(None) };
    let len = header_bytes + header.payload_len as usize;
    let Some(payload) = bytes.get(header_bytes..len) else { return Ok(None) };
    match header.opcode {
        Opcode::Text if header.fin && !header.rsv1 => event(payload)?,
        // A sample is too short for a missing pong to matter.
        Opcode::Ping => {}
        opcode => bail!("{opcode:?} came instead of an event: {}", payload.escape_ascii()),
    }
    Ok(Some(TakenMessage { len, next: None }))
}

/// Parses server-sent events. The events of a topic have no name, and one line of data.
fn blocks<'a>(
    text: &'a str,
    mut event: impl FnMut(&'a [u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    ensure!(text.ends_with('\n'), "a chunk ends within a line, or the stream ended");
    for line in text.lines() {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("data", data) => event(data.as_bytes())?,
            ("id" | "time" | "retry" | "" | ":", _) => {}
            _ => bail!("{line} came instead of an event"),
        }
    }
    Ok(())
}

fn lines<'a>(
    text: &'a str,
    mut event: impl FnMut(&'a [u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    ensure!(text.ends_with('\n'), "a chunk ends within a line, or the stream ended");
    for line in text.lines() {
        let rest = line.strip_prefix(r#"{"position":"#).with_context(|| format!("{line} came"))?;
        // A line without data contains only the position.
        if let Some((_, data)) = rest.split_once(r#","data":"#) {
            event(data.strip_suffix('}').context("a line is no object")?.as_bytes())?;
        }
    }
    Ok(())
}

/// Parses a page of events. Each event is a string without braces.
fn page<'a>(
    bytes: &'a [u8],
    mut event: impl FnMut(&'a [u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Option<TakenMessage<'a>>> {
    let Some(response) = http::response(bytes)? else { return Ok(None) };
    response.ensure_status(200)?;
    let (head, events) =
        response.body.split_once(r#","events":["#).context("a page without events")?;
    ensure!(!head.contains(r#""gap""#), "a gap: {head}");
    for part in events.split(r#","data":"#).skip(1) {
        event(part.split('}').next().unwrap_or_default().as_bytes())?;
    }
    let next = position(head, "next").context("a page without a position")?;
    Ok(Some(TakenMessage { len: response.len, next: Some(next) }))
}

/// Returns the position in the member `name` of a JSON object.
pub(super) fn position<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!(r#""{name}":""#))?;
    Some(rest.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all events in `bytes`, and the position after which to continue.
    fn all(delivery: Delivery, bytes: &[u8]) -> anyhow::Result<(Vec<String>, Option<String>)> {
        let (mut events, mut next, mut rest) = (Vec::new(), None, bytes);
        while !rest.is_empty() {
            let event = |data: &[u8]| {
                events.push(String::from_utf8_lossy(data).into_owned());
                Ok(())
            };
            let taken = delivery.take(rest, event)?.context("not whole")?;
            next = taken.next.map(str::to_owned);
            rest = &rest[taken.len..];
        }
        Ok((events, next))
    }

    fn chunked(text: &str) -> Vec<u8> {
        format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
    }

    fn response(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn samples() -> [(Delivery, Vec<u8>); 4] {
        let sse = "id: e-1\ntime: 1.5\ndata: \"a\"\n\nid: e-2\ntime: 2\ndata: \"b\"\n\n";
        let ndjson = "{\"position\":\"e-1\",\"time\":1.5,\"data\":\"a\"}\n\
                      {\"position\":\"e-2\",\"time\":2,\"data\":\"b\"}\n";
        let page = r#"{"epoch":"e","first":1,"next":"e-2","events":[{"offset":1,"time":1.5,"data":"a"},{"offset":2,"time":2,"data":"b"}]}"#;
        [
            (Delivery::WebSocket, b"\x81\x03\"a\"\x81\x03\"b\"".to_vec()),
            (Delivery::Sse, chunked(sse)),
            (Delivery::Ndjson, chunked(ndjson)),
            (Delivery::LongPoll, response(page)),
        ]
    }

    #[test]
    fn the_events_are_found_in_what_each_transport_brings() {
        for (delivery, bytes) in samples() {
            let (events, next) = all(delivery, &bytes).unwrap();
            assert_eq!(events, ["\"a\"", "\"b\""], "{delivery}");
            assert_eq!(next.as_deref(), (delivery == Delivery::LongPoll).then_some("e-2"));
        }
    }

    #[test]
    fn what_is_not_whole_is_waited_for() {
        for (delivery, bytes) in samples() {
            let first = if delivery == Delivery::WebSocket { 5 } else { bytes.len() };
            for cut in 0..first {
                let taken = delivery.take(&bytes[..cut], |_| bail!("not whole"));
                assert_eq!(taken.unwrap(), None, "{delivery}, {cut} bytes");
            }
        }
    }

    #[test]
    fn signs_of_life_are_no_events() {
        for (delivery, bytes) in [
            (Delivery::WebSocket, b"\x89\x00".to_vec()),
            (Delivery::Sse, chunked(":\n\n")),
            (Delivery::Sse, chunked("retry: 1000\nid: e-0\n\n")),
            (Delivery::Ndjson, chunked("{\"position\":\"e-0\"}\n")),
            (Delivery::LongPoll, response(r#"{"epoch":"e","first":1,"next":"e-0","events":[]}"#)),
        ] {
            assert_eq!(all(delivery, &bytes).unwrap().0, Vec::<String>::new(), "{delivery}");
        }
    }

    #[test]
    fn what_is_missing_is_an_error() {
        for (delivery, bytes) in [
            (Delivery::WebSocket, b"\x88\x00".to_vec()),
            (Delivery::Sse, chunked("event: gap\ndata: {}\n\n")),
            (Delivery::Ndjson, chunked("{\"gap\":{}}\n")),
            (
                Delivery::LongPoll,
                response(r#"{"epoch":"e","first":1,"next":"e-0","gap":{},"events":[]}"#),
            ),
        ] {
            assert!(all(delivery, &bytes).is_err(), "{delivery}");
        }
    }
}
