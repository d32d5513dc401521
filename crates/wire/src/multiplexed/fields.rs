//! Header fields in the line of a message: `FIELD=VALUE`.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::is_forwarding;

/// The fields of requests, besides those that begin with `x-`.
const OF_REQUESTS: [&str; 8] = [
    "accept",
    "accept-language",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "last-event-id",
    "prefer",
];

/// The fields of replies.
pub const REPLY_FIELDS: [&str; 8] = [
    "allow",
    "content-type",
    "etag",
    "idempotent-replayed",
    "link",
    "location",
    "preference-applied",
    "retry-after",
];

/// Returns true if requests may have the field of this name, in lower case.
#[must_use]
pub fn is_request_field(name: &str) -> bool {
    OF_REQUESTS.contains(&name) || name.starts_with("x-") && is_name(name) && !is_forwarding(name)
}

/// The fields of a message: words `FIELD=VALUE` with one space between them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fields<'a>(&'a str);

/// An error: the fields of a message are invalid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// A word is not `FIELD=VALUE`, or the name is not one of a header field in lower case.
    #[error(
        "the words after the target must be FIELD=VALUE, with names in lower case and one space between the words"
    )]
    NotAField,
    /// A request cannot have this field.
    #[error(
        "a request cannot have the field {name}: it may have {}, and names that begin with x- but are not those of proxies",
        OF_REQUESTS.join(", ")
    )]
    Unknown {
        /// The name of the field.
        name: String,
    },
    /// A field is there twice.
    #[error("the field {name} is there twice")]
    Repeated {
        /// The name of the field.
        name: String,
    },
    /// A value is not one of a header field, or is not escaped.
    #[error(
        "the value of {name} must be that of a header field, with % escapes for spaces, %, \", = and all but printable ASCII"
    )]
    BadValue {
        /// The name of the field.
        name: String,
    },
}

impl<'a> Fields<'a> {
    /// Reads the fields of a request.
    pub(super) fn parse(words: &'a str) -> Result<Self, FieldError> {
        let mut names = Vec::new();
        for word in words.split(' ') {
            let (name, value) = word.split_once('=').ok_or(FieldError::NotAField)?;
            let name_is = || name.to_owned();
            if !is_name(name) {
                return Err(FieldError::NotAField);
            }
            if !is_request_field(name) {
                return Err(FieldError::Unknown { name: name_is() });
            }
            if decoded(value).is_none() {
                return Err(FieldError::BadValue { name: name_is() });
            }
            names.push(name);
        }
        names.sort_unstable();
        match names.windows(2).find(|names| names[0] == names[1]) {
            Some(names) => Err(FieldError::Repeated { name: names[0].to_owned() }),
            None => Ok(Self(words)),
        }
    }

    /// Takes the fields of a reply. Words that are none are ignored when they are read.
    pub(super) fn of_reply(words: &'a str) -> Self {
        Self(words)
    }

    /// Returns true if there is no field.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names and values, in their order.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Cow<'a, [u8]>)> {
        let words = self.0.split(' ').filter_map(|word| word.split_once('='));
        words.filter_map(|(name, value)| Some((name, decoded(value)?)))
    }

    /// Returns the value of the field with this name, in lower case.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    pub(super) fn write(self, line: &mut String) {
        if !self.is_empty() {
            line.push(' ');
            line.push_str(self.0);
        }
    }
}

/// Fields to send.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FieldList(String);

impl FieldList {
    /// Adds a field. The name must be in lower case, and not be there already.
    ///
    /// # Errors
    /// When it is not a name, or the value has a control character.
    pub fn push(&mut self, name: &str, value: &[u8]) -> Result<(), FieldError> {
        if !is_name(name) {
            return Err(FieldError::NotAField);
        }
        if !value.iter().copied().all(is_of_value) {
            return Err(FieldError::BadValue { name: name.to_owned() });
        }
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(name);
        self.0.push('=');
        for &byte in value {
            if is_plain(byte) {
                self.0.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(self.0, "%{byte:02X}");
            }
        }
        Ok(())
    }

    /// Returns the fields.
    #[must_use]
    pub fn as_fields(&self) -> Fields<'_> {
        Fields(&self.0)
    }
}

/// Returns true for a token (RFC 9110 section 5.6.2) in lower case.
fn is_name(word: &str) -> bool {
    let is_allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&'*+-.^_`|~".contains(&byte)
    };
    !word.is_empty() && word.bytes().all(is_allowed)
}

