//! Converts a client's input to events: by content type, or from a WebSocket's message.
//!
//! A byte order mark before a text, or before a line of NDJSON, is no part of it. Bytes stay as they are.

use anemone_hub::{Data, DataError};
use anemone_wire::{BYTE_ORDER_MARK, TextFault, without_mark};
use anemone_ws::proto::Message;
use anemone_ws::proto::handshake::base64;
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;

use crate::request::fields;
use crate::{Kind, Problem};

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Content {
    /// One JSON value.
    Json,
    /// One JSON value or else text, for a body without a specific type.
    JsonOrText,
    /// One JSON value per line.
    Lines,
    /// A string, in UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// The limits on one publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) event_bytes_max: usize,
    pub(crate) events_max: usize,
}

impl Content {
    pub(crate) const ACCEPTED: &str =
        "application/json, application/x-ndjson, text/plain, application/octet-stream";

    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut given = headers.get_all(header::CONTENT_TYPE).iter();
        let Some(field) = given.next() else { return Ok(Self::JsonOrText) };
        let unsupported = || {
            let field: String =
                String::from_utf8_lossy(field.as_bytes()).chars().take(80).collect();
            let detail =
                format!("Content-Type is {field:?}; the accepted types are {}", Self::ACCEPTED);
            Problem::new(Kind::UnsupportedType, detail)
                .field("accept-post", HeaderValue::from_static(Self::ACCEPTED))
        };
        let text = field.to_str().map_err(|_| unsupported())?;
        let mut parts = fields::split(text, ';');
        let essence = parts.next().unwrap_or_default();
        if given.next().is_some() || !is_utf8(parts) {
            return Err(unsupported());
        }
        match &*essence.to_ascii_lowercase() {
            "application/json" => Ok(Self::Json),
            // `curl -d`, wget and urllib always send this type, so it says nothing. Form fields are not decoded,
            // since typed text such as 2+2=4 looks the same.
            "application/x-www-form-urlencoded" => Ok(Self::JsonOrText),
            "application/x-ndjson" => Ok(Self::Lines),
            "text/plain" => Ok(Self::Text),
            "application/octet-stream" => Ok(Self::Binary),
            _ => Err(unsupported()),
        }
    }

    /// Returns the events of a body, at least one: empty text and empty bytes are events, too.
    pub(crate) fn events(self, body: &[u8], bounds: Bounds) -> Result<Vec<Data>, Problem> {
        if body.is_empty() && !matches!(self, Self::Text | Self::Binary) {
            return Err(Problem::new(Kind::BadEvent, "the body is empty"));
        }
        if self == Self::Lines {
            return lines(body, bounds);
        }
        let text = || utf8(body).map_err(|problem| problem.and(AS_BYTES));
        let data = match self {
            Self::Binary => base64_data(body),
            Self::Text => string_data(text()?),
            Self::JsonOrText => {
                let advice = [LOOKS_LIKE_JSON, AS_TEXT];
                text().and_then(|text| {
                    let data = match Data::parse(text) {
                        Err(DataError::Json(_)) if !has_no_number(text) => Data::typed(text),
                        parsed => parsed,
                    };
                    data.map_err(|error| unfit(&error, text, 0, &advice))
                })
            }
            Self::Json | Self::Lines => text().and_then(|text| {
                Data::parse(text).map_err(|error| unfit(&error, text, 0, &[AS_TEXT]))
            }),
        }?;
        check_size(&data, bounds.event_bytes_max)?;
        Ok(vec![data])
    }
}

const LOOKS_LIKE_JSON: &str = ": this looks like JSON but is not valid";
/// The advice to the sender of a body that is not JSON or not text.
const AS_TEXT: &str =
    "; to publish text, use Content-Type: text/plain, or type=text when multiplexed";
const AS_BYTES: &str = "; to publish bytes, use Content-Type: application/octet-stream, or type=binary when multiplexed";

