//! Parses JSON, and finds the first name that an object has twice: most parsers take the last of the two without a word.

use std::fmt;

use anemone_wire::{TextFault, without_mark};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Returns the value, and the steps to the first member whose name its object has already; no steps if there is none.
///
/// # Errors
/// When it is not JSON, with line and column.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<(Value, Vec<String>)> {
    let mut steps = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(without_mark(text));
    let value = ReadValue { steps: &mut steps }.deserialize(&mut reader)?;
    reader.end()?;
    steps.reverse();
    Ok((value, steps))
}

/// Returns why a text is not JSON, and where; with the remedy if another program wrote it so.
pub(crate) fn fault(text: &[u8], error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match TextFault::find(text) {
        Some(fault) => format!("{fault}, at line {line} column {column}"),
        None => error.to_string(),
    }
}

/// The words about a member whose name its object has already.
pub(crate) const TWICE: &str = "is there already: expected each member once";

/// The most characters of a word of the client that an error quotes.
const QUOTED_CHARS_MAX: usize = 40;

/// Returns the start of a text of the client.
pub(crate) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

/// Returns the JSON Pointer (RFC 6901) of these steps, with the start of each.
pub(crate) fn pointer(steps: &[String]) -> String {
    steps.iter().map(|step| format!("/{}", escaped(&quoted(step)))).collect()
}

/// Returns a step of a JSON Pointer, without the slash before it.
pub(crate) fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

struct ReadValue<'a> {
    /// The steps from this value to the name, the last one first; empty until one is found.
    steps: &'a mut Vec<String>,
}

impl ReadValue<'_> {
    /// Reads a value of this one with `read`. If the name is found in it, `step` leads there.
    fn read<T>(
        &mut self,
        step: impl FnOnce() -> String,
        read: impl FnOnce(ReadValue<'_>) -> T,
    ) -> T {
        let was_found = !self.steps.is_empty();
        let part = read(ReadValue { steps: self.steps });
        if !was_found && !self.steps.is_empty() {
            self.steps.push(step());
        }
        part
    }
}

impl<'de> DeserializeSeed<'de> for ReadValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut reader: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) =
            self.read(|| items.len().to_string(), |part| reader.next_element_seed(part))?
        {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut reader: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = reader.next_key::<String>()? {
            if self.steps.is_empty() && members.contains_key(&name) {
                self.steps.push(name.clone());
            }
            let value = self.read(|| name.clone(), |part| reader.next_value_seed(part))?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_one_that_other_parsers_read() {
        for text in [
            r#"{"a":[null,true,-1,18446744073709551615,0.5,1e300,"\u00e4\n",{}],"b":{"a":[]}}"#,
            "7",
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(parse(text.as_bytes()).unwrap(), (value, vec![]), "{text}");
        }
        // A byte order mark is no part of a text.
        assert_eq!(parse("\u{feff}7".as_bytes()).unwrap().0, 7);
        for text in ["", "1 2", "[1,]", "1e999", &"[".repeat(128)] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_another_program_wrote_wrong_comes_with_its_remedy() {
        let fault = |text: &[u8]| super::fault(text, &parse(text).unwrap_err());
        assert!(fault(b"{\"a\":NaN}").contains("allow_nan=False"));
        assert!(fault(b"\xff\xfe{\0}\0").contains("iconv -f UTF-16"));
        assert_eq!(fault(b"[1,]"), "trailing comma at line 1 column 4");
    }

    #[test]
    fn the_first_name_that_is_there_already_is_found() {
        for (text, found) in [
            (r#"{"a":1,"a":1}"#, &["a"][..]),
            (r#"{"a":1,"\u0061":1}"#, &["a"]),
            (r#"{"a":{"b":1},"c":{"b":1}}"#, &[]),
            (r#"[0,{"a":[{"/":0,"b":0,"/":0}],"a":0}]"#, &["1", "a", "0", "/"]),
            (r#"{"a":0,"a":{"b":0,"b":0}}"#, &["a"]),
            (r#"{"a":{"b":0,"b":0},"a":0}"#, &["a", "b"]),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().1, found, "{text}");
        }
    }
}
