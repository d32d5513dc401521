//! Makes requests on one HTTP/1.1 connection, and reads streams in chunks.

use super::stream::AT_ONCE_BYTES;
use super::{Fault, MESSAGE_BYTES_MAX, Place, SHOWN_BYTES, Stream, within_head};
use crate::load::{Body, BodyEnd, Head, chunk, head, request};
use crate::tcp_info::Traffic;

/// The bytes of an event with nothing but its number.
pub(crate) const EVENT_BYTES_MIN: usize = 20;

#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) location: Option<String>,
}

/// A connection that is kept alive. If the server closes it after an answer, the next request opens another one.
#[derive(Debug)]
pub(crate) struct Http {
    stream: Stream,
    /// True if the body has no chunks, and goes on until the end of the connection.
    is_raw: bool,
    /// True if the server closes the connection after the newest answer.
    is_over: bool,
    /// The traffic of the connections before this one.
    before: Traffic,
}

impl Http {
    pub(crate) fn connect(place: &Place) -> Result<Self, Fault> {
        let (stream, before) = (Stream::connect(place)?, Traffic::default());
        Ok(Self { stream, is_raw: false, is_over: false, before })
    }

    /// Sends a request, and returns the complete response. Each of `fields` ends with a line end.
    pub(crate) fn call(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<HttpReply, Fault> {
        self.ask(method, target, fields, body)?;
        self.reply()
    }

    /// Sends a request whose body the server echoes while it arrives. Returns the complete response.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<HttpReply, Fault> {
        self.reopen()?;
        let request = request(method, &self.stream.place().host, target, fields, body);
        if request.len() <= AT_ONCE_BYTES {
            self.stream.send(&request)?;
            return self.reply();
        }
        let (reply, is_last) = self.stream.send_beside(&request, reply)?;
        self.is_over = is_last;
        Ok(reply)
    }

    /// Sends a request for a stream. [`chunk`](Self::chunk) returns its pieces.
    pub(crate) fn stream(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<(), Fault> {
        self.ask(method, target, fields, body)?;
        let (status, end) = read_head(&mut self.stream, |head| (head.status, head.body_end()))?;
        let end = end.map_err(wrong)?;
        self.is_raw = end != BodyEnd::LastChunk;
        match status {
            200 => Ok(()),
            status => Err(refused(&mut self.stream, status, end)),
        }
    }

    /// Waits for the next chunk; `None` after the last one.
    pub(crate) fn chunk(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        self.stream.begin_wait();
        if self.is_raw {
            self.stream.fill_to(1)?;
            return Ok(Some(self.stream.take(usize::MAX)));
        }
        read_chunk(&mut self.stream)
    }

    /// Publishes an event of this length. It contains its number.
    pub(crate) fn publish(
        &mut self,
        topic: &str,
        number: usize,
        bytes: usize,
    ) -> Result<(), Fault> {
        let more = "0".repeat(bytes.saturating_sub(EVENT_BYTES_MIN));
        let body = format!(r#"{{"n":{number:>7},"m":"{more}"}}"#);
        let fields = "Content-Type: application/json\r\n";
        let reply = self.call("POST", topic, fields, body.as_bytes())?;
        let status = reply.status;
        // Anemone says 201, and others what they like.
        if (200..300).contains(&status) { Ok(()) } else { reply.expect(201).map(|_| ()) }
    }

    /// Returns the traffic of this connection and of those before it.
    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        let mut traffic = self.before;
        traffic += self.stream.traffic()?;
        Ok(traffic)
    }

    pub(crate) fn finish(self) -> Result<Traffic, Fault> {
        let mut traffic = self.before;
        traffic += self.stream.finish()?;
        Ok(traffic)
    }

    fn reply(&mut self) -> Result<HttpReply, Fault> {
        let (reply, is_last) = reply(&mut self.stream)?;
        self.is_over = is_last;
        Ok(reply)
    }

    /// Opens another connection if the server has closed this one.
    fn reopen(&mut self) -> Result<(), Fault> {
        if self.is_over {
            let place = self.stream.place().clone();
            let old = std::mem::replace(&mut self.stream, Stream::connect(&place)?);
            self.before += old.traffic()?;
            self.is_over = false;
        }
        Ok(())
    }

    fn ask(&mut self, method: &str, target: &str, fields: &str, body: &[u8]) -> Result<(), Fault> {
        self.reopen()?;
        let request = request(method, &self.stream.place().host, target, fields, body);
        self.stream.send(&request)
    }
}

impl HttpReply {
    /// Returns the body if the response has this status. Any other status is an error.
    pub(crate) fn expect(self, status: u16) -> Result<Vec<u8>, Fault> {
        if self.status == status {
            return Ok(self.body);
        }
        Err(Fault::refused(self.status, &self.body))
    }
}

/// Waits for the complete response. Returns it, and true if the server closes the connection after it.
fn reply(stream: &mut Stream) -> Result<(HttpReply, bool), Fault> {
    let (status, end, location, is_last) = read_head(stream, |head| {
        let location = head.field("location").map(str::to_owned);
        (head.status, head.body_end(), location, head.is_last())
    })?;
    let end = end.map_err(wrong)?;
    let mut body = Body::new(end, MESSAGE_BYTES_MAX);
    while !receive(stream, &mut body)? {}
    let is_last = is_last || end == BodyEnd::Connection;
    Ok((HttpReply { status, body: body.into_bytes(), location }, is_last))
}

/// Waits for the beginning of a refusal's body. Makes a fault of it.
pub(super) fn refused(stream: &mut Stream, status: u16, end: BodyEnd) -> Fault {
    let mut body = Body::new(end, MESSAGE_BYTES_MAX);
    while body.bytes().len() < SHOWN_BYTES && matches!(receive(stream, &mut body), Ok(false)) {}
    Fault::refused(status, body.bytes())
}

/// Waits for more bytes of a body. Returns true once the body is complete.
fn receive(stream: &mut Stream, body: &mut Body) -> Result<bool, Fault> {
    let len = body.receive(stream.bytes()).map_err(wrong)?;
    stream.skip(len);
    if body.is_complete() {
        return Ok(true);
    }
    match stream.fill() {
        Err(Fault::Closed) if body.end() => Ok(true),
        filled => filled.map(|()| false),
    }
}

pub(super) fn read_head<T>(
    stream: &mut Stream,
    read: impl FnOnce(&Head<'_>) -> T,
) -> Result<T, Fault> {
    loop {
        if let Some(head) = head(stream.bytes()).map_err(wrong)? {
            let (value, len) = (read(&head), head.len);
            stream.take(len);
            return Ok(value);
        }
        within_head(stream.bytes().len())?;
        stream.fill()?;
    }
}

fn read_chunk(stream: &mut Stream) -> Result<Option<Vec<u8>>, Fault> {
    loop {
        if let Some((data, len)) = chunk(stream.bytes()).map_err(wrong)? {
            let (begin, end) = (len - 2 - data.len(), len - 2);
            let is_last = data.is_empty();
            let mut bytes = stream.take(len);
            bytes.truncate(end);
            return Ok((!is_last).then(|| bytes.split_off(begin)));
        }
        stream.fill()?;
    }
}

pub(super) fn wrong(error: anyhow::Error) -> Fault {
    let words = error.to_string();
    Fault::wrong("no HTTP", words.as_bytes())
}
