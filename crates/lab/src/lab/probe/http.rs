//! Requests over one HTTP/1.1 connection, and streams of chunks.

use super::stream::AT_ONCE_BYTES;
use super::{Fault, Place, Stream};
use crate::load::{Head, chunk, head, request};
use crate::tcp_info::Traffic;

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The field `Location`, if there is one.
    pub(crate) location: Option<String>,
}

/// A connection that is kept alive.
#[derive(Debug)]
pub(crate) struct Http(Stream);

impl Http {
    pub(crate) fn connect(place: &Place) -> Result<Self, Fault> {
        Stream::connect(place).map(Self)
    }

    /// Sends a request, and returns the whole response. Each of `fields` ends with a line end.
    pub(crate) fn call(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<Reply, Fault> {
        self.ask(method, target, fields, body)?;
        reply(&mut self.0)
    }

    /// The same for a body whose echo comes while it is sent.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<Reply, Fault> {
        let request = request(method, &self.0.place().host, target, fields, body);
        if request.len() <= AT_ONCE_BYTES {
            self.0.send(&request)?;
            return reply(&mut self.0);
        }
        self.0.send_beside(&request, reply)
    }

    /// Sends a request whose response is a stream of chunks: [`chunk`](Self::chunk) returns these.
    pub(crate) fn stream(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &[u8],
    ) -> Result<(), Fault> {
        self.ask(method, target, fields, body)?;
        match read_head(&mut self.0, |head| head.status)? {
            200 => Ok(()),
            status => {
                let body = String::from_utf8_lossy(self.0.bytes()).into_owned();
                Err(Fault::Refused { status, body })
            }
        }
    }

    /// Returns the next chunk; `None` after the last one.
    pub(crate) fn chunk(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        read_chunk(&mut self.0)
    }

    /// Returns what the connection has carried so far.
    pub(crate) fn traffic(&self) -> Result<Traffic, Fault> {
        self.0.traffic()
    }

    pub(crate) fn finish(self) -> Result<Traffic, Fault> {
        self.0.finish()
    }

    fn ask(&mut self, method: &str, target: &str, fields: &str, body: &[u8]) -> Result<(), Fault> {
        let request = request(method, &self.0.place().host, target, fields, body);
        self.0.send(&request)
    }
}

impl Reply {
    /// Returns the body, if the status is this one.
    pub(crate) fn expect(self, status: u16) -> Result<Vec<u8>, Fault> {
        if self.status == status {
            return Ok(self.body);
        }
        let body = String::from_utf8_lossy(&self.body).into_owned();
        Err(Fault::Refused { status: self.status, body })
    }
}

/// Waits for the whole response.
fn reply(stream: &mut Stream) -> Result<Reply, Fault> {
    let (status, length, location) = read_head(stream, |head| {
        let length = head.field("content-length").map(str::to_owned);
        (head.status, length, head.field("location").map(str::to_owned))
    })?;
    let Some(length) = length else {
        let mut body = Vec::new();
        while let Some(chunk) = read_chunk(stream)? {
            body.extend_from_slice(&chunk);
        }
        return Ok(Reply { status, body, location });
    };
    let wrong = |_| Fault::wrong("a Content-Length is no number", length.as_bytes());
    let len = length.parse().map_err(wrong)?;
    stream.fill_to(len)?;
    Ok(Reply { status, body: stream.take(len), location })
}

fn read_head<T>(stream: &mut Stream, read: impl FnOnce(&Head<'_>) -> T) -> Result<T, Fault> {
    loop {
        if let Some(head) = head(stream.bytes()).map_err(wrong)? {
            let (value, len) = (read(&head), head.len);
            stream.take(len);
            return Ok(value);
        }
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

fn wrong(error: anyhow::Error) -> Fault {
    Fault::Wrong(format!("no HTTP: {error:#}"))
}
