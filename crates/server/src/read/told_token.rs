//! The token of a reader of several topics: how long it is, and when it has to be sent.
//!
//! A short token is sent with each event. A long one would take more bytes than the events, so it is sent with some of
//! them, and a while after the others.

use std::time::Duration;

use anemone_wire::{After, Token};
use tokio::time::Instant;

use crate::{Kind, Problem};

/// A token up to this length is sent with each event.
const SHORT_BYTES: usize = 512;
/// A longer token is sent this long after an event without one, unless it is sent earlier.
const DELAY: Duration = Duration::from_secs(1);

/// The places up to which was told.
#[derive(Debug)]
pub(crate) struct ToldToken {
    token: Token,
    /// Its length; `None` if that may have changed.
    bytes: Option<usize>,
    bytes_max: usize,
    /// The bytes of the events since it was sent.
    event_bytes: usize,
    /// The end of the turn in which the first of them came.
    owed_since: Option<Instant>,
}

impl ToldToken {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let token = Token::default();
        Self { token, bytes: None, bytes_max, event_bytes: 0, owed_since: None }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn place(&mut self, name: &str, place: After) {
        let is_as_long = match (self.token.get(name), place) {
            (Some(After::Position(old)), After::Position(new)) => {
                old.epoch == new.epoch && old.offset.checked_ilog10() == new.offset.checked_ilog10()
            }
            _ => false,
        };
        if !is_as_long {
            self.bytes = None;
        }
        self.token.set(name, place);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.token.remove(name);
        self.bytes = None;
    }

    /// Returns the length of the token.
    pub(crate) fn bytes(&mut self) -> usize {
        *self.bytes.get_or_insert_with(|| self.token.to_string().len())
    }

    /// Returns the bytes by which the token makes each event longer, at most.
    pub(crate) fn event_bytes_max(&mut self) -> usize {
        self.bytes().min(SHORT_BYTES)
    }

    /// Checks that the token is as short as it has to be.
    pub(crate) fn check(&mut self) -> Result<(), Problem> {
        match self.bytes() {
            bytes if bytes <= self.bytes_max => Ok(()),
            bytes => Err(too_long(bytes, self.token.names().count(), self.bytes_max)),
        }
    }

    /// Counts an event, and returns true if the token comes with it.
    pub(crate) fn comes_with(&mut self, event_bytes: usize) -> bool {
        self.event_bytes += event_bytes;
        let bytes = self.bytes();
        bytes <= SHORT_BYTES || self.event_bytes >= bytes
    }

    /// Notes that a turn is over, and returns true if the token has to be sent now.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.event_bytes == 0 {
            return false;
        }
        let now = Instant::now();
        now >= *self.owed_since.get_or_insert(now) + DELAY
    }

    /// Returns when the token has to be sent, if nothing else comes.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.owed_since.map(|since| since + DELAY)
    }

    /// Notes that the token is sent, and returns true if events had come without.
    pub(crate) fn note_sent(&mut self) -> bool {
        self.owed_since = None;
        std::mem::take(&mut self.event_bytes) > 0
    }
}

/// Returns the problem of topics whose places do not fit a token.
pub(crate) fn too_long(bytes: usize, topics: usize, bytes_max: usize) -> Problem {
    let detail = format!(
        "the token with the positions in {topics} topics takes {bytes} bytes or more, but {bytes_max} are allowed: read \
         them in several streams, or over /ws"
    );
    Problem::new(Kind::TokenTooLong, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_length_is_that_of_its_text_whatever_changes() {
        let mut told = ToldToken::new(100);
        for (name, place) in [
            ("a", "x-0"),
            ("a", "x-9"),
            ("a", "x-10"),
            ("b", "x-1"),
            ("b", "y-1"),
            ("b", "y-100~"),
            ("a", "y-10"),
            ("a", "latest"),
            ("a", "y-99"),
        ] {
            told.place(name, place.parse().unwrap());
            assert_eq!(told.bytes(), told.token().to_string().len(), "{name}:{place}");
        }
        told.remove("a");
        assert_eq!(told.bytes(), told.token().to_string().len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_token_comes_once_events_take_as_much_or_after_a_while() {
        let mut told = ToldToken::new(10_000);
        for number in 0..100 {
            told.place(&format!("topic-{number}"), "x-1".parse().unwrap());
        }
        let bytes = told.bytes();
        assert!(bytes > SHORT_BYTES);
        assert!(!told.is_due(), "nothing came");
        assert!(!told.comes_with(bytes - 1) && told.comes_with(1));
        assert!(told.note_sent() && !told.note_sent());
        assert!(!told.comes_with(1) && !told.is_due());
        let due = told.due().unwrap();
        tokio::time::advance(DELAY / 2).await;
        assert!(!told.comes_with(1) && !told.is_due());
        assert_eq!(told.due(), Some(due), "the first event counts");
        tokio::time::advance(DELAY / 2).await;
        assert!(told.is_due() && told.note_sent() && !told.is_due());
        assert_eq!(told.due(), None);
    }

    #[test]
    fn a_short_token_comes_with_each_event() {
        let mut told = ToldToken::new(10_000);
        told.place("a", "x-1".parse().unwrap());
        assert!(told.comes_with(1));
    }
}
