//! Reads the JSON document of a request. Each error names its place as a JSON Pointer, and what is allowed there.

use std::ops::RangeInclusive;

use anemone_hub::run::RunRefusal;
use serde_json::{Map, Value};

/// A value, or the reason why it is refused.
pub(super) type Checked<T> = Result<T, RunRefusal>;

/// A value of the document and its place.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    value: &'a Value,
    pointer: String,
}

/// An object of the document, whose members are all known.
#[derive(Clone, Debug)]
pub(super) struct Members<'a> {
    members: &'a Map<String, Value>,
    pointer: String,
}

/// Returns the refusal of what stands at a place.
pub(super) fn unfit(pointer: impl Into<String>, detail: impl Into<String>) -> RunRefusal {
    RunRefusal::Unprocessable { pointer: Some(pointer.into()), detail: detail.into() }
}

/// The most characters of a word of the client that an error quotes.
const QUOTED_CHARS_MAX: usize = 40;

/// Returns the start of a text of the client.
pub(super) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, pointer: String::new() }
    }

    pub(super) fn unfit(&self, detail: impl Into<String>) -> RunRefusal {
        unfit(self.pointer.clone(), detail)
    }

    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Takes an object with no other members than these.
    pub(super) fn object(&self, known: &[&str]) -> Checked<Members<'a>> {
        let members = self.open_object()?;
        match members.members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(other) => {
                let detail = format!("is not known; known are {}", known.join(", "));
                Err(unfit(members.pointer_to(&quoted(other)), detail))
            }
            None => Ok(members),
        }
    }

    /// Takes an object with any members.
    pub(super) fn open_object(&self) -> Checked<Members<'a>> {
        match self.value {
            Value::Object(members) => Ok(Members { members, pointer: self.pointer.clone() }),
            _ => Err(self.unfit("expected an object")),
        }
    }

    /// Takes an array with this many items.
    pub(super) fn items(&self, count: RangeInclusive<usize>) -> Checked<Vec<Self>> {
        let expected = || {
            let (least, most) = (count.start(), count.end());
            self.unfit(format!("expected an array of {least} to {most} items"))
        };
        let Value::Array(items) = self.value else { return Err(expected()) };
        if !count.contains(&items.len()) {
            return Err(expected());
        }
        let item = |(at, value)| Node { value, pointer: format!("{}/{at}", self.pointer) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Takes a number within this range.
    pub(super) fn number(&self, range: RangeInclusive<f64>, unit: &str) -> Checked<f64> {
        let found = self.value.as_f64().filter(|number| range.contains(number));
        found.ok_or_else(|| {
            let (min, max) = (range.start(), range.end());
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            self.unfit(format!("expected a number from {min} to {max}{unit}"))
        })
    }

    /// Takes one of these words.
    pub(super) fn word<T: Clone>(&self, words: &[(&str, T)]) -> Checked<T> {
        let is_it = |word: &&(&str, T)| self.value.as_str() == Some(word.0);
        let found = words.iter().find(is_it).map(|word| word.1.clone());
        found.ok_or_else(|| {
            let names: Vec<_> = words.iter().map(|word| word.0).collect();
            self.unfit(format!("expected one of {}", names.join(", ")))
        })
    }

    /// Takes a text with at most this many characters.
    pub(super) fn text(&self, chars_max: usize) -> Checked<&'a str> {
        let fits = |text: &&str| text.chars().nth(chars_max).is_none();
        let found = self.value.as_str().filter(fits);
        found
            .ok_or_else(|| self.unfit(format!("expected a text of at most {chars_max} characters")))
    }
}

impl<'a> Members<'a> {
    pub(super) fn pointer_to(&self, name: &str) -> String {
        format!("{}/{}", self.pointer, name.replace('~', "~0").replace('/', "~1"))
    }

    /// Returns a member; `None` if it is missing.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        let value = self.members.get(name)?;
        Some(Node { value, pointer: self.pointer_to(name) })
    }

    /// Returns a member that must be there.
    pub(super) fn require(&self, name: &str) -> Checked<Node<'a>> {
        self.get(name).ok_or_else(|| unfit(self.pointer_to(name), "is missing"))
    }

    /// Takes a number, or the default if it is missing.
    pub(super) fn number_or(
        &self,
        name: &str,
        default: f64,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Checked<f64> {
        self.get(name).map_or(Ok(default), |node| node.number(range, unit))
    }

    /// Takes a number that must be there.
    pub(super) fn number(
        &self,
        name: &str,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Checked<f64> {
        self.require(name)?.number(range, unit)
    }

    /// Takes one of these words, or the default if it is missing.
    pub(super) fn word_or<T: Clone>(
        &self,
        name: &str,
        default: T,
        words: &[(&str, T)],
    ) -> Checked<T> {
        self.get(name).map_or(Ok(default), |node| node.word(words))
    }
}
