//! The parts of HTTP/1.1 that the load needs: requests, responses with a length, and chunks.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};

use super::connect;

const READ_BYTES: usize = 4096;
/// The longest chunk. A longer one is a fault of the server.
const CHUNK_BYTES_MAX: usize = 64 << 20;

/// Returns a request for `target`. Each of `fields` ends with a line end.
pub(crate) fn request(
    method: &str,
    host: impl Display,
    target: &str,
    fields: &str,
    body: &[u8],
) -> Vec<u8> {
    let length = match body.len() {
        0 => String::new(),
        len => format!("Content-Length: {len}\r\n"),
    };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}{length}\r\n");
    [head.as_bytes(), body].concat()
}

/// A complete response, with its length.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a str,
    pub(crate) len: usize,
}

impl Response<'_> {
    pub(crate) fn ensure_status(&self, status: u16) -> anyhow::Result<()> {
        ensure!(self.status == status, "status {} instead of {status}: {}", self.status, self.body);
        Ok(())
    }
}

/// Parses the response at the beginning of `bytes`. Returns `None` until it is complete.
pub(crate) fn response(bytes: &[u8]) -> anyhow::Result<Option<Response<'_>>> {
    let Some(head) = head(bytes)? else { return Ok(None) };
    let length = head.field("content-length").context("a response says no length")?;
    let body_bytes: usize = length.parse().context("a response's length is no number")?;
    let Some(body) = bytes.get(head.len..head.len + body_bytes) else { return Ok(None) };
    let (body, len) = (std::str::from_utf8(body)?, head.len + body_bytes);
    Ok(Some(Response { status: head.status, body, len }))
}

/// The status line and the fields of a response.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) status: u16,
    fields: &'a str,
    /// The length of the head, including the interim responses before it.
    pub(crate) len: usize,
}

impl Head<'_> {
    /// Returns true if the server closes the connection after the response (RFC 9112 section 9.3).
    pub(crate) fn is_last(&self) -> bool {
        let connection = self.field("connection").unwrap_or_default().to_ascii_lowercase();
        connection.contains("close")
            || self.fields.starts_with("HTTP/1.0") && !connection.contains("keep-alive")
    }

    /// Returns the head itself, without the interim responses before it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.fields, "\r\n\r\n"].concat().into_bytes()
    }

    /// Returns the end of the response's body (RFC 9112 section 6.3).
    pub(crate) fn body_end(&self) -> anyhow::Result<BodyEnd> {
        if [101, 204, 304].contains(&self.status) {
            return Ok(BodyEnd::Length(0));
        }
        if self.field("transfer-encoding").is_some() {
            return Ok(BodyEnd::LastChunk);
        }
        let Some(length) = self.field("content-length") else { return Ok(BodyEnd::Connection) };
        let length = length.parse().with_context(|| format!("no Content-Length: {length}"))?;
        Ok(BodyEnd::Length(length))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.split("\r\n").filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// Parses the head of a response at the beginning of `bytes`. Returns `None` until it is complete. Skips interim
/// responses before it (RFC 9110 section 15.2). It does not skip 101, since no other response follows that.
pub(crate) fn head(bytes: &[u8]) -> anyhow::Result<Option<Head<'_>>> {
    const SWITCHING_PROTOCOLS: u16 = 101;
    let mut begin = 0;
    loop {
        let Some(end) = find(&bytes[begin..], b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&bytes[begin..begin + end])?;
        let line = head.lines().next().unwrap_or_default();
        let rest = ["HTTP/1.1 ", "HTTP/1.0 "].iter().find_map(|version| line.strip_prefix(version));
        let status = rest.and_then(|rest| rest.get(..3)).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no response: {line}"))?;
        begin += end + 4;
        if !(100..200).contains(&status) || status == SWITCHING_PROTOCOLS {
            return Ok(Some(Head { status, fields: head, len: begin }));
        }
    }
}

/// Parses the chunk at the beginning of `bytes` (RFC 9112 section 7.1). Returns its data and its complete length, or
/// `None` until it is complete. The last chunk of a stream is empty, and includes the trailers.
pub(crate) fn chunk(bytes: &[u8]) -> anyhow::Result<Option<(&[u8], usize)>> {
    let Some(line) = find(bytes, b"\r\n") else { return Ok(None) };
    let size = std::str::from_utf8(&bytes[..line])?;
    // Extensions come after a semicolon.
    let digits = size.split(';').next().unwrap_or_default().trim_end();
    let size = usize::from_str_radix(digits, 16).with_context(|| format!("no chunk: {size}"))?;
    ensure!(size <= CHUNK_BYTES_MAX, "a chunk of {size} bytes came");
    let (begin, end) = (line + 2, line + 2 + size);
    if size == 0 && !bytes[end..].starts_with(b"\r\n") {
        let trailers = find(&bytes[end..], b"\r\n\r\n");
        return Ok(trailers.map(|len| (&bytes[..0], end + len + 4)));
    }
    let Some(after) = bytes.get(end..end + 2) else { return Ok(None) };
    ensure!(after == b"\r\n", "a chunk goes on after its end");
    Ok(Some((&bytes[begin..end], end + 2)))
}

