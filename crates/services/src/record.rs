//! Records, and what the methods of a resource return.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use anemone_hub::Position;

/// The members of a record, by name. Those of a stored record include `id`.
pub type Fields = serde_json::Map<String, serde_json::Value>;

/// The version of a record: an entity tag (RFC 9110 section 8.8.3) without its quotes.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Tag(Arc<str>);

impl Tag {
    /// Takes the text between the quotes; `None` if it has characters that no tag may have.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        fits.then(|| Self(text.into()))
    }

    /// Returns the text between the quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Position> for Tag {
    fn from(position: Position) -> Self {
        Self(position.to_string().into())
    }
}

impl fmt::Display for Tag {
    /// With its quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its members, with `id`.
    pub fields: Fields,
    /// Its version; `None` if it is not stored.
    pub tag: Option<Tag>,
}

/// The result of a change, which a key makes safe to repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The record as the change has made it, or as it was before it was removed.
    pub record: Record,
    /// True if the idempotency key was known, and nothing was changed now.
    pub is_replayed: bool,
}

/// The result of a find: a page of records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The number of records that the filter matches, on this page or not.
    pub total: u64,
    /// The records on this page, as the query selects them.
    pub data: Vec<FoundRecord>,
}

/// The members of a record on a page, shared with the resource, and the length of their JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRecord {
    fields: Arc<Fields>,
    json_bytes: usize,
}

impl FoundRecord {
    /// Returns the length of its JSON in bytes, with its escapes.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        self.json_bytes
    }

    /// Writes its JSON at the end of the bytes.
    pub(crate) fn write_json(&self, bytes: &mut Vec<u8>) {
        // Neither the names nor the values of a record can fail, and nor can the bytes.
        let _ = serde_json::to_writer(bytes, &*self.fields);
    }
}

impl From<Arc<Fields>> for FoundRecord {
    fn from(fields: Arc<Fields>) -> Self {
        let mut counter = Counter(0);
        // As above.
        let _ = serde_json::to_writer(&mut counter, &*fields);
        Self { fields, json_bytes: counter.0 }
    }
}

impl From<Fields> for FoundRecord {
    fn from(fields: Fields) -> Self {
        Arc::new(fields).into()
    }
}

impl Deref for FoundRecord {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
