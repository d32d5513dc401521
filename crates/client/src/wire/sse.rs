//! Server-sent events (HTML, section 9.2.6).

use anemone_wire::{Item, Malformed, Position};

use super::Wire;

/// Takes blocks out of an event stream.
#[derive(Debug)]
pub(crate) struct EventStream {
    partial: Vec<u8>,
    /// Most bytes of a line, and of the data of a block.
    bytes_max: usize,
    /// The last byte was a CR: an LF now would belong to it.
    is_after_cr: bool,
    is_begun: bool,
    block: Block,
}

/// The lines between two empty lines.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Block {
    pub(crate) event: String,
    pub(crate) id: Option<String>,
    /// The time of an event: no field of the standard, and not there from older servers.
    pub(crate) time: Option<String>,
    pub(crate) data: Option<String>,
}

impl EventStream {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (partial, block) = (Vec::new(), Block::default());
        Self { partial, bytes_max, is_after_cr: false, is_begun: false, block }
    }

    /// Hands each block that is whole to `block`; those of comments alone are none. After an error it is
    /// not to be called again.
    pub(crate) fn receive(
        &mut self,
        mut bytes: &[u8],
        mut block: impl FnMut(Block) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        loop {
            if self.is_after_cr && !bytes.is_empty() {
                self.is_after_cr = false;
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                break;
            };
            self.keep(&bytes[..end])?;
            self.is_after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.partial);
            if let Some(whole) = self.line(&line)? {
                block(whole)?;
            }
        }
        self.keep(bytes)
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
        let line = std::str::from_utf8(line)?;
        // A byte order mark may stand at the very beginning.
        let line = match std::mem::replace(&mut self.is_begun, true) {
            true => line,
            false => line.strip_prefix('\u{feff}').unwrap_or(line),
        };
        if line.is_empty() {
            let block = std::mem::take(&mut self.block);
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
    /// Its meaning; `None` when it is something not known here.
    pub(crate) fn parse(self) -> Result<Option<Wire>, Malformed> {
        match (&*self.event, self.id, self.data) {
            ("" | "message", Some(id), Some(data)) => {
                serde_json::from_str::<&serde_json::value::RawValue>(&data)?;
                let time = self.time.as_deref().and_then(|time| time.parse().ok());
                Ok(Some(Item::Event { position: position(&id)?, time, data: data.into() }))
            }
            ("" | "message", None, Some(_)) => Err(Malformed::NoPosition),
            ("", Some(id), None) => Ok(Some(Item::Begin(position(&id)?))),
            ("gap" | "skipped" | "end", _, Some(data)) => {
                Ok(Item::parse(&data)?.map(Item::into_owned))
            }
            _ => Ok(None),
        }
    }
}

fn position(text: &str) -> Result<Position, Malformed> {
    text.parse().map_err(|_| Malformed::NoPosition)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blocks(pieces: &[&[u8]]) -> Result<Vec<Block>, Malformed> {
        let (mut parser, mut blocks) = (EventStream::new(100), Vec::new());
        for piece in pieces {
            parser.receive(piece, |block| {
                blocks.push(block);
                Ok(())
            })?;
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
        assert_eq!(parse("", Some("a-1"), None).unwrap(), Some(Wire::Begin(at("a-1"))));
        let event = Wire::Event { position: at("a-2"), time: None, data: "[1]".into() };
        assert_eq!(parse("", Some("a-2"), Some("[1]")).unwrap(), Some(event));
        let timed =
            Block { time: Some("1789000000123.456".into()), ..block("", Some("a-2"), Some("[1]")) };
        let Some(Wire::Event { time: Some(time), .. }) = timed.parse().unwrap() else { panic!() };
        assert_eq!(time.to_string(), "1789000000123.456");
        let odd = Block { time: Some("noon".into()), ..block("", Some("a-2"), Some("[1]")) };
        assert_eq!(odd.parse().unwrap(), parse("", Some("a-2"), Some("[1]")).unwrap());
        let skipped = parse("skipped", Some("a-2"), Some(r#"{"skipped":2}"#)).unwrap();
        assert_eq!(skipped, Some(Wire::Skipped { count: 2, last: None }));
        assert_eq!(parse("other", Some("a-2"), Some("[1]")).unwrap(), None);
        assert!(parse("", None, Some("[1]")).is_err());
        assert!(parse("", Some("x"), Some("[1]")).is_err());
        assert!(parse("", Some("a-2"), Some("[1")).is_err());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_blocks(
            text in "(data|id|:|event| |é|\u{feff}|\r|\n){0,40}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let whole = blocks(&[text.as_bytes()]).ok();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> =
                cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(blocks(&pieces).ok(), whole);
        }
    }
}
