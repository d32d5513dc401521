//! The content of a batch.

/// The type of a body, which says what its events are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Content {
    /// One event, a JSON value.
    Json,
    /// One event, a string, in UTF-8.
    Text,
    /// One event, any bytes; it will read `{"base64":"…"}`.
    Binary,
    /// Many events, a JSON value a line: all of them are published, or none.
    Lines,
}
