//! A reply of a service.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use crate::Error;

/// The status and the header fields of a reply.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) fields: HeaderMap,
}

impl Head {
    /// Returns the value of a field, if it is text.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.to_str().ok()
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Returns true if the reply is a stream of items.
    pub(super) fn is_stream(&self) -> bool {
        let essence = self.field(CONTENT_TYPE.as_str()).unwrap_or_default().split(';').next();
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/x-ndjson"))
    }
}

/// A reply: a success, or 304. The body is complete, or arrives in pieces, as in a [`ReplyStream`](crate::ReplyStream).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reply<B = Bytes> {
    pub(super) head: Head,
    pub(super) body: B,
}

impl<B> Reply<B> {
    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Returns the value of a header field, if the reply has it and it is text.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.field(name)
    }

    /// Returns the header fields whose values are text, with names in lower case. For a stream on a multiplexed
    /// connection, these are only the fields at its beginning.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head.fields()
    }
}

impl Reply {
    /// Returns the body. The body of a stream has a line for each item.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the body is not the expected JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Malformed(error.into()))
    }
}
