//! The body of a call, from the command line, a file or standard input.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};

use anemone_client::Call;
use anemone_hub::Data;
use anemone_sources::without_mark;
use anyhow::Context;
use rustix::io::ioctl_fionread;
use serde_json::value::RawValue;

use super::InputError;
use crate::args;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const BINARY: &str = "application/octet-stream";

/// The largest body that is read; a server accepts less.
const BYTES_MAX: usize = 16 << 20;

impl args::Body {
    pub(super) fn apply(&self, call: Call) -> anyhow::Result<Call> {
        let Some(data) = &self.data else { return Ok(call) };
        let (mut bytes, found) = match data.strip_prefix('@') {
            _ if data == "-" => read(io::stdin().lock()).context("standard input")?,
            Some(path) => File::open(path)
                .map_err(InputError::BodyUnreadable)
                .and_then(read)
                .with_context(|| path.to_owned())?,
            None => (data.clone().into_bytes(), self.typed(data)?),
        };
        if self.content_type.is_none() && found != BINARY {
            bytes = without_mark(&bytes).to_vec();
        }
        Ok(call.body(self.content_type.as_deref().unwrap_or(found), bytes))
    }

    /// Warns if standard input has data that is not sent.
    pub(super) fn warn_of_unsent(&self) {
        // A shell gives a loop's input to each command in it, which is fine if the command has its own.
        let has_input = || {
            !io::stdin().is_terminal() && ioctl_fionread(io::stdin()).is_ok_and(|bytes| bytes > 0)
        };
        if self.data.is_none() && has_input() {
            tracing::warn!("standard input is not sent: use - as DATA to send it");
        }
    }

    /// Returns the type of a body on the command line.
    fn typed(&self, data: &str) -> Result<&'static str, InputError> {
        if is_json(data.as_bytes()) {
            return Ok(JSON);
        }
        match (&self.content_type, serde_json::from_str::<&RawValue>(data)) {
            (None, Err(error)) if Data::typed(data).is_err() => {
                Err(InputError::BodyLooksLikeJson(error))
            }
            _ => Ok(TEXT),
        }
    }
}

/// Reads a whole body, and returns it with its type.
fn read(input: impl Read) -> Result<(Vec<u8>, &'static str), InputError> {
    let mut body = Vec::new();
    let read = input.take(BYTES_MAX as u64 + 1).read_to_end(&mut body);
    read.map_err(InputError::BodyUnreadable)?;
    if body.len() > BYTES_MAX {
        return Err(InputError::BodyTooLong);
    }
    let content_type = match std::str::from_utf8(&body) {
        Ok(_) if is_json(&body) => JSON,
        Ok(_) => TEXT,
        Err(_) => BINARY,
    };
    Ok((body, content_type))
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(without_mark(body)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_the_type_that_it_looks_like() {
        let args = args::Body { data: None, content_type: None };
        assert!(matches!(args.typed("{\"a\":1}"), Ok(JSON)));
        assert!(matches!(args.typed("hi"), Ok(TEXT)));
        assert!(args.typed("{\"a\":").is_err());
        let text = args::Body { data: None, content_type: Some("text/plain".to_owned()) };
        assert!(text.typed("{\"a\":").is_ok());
        for (body, expected) in [
            (&b"[1]\n"[..], JSON),
            (b"\xef\xbb\xbf[1]", JSON),
            (b"1 2", TEXT),
            (b"\xff", BINARY),
            (b"", TEXT),
        ] {
            assert_eq!(read(body).unwrap(), (body.to_vec(), expected));
        }
        assert!(read(io::repeat(b'1')).is_err());
    }
}