/// Returns true for a byte of a header field's value (RFC 9110 section 5.5).
fn is_of_value(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

/// Returns true for a byte that needs no escape.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"%\"=".contains(&byte)
}

/// Returns the bytes of an escaped value; `None` if it is invalid.
fn decoded(value: &str) -> Option<Cow<'_, [u8]>> {
    let is_plain = |part: &str| part.bytes().all(is_plain);
    let mut parts = value.split('%');
    let begin = parts.next().unwrap_or_default();
    if !is_plain(begin) {
        return None;
    }
    if begin.len() == value.len() {
        return Some(begin.as_bytes().into());
    }
    let mut bytes = begin.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok()?;
        if !is_hexadecimal || !is_of_value(byte) || !is_plain(rest) {
            return None;
        }
        bytes.push(byte);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_have_a_name_and_an_escaped_value() {
        let fields = Fields::parse("if-match=%224%22 x-a= prefer=wait%3d5").unwrap();
        let read: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name, String::from_utf8(value.into()).unwrap()))
            .collect();
        let expected = [("if-match", "\"4\""), ("x-a", ""), ("prefer", "wait=5")];
        assert_eq!(read, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(fields.get("x-a").as_deref(), Some(&b""[..]));
        assert_eq!(fields.get("x-b"), None);
        assert!(!fields.is_empty() && Fields::default().is_empty());
        assert_eq!(Fields::default().iter().count(), 0);
    }

    #[test]
    fn what_is_wrong_with_a_field_is_said() {
        let unknown = |name: &str| FieldError::Unknown { name: name.to_owned() };
        let bad_value = || FieldError::BadValue { name: "x-a".to_owned() };
        for (words, error) in [
            ("", FieldError::NotAField),
            ("x", FieldError::NotAField),
            ("=x", FieldError::NotAField),
            ("X-A=1", FieldError::NotAField),
            ("x-a=1 ", FieldError::NotAField),
            ("x-a=1  x-b=1", FieldError::NotAField),
            ("host=a.example", unknown("host")),
            ("cookie=1", unknown("cookie")),
            ("x-forwarded-for=10.0.0.1", unknown("x-forwarded-for")),
            ("x-real-ip=10.0.0.1", unknown("x-real-ip")),
            ("x-a=1 x-b=2 x-a=3", FieldError::Repeated { name: "x-a".to_owned() }),
            ("x-a=%", bad_value()),
            ("x-a=%4", bad_value()),
            ("x-a=%zz", bad_value()),
            ("x-a=%+4", bad_value()),
            ("x-a=%0A", bad_value()),
            ("x-a=%7f", bad_value()),
            ("x-a=\"4\"", bad_value()),
            ("x-a=b=c", bad_value()),
            ("x-a=%20=", bad_value()),
        ] {
            assert_eq!(Fields::parse(words), Err(error), "{words:?}");
        }
    }

    #[test]
    fn a_list_takes_what_a_header_takes() {
        let mut list = FieldList::default();
        list.push("etag", b"\"4\"").unwrap();
        list.push("link", "<?after=ä>; rel=\"next\"".as_bytes()).unwrap();
        assert_eq!(list.as_fields().0, "etag=%224%22 link=<?after%3D%C3%A4>;%20rel%3D%22next%22");
        assert_eq!(list.push("Etag", b""), Err(FieldError::NotAField));
        let name = "etag".to_owned();
        assert_eq!(list.push("etag", b"a\r\nb"), Err(FieldError::BadValue { name }));
    }

    proptest! {
        #[test]
        fn what_is_pushed_is_read_back(
            fields in prop::collection::btree_map(
                "x-[a-z0-9_.]{1,9}", prop::collection::vec(any::<u8>(), 0..9), 0..5)
        ) {
            let mut list = FieldList::default();
            let fields = fields.iter().filter(|(name, value)| list.push(name, value).is_ok());
            let fields: Vec<_> = fields.map(|(name, value)| (&**name, Cow::from(value))).collect();
            prop_assert_eq!(list.as_fields().iter().collect::<Vec<_>>(), fields);
            if !list.as_fields().is_empty() {
                prop_assert_eq!(Fields::parse(&list.0), Ok(list.as_fields()));
            }
        }

        #[test]
        fn any_words_are_fields_or_say_what_is_wrong(words in "((x-|accept|a|=|%4|%41|\"| |b){0,9} ?){0,3}") {
            if let Ok(fields) = Fields::parse(&words) {
                prop_assert_eq!(fields.iter().count(), words.split(' ').count());
            }
        }
    }
}