/// The end of a response's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BodyEnd {
    /// The body ends after this number of bytes.
    Length(usize),
    /// The body ends with an empty chunk.
    LastChunk,
    /// The body ends with the connection.
    Connection,
}

/// The body of a response. It arrives in pieces.
#[derive(Debug)]
pub(crate) struct Body {
    end: BodyEnd,
    bytes_max: usize,
    bytes: Vec<u8>,
    is_complete: bool,
}

impl Body {
    /// Creates a body. More than `bytes_max` bytes are an error.
    pub(crate) fn new(end: BodyEnd, bytes_max: usize) -> Self {
        Self { end, bytes_max, bytes: Vec::new(), is_complete: false }
    }

    /// Takes the bytes of the body from `came`, and returns their number. The bytes after them belong to the next
    /// response.
    pub(crate) fn receive(&mut self, came: &[u8]) -> anyhow::Result<usize> {
        let mut taken = 0;
        match self.end {
            BodyEnd::Length(length) => {
                self.ensure_limit(length)?;
                taken = came.len().min(length - self.bytes.len());
                self.bytes.extend_from_slice(&came[..taken]);
                self.is_complete = self.bytes.len() == length;
            }
            BodyEnd::LastChunk => {
                while !self.is_complete
                    && let Some((data, len)) = chunk(&came[taken..])?
                {
                    taken += len;
                    self.ensure_limit(self.bytes.len() + data.len())?;
                    self.bytes.extend_from_slice(data);
                    self.is_complete = data.is_empty();
                }
            }
            BodyEnd::Connection => {
                taken = came.len();
                self.ensure_limit(self.bytes.len() + taken)?;
                self.bytes.extend_from_slice(came);
            }
        }
        Ok(taken)
    }

