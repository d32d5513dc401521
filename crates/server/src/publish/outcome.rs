//! The outcome for a batch, and its place.

use anemone_hub::Position;

/// The place of a batch in its topic.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Published {
    pub(crate) first: Position,
    pub(crate) last: Position,
}

impl Published {
    /// As every transport tells it: `{"position":P,"first":P,"count":N}`.
    pub(crate) fn to_json(self) -> String {
        let Self { first, last } = self;
        let count = last.offset - first.offset + 1; // a batch has its places in a row
        format!(r#"{{"position":"{last}","first":"{first}","count":{count}}}"#)
    }
}

/// The outcome for a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    Published(Published),
    /// Its key was seen before: it is there since then, and nothing was appended.
    Repeated(Published),
}

impl Outcome {
    /// Where it is.
    pub(crate) fn published(self) -> Published {
        let (Self::Published(published) | Self::Repeated(published)) = self;
        published
    }
}
