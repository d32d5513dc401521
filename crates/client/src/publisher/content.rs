//! The content of a batch.

/// The content type of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// One event, a JSON value.
    Json,
    /// One event, a string, in UTF-8.
    Text,
    /// One event of any bytes; readers get `{"base64":"…"}`.
    Binary,
    /// Many events, one JSON value per line: all of them are published, or none.
    Lines,
}
