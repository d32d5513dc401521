//! Reads the JSON document of a run. Each error names its place as a JSON Pointer (RFC 6901), and what is allowed there.
//!
//! A node knows the document and its own value alone. Its pointer is sought in the document once an error needs it, so a long
//! document without errors costs nothing for them.

use std::ops::RangeInclusive;

use anemone_hub::run::RunRefusal;
use serde_json::{Map, Value};

use crate::json::{self, escaped};

pub(crate) use crate::json::quoted;

/// A value, or the reason why it is refused.
pub(crate) type Checked<T> = Result<T, RunRefusal>;

/// A value of the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    document: &'a Value,
    value: &'a Value,
}

/// An object of the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    node: Node<'a>,
    members: &'a Map<String, Value>,
}

/// Parses a body.
///
/// # Errors
/// When it is not JSON, with line and column, or when an object has a member twice.
pub(crate) fn parse(body: &[u8]) -> Checked<Value> {
    let (document, twice) = json::parse(body).map_err(|error| {
        RunRefusal::BadBody(format!("the body is not JSON: {}", json::fault(body, &error)))
    })?;
    if twice.is_empty() {
        return Ok(document);
    }
    Err(unfit(json::pointer(&twice), json::TWICE))
}

/// Returns a number for people: up to six decimals, and a number that is very large or small with its power of ten.
pub(crate) fn brief(number: f64) -> String {
    if number == 0.0 || (1e-6..1e12).contains(&number.abs()) {
        format!("{}", (number * 1e6).round() / 1e6)
    } else {
        format!("{number:.3e}")
    }
}

fn unfit(pointer: String, detail: impl Into<String>) -> RunRefusal {
    RunRefusal::Unprocessable { pointer: Some(pointer), detail: detail.into() }
}

impl<'a> Node<'a> {
    pub(crate) fn root(document: &'a Value) -> Self {
        Self { document, value: document }
    }

    pub(crate) fn unfit(&self, detail: impl Into<String>) -> RunRefusal {
        unfit(self.pointer(), detail)
    }

    /// Seeks this value in the document.
    pub(crate) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        find(self.document, self.value, &mut steps);
        steps.iter().rev().map(|step| format!("/{}", escaped(step))).collect()
    }

    pub(crate) fn object(&self, known: &[&str]) -> Checked<Members<'a>> {
        let members = self.open_object()?;
        match members.members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(other) => {
                let detail = format!("is unknown here; allowed are {}", known.join(", "));
                Err(members.unfit(&quoted(other), detail))
            }
            None => Ok(members),
        }
    }

    pub(crate) fn open_object(&self) -> Checked<Members<'a>> {
        match self.value {
            Value::Object(members) => Ok(Members { node: *self, members }),
            _ => Err(self.unfit("expected an object")),
        }
    }

    /// Takes an array with this many items.
    pub(crate) fn items(
        &self,
        count: RangeInclusive<usize>,
    ) -> Checked<impl ExactSizeIterator<Item = Self> + use<'a>> {
        let items = self.value.as_array();
        let Some(items) = items.filter(|items| count.contains(&items.len())) else {
            let found = items.map(|items| format!(", found {}", items.len())).unwrap_or_default();
            let (least, most) = (count.start(), count.end());
            return Err(self.unfit(format!("expected an array of {least} to {most} items{found}")));
        };
        let document = self.document;
        Ok(items.iter().map(move |value| Self { document, value }))
    }

    pub(crate) fn number(&self, range: RangeInclusive<f64>, unit: &str) -> Checked<f64> {
        let found = self.value.as_f64().filter(|number| range.contains(number));
        found.ok_or_else(|| self.unfit(number_within(&range, unit)))
    }

    pub(crate) fn whole(&self, range: RangeInclusive<u64>) -> Checked<u64> {
        let found = self.value.as_u64().filter(|number| range.contains(number));
        found.ok_or_else(|| self.unfit(whole_within(&range)))
    }

    pub(crate) fn word<T: Clone>(&self, words: &[(&str, T)]) -> Checked<T> {
        let is_it = |word: &&(&str, T)| self.value.as_str() == Some(word.0);
        let found = words.iter().find(is_it).map(|word| word.1.clone());
        found.ok_or_else(|| self.unfit(one_of(words)))
    }

    /// Takes an array of some of these words, each at most once.
    pub(crate) fn words<T: Clone + PartialEq>(&self, words: &[(&str, T)]) -> Checked<Vec<T>> {
        let mut found = Vec::new();
        for item in self.items(1..=words.len())? {
            let word = item.word(words)?;
            if found.contains(&word) {
                return Err(item.unfit("is there already: expected each word once"));
            }
            found.push(word);
        }
        Ok(found)
    }

    /// Takes a text with at most this many characters.
    pub(crate) fn text(&self, chars_max: usize) -> Checked<&'a str> {
        let fits = |text: &&str| text.chars().nth(chars_max).is_none();
        let found = self.value.as_str().filter(fits);
        found
            .ok_or_else(|| self.unfit(format!("expected a text of at most {chars_max} characters")))
    }

    /// Returns the value, for those who judge it themselves.
    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) fn is_null(&self) -> bool {
        self.value.is_null()
    }

    pub(crate) fn any_text(&self) -> Checked<&'a str> {
        self.value.as_str().ok_or_else(|| self.unfit("expected a text"))
    }
}