fn is_utf8<'a>(parameters: impl Iterator<Item = &'a str>) -> bool {
    let charsets = parameters.map(fields::pair);
    let mut charsets = charsets.filter(|(name, _)| name.eq_ignore_ascii_case("charset"));
    charsets.all(|(_, charset)| {
        ["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
    })
}

/// Parses one JSON value per line; blank lines are skipped.
fn lines(body: &[u8], bounds: Bounds) -> Result<Vec<Data>, Problem> {
    let mut events = Vec::new();
    for (index, line) in utf8(body)?.split('\n').enumerate() {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.trim_ascii().is_empty() {
            continue;
        }
        if events.len() == bounds.events_max {
            let detail = format!("the body has more than {} events", bounds.events_max);
            return Err(Problem::new(Kind::BodyTooBig, detail));
        }
        let data = Data::parse(line).map_err(|error| unfit(&error, line, index, &[]))?;
        check_size(&data, bounds.event_bytes_max)
            .map_err(|problem| problem.in_front(&format!("line {}: ", index + 1)))?;
        events.push(data);
    }
    if events.is_empty() {
        return Err(Problem::new(Kind::BadEvent, "the body has no event"));
    }
    Ok(events)
}

/// Returns the event of a WebSocket message: JSON if it is one JSON value, else a string; bytes as Base64. JSON with a
/// number that JSON does not have is refused: a string would not be what its sender meant.
pub(crate) fn of_message(message: Message<'_>, event_bytes_max: usize) -> Result<Data, Problem> {
    let data = match message {
        Message::Binary(bytes) => base64_data(bytes)?,
        Message::Text(text) => match Data::parse(text) {
            Ok(data) => data,
            Err(error @ DataError::TooDeep) => return Err(unfit(&error, text, 0, &[])),
            Err(error) if has_no_number(text) => return Err(unfit(&error, text, 0, &[])),
            Err(_) => string_data(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))?,
        },
    };
    check_size(&data, event_bytes_max)?;
    Ok(data)
}

/// Returns true for an array or an object that would be JSON but for `NaN` or the like. Alone, that may be a word.
fn has_no_number(text: &str) -> bool {
    let begin = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).trim_start();
    begin.starts_with(['[', '{']) && not_a_number(text).is_some()
}

fn not_a_number(text: &str) -> Option<TextFault> {
    TextFault::find(text.as_bytes()).filter(|fault| matches!(fault, TextFault::NotANumber(_)))
}

/// Checks that a body is UTF-8; returns it without a byte order mark.
fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    let bytes = without_mark(bytes);
    if let Some(fault @ TextFault::Utf16) = TextFault::find(bytes) {
        return Err(bad_event(1, 1, &fault.to_string()));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = &bytes[..error.valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        let begin = good.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bad_event(line, good.len() - begin + 1, "not UTF-8")
    })
}

/// Returns the problem of a text that cannot be an event. One that is not JSON gets the advice, or its own remedy.
fn unfit(error: &DataError, text: &str, index: usize, advice: &[&str]) -> Problem {
    let DataError::Json(cause) = error else {
        return Problem::new(Kind::BadEvent, format!("line {}: {error}", index + 1));
    };
    let (line, column, said) = (cause.line(), cause.column(), cause.to_string());
    if let Some(fault) = not_a_number(text) {
        return bad_event(index + line, column, &fault.to_string());
    }
    let what = said.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&said);
    let problem = bad_event(index + line, column, what);
    advice.iter().fold(problem, |problem, advice| problem.and(advice))
}

/// Returns a problem with a position; columns count bytes, from 1.
fn bad_event(line: usize, column: usize, what: &str) -> Problem {
    Problem::new(Kind::BadEvent, format!("line {line}, column {column}: {what}"))
}

fn check_size(data: &Data, event_bytes_max: usize) -> Result<(), Problem> {
    let bytes = data.bytes().len();
    if bytes <= event_bytes_max {
        return Ok(());
    }
    let detail =
        format!("the event has {bytes} bytes as JSON, at most {event_bytes_max} are allowed");
    Err(Problem::new(Kind::EventTooBig, detail))
}

