//! Reads the events of a topic or a run over each transport.

use serde_json::Value;

use super::piece::{OK, Piece, event, parse};
use super::plain::PlainPolls;
use super::sse::Sse;
use super::transport::Transport;
use super::wait::Wait;
use super::{Fault, Http, Multiplexed, Place, WebSocket, within_limit};
use crate::lab::description::Form;
use crate::tcp_info::Traffic;

const MORE_STATUS: u16 = 206;
const FIRST_STATUS: u16 = 100;
const NOTICE_STATUS: u16 = 110;
/// The longest wait that the clients ask of a long poll, in seconds. With a short patience, they ask for half of that.
const WAIT_SECONDS_MAX: u64 = 30;
/// The subprotocol of a WebSocket whose messages contain positions.
const EVENTS: &str = "anemone.events";

/// The source of events. `target` is a path with its query. If there is a body, the request starts a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) target: &'a str,
    pub(crate) body: Option<&'a [u8]>,
    /// The most events in an answer to a poll. Default: the limit of the server.
    pub(crate) page: Option<u32>,
    /// The position after which reading begins. If there is one, the feed remembers the position of each event.
    pub(crate) after: Option<&'a str>,
    pub(crate) form: Form<'a>,
}

/// A reader of events over one transport.
#[derive(Debug)]
pub(crate) struct Feed {
    reader: FeedReader,
    /// The pieces of the last message, chunk or page, in reverse order.
    waiting: Vec<Piece>,
    /// The beginning of a line that has not come completely.
    line: Vec<u8>,
    /// The position of the newest event. At first, the position at which reading begins.
    position: String,
    /// True if the stream has data only, and no positions.
    is_plain: bool,
    /// The place of the server, with the patience for a piece.
    place: Place,
}

#[derive(Debug)]
enum FeedReader {
    WebSocket(Box<WebSocket>),
    /// A WebSocket whose messages contain positions.
    Events(Box<WebSocket>),
    Multiplexed(Multiplexed),
    Sse(Http, Sse),
    Ndjson(Http),
    Polls {
        http: Http,
        path: String,
        query: String,
        wait: bool,
        after: String,
    },
    /// Polls of another server, which a file describes.
    PlainPolls(PlainPolls),
}

impl Feed {
    /// Connects, and asks for the events.
    pub(crate) fn open(
        transport: Transport,
        place: &Place,
        source: Source<'_>,
        seed: u64,
    ) -> Result<Self, Fault> {
        let Source { target, body, page, after, form } = source;
        let begin = after.map(|after| format!("{target}?after={after}"));
        let asked = begin.as_deref().unwrap_or(target);
        let method = if body.is_some() { "POST" } else { "GET" };
        let payload = body.unwrap_or_default();
        let is_plain = matches!(form, Form::Plain(_));
        let reader = match transport {
            Transport::WebSocket if after.is_some() => {
                let socket = WebSocket::connect(place, asked, &[EVENTS], seed)?;
                FeedReader::Events(Box::new(socket))
            }
            Transport::WebSocket => {
                let mut socket = WebSocket::connect(place, target, &[], seed)?;
                if body.is_some() {
                    socket.send(anemone_ws::proto::Opcode::Text, payload)?;
                }
                FeedReader::WebSocket(Box::new(socket))
            }
            Transport::Multiplexed | Transport::Tcp => {
                let mut requests = match transport {
                    Transport::Tcp => Multiplexed::tcp(place)?,
                    _ => Multiplexed::web_socket(place, seed)?,
                };
                requests.ask(&format!("{method} 1 {asked}"), payload)?;
                FeedReader::Multiplexed(requests)
            }
            Transport::Sse | Transport::Ndjson => {
                let mut http = Http::connect(place)?;
                http.stream(method, asked, &fields(transport, body), payload)?;
                match transport {
                    Transport::Sse => FeedReader::Sse(http, Sse::new(is_plain)),
                    _ => FeedReader::Ndjson(http),
                }
            }
            Transport::LongPoll | Transport::Poll if let Form::Plain(Some(poll)) = form => {
                FeedReader::PlainPolls(PlainPolls::begin(Http::connect(place)?, poll))
            }
            Transport::LongPoll | Transport::Poll => {
                let mut http = Http::connect(place)?;
                let (path, after) = match after {
                    Some(after) => (target.to_owned(), after.to_owned()),
                    None => begin_polls(&mut http, target, body)?,
                };
                let query = page.map(|page| format!("&limit={page}")).unwrap_or_default();
                FeedReader::Polls {
                    http,
                    path,
                    query,
                    wait: transport == Transport::LongPoll,
                    after,
                }
            }
        };
        let position = after.unwrap_or_default().to_owned();
        Ok(Self {
            reader,
            waiting: Vec::new(),
            line: Vec::new(),
            position,
            is_plain,
            place: place.clone(),
        })
    }