impl<'a> Members<'a> {
    /// Returns the refusal of a member, which may be missing.
    pub(crate) fn unfit(&self, name: &str, detail: impl Into<String>) -> RunRefusal {
        unfit(format!("{}/{}", self.node.pointer(), escaped(name)), detail)
    }

    /// Returns a member; `None` if it is missing.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'a>> {
        let value = self.members.get(name)?;
        Some(Node { document: self.node.document, value })
    }

    /// Returns a member that must be there.
    pub(crate) fn require(&self, name: &str) -> Checked<Node<'a>> {
        self.get(name).ok_or_else(|| self.unfit(name, "is missing"))
    }

    /// Returns a member that must be there; without it, the error says what is expected.
    fn expect(&self, name: &str, expected: impl FnOnce() -> String) -> Checked<Node<'a>> {
        self.get(name).ok_or_else(|| self.unfit(name, format!("is missing: {}", expected())))
    }

    /// Takes a number, or the default if it is missing.
    pub(crate) fn number_or(
        &self,
        name: &str,
        default: f64,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Checked<f64> {
        self.get(name).map_or(Ok(default), |node| node.number(range, unit))
    }

    pub(crate) fn number(
        &self,
        name: &str,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Checked<f64> {
        self.expect(name, || number_within(&range, unit))?.number(range, unit)
    }

    /// Takes a whole number that must be there.
    pub(crate) fn whole(&self, name: &str, range: RangeInclusive<u64>) -> Checked<u64> {
        self.expect(name, || whole_within(&range))?.whole(range)
    }

    /// Takes a whole number, or the default if it is missing.
    pub(crate) fn whole_or(
        &self,
        name: &str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Checked<u64> {
        self.get(name).map_or(Ok(default), |node| node.whole(range))
    }

    pub(crate) fn word<T: Clone>(&self, name: &str, words: &[(&str, T)]) -> Checked<T> {
        self.expect(name, || one_of(words))?.word(words)
    }

    /// Takes one of these words, or the default if it is missing.
    pub(crate) fn word_or<T: Clone>(
        &self,
        name: &str,
        default: T,
        words: &[(&str, T)],
    ) -> Checked<T> {
        self.get(name).map_or(Ok(default), |node| node.word(words))
    }
}

/// Finds a value, the same and no equal one, within another. Adds the steps to it, the last one first.
fn find(within: &Value, sought: &Value, steps: &mut Vec<String>) -> bool {
    if std::ptr::eq(within, sought) {
        return true;
    }
    let step = match within {
        Value::Array(items) => {
            items.iter().position(|item| find(item, sought, steps)).map(|at| at.to_string())
        }
        Value::Object(members) => members
            .iter()
            .find(|(_, value)| find(value, sought, steps))
            .map(|(name, _)| name.clone()),
        _ => None,
    };
    let is_found = step.is_some();
    steps.extend(step);
    is_found
}

fn number_within(range: &RangeInclusive<f64>, unit: &str) -> String {
    let [min, max] = [range.start(), range.end()].map(|end| brief(*end));
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("expected a number from {min} to {max}{unit}")
}

fn whole_within(range: &RangeInclusive<u64>) -> String {
    format!("expected a whole number from {} to {}", range.start(), range.end())
}

fn one_of<T>(words: &[(&str, T)]) -> String {
    let names: Vec<_> = words.iter().map(|word| word.0).collect();
    format!("expected one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_leads_to_the_very_value_and_not_to_one_that_is_equal() {
        let document = json!({"a/b": [1, {"~": [7, 7, 7]}], "c": 7});
        let pointer = |node: Node<'_>| node.pointer();
        let root = Node::root(&document);
        assert_eq!(pointer(root), "");
        let list = root.open_object().unwrap().require("a/b").unwrap();
        let inner = list.items(2..=2).unwrap().nth(1).unwrap().open_object().unwrap();
        let sevens = inner.require("~").unwrap().items(1..=3).unwrap();
        let pointers: Vec<_> = sevens.map(pointer).collect();
        assert_eq!(pointers, ["/a~1b/1/~0/0", "/a~1b/1/~0/1", "/a~1b/1/~0/2"]);
        for pointer in pointers {
            assert_eq!(document.pointer(&pointer), Some(&json!(7)));
        }
        let refusal = inner.require("x/y").unwrap_err();
        let place = RunRefusal::Unprocessable {
            pointer: Some("/a~1b/1/x~1y".to_owned()),
            detail: "is missing".to_owned(),
        };
        assert_eq!(refusal, place);
    }

    #[test]
    fn numbers_are_told_briefly() {
        for (number, text) in [
            (0.0, "0"),
            (-0.1, "-0.1"),
            (8.199_999_999_9, "8.2"),
            (200_000.0, "200000"),
            (1e-6, "0.000001"),
            (1e-9, "1.000e-9"),
            (-1e308, "-1.000e308"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(brief(number), text);
        }
    }

    #[test]
    fn words_are_taken_each_at_most_once() {
        let words = [("a", 1), ("b", 2)];
        assert_eq!(Node::root(&json!(["b", "a"])).words(&words), Ok(vec![2, 1]));
        for (document, pointer, detail) in [
            (json!(["a", "a"]), "/1", "is there already: expected each word once"),
            (json!(["c"]), "/0", "expected one of a, b"),
            (json!([]), "", "expected an array of 1 to 2 items, found 0"),
            (json!("a"), "", "expected an array of 1 to 2 items"),
        ] {
            let refusal = unfit(pointer.to_owned(), detail);
            assert_eq!(Node::root(&document).words(&words), Err(refusal));
        }
    }
}
