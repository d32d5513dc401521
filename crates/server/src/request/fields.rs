//! The header fields of a request from any parser, and the syntax of their values.

use std::borrow::Cow;

use anemone_ws::proto::handshake::{self, Fields as _};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header fields of a request, as its parser stores them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fields<'a> {
    Map(&'a HeaderMap),
    Parsed(&'a [httparse::Header<'a>]),
}

impl<'a> Fields<'a> {
    fn parts(self) -> (Option<&'a HeaderMap>, &'a [httparse::Header<'a>]) {
        match self {
            Self::Map(map) => (Some(map), &[]),
            Self::Parsed(fields) => (None, fields),
        }
    }

    /// Returns the values of all fields of this name, which must be in lower case.
    pub(crate) fn all(self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        match self {
            Self::Map(map) => EitherFields::Map(handshake::Fields::values(map, name)),
            Self::Parsed(fields) => EitherFields::Parsed(fields.values(name)),
        }
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        match self {
            Self::Map(map) => EitherFields::Map(map.keys().map(HeaderName::as_str)),
            Self::Parsed(fields) => EitherFields::Parsed(fields.iter().map(|field| field.name)),
        }
    }

    pub(crate) fn to_map(self, passes: impl Fn(&HeaderName) -> bool) -> HeaderMap {
        let (map, parsed) = self.parts();
        let mapped = map.into_iter().flatten();
        let mapped = mapped.map(|(name, value)| (name.clone(), value.clone()));
        // The parser has checked both.
        let parsed = parsed.iter().filter_map(|field| {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_bytes(field.value).ok()?))
        });
        let mut passed = HeaderMap::new();
        for (name, value) in mapped.chain(parsed).filter(|(name, _)| passes(name)) {
            passed.append(name, value);
        }
        passed
    }

    pub(crate) fn first(self, name: &'static str) -> Option<&'a [u8]> {
        match self {
            Self::Map(map) => handshake::Fields::values(map, name).next(),
            Self::Parsed(fields) => fields.values(name).next(),
        }
    }

    pub(crate) fn has(self, name: &'static str) -> bool {
        self.first(name).is_some()
    }
}

enum EitherFields<M, P> {
    Map(M),
    Parsed(P),
}

impl<T, M: Iterator<Item = T>, P: Iterator<Item = T>> Iterator for EitherFields<M, P> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Map(fields) => fields.next(),
            Self::Parsed(fields) => fields.next(),
        }
    }
}

impl handshake::Fields for Fields<'_> {
    fn values<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name)
    }
}

impl<'a> From<&'a HeaderMap> for Fields<'a> {
    fn from(map: &'a HeaderMap) -> Self {
        Self::Map(map)
    }
}

/// Splits a list into members, or a member and its parameters, at this character. Quoted strings (RFC 9110 section
/// 5.6.4) are not split.
pub(crate) fn split(value: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = value.split(move |character| {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return character == at && !is_quoted,
        }
        false
    });
    parts.map(str::trim)
}

/// Splits `NAME=VALUE`, and removes the quotes of the value; an empty value if there is none.
pub(crate) fn pair(part: &str) -> (&str, Cow<'_, str>) {
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    let (name, value) = (name.trim_end(), value.trim_start());
    let Some(quoted) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return (name, value.into());
    };
    let mut characters = quoted.chars();
    let unescape = || match characters.next()? {
        '\\' => characters.next(),
        character => Some(character),
    };
    (name, std::iter::from_fn(unescape).collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_quoted_parts_nothing() {
        let parts = |value, at| split(value, at).collect::<Vec<_>>();
        assert_eq!(parts("a, b ,c", ','), ["a", "b", "c"]);
        assert_eq!(parts(r#"a="x, y", b"#, ','), [r#"a="x, y""#, "b"]);
        assert_eq!(parts(r#"a="x\", y\\", b"#, ','), [r#"a="x\", y\\""#, "b"]);
        assert_eq!(parts(r#"a;b="1;2"; c"#, ';'), ["a", r#"b="1;2""#, "c"]);
        assert_eq!(parts(r#"a="no end, b"#, ','), [r#"a="no end, b"#]);
    }

    #[test]
    fn a_pair_has_a_name_and_a_value_without_quotes() {
        for (part, name, value) in [
            ("wait=5", "wait", "5"),
            ("wait = 5", "wait", "5"),
            (r#"wait="5""#, "wait", "5"),
            (r#"a = "x=\"y\\z\"""#, "a", r#"x="y\z""#),
            ("a", "a", ""),
            (r#"a="""#, "a", ""),
            (r#"a=""#, "a", "\""),
        ] {
            assert_eq!(pair(part), (name, value.into()), "{part}");
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_quoted_and_is_one_part(text in "[ -~]{0,30}") {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            let list = format!("first, a=\"{escaped}\";b, last");
            let parts: Vec<_> = split(&list, ',').collect();
            prop_assert_eq!((parts.len(), parts[0], parts[2]), (3, "first", "last"));
            let own: Vec<_> = split(parts[1], ';').collect();
            prop_assert_eq!(own.len(), 2);
            prop_assert_eq!(pair(own[0]), ("a", text.into()));
        }
    }
}
