//! Items as server-sent events (HTML, section 9.2.6; "Streams over HTTP" in `docs/PROTOCOL.md`).
//!
//! `id` is the position, so an `EventSource` that reconnects sends its position as `Last-Event-ID`. The first block has an
//! `id` and no data: it dispatches no event, but gives a quiet reader a position to resume from. `time` is not a standard
//! field, so an `EventSource` ignores it.

use std::fmt::{self, Write as _};
use std::mem;

use serde_json::value::RawValue;

use crate::{Item, Malformed, ReadItem};

/// The time that an `EventSource` waits before it reconnects, in milliseconds.
pub(crate) const RETRY_MS: u32 = 1000;

impl Item<'_> {
    /// Appends the item as a block of an event stream. The data of an event must be one line.
    pub fn write_block(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Begin(position) => write!(out, "retry: {RETRY_MS}\nid: {position}\n\n"),
            Self::Quiet(_) => write!(out, ":\n\n"),
            Self::Event { position, time: None, data } => {
                write!(out, "id: {position}\ndata: {data}\n\n")
            }
            Self::Event { position, time: Some(time), data } => {
                write!(out, "id: {position}\ntime: {time}\ndata: {data}\n\n")
            }
            Self::Gap(_) => self.write_notice("gap", out),
            Self::Skipped { .. } => self.write_notice("skipped", out),
            Self::End(_) => self.write_notice("end", out),
        };
    }

    fn write_notice(&self, name: &str, out: &mut String) -> fmt::Result {
        writeln!(out, "event: {name}")?;
        if let Some(position) = self.position() {
            writeln!(out, "id: {position}")?;
        }
        out.push_str("data: ");
        self.write(out);
        write!(out, "\n\n")
    }
}

/// Reads items from an event stream, which may come in pieces of any size.
///
/// ```
/// use anemone_wire::{EventStream, Item};
///
/// let mut stream = EventStream::new(1 << 20);
/// let (mut first, mut rest) = (&b"id: 4zq81x-1\ndata: 2."[..], &b"74\n\n"[..]);
/// assert_eq!(stream.decode(&mut first)?, None); // the block is not complete
/// let Some(Item::Event { position, data, .. }) = stream.decode(&mut rest)? else { panic!() };
/// assert_eq!((position.offset, &*data), (1, "2.74"));
/// # Ok::<(), anemone_wire::Malformed>(())
/// ```
#[derive(Debug)]
pub struct EventStream {
    partial: Vec<u8>,
    bytes_max: usize,
    /// True if the last byte was a CR. An LF after it belongs to the same line end.
    is_after_cr: bool,
    is_begun: bool,
    block: Block,
}

/// The fields between two empty lines.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Block {
    event: String,
    id: Option<String>,
    /// The time of an event. Older servers leave it out.
    time: Option<String>,
    data: Option<String>,
}

