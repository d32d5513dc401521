//! The byte range of a request (RFC 9110 section 14.1.2).
//!
//! The library ignores offsets of more than 64 bits, refuses a suffix longer than the file, and sends a range of an
//! empty file. So this module rewrites the field, and checks the library's replies.

use http::{HeaderValue, Response, StatusCode, header};

use crate::reply::body::Body;

/// A range of bytes, independent of the file's length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ByteRange {
    /// From an offset to another, inclusive.
    Within(u64, u64),
    /// From an offset to the end.
    From(u64),
    /// The last bytes, or all if there are fewer.
    Last(u64),
}

impl ByteRange {
    /// All bytes of a file that is not empty.
    pub(super) const ALL: Self = Self::From(0);

    /// Parses a value of the field `Range`. Returns `None` for several ranges, another unit, or an invalid value.
    pub(super) fn parse(field: &HeaderValue) -> Option<Self> {
        let (unit, set) = field.to_str().ok()?.split_once('=')?;
        let mut specs = set.split(',').map(str::trim).filter(|spec| !spec.is_empty());
        let spec = specs.next().filter(|_| specs.next().is_none())?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        match spec.split_once('-')? {
            ("", count) => Some(Self::Last(number(count)?)),
            (first, "") => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Within(first, last))
            }
        }
    }

    pub(super) fn to_field(self) -> Option<HeaderValue> {
        let spec = match self {
            Self::Within(first, u64::MAX) | Self::From(first) => format!("bytes={first}-"),
            Self::Within(first, last) => format!("bytes={first}-{last}"),
            Self::Last(count) => format!("bytes=-{count}"),
        };
        HeaderValue::try_from(spec).ok()
    }
}

/// Returns true if a reply has a range of an empty file, which has none.
pub(super) fn is_of_nothing(response: &Response<Body>) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE);
    range.is_some_and(|range| range.as_bytes().ends_with(b"/0"))
}

/// Returns the reply for an unsatisfiable range (RFC 9110 section 15.5.17).
pub(super) fn unsatisfiable(mut response: Response<Body>) -> Response<Body> {
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    response.headers_mut().insert(header::CONTENT_RANGE, HeaderValue::from_static("bytes */0"));
    response
}

/// Parses a number of any length; no file has more bytes than 64 bits can count.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_understood_and_all_else_is_none() {
        let parse = |text: &str| ByteRange::parse(&HeaderValue::from_str(text).unwrap());
        for (text, expected) in [
            ("bytes=0-3", ByteRange::Within(0, 3)),
            ("BYTES=0-3", ByteRange::Within(0, 3)),
            ("bytes=3-", ByteRange::From(3)),
            ("bytes=-3", ByteRange::Last(3)),
            ("bytes=, 0-3 ,", ByteRange::Within(0, 3)),
            ("bytes=0-18446744073709551616", ByteRange::Within(0, u64::MAX)),
            ("bytes=-99999999999999999999", ByteRange::Last(u64::MAX)),
            ("bytes=000000000000000000000000000000000000007-", ByteRange::From(7)),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in [
            "bytes=",
            "bytes=-",
            "bytes=4-2",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes=0x1-",
            "bytes=0-1,4-5",
            "bytes 0-1",
            "byte=0-1",
            "lines=0-1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_field_is_parsed_as_what_it_was_made_of() {
        let ranges = [ByteRange::Within(2, 4), ByteRange::ALL, ByteRange::Last(0)];
        for range in ranges {
            assert_eq!(ByteRange::parse(&range.to_field().unwrap()), Some(range));
        }
    }
}
