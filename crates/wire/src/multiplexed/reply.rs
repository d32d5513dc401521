//! Messages of a server.

use std::fmt::Write as _;
use std::str;

use serde_json::value::RawValue;

use super::fields::Fields;
use super::id::{Id, NO_ID};
use super::message::first_word;
use crate::{Item, Malformed, Position, UnixTime};

/// A message of a server, apart from its id: `STATUS ID[ POSITION[ TIME]][ FIELD=VALUE…]`; a payload follows after a line feed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reply<'a> {
    /// An HTTP status, or one of those in [`status`].
    pub status: u16,
    /// The position after which reading continues, or that of the last published event.
    pub position: Option<Position>,
    /// The time of an event. Only a reply with a position has one.
    pub time: Option<UnixTime>,
    /// The header fields of a service's reply.
    pub fields: Fields<'a>,
    /// The data of an event, a notice, an item, an answer or a problem; may be empty. Only the reply of a service may
    /// have bytes that are not UTF-8.
    pub payload: &'a [u8],
}

/// The statuses of a reader's messages before its final status.
pub mod status {
    /// The position where reading begins, or a heartbeat.
    pub const STANDING: u16 = 100;
    /// A notice.
    pub const NOTICE: u16 = 110;
    /// An event.
    pub const EVENT: u16 = 206;
}

impl<'a> Reply<'a> {
    fn new(status: u16, position: Option<Position>, payload: &'a str) -> Self {
        let (fields, payload) = (Fields::default(), payload.as_bytes());
        Self { status, position, time: None, fields, payload }
    }

    /// Makes the reply of a service.
    pub fn of_service(status: u16, fields: Fields<'a>, payload: &'a [u8]) -> Self {
        Self { status, position: None, time: None, fields, payload }
    }

    /// Makes the answer to a `GET`: 200.
    pub fn answer(payload: &'a str) -> Self {
        Self::new(200, None, payload)
    }

    /// Makes the answer to a publisher: 201.
    pub fn published(position: Position, payload: &'a str) -> Self {
        Self::new(201, Some(position), payload)
    }

    /// Makes the answer to a publisher whose key came before: 200.
    pub fn replayed(position: Position, payload: &'a str) -> Self {
        Self::new(200, Some(position), payload)
    }

    /// Makes a reply of a problem's status and JSON.
    pub fn problem(status: u16, problem: &'a str) -> Self {
        Self::new(status, None, problem)
    }

    /// Makes the answer to a `CANCEL` or a `DELETE`: 204.
    pub fn done() -> Self {
        Self::new(204, None, "")
    }

    /// Reads a message. It is about the connection if it has no id.
    ///
    /// # Errors
    /// When the message has no status, no id or an invalid position.
    pub fn parse(bytes: &'a [u8]) -> Result<(Option<Id>, Self), Malformed> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (line, payload) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 1..]),
            None => (bytes, &bytes[..0]),
        };
        let mut words = Words(Some(str::from_utf8(line)?));
        let (Some(status), Some(id)) = (words.next(), words.next()) else {
            return Err(Malformed::NotMultiplexed);
        };
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        let id = if id == NO_ID { Ok(None) } else { id.parse().map(Some) };
        let (Ok(status), Ok(id), true) = (status.parse(), id, is_status) else {
            return Err(Malformed::NotMultiplexed);
        };
        let position = words.next_plain().map(str::parse).transpose()?;
        let time = words.next_plain().and_then(|time| time.parse().ok());
        let fields = Fields::of_reply(words.0.unwrap_or_default());
        Ok((id, Self { status, position, time, fields, payload }))
    }

    /// Returns the bytes of the message. It is about the connection if it has no id.
    #[must_use]
    pub fn to_bytes(&self, id: Option<Id>) -> Vec<u8> {
        let mut line = String::with_capacity(LINE_BYTES + self.payload.len());
        self.write_line(id, &mut line);
        let mut bytes = line.into_bytes();
        if !self.payload.is_empty() {
            bytes.push(b'\n');
            bytes.extend_from_slice(self.payload);
        }
        bytes
    }

    fn write_line(&self, id: Option<Id>, out: &mut String) {
        self.write_status(out);
        out.push_str(id.as_ref().map_or(NO_ID, Id::as_str));
        self.write_words(out);
    }

    /// Appends what stands before the id.
    fn write_status(&self, out: &mut String) {
        // Three digits each time, which needs no formatter.
        let digit = |unit: u16| char::from(b'0' + (self.status / unit % 10) as u8);
        out.extend([digit(100), digit(10), digit(1), ' ']);
    }

    /// Appends what stands after the id.
    fn write_words(&self, out: &mut String) {
        // Writing to a string cannot fail.
        if let Some(position) = self.position {
            let _ = write!(out, " {position}");
        }
        if let Some(time) = self.time {
            let _ = write!(out, " {time}");
        }
        self.fields.write(out);
    }

    /// Returns true if the request ends with this reply.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        self.status >= 200 && self.status != status::EVENT
    }

    /// Reads the item of a reader; `None` for a final status and for an unknown one.
    ///
    /// # Errors
    /// When the payload is invalid, or the position is missing.
    pub fn item(&self) -> Result<Option<Item<'a>>, Malformed> {
        let position = || self.position.ok_or(Malformed::NoPosition);
        match self.status {
            status::STANDING => Ok(Some(Item::Begin(position()?))),
            status::NOTICE => Ok(Item::parse(self.payload)?.map(|item| match item {
                Item::Skipped { count, .. } => Item::Skipped { count, last: self.position },
                item => item,
            })),
            status::EVENT => {
                let data = str::from_utf8(self.payload)?;
                serde_json::from_str::<&RawValue>(data)?;
                let data = data.into();
                Ok(Some(Item::Event { position: position()?, time: self.time, data }))
            }
            _ => Ok(None),
        }
    }
}

