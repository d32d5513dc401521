//! An endless reply over plain HTTP/1.1 in the thread's loop: it has no task and no buffer, and readers at the same
//! place share encoded pages.
//!
//! The connection carries nothing else, and ends with the reply.

use std::any::Any;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use anemone_wire::{EndReason, Item};
use anemone_ws::proto::Output;
use anemone_ws::reactor::{SendWaker, StreamHandler};
use http::{HeaderValue, Response, header};
use tokio::time::Instant;

use super::{EndlessPart, EndlessReply, cut, end_in_log, response};
use crate::alarms::Alarm;
use crate::clients::access::{CLIENT_GONE, SERVER_STOPPED};
use crate::clients::connections::closed::Cause;
use crate::clients::connections::described::{Described, HTTP, WireProtocol};
use crate::clients::permits::ConnectionPermit;
use crate::local::Local;
use crate::read::fan::Subscription;
use crate::read::pages::ItemEncoding;
use crate::read::reader::{Reader, in_log};
use crate::reply::body::{Body, full};

/// The last chunk, which is empty (RFC 9112 section 7.1).
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

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

/// A reply that the loop carries. Events wait in the connection's output, and until that is written, no more are
/// read: a slow reader is only a position.
#[derive(Debug)]
pub(crate) struct InLoop {
    local: Rc<Local>,
    reply: EndlessReply,
    encoding: &'static ItemEncoding,
    /// Set once the connection is open.
    woken: Option<(Subscription, SendWaker)>,
    alarm: Option<Alarm>,
    _permit: ConnectionPermit,
}

impl InLoop {
    /// Creates the reply; its head is followed by the beginning.
    pub(crate) fn new(
        local: &Rc<Local>,
        reader: Reader,
        encoding: &'static ItemEncoding,
        permit: ConnectionPermit,
        head: &mut Vec<u8>,
    ) -> Self {
        let mut reply = EndlessReply::new(reader, Instant::now());
        let begin = encoding.one(&reply.begin());
        reply.reader().access().count_sent(begin.len());
        chunk(begin.as_bytes(), |part| head.extend_from_slice(part));
        let local = Rc::clone(local);
        Self { local, reply, encoding, woken: None, alarm: None, _permit: permit }
    }

    fn send(&self, item: &Item<'_>, output: &mut Output) {
        let text = self.encoding.one(item);
        self.reply.reader().access().count_sent(text.len());
        chunk(text.as_bytes(), |part| output.extend_from_slice(part));
    }

    fn described(&self) -> Described {
        let reader = self.reply.reader();
        let transport = reader.transport().unwrap_or(HTTP);
        let described = Described::new(reader.client(), (transport, WireProtocol::Http1), None);
        described.reading(reader.describe())
    }

    /// Records that the connection is over, and why.
    fn record_end(&self, why: &'static str) {
        let since = self.reply.reader().since();
        self.local.site.closed.add(&self.described(), since, Cause::of_stream(why));
    }

    /// Ends the reply; `why` is for the access log, unless it has a reason.
    fn end(&mut self, why: &'static str, output: &mut Output) {
        self.record_end(why);
        self.reply.end(why);
        output.extend_from_slice(LAST_CHUNK);
        (self.woken, self.alarm) = (None, None);
    }

    /// Sends the rest of a run, which was cancelled before, unless that is too much. Returns true if it has sent the end.
    fn finish_run(&mut self, output: &mut Output) -> bool {
        let bytes_max = self.local.site.limits.stream_bytes_max;
        let is_run = self.reply.reader().readable().is_run();
        let begun = output.len();
        while is_run && !self.reply.is_over() && ((output.len() - begun) as u64) < bytes_max {
            let before = self.reply.reader().position();
            self.read_on(output);
            if self.reply.reader().position() == before {
                break;
            }
        }
        self.reply.is_over()
    }

