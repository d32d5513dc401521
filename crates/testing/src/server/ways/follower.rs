//! A check of what a reader is told, the same for every way to read.

use serde_json::json;

use super::Told;

/// Follows a reader of the events that `Fixture::publish` makes, whose numbers are their offsets: no event comes twice,
/// and none is missing without a notice.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    /// The last event that was seen.
    pub offset: u64,
    /// The number of events that were skipped after that.
    pub skipped: u64,
    pub skipped_in_all: u64,
    /// The number of missing events, according to the server.
    pub missed: u64,
    pub events: u64,
}

impl Follower {
    pub fn new(offset: u64) -> Self {
        Self { offset, skipped: 0, skipped_in_all: 0, missed: 0, events: 0 }
    }

    pub fn position(&self) -> String {
        format!("ya-{}", self.offset)
    }

    /// Handles a new connection; the one before may have been cut between a notice and its event.
    pub fn reconnected(&mut self) {
        self.skipped = 0;
    }

    pub fn follow(&mut self, told: Told) {
        match told {
            Told::Position(position) => assert_eq!(position, self.position()),
            Told::Gap(gap) => {
                assert_eq!(
                    (&gap["reason"], &gap["after"]),
                    (&json!("retention"), &json!(self.position()))
                );
                let missed = gap["missed"].as_u64().unwrap();
                self.offset += missed;
                self.missed += missed;
                assert_eq!(gap["resume"], self.position());
            }
            Told::Skipped(count) => {
                assert!(count > 0 && self.skipped == 0, "{count} after {self:?}");
                self.skipped = count;
            }
            Told::Event { position, data } => {
                assert_eq!(data["n"], self.offset + self.skipped + 1, "after {self:?}");
                self.offset += self.skipped + 1;
                self.skipped_in_all += std::mem::take(&mut self.skipped);
                self.events += 1;
                if let Some(position) = position {
                    assert_eq!(position, self.position());
                }
            }
            other => panic!("{other:?} after {self:?}"),
        }
    }
}