/// The message of an item, apart from the id of its reader: readers with other ids share it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ItemMessage {
    /// The id belongs after the status and a space.
    text: String,
}

/// The bytes of a status and a space.
const STATUS_BYTES: usize = 4;

impl ItemMessage {
    /// Makes the message. It has `position` if the item has no position of its own.
    #[must_use]
    pub fn new(item: &Item<'_>, position: Position) -> Self {
        let position = Some(item.position().unwrap_or(position));
        let data_bytes = if let Item::Event { data, .. } = item { data.len() } else { 0 };
        let mut text = String::with_capacity(LINE_BYTES + data_bytes);
        let mut line = |status, time| {
            let reply = Reply { time, ..Reply::new(status, position, "") };
            reply.write_status(&mut text);
            reply.write_words(&mut text);
        };
        match item {
            Item::Begin(_) | Item::Quiet(_) => line(status::STANDING, None),
            Item::Event { time, data, .. } => {
                line(status::EVENT, *time);
                if !data.is_empty() {
                    text.push('\n');
                    text.push_str(data);
                }
            }
            Item::Gap(_) | Item::Skipped { .. } | Item::End(_) => {
                line(status::NOTICE, None);
                text.push('\n');
                item.write(&mut text);
            }
        }
        Self { text }
    }

    /// Returns the length of the message without an id, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Appends the message to the reader with this id.
    pub fn write(&self, id: Id, out: &mut String) {
        let (status, words) = self.text.split_at(STATUS_BYTES);
        out.extend([status, id.as_str(), words]);
    }
}

/// About the length of a line: a status, an id, a position and a time.
const LINE_BYTES: usize = 64;

