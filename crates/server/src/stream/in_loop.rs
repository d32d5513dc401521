//! A stream over plain HTTP/1.1 in the thread's loop: no task and no buffer of its own, and the pages of all who
//! stand at the same place are encoded once.
//!
//! Its connection carries nothing else, and ends with it.

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use anemone_hub::Position;
use anemone_ws::proto::Output;
use anemone_ws::reactor::{StreamHandler, Waker};
use http::{HeaderValue, Response, header};
use tokio::time::Instant;

use super::{response, text};
use crate::alarms::Alarm;
use crate::clients::access::{CLIENT_GONE, SERVER_STOPPED};
use crate::clients::permits::ConnectionPermit;
use crate::clients::refusals::Asked;
use crate::local::Local;
use crate::read::fan::{ItemEncoding, Subscription};
use crate::read::reader::{EndReason, Item, Reader};
use crate::reply::body::{Body, full};

/// A chunk of nothing (RFC 9112 section 7.1).
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The head of the reply.
pub(crate) fn head(content_type: &'static str) -> Response<Body> {
    let mut response = response(content_type, full(""));
    let headers = response.headers_mut();
    headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let date = httpdate::fmt_http_date(SystemTime::now());
    if let Ok(date) = HeaderValue::try_from(date) {
        headers.insert(header::DATE, date);
    }
    response
}

/// One reader. What was read of the log waits in the connection's output, and while it does nothing more is
/// read: a slow reader is only a position.
#[derive(Debug)]
pub(crate) struct InLoop {
    local: Rc<Local>,
    reader: Reader,
    encoding: &'static ItemEncoding,
    /// Once it is open.
    woken: Option<(Subscription, Waker)>,
    alarm: Option<Alarm>,
    told_at: Instant,
    /// Since the client has ended its side: what there was then is the last.
    end: Option<Position>,
    is_over: bool,
    _permit: ConnectionPermit,
}

impl InLoop {
    /// Appends where reading begins to the head of the reply.
    pub(crate) fn new(
        local: &Rc<Local>,
        reader: Reader,
        encoding: &'static ItemEncoding,
        permit: ConnectionPermit,
        head: &mut Vec<u8>,
    ) -> Self {
        let begin = one(encoding, &Item::Begin(reader.position()));
        reader.access().sent(begin.len());
        head.extend_from_slice(&chunk(&begin));
        Self {
            local: Rc::clone(local),
            reader,
            encoding,
            woken: None,
            alarm: None,
            told_at: Instant::now(),
            end: None,
            is_over: false,
            _permit: permit,
        }
    }

    fn tell(&mut self, item: &Item<'_>, output: &mut Output) {
        let text = one(self.encoding, item);
        self.reader.access().sent(text.len());
        output.extend_from_slice(&chunk(&text));
        self.told_at = Instant::now();
    }

    /// `why` is for the access log.
    fn end(&mut self, why: &'static str, output: &mut Output) {
        self.reader.over(why);
        output.extend_from_slice(LAST_CHUNK);
        (self.is_over, self.woken, self.alarm) = (true, None, None);
    }

    /// The next page, or that there is none.
    fn read_on(&mut self, output: &mut Output) {
        let Some((place, _)) = &self.woken else { return };
        let encoding = self.encoding;
        let encode = |page: &_| chunk(&text(page, encoding.append));
        match place.read_chunk(&mut self.reader, encoding, encode) {
            Ok(Some(page)) => {
                if self.reader.access().is_some() {
                    self.reader.access().sent(text_bytes(&page.chunk));
                }
                output.extend_from_slice(&page.chunk);
                self.told_at = Instant::now();
            }
            Ok(None) if self.told_at.elapsed() >= self.local.site.limits.heartbeat => {
                self.tell(&Item::Quiet(self.reader.position()), output);
            }
            Ok(None) => {}
            Err(problem) => {
                let path = format!("/topics/{}", self.reader.topic().name());
                let asked = Asked::request(self.reader.client(), "GET", &path);
                self.local.site.refusals.note(&problem, asked);
                let why = match EndReason::of(&problem) {
                    Some(reason) => {
                        self.tell(&Item::End(reason), output);
                        reason.in_log()
                    }
                    None => {
                        tracing::warn!(problem = problem.to_json(), "a stream was cut off");
                        problem.kind().name()
                    }
                };
                self.end(why, output);
            }
        }
    }

    /// Sets the alarm anew if it has rung. It rings more often than there are heartbeats if it must: a
    /// connection that is never woken counts as stuck.
    fn set_alarm(&mut self) {
        let Some((_, waker)) = &self.woken else { return };
        let now = Instant::now();
        if self.alarm.as_ref().is_none_or(|alarm| alarm.due() <= now) {
            let limits = &self.local.site.limits;
            let due = (self.told_at + limits.heartbeat).min(now + limits.write_timeout / 2);
            self.alarm = Some(self.local.alarms.set(due, waker.clone()));
        }
    }
}

impl StreamHandler for InLoop {
    fn open(&mut self, waker: Waker) {
        let place = self.local.fan.subscribe(self.reader.topic(), waker.clone());
        // What came since reading began.
        waker.wake();
        self.woken = Some((place, waker));
    }

    /// Nothing more is expected.
    fn receive(&mut self, _bytes: &[u8], _output: &mut Output) {}

    fn ready(&mut self, output: &mut Output) {
        self.read_on(output);
        self.set_alarm();
    }

    fn ended(&mut self, output: &mut Output) -> bool {
        let end = *self.end.get_or_insert_with(|| self.reader.end_by_now());
        if let Some((_, waker)) = &self.woken
            && !self.reader.has_reached(end)
        {
            waker.wake();
            return true;
        }
        if !self.is_over {
            self.end(CLIENT_GONE, output);
        }
        false
    }

    fn close(&mut self, output: &mut Output) {
        if !self.is_over {
            self.end(SERVER_STOPPED, output);
        }
    }

    fn ending(&self) -> Option<Duration> {
        self.is_over.then_some(self.local.site.limits.websocket.close_timeout)
    }
}

impl Drop for InLoop {
    fn drop(&mut self) {
        self.reader.over(CLIENT_GONE);
    }
}

fn one(encoding: &ItemEncoding, item: &Item<'_>) -> String {
    let mut text = String::new();
    (encoding.append)(item, &mut text);
    text
}

/// A text as a chunk; of nothing there is none, for that would be the last.
fn chunk(text: &str) -> Vec<u8> {
    if text.is_empty() {
        return Vec::new();
    }
    let size = format!("{:x}\r\n", text.len());
    [size.as_bytes(), text.as_bytes(), b"\r\n"].concat()
}

/// The length of the text in a chunk.
fn text_bytes(chunk: &[u8]) -> usize {
    let size_bytes = chunk.iter().position(|&byte| byte == b'\r');
    size_bytes.map_or(0, |size_bytes| chunk.len() - size_bytes - b"\r\n\r\n".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_chunk_is_as_long_as_it_was() {
        for text in ["", "a", "0123456789abcdef", &"\r\n".repeat(5000)] {
            assert_eq!(text_bytes(&chunk(text)), text.len());
        }
    }

    #[test]
    fn a_chunk_says_its_length_and_nothing_is_no_chunk() {
        assert_eq!(chunk("0123456789"), b"a\r\n0123456789\r\n");
        assert_eq!(chunk(""), b"");
    }
}
