//! Requests over one HTTP/1.1 connection, and streams of chunks.

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
        let (status, length, location) = self.head(|head| {
            let length = head.field("content-length").map(str::to_owned);
            (head.status, length, head.field("location").map(str::to_owned))
        })?;
        let body = match length {
            Some(length) => {
                let wrong = |_| Fault::wrong("a Content-Length is no number", length.as_bytes());
                let len = length.parse().map_err(wrong)?;
                self.0.fill_to(len)?;
                self.0.take(len)
            }
            None => self.chunks()?,
        };
        Ok(Reply { status, body, location })
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
        match self.head(|head| head.status)? {
            200 => Ok(()),
            status => {
                let body = String::from_utf8_lossy(self.0.bytes()).into_owned();
                Err(Fault::Refused { status, body })
            }
        }
    }

    /// Returns the next chunk; `None` after the last one.
    pub(crate) fn chunk(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            if let Some((data, len)) = chunk(self.0.bytes()).map_err(wrong)? {
                let (begin, end) = (len - 2 - data.len(), len - 2);
                let is_last = data.is_empty();
                let mut bytes = self.0.take(len);
                bytes.truncate(end);
                return Ok((!is_last).then(|| bytes.split_off(begin)));
            }
            self.0.fill()?;
        }
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

    fn head<T>(&mut self, read: impl FnOnce(&Head<'_>) -> T) -> Result<T, Fault> {
        loop {
            if let Some(head) = head(self.0.bytes()).map_err(wrong)? {
                let (value, len) = (read(&head), head.len);
                self.0.take(len);
                return Ok(value);
            }
            self.0.fill()?;
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend_from_slice(&chunk);
        }
        Ok(body)
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

fn wrong(error: anyhow::Error) -> Fault {
    Fault::Wrong(format!("no HTTP: {error:#}"))
}