impl EventStream {
    /// Creates a reader. Each line, and the data of each block, may have up to `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        let (partial, block) = (Vec::new(), Block::default());
        Self { partial, bytes_max, is_after_cr: false, is_begun: false, block }
    }

    /// Takes the next item from `input`; `None` when the input is used up. Blocks of an unknown `event` are ignored.
    ///
    /// # Errors
    /// When a line or the data of a block is longer than allowed, or an item is invalid. The reader is useless then.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<Item<'static>>, Malformed> {
        while let Some(block) = self.next_block(input)? {
            if let Some(item) = block.parse()? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Takes the next item of a stream of several topics, in the same way.
    ///
    /// # Errors
    /// As those of [`EventStream::decode`].
    pub fn decode_topics(&mut self, input: &mut &[u8]) -> Result<Option<ReadItem>, Malformed> {
        while let Some(block) = self.next_block(input)? {
            if let Some(item) = block.parse_topics()? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Takes the next block. Comments alone are no block.
    fn next_block(&mut self, input: &mut &[u8]) -> Result<Option<Block>, Malformed> {
        loop {
            if self.is_after_cr && !input.is_empty() {
                self.is_after_cr = false;
                *input = input.strip_prefix(b"\n").unwrap_or(input);
            }
            let Some(end) = input.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.keep(mem::take(input))?;
                return Ok(None);
            };
            self.keep(&input[..end])?;
            self.is_after_cr = input[end] == b'\r';
            *input = &input[end + 1..];
            let line = mem::take(&mut self.partial);
            if let Some(block) = self.line(&line)? {
                return Ok(Some(block));
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.check(self.partial.len() + bytes.len())?;
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, len: usize) -> Result<(), Malformed> {
        let limit = self.bytes_max;
        if len > limit { Err(Malformed::TooLong { limit }) } else { Ok(()) }
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Block>, Malformed> {
        let line = str::from_utf8(line)?;
        // A byte order mark may stand at the very beginning.
        let line = match mem::replace(&mut self.is_begun, true) {
            true => line,
            false => line.strip_prefix('\u{feff}').unwrap_or(line),
        };
        if line.is_empty() {
            let block = mem::take(&mut self.block);
            return Ok((block != Block::default()).then_some(block));
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.block.event),
            "data" => {
                let before = self.block.data.as_ref().map_or(0, |data| data.len() + 1);
                self.check(before + value.len())?;
                match &mut self.block.data {
                    None => self.block.data = Some(value.to_owned()),
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                }
            }
            "id" if !value.contains('\0') => self.block.id = Some(value.to_owned()),
            "time" => self.block.time = Some(value.to_owned()),
            // Comments, and `retry`: how long to wait is this side's own decision.
            _ => {}
        }
        Ok(None)
    }
}

impl Block {
    /// Reads the item; `None` for an unknown `event`.
    fn parse(self) -> Result<Option<Item<'static>>, Malformed> {
        match (&*self.event, self.id, self.data) {
            ("" | "message", Some(id), Some(data)) => {
                serde_json::from_str::<&RawValue>(&data)?;
                let time = self.time.as_deref().and_then(|time| time.parse().ok());
                Ok(Some(Item::Event { position: id.parse()?, time, data: data.into() }))
            }
            ("" | "message", None, Some(_)) => Err(Malformed::NoPosition),
            ("", Some(id), None) => Ok(Some(Item::Begin(id.parse()?))),
            ("gap" | "skipped" | "end", _, Some(data)) => {
                Ok(Item::parse(data.as_bytes())?.map(Item::into_owned))
            }
            _ => Ok(None),
        }
    }

    /// Reads the item of several topics, whose object says all but the `id` of a block without data.
    fn parse_topics(self) -> Result<Option<ReadItem>, Malformed> {
        match (&*self.event, self.id, self.data) {
            ("" | "message" | "gap" | "skipped" | "end", _, Some(data)) => {
                ReadItem::parse(data.as_bytes())
            }
            ("", Some(id), None) => Ok(Some(ReadItem::At(id.parse()?))),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Position;
    use crate::testing::{cuts, item, pieces};

    fn blocks(pieces: &[&[u8]]) -> Result<Vec<Block>, Malformed> {
        let (mut stream, mut blocks) = (EventStream::new(100), Vec::new());
        for mut piece in pieces.iter().copied() {
            while let Some(block) = stream.next_block(&mut piece)? {
                blocks.push(block);
            }
        }
        Ok(blocks)
    }

    fn block(event: &str, id: Option<&str>, data: Option<&str>) -> Block {
        let (id, data) = (id.map(Into::into), data.map(Into::into));
        Block { event: event.into(), id, time: None, data }
    }

    #[test]
    fn the_examples_of_the_standard_are_understood() {
        // HTML, section 9.2.6
        let stream = b"data: YHOO\ndata: +2\ndata: 10\n\n";
        assert_eq!(blocks(&[stream]).unwrap(), [block("", None, Some("YHOO\n+2\n10"))]);
        let stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        let expected = [
            block("", Some("1"), Some("first event")),
            block("", Some(""), Some("second event")),
            block("", None, Some(" third event")),
        ];
        assert_eq!(blocks(&[stream]).unwrap(), expected);
        let stream = b"data\n\ndata\ndata\n\ndata:";
        let expected = [block("", None, Some("")), block("", None, Some("\n"))];
        assert_eq!(blocks(&[stream]).unwrap(), expected);
    }

    #[test]
    fn any_line_end_and_a_byte_order_mark_are_taken() {
        let expected = [block("a", None, None), block("", Some("b-1"), None)];
        for end in ["\n", "\r", "\r\n"] {
            let stream = "\u{feff}event: a|:x||retry: 5|id: b-1||".replace('|', end);
            for cut in 0..=stream.len() {
                let (first, second) = stream.as_bytes().split_at(cut);
                assert_eq!(blocks(&[first, second]).unwrap(), expected, "{end:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn lines_and_data_have_a_limit() {
        assert!(blocks(&[&[b'x'; 100]]).is_ok());
        assert!(blocks(&[&[b'x'; 60], &[b'x'; 41]]).is_err());
        let line = format!("data:{}\n", "x".repeat(60));
        assert!(blocks(&[line.as_bytes()]).is_ok());
        assert!(blocks(&[line.as_bytes(), line.as_bytes()]).is_err());
    }

    #[test]
    fn blocks_say_what_an_item_would() {
        let at = |text: &str| text.parse::<Position>().unwrap();
        let parse = |event, id, data| block(event, id, data).parse();
        assert_eq!(parse("", Some("a-1"), None).unwrap(), Some(Item::Begin(at("a-1"))));
        let event = Item::Event { position: at("a-2"), time: None, data: "[1]".into() };
        assert_eq!(parse("", Some("a-2"), Some("[1]")).unwrap(), Some(event));
        let timed =
            Block { time: Some("1789000000123.456".into()), ..block("", Some("a-2"), Some("[1]")) };
        let Some(Item::Event { time: Some(time), .. }) = timed.parse().unwrap() else { panic!() };
        assert_eq!(time.to_string(), "1789000000123.456");
        let odd = Block { time: Some("noon".into()), ..block("", Some("a-2"), Some("[1]")) };
        assert_eq!(odd.parse().unwrap(), parse("", Some("a-2"), Some("[1]")).unwrap());
        let skipped = parse("skipped", Some("a-2"), Some(r#"{"skipped":2}"#)).unwrap();
        assert_eq!(skipped, Some(Item::Skipped { count: 2, last: None }));
        assert_eq!(parse("other", Some("a-2"), Some("[1]")).unwrap(), None);
        assert!(parse("", None, Some("[1]")).is_err());
        assert!(parse("", Some("x"), Some("[1]")).is_err());
        assert!(parse("", Some("a-2"), Some("[1")).is_err());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_blocks(
            text in "(data|id|:|event| |é|\u{feff}|\r|\n){0,40}",
            cuts in cuts(),
        ) {
            let whole = blocks(&[text.as_bytes()]).ok();
            prop_assert_eq!(blocks(&pieces(text.as_bytes(), &cuts)).ok(), whole);
        }

        #[test]
        fn what_is_written_is_read_back(item in item()) {
            let mut text = String::new();
            Item::Quiet("a-1".parse().unwrap()).write_block(&mut text);
            item.write_block(&mut text);
            let read = EventStream::new(1000).decode(&mut text.as_bytes());
            prop_assert_eq!(read.unwrap(), Some(item));
        }
    }
}
