//! The names of topics.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a topic: 1 to 128 of `A-Z a-z 0-9 . _ -`, beginning with a letter or a digit, so that it needs no
/// escaping in a path.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// The longest name in bytes.
    pub const BYTES_MAX: usize = 128;
    /// The name of the [index](crate::Hub::index). No other topic can have it, since no text is parsed to it.
    pub const INDEX: &str = "$topics";

    pub(crate) fn of_index() -> Self {
        Self(Self::INDEX.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An error of a text that is not a topic's name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a topic's name is 1 to 128 of A-Z a-z 0-9 . _ - and begins with a letter or a digit")]
pub struct TopicNameError;

impl FromStr for TopicName {
    type Err = TopicNameError;

    fn from_str(text: &str) -> Result<Self, TopicNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins_well || text.len() > Self::BYTES_MAX || !text.bytes().all(allowed) {
            return Err(TopicNameError);
        }
        Ok(Self(text.into()))
    }
}

/// Names have the order of their texts.
impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
