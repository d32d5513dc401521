//! The header fields of a request, whichever parser has them.

use anemone_ws::proto::handshake::Fields as _;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Header fields, to be looked up by name.
pub(crate) trait Fields {
    /// The values of all fields of this name, which is given in lower case.
    fn all(&self, name: &'static str) -> impl Iterator<Item = &[u8]>;

    /// The names of all fields, as they came.
    fn names(&self) -> impl Iterator<Item = &str>;

    /// The first of those of this name.
    fn first(&self, name: &'static str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The first of them, if it is text.
    fn first_str(&self, name: &'static str) -> Option<&str> {
        self.first(name).and_then(|value| str::from_utf8(value).ok())
    }

    /// Whether there is one.
    fn has(&self, name: &'static str) -> bool {
        self.first(name).is_some()
    }
}

impl Fields for HeaderMap {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.get_all(name).into_iter().map(HeaderValue::as_bytes)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.keys().map(HeaderName::as_str)
    }
}

impl Fields for [httparse::Header<'_>] {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &[u8]> {
        self.values(name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|field| field.name)
    }
}
