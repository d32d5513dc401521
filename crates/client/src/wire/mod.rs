//! Parsers of what servers send. No IO: bytes in, in any pieces, and [`Wire`]s out.
//!
//! Owns the spelling of each transport and the limits on what is kept of it. Whether what is said follows on
//! what was said before is the tracker's business.

pub(crate) mod frames;
pub(crate) mod item;
pub(crate) mod lines;
pub(crate) mod mux;
pub(crate) mod page;
pub(crate) mod sse;

use crate::item::UnixTime;
use crate::{EndReason, Gap, Position};

/// One thing that a server says about a topic, whatever the transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wire {
    /// The position at which reading begins, or stands.
    Standing(Position),
    Event {
        position: Position,
        time: Option<UnixTime>,
        data: String,
    },
    Gap(Gap),
    /// This many were passed over before the next event.
    Skipped(u64),
    /// Nothing more will come.
    End(EndReason),
}

/// Something that no Anemone server sends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Not JSON, or without a member that it must have.
    #[error("not the JSON it should be")]
    Json(#[from] serde_json::Error),
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Something stands where a position should.
    #[error("no position where one should be")]
    NoPosition,
    /// Longer than allowed.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A page contradicts itself.
    #[error("a page whose events, gap and next position contradict one another")]
    Page,
    /// A multiplexed message that is not `STATUS ID`.
    #[error("not a message of anemone.v1")]
    NotMultiplexed,
}

impl From<std::str::Utf8Error> for Malformed {
    fn from(_: std::str::Utf8Error) -> Self {
        Self::NotUtf8
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use proptest::prelude::*;

    /// The places to cut at, as parts of the whole.
    pub(crate) fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
        prop::collection::vec(any::<prop::sample::Index>(), 0..12)
    }

    /// The pieces between the cuts.
    pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
    }
}