    /// Sends the next page, if there is one.
    fn read_on(&mut self, output: &mut Output) {
        let Some((subscription, _)) = &self.woken else { return };
        let (encoding, heartbeat) = (self.encoding, self.local.site.limits.heartbeat);
        let read = |reader: &mut Reader| subscription.read(reader, encoding);
        match self.reply.poll(Instant::now(), heartbeat, read) {
            EndlessPart::Page(page) => {
                let text = page.encoded.text();
                self.reply.reader().access().count_sent(text.len());
                chunk(text, |part| output.extend_from_slice(part));
            }
            EndlessPart::Item(item) => self.send(&item, output),
            EndlessPart::Nothing => {}
            EndlessPart::Ended(notice) => {
                self.send(&notice, output);
                self.end(in_log(&EndReason::Ended), output);
            }
            EndlessPart::Failed { notice, problem } => {
                cut(&self.reply, notice.as_ref(), &problem, &self.local.site.refusals);
                notice.iter().for_each(|item| self.send(item, output));
                self.end(end_in_log(&problem), output);
            }
            EndlessPart::Over => self.end(CLIENT_GONE, output),
        }
    }

    /// Sets the alarm again after it has rung. It may ring more often than there are heartbeats, because a connection
    /// that is never woken counts as stuck.
    fn set_alarm(&mut self) {
        let Some((_, waker)) = &self.woken else { return };
        let now = Instant::now();
        if self.alarm.as_ref().is_none_or(|alarm| alarm.due() <= now) {
            let limits = &self.local.site.limits;
            let due = self.reply.due(limits.heartbeat).min(now + limits.write_timeout / 2);
            self.alarm = Some(self.local.alarms.set(due, waker.clone()));
        }
    }
}

impl StreamHandler for InLoop {
    fn on_open(&mut self, waker: SendWaker) {
        let topic = self.reply.reader().topic();
        let subscription = self.local.fan.subscribe(topic, waker.clone());
        // Events may have come since reading began.
        waker.wake();
        self.woken = Some((subscription, waker));
    }

    /// Ignores further input.
    fn on_bytes(&mut self, bytes: &[u8], _output: &mut Output) -> usize {
        bytes.len()
    }

    fn on_ready(&mut self, output: &mut Output) {
        self.read_on(output);
        self.set_alarm();
    }

    fn on_end(&mut self, output: &mut Output) -> bool {
        self.reply.finish();
        if let Some((_, waker)) = &self.woken
            && self.reply.is_ending()
        {
            waker.wake();
            return true;
        }
        if !self.reply.is_over() {
            self.end(CLIENT_GONE, output);
        }
        false
    }

    fn on_close(&mut self, output: &mut Output) {
        if self.reply.is_over() || self.finish_run(output) {
            return;
        }
        if self.reply.reader().readable().is_run() {
            self.record_end(SERVER_STOPPED);
            // Without its last chunk: the reply breaks off.
            self.reply.end(SERVER_STOPPED);
            (self.woken, self.alarm) = (None, None);
        } else {
            self.end(SERVER_STOPPED, output);
        }
    }

    fn describe(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.described()))
    }

    fn linger(&self) -> Option<Duration> {
        self.reply.is_over().then_some(self.local.site.limits.websocket.close_timeout)
    }
}

impl Drop for InLoop {
    fn drop(&mut self) {
        if !self.reply.is_over() {
            self.record_end(CLIENT_GONE);
        }
        self.reply.end(CLIENT_GONE);
    }
}

/// Writes a text as a chunk; nothing for an empty text, which would be the last chunk.
fn chunk(text: &[u8], mut write: impl FnMut(&[u8])) {
    if !text.is_empty() {
        write(format!("{:x}\r\n", text.len()).as_bytes());
        write(text);
        write(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_says_its_length_and_nothing_is_no_chunk() {
        let written = |text: &[u8]| {
            let mut out = Vec::new();
            chunk(text, |part| out.extend_from_slice(part));
            out
        };
        assert_eq!(written(b"0123456789"), b"a\r\n0123456789\r\n");
        assert_eq!(written(b""), b"");
    }
}