    /// Notes that the connection has ended. Returns false if bytes of the body are missing.
    pub(crate) fn end(&mut self) -> bool {
        self.is_complete |= self.end == BodyEnd::Connection;
        self.is_complete
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the bytes of the body that have come so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn ensure_limit(&self, bytes: usize) -> anyhow::Result<()> {
        ensure!(bytes <= self.bytes_max, "a body has more than {} bytes", self.bytes_max);
        Ok(())
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(|&byte| byte == what[0])?;
        if bytes[at..].starts_with(what) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Sends a request on a new connection, and returns the status and the body of the response.
pub(super) fn exchange(address: SocketAddr, request: &[u8]) -> anyhow::Result<(u16, String)> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    answer(&mut stream, &mut bytes)
}

/// Posts a body on a new connection, and returns the status and the body of the response. Each of `fields` ends with a line
/// end.
pub(crate) fn post(
    address: SocketAddr,
    path: &str,
    fields: &str,
    body: &[u8],
) -> anyhow::Result<(u16, String)> {
    exchange(address, &request("POST", address, path, fields, body))
}

/// Waits for the response on a connection with no other requests.
pub(super) fn answer(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> anyhow::Result<(u16, String)> {
    bytes.clear();
    loop {
        read_more(stream, bytes)?;
        if let Some(response) = response(bytes)? {
            ensure!(response.len == bytes.len(), "more came than a response");
            return Ok((response.status, response.body.to_owned()));
        }
    }
}

/// Waits for more bytes and appends them.
pub(super) fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut buffer = [0; READ_BYTES];
    let len = stream.read(&mut buffer).context("waiting for a response")?;
    ensure!(len > 0, "the server closed a connection: {}", bytes.escape_ascii());
    bytes.extend_from_slice(&buffer[..len]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_there_once_its_last_byte_is() {
        let bytes = b"HTTP/1.1 201 Created\r\nX: y\r\ncontent-LENGTH: 3\r\n\r\nabcHTTP";
        for cut in 0..bytes.len() - 4 {
            assert!(response(&bytes[..cut]).unwrap().is_none(), "{cut}");
        }
        let found = response(bytes).unwrap().unwrap();
        assert_eq!((found.status, found.body, found.len), (201, "abc", bytes.len() - 4));
        assert!(found.ensure_status(200).is_err());
    }

    #[test]
    fn interim_responses_and_the_older_version_are_understood() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.0 200 OK\r\nA: b\r\n\r\n";
        for cut in 0..bytes.len() {
            assert!(head(&bytes[..cut]).unwrap().is_none(), "{cut}");
        }
        let found = head(bytes).unwrap().unwrap();
        assert_eq!((found.status, found.field("a"), found.len), (200, Some("b"), bytes.len()));
        assert!(found.is_last());
        let is_last = |text: &str| head(text.as_bytes()).unwrap().unwrap().is_last();
        assert!(!is_last("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(!is_last("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n"));
        assert!(is_last("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n"));
        assert_eq!(head(b"HTTP/1.1 101 Switching\r\n\r\n").unwrap().unwrap().status, 101);
        assert!(head(b"SSH-2.0-x\r\n\r\n").is_err());
    }

    #[test]
    fn a_chunk_is_there_once_its_last_byte_is() {
        let bytes = b"A\r\n0123456789\r\n1";
        for cut in 0..bytes.len() - 1 {
            assert!(chunk(&bytes[..cut]).unwrap().is_none(), "{cut}");
        }
        assert_eq!(chunk(bytes).unwrap(), Some((&b"0123456789"[..], bytes.len() - 1)));
        assert_eq!(chunk(b"0\r\n\r\n").unwrap(), Some((&b""[..], 5)));
        let extended = b"2 ;a=\"b\"\r\nhi\r\n";
        assert_eq!(chunk(extended).unwrap(), Some((&b"hi"[..], extended.len())));
        let trailers = b"0\r\nA: b\r\nC: d\r\n\r\n";
        assert_eq!(chunk(trailers).unwrap(), Some((&b""[..], trailers.len())));
        assert!(chunk(&trailers[..trailers.len() - 1]).unwrap().is_none());
        assert!(chunk(b"ffffffffffffffff\r\n").is_err());
        assert!(chunk(b"x\r\n").is_err());
        assert!(chunk(b"1\r\nabc").is_err());
    }

    /// Reads a reply byte by byte. Its body may have at most four bytes. Returns the body, the bytes after it, and true
    /// if the body is complete.
    fn body(head_and_body: &str) -> anyhow::Result<(String, String, bool)> {
        let bytes = head_and_body.as_bytes();
        let (mut body, mut from, mut to) = (None, 0, 0);
        while to < bytes.len() {
            to += 1;
            if let Some(body) = &mut body {
                from += Body::receive(body, &bytes[from..to])?;
            } else if let Some(head) = head(&bytes[..to])? {
                from = head.len;
                let mut begun = Body::new(head.body_end()?, 4);
                begun.receive(b"")?;
                body = Some(begun);
            }
        }
        let mut body = body.unwrap();
        let is_complete = body.is_complete() || body.end();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Ok((text(body.bytes()), text(&bytes[from..]), is_complete))
    }

    #[test]
    fn a_body_ends_as_its_head_says() {
        // RFC 9112 section 6.3
        let of = |fields: &str, came: &str| body(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n{came}"));
        let all = |body: &str, rest: &str| (body.to_owned(), rest.to_owned(), true);
        let cut = |body: &str, rest: &str| (body.to_owned(), rest.to_owned(), false);
        let (length, chunked) = ("Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n");
        assert_eq!(of(length, "nopeHTTP").unwrap(), all("nope", "HTTP"));
        assert_eq!(of(length, "nop").unwrap(), cut("nop", ""));
        assert_eq!(
            of(chunked, "3\r\nnop\r\n1\r\ne\r\n0\r\n\r\nHTTP").unwrap(),
            all("nope", "HTTP")
        );
        assert_eq!(of(chunked, "3\r\nnop\r\n1\r\n").unwrap(), cut("nop", "1\r\n"));
        assert_eq!(of(&[length, chunked].concat(), "1\r\na\r\n0\r\n\r\n").unwrap(), all("a", ""));
        assert_eq!(of("", "nope").unwrap(), all("nope", ""));
        assert_eq!(body("HTTP/1.1 204 No Content\r\n\r\nHTTP").unwrap(), all("", "HTTP"));
        for (fields, came) in
            [("Content-Length: 5\r\n", ""), (chunked, "5\r\nnopes\r\n"), ("", "nopes")]
        {
            let error = of(fields, came).unwrap_err().to_string();
            assert_eq!(error, "a body has more than 4 bytes", "{fields}");
        }
        assert!(of("Content-Length: x\r\n", "").is_err());
    }

    #[test]
    fn a_body_is_announced_and_none_is_not() {
        let host = SocketAddr::from(([127, 0, 0, 1], 80));
        assert_eq!(
            request("POST", host, "/a", "X: y\r\n", b"{}"),
            b"POST /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\nX: y\r\nContent-Length: 2\r\n\r\n{}"
        );
        assert_eq!(
            request("GET", host, "/a", "", b""),
            b"GET /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"
        );
    }
}
