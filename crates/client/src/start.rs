//! The place where a subscription begins.

use crate::text::encoded;
use crate::{After, Token};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Start {
    /// A place.
    After(After),
    /// A place in each of several topics.
    Token(Token),
    /// The first event of a run. The server begins there by default.
    First,
    /// The first event at this time or later. The server parses the time.
    Since(String),
}

impl Default for Start {
    fn default() -> Self {
        After::default().into()
    }
}

impl From<After> for Start {
    /// Converts a place. A subscription always begins exactly there, so [`After::Anew`] and [`After::Position`] are the
    /// same.
    fn from(after: After) -> Self {
        Self::After(after.position().map_or(after, After::Position))
    }
}

impl Start {
    /// Returns the query parameter for the server, percent-encoded.
    pub(crate) fn parameter(&self) -> Option<(&'static str, String)> {
        match self {
            Self::After(after) => Some(("after", after.to_string())),
            Self::Token(token) => Some(("after", token.to_string())),
            Self::Since(time) => Some(("since", encoded(time))),
            Self::First => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_begin_is_a_parameter() {
        for (text, value) in [("latest", "latest"), ("-10", "-10"), ("a-7", "a-7"), ("a-7~", "a-7")]
        {
            let start = Start::from(text.parse::<After>().unwrap());
            assert_eq!(start.parameter(), Some(("after", value.to_owned())));
        }
        let since = Start::Since("2026-11-22 10:00:00+01:00".to_owned());
        let time = "2026-11-22+10%3A00%3A00%2B01%3A00".to_owned();
        assert_eq!(since.parameter(), Some(("since", time)));
        assert_eq!(Start::First.parameter(), None);
    }
}
