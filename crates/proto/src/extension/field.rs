//! The grammar of `Sec-WebSocket-Extensions` (RFC 6455 section 9.1), without the meaning of extensions and their
//! parameters.

use crate::handshake::is_tchar;

/// An extension that is offered or chosen.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Extension<'a> {
    pub(crate) name: &'a str,
    pub(crate) parameters: Vec<Parameter<'a>>,
}

#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a str,
    /// The value without quotes.
    pub(crate) value: Option<String>,
}

/// An error in the grammar. Section 9.1 asks to fail the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Malformed;

pub(crate) fn parse<'a>(
    values: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<Extension<'a>>, Malformed> {
    let mut extensions = Vec::new();
    for value in values {
        let mut cursor = Cursor { rest: value };
        loop {
            while cursor.eat(b',') {} // empty members are allowed (RFC 9110 section 5.6.1)
            if cursor.rest.is_empty() {
                break;
            }
            extensions.push(cursor.extension()?);
            if !cursor.rest.is_empty() && !cursor.eat(b',') {
                return Err(Malformed);
            }
        }
    }
    Ok(extensions)
}

/// The rest of a field.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn extension(&mut self) -> Result<Extension<'a>, Malformed> {
        let name = self.token()?;
        let mut parameters = Vec::new();
        while self.eat(b';') {
            let name = self.token()?;
            let value = if self.eat(b'=') { Some(self.value()?) } else { None };
            parameters.push(Parameter { name, value });
        }
        Ok(Extension { name, parameters })
    }

    /// Takes this byte and the white space around it, if it is next.
    fn eat(&mut self, byte: u8) -> bool {
        self.rest = self.rest.trim_ascii();
        let Some(rest) = self.rest.strip_prefix(&[byte]) else { return false };
        self.rest = rest.trim_ascii_start();
        true
    }

    fn token(&mut self) -> Result<&'a str, Malformed> {
        let len = self.rest.iter().take_while(|byte| is_tchar(byte)).count();
        let (token, rest) = self.rest.split_at(len);
        self.rest = rest.trim_ascii_start();
        match str::from_utf8(token) {
            Ok(token) if !token.is_empty() => Ok(token),
            _ => Err(Malformed),
        }
    }

    /// Parses a token, or a quoted string that contains one: "the value after quoted-string unescaping MUST conform
    /// to the 'token' ABNF".
    fn value(&mut self) -> Result<String, Malformed> {
        let Some(mut rest) = self.rest.strip_prefix(b"\"") else {
            return self.token().map(str::to_owned);
        };
        let mut value = String::new();
        loop {
            let (byte, after) = match rest {
                [b'"', after @ ..] => {
                    self.rest = after.trim_ascii_start();
                    return if value.is_empty() { Err(Malformed) } else { Ok(value) };
                }
                [b'\\', byte, after @ ..] | [byte, after @ ..] => (byte, after),
                [] => return Err(Malformed),
            };
            if !is_tchar(byte) {
                return Err(Malformed);
            }
            value.push(char::from(*byte));
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extensions(value: &str) -> Result<String, Malformed> {
        let parsed = parse([value.as_bytes()].into_iter())?;
        let text = |extension: &Extension<'_>| {
            let parameters = extension.parameters.iter().map(|Parameter { name, value }| {
                value.as_ref().map_or(format!("; {name}"), |value| format!("; {name}={value}"))
            });
            format!("{}{}", extension.name, parameters.collect::<String>())
        };
        Ok(parsed.iter().map(text).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn extensions_parameters_and_quoted_values_are_told_apart() {
        // RFC 6455 section 9.1
        for (value, expected) in [
            ("foo", "foo"),
            ("bar; baz=2", "bar; baz=2"),
            ("foo, bar;baz=2 ,, foo ; qux", "foo, bar; baz=2, foo; qux"),
            (r#"a; b="10"; c="1\0";d"#, "a; b=10; c=10; d"),
            ("  a\t;\tb = c  ", "a; b=c"),
            ("", ""),
            (" , ", ""),
        ] {
            assert_eq!(extensions(value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn what_the_grammar_does_not_allow_is_malformed() {
        let cases = [
            ";",
            "a;",
            "a; ;b",
            "a b",
            "=",
            "a=b",
            "a; b=",
            "a; b=;c",
            r#"a; b="""#,
            r#"a; b="c"#,
            r#"a; b="c d""#,
            r#"a; b="c,d""#,
            r#"a; b="c"d"#,
            r#"a; b="\"#,
            "a; b=c d",
            "é",
            "a;\u{7f}",
        ];
        for value in cases {
            assert_eq!(extensions(value), Err(Malformed), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_field_panics(value: Vec<u8>, near in "[a;=, \"\\\\é]{0,12}") {
            let _ = parse([&value[..], near.as_bytes()].into_iter());
        }
    }
}
