//! The input of a run as its watchers see it.

use std::sync::Arc;

use serde::Serialize;

use super::input::RunInput;

/// The beginning of the input that started a run. Its JSON is the member `input` of a state (`docs/PROTOCOL.md`). Clones share it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ShownInput(#[serde(serialize_with = "as_shown")] Arc<Shown>);

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
struct Shown {
    path: String,
    query: Option<String>,
    #[serde(rename = "type")]
    content_type: Option<String>,
    /// `None` if it is not text, or empty.
    body: Option<String>,
    bytes: usize,
    /// True if this is not all of the input.
    #[serde(rename = "cut", skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
}

#[derive(Clone, Copy)]
struct Most {
    body: usize,
    target: usize,
    content_type: usize,
}

/// In a state. A body of this size is still read by people.
const IN_STATE: Most = Most { body: 16 << 10, target: 4 << 10, content_type: 200 };

/// In a list of many runs.
const IN_LIST: Most = Most { body: 200, target: 200, content_type: 200 };

impl ShownInput {
    /// Takes the beginning of an input.
    #[must_use]
    pub fn of(input: &RunInput) -> Self {
        let body = &input.body[..];
        let body = match std::str::from_utf8(body) {
            Ok(_) if body.is_empty() => None,
            Ok(text) => Some(start(text, IN_STATE.body).to_owned()),
            Err(_) => None,
        };
        let whole = Shown {
            path: input.path.clone(),
            query: input.query.clone(),
            content_type: input.content_type.clone(),
            is_cut: body.as_ref().map_or(0, String::len) < input.body.len(),
            body,
            bytes: input.body.len(),
        };
        Self(Arc::new(whole.cut_to(IN_STATE)))
    }

    /// Cuts it further, for a list of many runs.
    pub(crate) fn brief(&self) -> Self {
        Self(Arc::new(Shown::clone(&self.0).cut_to(IN_LIST)))
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        let Shown { path, query, content_type, body, .. } = &*self.0;
        let parts = [query, content_type, body].into_iter().flatten().map(String::capacity);
        (size_of::<Shown>() + path.capacity() + parts.sum::<usize>()) as u64
    }
}

impl Shown {
    fn cut_to(mut self, most: Most) -> Self {
        let parts = [
            (Some(&mut self.path), most.target),
            (self.query.as_mut(), most.target),
            (self.content_type.as_mut(), most.content_type),
            (self.body.as_mut(), most.body),
        ];
        for (part, bytes_max) in parts {
            if let Some(part) = part.filter(|part| part.len() > bytes_max) {
                *part = start(part, bytes_max).to_owned();
                self.is_cut = true;
            }
        }
        self
    }
}

fn start(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

fn as_shown<S: serde::Serializer>(shown: &Arc<Shown>, serializer: S) -> Result<S::Ok, S::Error> {
    shown.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(body: impl Into<bytes::Bytes>) -> RunInput {
        RunInput {
            path: "/primes".to_owned(),
            query: Some("to=9".to_owned()),
            content_type: None,
            body: body.into(),
        }
    }

    fn json(shown: &ShownInput) -> String {
        serde_json::to_string(shown).unwrap()
    }

    #[test]
    fn an_input_is_shown_whole_if_it_is_a_short_text() {
        let typed =
            RunInput { content_type: Some("application/json".to_owned()), ..input("{\"n\":7}") };
        let expected = r#"{"path":"/primes","query":"to=9","type":"application/json","body":"{\"n\":7}","bytes":7}"#;
        assert_eq!(json(&ShownInput::of(&typed)), expected);
        let bare = RunInput { query: None, ..input("") };
        let expected = r#"{"path":"/primes","query":null,"type":null,"body":null,"bytes":0}"#;
        assert_eq!(json(&ShownInput::of(&bare)), expected);
        assert_eq!(json(&ShownInput::of(&bare).brief()), expected);
    }

    #[test]
    fn what_is_long_or_no_text_is_cut_and_says_so() {
        let binary = json(&ShownInput::of(&input(&b"\xff\0"[..])));
        assert!(binary.ends_with(r#""body":null,"bytes":2,"cut":true}"#), "{binary}");
        let long = ShownInput::of(&input("é".repeat(20_000)));
        assert_eq!(long.0.body.as_ref().map(String::len), Some(16 << 10));
        assert!(long.0.is_cut && long.held_bytes() < 20_000, "{}", long.held_bytes());
        let brief = long.brief();
        assert_eq!((brief.0.body.as_ref().map(String::len), brief.0.bytes), (Some(200), 40_000));
        let query = RunInput { query: Some("x".repeat(5_000)), ..input("") };
        let query = ShownInput::of(&query);
        assert!(query.0.is_cut && query.0.query.as_ref().unwrap().len() == 4 << 10);
    }
}