fn string_data(text: &str) -> Result<Data, Problem> {
    json(&text)
}

fn base64_data(bytes: &[u8]) -> Result<Data, Problem> {
    #[derive(Serialize)]
    struct Binary {
        base64: String,
    }
    json(&Binary { base64: base64(bytes) })
}

fn json(value: &impl Serialize) -> Result<Data, Problem> {
    // A string always has a JSON form.
    Data::json(value).map_err(|error| Problem::new(Kind::Internal, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { event_bytes_max: 20, events_max: 3 };

    fn events(content: Content, body: &[u8]) -> Result<Vec<String>, String> {
        let events = content.events(body, BOUNDS).map_err(|problem| problem.to_json())?;
        Ok(events.iter().map(|data| data.as_str().to_owned()).collect())
    }

    #[test]
    fn the_content_type_says_what_a_body_is() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            Content::of(&headers).ok()
        };
        assert_eq!(Content::of(&HeaderMap::new()).ok(), Some(Content::JsonOrText));
        for (value, content) in [
            ("application/json", Some(Content::Json)),
            ("application/x-www-form-urlencoded", Some(Content::JsonOrText)),
            ("Application/JSON ; charset=UTF-8", Some(Content::Json)),
            ("application/x-ndjson", Some(Content::Lines)),
            ("text/plain", Some(Content::Text)),
            ("text/plain; charset=\"utf-8\"; format=flowed", Some(Content::Text)),
            ("text/plain;charset=us-ascii", Some(Content::Text)),
            ("text/plain;charset=iso-8859-1", None),
            ("text/plain;a=\";charset=iso-8859-1\"", Some(Content::Text)),
            ("application/octet-stream", Some(Content::Binary)),
            ("text/html", None),
            ("", None),
        ] {
            assert_eq!(of(value), content, "{value}");
        }
        let mut headers = HeaderMap::new();
        for value in ["application/json", "text/plain"] {
            headers.append(header::CONTENT_TYPE, value.parse().unwrap());
        }
        assert!(Content::of(&headers).is_err());
    }

    #[test]
    fn each_content_has_its_events() {
        let one = |text: &str| Ok(vec![text.to_owned()]);
        assert_eq!(events(Content::Json, b" {\"a\":\n1.50} "), one("{\"a\":1.50}"));
        assert_eq!(events(Content::Text, "a \"é\"\n".as_bytes()), one("\"a \\\"é\\\"\\n\""));
        assert_eq!(events(Content::Binary, &[0, 255]), one("{\"base64\":\"AP8=\"}"));
        let lines = b"\n 1\r\n\t\r\n{\"a\": 2}\n\nnull";
        assert_eq!(events(Content::Lines, lines).unwrap(), ["1", "{\"a\": 2}", "null"]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text_and_stays_in_bytes() {
        let one = |text: &str| Ok(vec![text.to_owned()]);
        let marked = |text: &str| format!("\u{feff}{text}").into_bytes();
        for content in [Content::Json, Content::JsonOrText, Content::Lines] {
            assert_eq!(events(content, &marked("{\"a\":1}")), one("{\"a\":1}"), "{content:?}");
        }
        for content in [Content::Text, Content::JsonOrText] {
            assert_eq!(events(content, &marked("hi")), one("\"hi\""), "{content:?}");
        }
        let lines = [marked("1\r\n"), marked("\r\n"), marked("2\n")].concat();
        assert_eq!(events(Content::Lines, &lines).unwrap(), ["1", "2"]);
        assert_eq!(events(Content::Binary, &marked("")), one("{\"base64\":\"77u/\"}"));
        let of_text =
            |text: &str| of_message(Message::Text(text), 100).unwrap().as_str().to_owned();
        assert_eq!(of_text("\u{feff}{\"a\":1}"), "{\"a\":1}");
        assert_eq!(of_text("\u{feff}hi\u{feff}"), "\"hi\u{feff}\"");
    }

    #[test]
    fn what_another_program_wrote_wrong_comes_with_its_remedy() {
        let utf_16: Vec<u8> = "[1]\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for content in [Content::Json, Content::JsonOrText, Content::Lines] {
            let error = events(content, b"{\"t\": NaN}").unwrap_err();
            let words = "line 1, column 7: NaN is not JSON: write null in its place";
            assert!(error.contains(words) && error.contains("allow_nan=False"), "{error}");
            for body in [&utf_16[..], &[b"\xff\xfe", &utf_16[..]].concat()] {
                let error = events(content, body).unwrap_err();
                assert!(error.contains("iconv -f UTF-16"), "{error}");
            }
        }
        let error = of_message(Message::Text("[1, -Infinity]"), 100).unwrap_err();
        assert!(error.detail().contains("-Infinity is not JSON"), "{}", error.detail());
        // Not the beginning of a line of a log, such as [NaNny].
        for array in ["[NaN]", " [Infinity, 1]", "\u{feff}[nan]", "[[-inf]]"] {
            assert!(of_message(Message::Text(array), 100).is_err(), "{array}");
            assert!(events(Content::JsonOrText, array.as_bytes()).is_err(), "{array}");
        }
        for text in ["[NaNny] is here", "[INFO] NaN"] {
            assert!(of_message(Message::Text(text), 100).is_ok(), "{text}");
            assert!(events(Content::JsonOrText, text.as_bytes()).is_ok(), "{text}");
        }
        // Alone it may be a word.
        assert_eq!(of_message(Message::Text("NaN"), 100).unwrap().as_str(), "\"NaN\"");
        assert_eq!(events(Content::JsonOrText, b"NaN").unwrap(), ["\"NaN\""]);
    }

    #[test]
    fn what_nobody_says_the_type_of_is_json_or_else_text() {
        for (body, data) in [
            (&b"{\"a\":1}"[..], "{\"a\":1}"),
            (b"hello", "\"hello\""),
            (b"a=1&b=%20+2", "\"a=1&b=%20+2\""),
        ] {
            assert_eq!(events(Content::JsonOrText, body), Ok(vec![data.to_owned()]));
        }
        for body in [&b"{\"a\":"[..], b"{a:1}"] {
            let error = events(Content::JsonOrText, body).unwrap_err();
            let words = ": this looks like JSON but is not valid; to publish text, use Content-Type: text/plain";
            assert!(error.contains(words) && error.contains("line 1, column "), "{error}");
        }
        let deep = "[".repeat(101) + &"]".repeat(101);
        assert!(events(Content::JsonOrText, deep.as_bytes()).unwrap_err().contains("nested"));
        assert!(events(Content::JsonOrText, b"").unwrap_err().contains("the body is empty"));
    }

    #[test]
    fn what_is_not_json_is_told_where() {
        for (content, body, place) in [
            (Content::Json, &b"{\"a\":\n  x}"[..], "line 2, column 3: expected value"),
            (Content::Json, b"1 2", "line 1, column 3: trailing characters"),
            (Content::Json, b"{", "line 1, column 1: EOF while parsing"),
            (Content::Json, b"\"a\n\xff\"", "line 2, column 1: not UTF-8"),
            (Content::Json, b" ", "line 1, column 1: EOF while parsing a value"),
            (Content::Text, b"ab\xc3", "line 1, column 3: not UTF-8"),
            (Content::Lines, b"1\n\n{\"a\":}\n", "line 3, column 6: expected value"),
            (Content::Lines, b"1\n\xff", "line 2, column 1: not UTF-8"),
            (Content::Lines, b"{\"a\":\n1}", "line 1, column 5: EOF while parsing a value"),
        ] {
            let error = events(content, body).unwrap_err();
            assert!(error.contains("/problems/bad-event"), "{error}");
            assert!(error.contains(place), "{place}: {error}");
        }
    }

    #[test]
    fn who_sends_the_wrong_type_is_told_the_right_one() {
        let detail = |content: Content, body: &[u8]| {
            content.events(body, BOUNDS).unwrap_err().detail().to_owned()
        };
        assert_eq!(
            detail(Content::Json, b"hello"),
            "line 1, column 1: expected value; to publish text, use Content-Type: text/plain, or type=text when multiplexed"
        );
        for content in [Content::Json, Content::JsonOrText, Content::Text] {
            assert_eq!(
                detail(content, b"a\xff"),
                "line 1, column 2: not UTF-8; to publish bytes, use Content-Type: application/octet-stream, or \
                 type=binary when multiplexed"
            );
        }
        assert_eq!(detail(Content::Lines, b"hello"), "line 1, column 1: expected value");
    }

    #[test]
    fn limits_hold_at_their_edges() {
        let string = |len: usize| format!("\"{}\"", "x".repeat(len - 2)).into_bytes();
        assert!(events(Content::Json, &string(20)).is_ok());
        assert!(events(Content::Json, &string(21)).unwrap_err().contains("21 bytes as JSON"));
        assert!(events(Content::Text, &[b'x'; 18]).is_ok());
        assert!(events(Content::Text, &[b'x'; 19]).unwrap_err().contains("event-too-big"));
        assert!(events(Content::Binary, &[0; 3]).is_ok());
        assert!(events(Content::Binary, &[0; 4]).unwrap_err().contains("event-too-big"));
        assert_eq!(events(Content::Lines, b"1\n2\n3\n\n").unwrap().len(), 3);
        assert!(events(Content::Lines, b"1\n2\n3\n4").unwrap_err().contains("body-too-big"));
        let big = [b"1\n\n", &*string(21)].concat();
        assert!(events(Content::Lines, &big).unwrap_err().contains("line 3: the event has 21"));
        for content in [Content::Json, Content::JsonOrText, Content::Lines] {
            assert!(events(content, b"").unwrap_err().contains("bad-event"));
        }
        assert_eq!(events(Content::Text, b"").unwrap(), ["\"\""]);
        assert_eq!(events(Content::Binary, b"").unwrap(), ["{\"base64\":\"\"}"]);
        assert!(events(Content::Lines, b"\n \r\n").unwrap_err().contains("bad-event"));
    }

    #[test]
    fn deep_nesting_is_refused_whatever_the_type_says() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for content in [Content::Json, Content::JsonOrText, Content::Lines] {
            let bounds = Bounds { event_bytes_max: 200, ..BOUNDS };
            assert!(content.events(nested(100).as_bytes(), bounds).is_ok());
            let refused = events(content, nested(101).as_bytes()).unwrap_err();
            let words = "line 1: nested deeper than 100 arrays and objects\"";
            assert!(refused.contains("bad-event") && refused.contains(words), "{refused}");
        }
        assert!(of_message(Message::Text(&nested(100)), 1000).is_ok());
        assert!(of_message(Message::Text(&nested(101)), 1000).is_err());
    }

    #[test]
    fn a_message_is_json_or_a_string_or_bytes() {
        let of =
            |message: Message<'_>| of_message(message, 20).map(|data| data.as_str().to_owned());
        for (text, data) in [
            ("{\"n\": 1}", "{\"n\": 1}"),
            ("17", "17"),
            ("hello", "\"hello\""),
            ("1 2", "\"1 2\""),
            ("", "\"\""),
        ] {
            assert_eq!(of(Message::Text(text)).unwrap(), data);
        }
        assert_eq!(of(Message::Binary(&[1])).unwrap(), "{\"base64\":\"AQ==\"}");
        assert!(of(Message::Text(&"x".repeat(18))).is_ok());
        assert!(of(Message::Text(&"x".repeat(19))).is_err());
    }
}