struct Words<'a>(Option<&'a str>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = first_word(self.0?);
        self.0 = rest;
        Some(word)
    }

    /// Returns the next word unless it is a field.
    fn next_plain(&mut self) -> Option<&'a str> {
        let mut words = Words(self.0);
        let word = words.next().filter(|word| !word.contains('='))?;
        *self = words;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::EndReason;
    use crate::multiplexed::message::Request;
    use crate::multiplexed::testing::{fields, ids};
    use crate::multiplexed::{FieldList, Message};
    use crate::testing::{item, position};

    fn id(text: &str) -> Id {
        text.parse().unwrap()
    }

    fn written(reply: Reply<'_>, id: Option<Id>) -> String {
        String::from_utf8(reply.to_bytes(id)).unwrap()
    }

    fn written_item(id: Id, item: &Item<'_>, position: Position) -> String {
        let mut out = String::new();
        ItemMessage::new(item, position).write(id, &mut out);
        out
    }

    fn read(message: &str) -> Result<Option<Item<'_>>, Malformed> {
        Reply::parse(message.as_bytes())?.1.item()
    }

    #[test]
    fn replies_have_a_status_an_id_and_what_belongs_to_them() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let (eight, here) = (id("8"), at("9-42"));
        let item = |item: &Item<'_>| written_item(eight, item, here);
        assert_eq!(item(&Item::Begin(at("9-41"))), "100 8 9-41");
        assert_eq!(item(&Item::Quiet(at("9-41"))), "100 8 9-41");
        assert_eq!(
            item(&Item::End(EndReason::Deleted)),
            "110 8 9-42\n{\"end\":{\"reason\":\"deleted\"}}"
        );
        let skipped = Item::Skipped { count: 3, last: Some(at("9-4")) };
        assert_eq!(item(&skipped), "110 8 9-4\n{\"skipped\":3}");
        let time = Some(UnixTime::from_micros(1_789_000_000_123_456));
        let event = Item::Event { position: at("9-42"), time, data: "2.74".into() };
        assert_eq!(item(&event), "206 8 9-42 1789000000123.456\n2.74");
        assert_eq!(written(Reply::answer("{}"), Some(eight)), "200 8\n{}");
        assert_eq!(written(Reply::done(), Some(eight)), "204 8");
        assert_eq!(written(Reply::problem(400, "{}"), None), "400 -\n{}");
    }

    #[test]
    fn replies_are_what_their_status_says() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        assert_eq!(read("100 8 a-41").unwrap(), Some(Item::Begin(at("a-41"))));
        let event = Item::Event { position: at("a-42"), time: None, data: "{\"n\":\n1}".into() };
        assert_eq!(read("206 8 a-42\n{\"n\":\n1}").unwrap(), Some(event));
        let timed = read("206 8 a-42 1789000000123.456 more\n1").unwrap();
        let Some(Item::Event { time: Some(time), .. }) = timed else { panic!("{timed:?}") };
        assert_eq!(time.to_string(), "1789000000123.456");
        let (eight, last) = Reply::parse(b"410 8\n{}").unwrap();
        assert_eq!((eight, last.is_final(), last.payload), (Some(id("8")), true, &b"{}"[..]));
        assert!(!Reply::parse(b"206 8 a-42\n1").unwrap().1.is_final());
    }

    #[test]
    fn a_reply_of_a_service_has_fields_and_any_bytes() {
        let mut fields = FieldList::default();
        fields.push("etag", b"\"4\"").unwrap();
        fields.push("location", b"../runs/0f").unwrap();
        let reply = Reply::of_service(202, fields.as_fields(), &[b'{', 0xff, b'\n']);
        let bytes = reply.to_bytes(Some(id("b")));
        assert_eq!(bytes, b"202 b etag=%224%22 location=../runs/0f\n{\xff\n");
        assert_eq!(Reply::parse(&bytes).unwrap(), (Some(id("b")), reply));
        // Later versions may add words.
        let (_, reply) =
            Reply::parse(b"200 7 a-42 later etag=%224%22 more x=%zz allow=GET").unwrap();
        assert_eq!(reply.position, Some("a-42".parse().unwrap()));
        let names: Vec<_> = reply.fields.iter().map(|(name, _)| name).collect();
        assert_eq!((names, reply.time), (vec!["etag", "allow"], None));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for message in [
            "",
            "200",
            "20 7",
            "+20 7",
            "2000 7",
            "200 ",
            "100 8",
            "100 8 x",
            "206 8 a-1\n{",
            "206 8 etag=x\n1",
        ] {
            assert!(read(message).is_err(), "{message:?}");
        }
    }

    #[test]
    fn a_call_and_its_reply_take_no_more_bytes_than_over_socket_io() {
        /// The same call over Socket.IO 4 by WebSocket, frame headers included.
        const SOCKET_IO_BYTES: usize = 54;
        /// RFC 6455 section 5.2, payloads of up to 125 bytes: a client's header has a masking key.
        const FRAME_HEADERS_BYTES: usize = (2 + 4) + 2;
        const LENGTHS_BYTES: usize = 4 + 4;
        let fields = Fields::default();
        let request = Request { method: "GET", target: "/messages/testing", fields, payload: b"" };
        let call = Message::Request { id: id("7"), request }.to_bytes();
        let reply = written(Reply::answer(r#"{"id":"testing"}"#), Some(id("7")));
        assert_eq!(call, b"GET 7 /messages/testing");
        assert_eq!(reply, "200 7\n{\"id\":\"testing\"}");
        assert!(call.len() + reply.len() + FRAME_HEADERS_BYTES <= SOCKET_IO_BYTES);
        assert!(call.len() + reply.len() + LENGTHS_BYTES <= SOCKET_IO_BYTES);
    }

    proptest! {
        #[test]
        fn a_reply_is_read_back(
            status in 100_u16..600,
            id in prop::option::of(ids()),
            position in prop::option::of(position()),
            micros in prop::option::of(any::<u64>()),
            fields in fields(),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let time = micros.filter(|_| position.is_some()).map(UnixTime::from_micros);
            let reply = Reply { status, position, time, fields: fields.as_fields(), payload: &payload };
            let bytes = reply.to_bytes(id);
            prop_assert_eq!(Reply::parse(&bytes).unwrap(), (id, reply));
        }

        #[test]
        fn an_item_is_read_back(id in ids(), item in item(), position in position()) {
            let text = written_item(id, &item, position);
            let (read, reply) = Reply::parse(text.as_bytes()).unwrap();
            prop_assert_eq!((read, reply.is_final()), (Some(id), false));
            let expected = match item {
                Item::Skipped { count, .. } => Item::Skipped { count, last: Some(position) },
                item => item,
            };
            prop_assert_eq!(reply.item().unwrap(), Some(expected));
        }
    }
}
