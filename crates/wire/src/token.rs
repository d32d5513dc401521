//! Tokens: the places of a reader in several topics ("Many topics" in `docs/PROTOCOL.md`).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::{After, Epoch, Position};

/// The places of a reader in several topics, by their names: what `after` and `Last-Event-ID` are for one topic.
///
/// Text: `NAME:AFTER` for each topic, in the order of names, with commas between them. A position whose epoch is that of
/// the position before it is only its offset: `cpu0:4zq81x-7,cpu1:12,wind:4zq81x-41`.
///
/// ```
/// use anemone_wire::{After, Token};
///
/// let mut token: Token = "cpu0:4zq81x-7,wind:41".parse()?;
/// assert_eq!(token.get("wind").unwrap().to_string(), "4zq81x-41");
/// token.set("wind", After::Position("4zq81x-42".parse()?));
/// assert_eq!(token.to_string(), "cpu0:4zq81x-7,wind:42");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Token(BTreeMap<Box<str>, After>);

/// An error: the text is no token.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// An entry is no name and place.
    #[error(
        "{text:?} is not NAME:AFTER, such as wind:4zq81x-42, with a comma between two of them; only after another position can an \
         epoch be left out"
    )]
    Entry {
        /// The entry, cut to 40 characters.
        text: String,
    },
    /// Two entries have the same name.
    #[error("{name:?} is there twice")]
    Twice {
        /// The name, cut to 40 characters.
        name: String,
    },
}

impl Token {
    /// The place in this topic, if it has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<After> {
        self.0.get(name).copied()
    }

    /// Sets the place in a topic.
    pub fn set(&mut self, name: &str, place: After) {
        if let Some(own) = self.0.get_mut(name) {
            *own = place;
        } else {
            self.0.insert(name.into(), place);
        }
    }

    /// Removes the place in a topic.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The names of the topics, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut epoch = None;
        for (index, (name, place)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{name}:")?;
            match *place {
                After::Position(position) if epoch == Some(position.epoch) => {
                    write!(f, "{}", position.offset)?;
                }
                After::Anew(position) if epoch == Some(position.epoch) => {
                    write!(f, "{}{}", position.offset, After::ANEW)?;
                }
                place => write!(f, "{place}")?,
            }
            epoch = place.position().map_or(epoch, |position| Some(position.epoch));
        }
        Ok(())
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let excerpt = |text: &str| text.chars().take(40).collect::<String>();
        let (mut token, mut epoch) = (Self::default(), None);
        for entry in text.split(',') {
            let error = || TokenError::Entry { text: excerpt(entry) };
            let (name, place) = entry.split_once(':').ok_or_else(error)?;
            if name.is_empty() {
                return Err(error());
            }
            let place = parse_place(place, epoch).ok_or_else(error)?;
            epoch = place.position().map_or(epoch, |position| Some(position.epoch));
            if token.0.insert(name.into(), place).is_some() {
                return Err(TokenError::Twice { name: excerpt(name) });
            }
        }
        Ok(token)
    }
}

/// Reads a place, which may be an offset in the epoch before it.
fn parse_place(text: &str, epoch: Option<Epoch>) -> Option<After> {
    if let Ok(place) = text.parse() {
        return Some(place);
    }
    let (digits, place): (_, fn(Position) -> After) = match text.strip_suffix(After::ANEW) {
        Some(digits) => (digits, After::Anew),
        None => (text, After::Position),
    };
    let is_canonical = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    let offset = digits.parse().ok().filter(|_| is_canonical)?;
    Some(place(Position { epoch: epoch?, offset }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written() {
        for text in [
            "wind:4zq81x-41",
            "cpu0:5abc-7,wind:4zq81x-41",
            "$topics:a-3,a:0,b:17~,c:b-1,d:2,e:a-0",
            "a:-10,b:latest,c:earliest",
            "a:a-1,b:latest,c:2",
        ] {
            assert_eq!(text.parse::<Token>().unwrap().to_string(), text);
        }
        let mut token = "b:a-1,a:a-2".parse::<Token>().unwrap();
        assert_eq!(token.to_string(), "a:a-2,b:1", "in the order of names, with one epoch");
        token.remove("a");
        token.set("b", "a-5~".parse().unwrap());
        token.set("c", "a-0".parse().unwrap());
        assert_eq!((token.to_string().as_str(), token.get("a")), ("b:a-5~,c:0", None));
        assert_eq!(token.names().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            ",",
            "wind",
            "wind:",
            ":a-1",
            "wind:a",
            "wind:7",
            "wind:a-1,",
            ",wind:a-1",
            "wind:a-1,cpu",
            "wind:a-1,cpu:01",
            "wind:a-1,cpu:-0",
            "wind:a-1,cpu:+1",
            "wind:a-1,cpu:1 ",
            "wind:a-1;cpu:1",
            "wind:a-1,cpu:~",
            "wind:a-1,cpu:18446744073709551616",
            "wind:A-1",
            "wind:a-1:b",
            "4zq81x-41",
        ] {
            let error = text.parse::<Token>().unwrap_err();
            assert!(matches!(error, TokenError::Entry { .. }), "{text:?}: {error}");
        }
        let twice = "a:a-1,b:2,a:3".parse::<Token>().unwrap_err();
        assert_eq!(twice.to_string(), "\"a\" is there twice");
        let long = format!("wind:{}", "x".repeat(9_000)).parse::<Token>().unwrap_err();
        assert!(long.to_string().len() < 250);
    }

    proptest! {
        #[test]
        fn any_token_survives_its_text(
            entries in proptest::collection::btree_map("[$a-z][a-z.]{0,4}", (0_u64..3, any::<u64>(), any::<bool>()), 1..9)
        ) {
            let mut token = Token::default();
            for (name, (epoch, offset, is_anew)) in &entries {
                let position = Position { epoch: Epoch::from_bits(*epoch), offset: *offset };
                token.set(name, if *is_anew { After::Anew(position) } else { After::Position(position) });
            }
            prop_assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        }

        #[test]
        fn no_text_is_read_as_something_it_does_not_say(text in "([a-c]{0,2}:[0-9a-c]{0,2}-?[0-9]{0,3}~?,?){1,3}") {
            if let Ok(token) = text.parse::<Token>() {
                prop_assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
            }
        }
    }
}