    pub(crate) fn next(&mut self) -> Result<Piece, Fault> {
        let mut wait = Wait::begin(&self.place);
        loop {
            if let Some(piece) = self.waiting.pop() {
                return Ok(piece);
            }
            // What comes may be no piece: a comment, or a part of a line.
            wait.with(self.line.len()).check()?;
            self.wait()?;
            wait.count_as_heartbeat(0);
            self.waiting.reverse();
        }
    }

    /// Returns the position of the newest event. Returns `None` until [`next`](Self::next) has returned all events that
    /// have come.
    pub(crate) fn position(&self) -> Option<&str> {
        let position = match &self.reader {
            FeedReader::Polls { after, .. } => after,
            _ => &self.position,
        };
        self.waiting.iter().all(|piece| *piece == Piece::Answer).then_some(position)
    }

    /// Opens a new connection for the next poll. A stream that the server pushes keeps its connection.
    pub(crate) fn reconnect(&mut self, place: &Place) -> Result<(), Fault> {
        match &mut self.reader {
            FeedReader::Polls { http, .. } => *http = Http::connect(place)?,
            FeedReader::PlainPolls(polls) => polls.http = Http::connect(place)?,
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        match &self.reader {
            FeedReader::WebSocket(socket) | FeedReader::Events(socket) => socket.traffic(),
            FeedReader::Multiplexed(requests) => requests.traffic(),
            FeedReader::Sse(http, _)
            | FeedReader::Ndjson(http)
            | FeedReader::Polls { http, .. } => http.traffic(),
            FeedReader::PlainPolls(polls) => polls.http.traffic(),
        }
    }

    /// Closes the connection, and returns its traffic.
    pub(crate) fn finish(self) -> Result<Traffic, Fault> {
        match self.reader {
            FeedReader::WebSocket(socket) | FeedReader::Events(socket) => socket.finish(),
            FeedReader::Multiplexed(requests) => requests.finish(),
            FeedReader::Sse(http, _)
            | FeedReader::Ndjson(http)
            | FeedReader::Polls { http, .. } => http.finish(),
            FeedReader::PlainPolls(polls) => polls.http.finish(),
        }
    }

    /// Waits for a message, a chunk or a page. Adds its pieces to `waiting`.
    fn wait(&mut self) -> Result<(), Fault> {
        let (waiting, position) = (&mut self.waiting, &mut self.position);
        let patience = self.place.patience;
        match &mut self.reader {
            FeedReader::WebSocket(socket) => {
                waiting.push(socket.receive()?.map_or(Piece::End, Piece::Event));
            }
            FeedReader::Events(socket) => match socket.receive()? {
                Some(message) => {
                    let item: Value = parse(&message)?;
                    let of = item["position"].as_str();
                    of.ok_or_else(|| Fault::wrong("a notice came", &message))?.clone_into(position);
                    waiting.extend(item.get("data").map(event));
                }
                None => waiting.push(Piece::End),
            },
            FeedReader::Multiplexed(requests) => {
                let answer = requests.answer()?;
                match answer.status {
                    NOTICE_STATUS if answer.payload.starts_with(br#"{"gap""#) => {
                        return Err(Fault::wrong("a gap came", &answer.payload));
                    }
                    FIRST_STATUS | NOTICE_STATUS => {}
                    MORE_STATUS => {
                        position.clone_from(&answer.position);
                        waiting.push(Piece::Event(answer.payload));
                    }
                    OK => waiting.push(Piece::End),
                    status => {
                        return Err(Fault::refused(status, &answer.payload));
                    }
                }
            }
            FeedReader::Sse(http, sse) => {
                lines(http, &mut self.line, |line| {
                    waiting.extend(sse.line(line, position)?);
                    Ok(())
                })?;
            }
            FeedReader::Ndjson(http) => {
                let is_plain = self.is_plain;
                lines(http, &mut self.line, |line| {
                    waiting.extend(ndjson(line, is_plain, position)?);
                    Ok(())
                })?;
            }
            FeedReader::PlainPolls(polls) => waiting.extend(polls.next()?),
            FeedReader::Polls { http, path, query, wait, after } => {
                let seconds = (patience.as_secs() / 2).clamp(1, WAIT_SECONDS_MAX);
                let prefer =
                    if *wait { format!("Prefer: wait={seconds}\r\n") } else { String::new() };
                let target = format!("{path}?after={after}{query}");
                let body = http.call("GET", &target, &prefer, b"")?.expect(OK)?;
                let page: Value = parse(&body)?;
                let next = page["next"].as_str();
                next.ok_or_else(|| Fault::wrong("a page without a position", &body))?
                    .clone_into(after);
                let events = page["events"].as_array().into_iter().flatten();
                waiting.extend(events.map(|item| event(&item["data"])));
                waiting.push(Piece::Answer);
                if page["end"].is_object() {
                    waiting.push(Piece::End);
                }
            }
        }
        Ok(())
    }
}

fn fields(transport: Transport, body: Option<&[u8]>) -> String {
    let json = if body.is_some() { "Content-Type: application/json\r\n" } else { "" };
    format!("{}{json}", transport.accept())
}

/// Starts a run if there is a body. Returns the path of the events, and the position after which to read.
fn begin_polls(
    http: &mut Http,
    target: &str,
    body: Option<&[u8]>,
) -> Result<(String, String), Fault> {
    let Some(body) = body else {
        let page = http.call("GET", target, "", b"")?.expect(OK)?;
        let page: Value = parse(&page)?;
        return Ok((target.to_owned(), page["next"].as_str().unwrap_or("latest").to_owned()));
    };
    let fields = "Content-Type: application/json\r\nPrefer: respond-async\r\n";
    let reply = http.call("POST", target, fields, body)?;
    let place = reply.location.clone().unwrap_or_default();
    reply.expect(202)?;
    Ok((format!("/{place}"), "earliest".to_owned()))
}

/// Waits for a chunk, and calls `line` for each line that it completes. `rest` keeps the beginning of the next line.
fn lines(
    http: &mut Http,
    rest: &mut Vec<u8>,
    mut line: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(chunk) = http.chunk()? else { return Err(Fault::Closed) };
    let (mut begin, mut from) = (0, rest.len());
    rest.extend_from_slice(&chunk);
    while let Some(len) = rest[from..].iter().position(|&byte| byte == b'\n') {
        line(&rest[begin..from + len])?;
        begin = from + len + 1;
        from = begin;
    }
    rest.drain(..begin);
    within_limit(rest.len())
}

/// Returns the piece in a line of NDJSON; `None` for a line without one. Stores its position in `position`.
fn ndjson(line: &[u8], is_plain: bool, position: &mut String) -> Result<Option<Piece>, Fault> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    if is_plain {
        return Ok(Some(Piece::Event(line.to_vec())));
    }
    let item: Value = parse(line)?;
    if let Some(own) = item["position"].as_str() {
        own.clone_into(position);
    }
    Ok(match (&item["data"], &item["end"]) {
        (Value::Null, Value::Null) => None,
        (Value::Null, _) => Some(Piece::End),
        (data, _) => Some(event(data)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ndjson_are_understood() {
        let line = |line: &str| ndjson(line.as_bytes(), false, &mut String::new()).unwrap();
        assert_eq!(
            line(r#"{"position":"e-1","time":1,"data":7}"#),
            Some(Piece::Event(b"7".to_vec()))
        );
        assert_eq!((line(r#"{"position":"e-0"}"#), line("")), (None, None));
        assert_eq!(line(r#"{"end":{"reason":"ended"}}"#), Some(Piece::End));
        let mut position = String::new();
        assert!(ndjson(b"no", false, &mut position).is_err());
        assert_eq!(ndjson(b"no", true, &mut position).unwrap(), Some(Piece::Event(b"no".to_vec())));
        ndjson(br#"{"position":"e-8","data":7}"#, false, &mut position).unwrap();
        assert_eq!(position, "e-8");
    }
}
