//! Items as NDJSON ("Streams over HTTP" in `docs/PROTOCOL.md`).

use std::mem;

use crate::{Item, Malformed, ReadItem};

impl Item<'_> {
    /// Appends the item as a line of NDJSON. The data of an event must be one line.
    pub fn write_line(&self, out: &mut String) {
        self.write(out);
        out.push('\n');
    }
}

/// Reads items from NDJSON, which may come in pieces of any size. A line ends with LF or CR LF.
#[derive(Debug)]
pub struct ItemLines {
    line_bytes_max: usize,
    /// The bytes of an incomplete line.
    partial: Vec<u8>,
}

impl ItemLines {
    /// Creates a reader of lines of up to `line_bytes_max` bytes, without LF.
    #[must_use]
    pub const fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, partial: Vec::new() }
    }

    /// Takes the next item from `input`; `None` when the input is used up. Empty lines and unknown notices are ignored.
    ///
    /// # Errors
    /// When a line is longer than allowed, or an item is invalid. The reader is useless then.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<Item<'static>>, Malformed> {
        self.next(input, |line| Ok(Item::parse(line)?.map(Item::into_owned)))
    }

    /// Takes the next item of a stream of several topics, in the same way.
    ///
    /// # Errors
    /// As those of [`ItemLines::decode`].
    pub fn decode_topics(&mut self, input: &mut &[u8]) -> Result<Option<ReadItem>, Malformed> {
        self.next(input, ReadItem::parse)
    }

    fn next<T>(
        &mut self,
        input: &mut &[u8],
        parse: fn(&[u8]) -> Result<Option<T>, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        let parse = |line: &[u8]| match line.trim_ascii() {
            b"" => Ok(None),
            line => parse(line),
        };
        while let Some(end) = input.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = input.split_at(end);
            *input = &rest[1..];
            self.check(line)?;
            // A line that is whole is not copied.
            let item = if self.partial.is_empty() {
                parse(line)?
            } else {
                self.partial.extend_from_slice(line);
                parse(&mem::take(&mut self.partial))?
            };
            if item.is_some() {
                return Ok(item);
            }
        }
        self.check(input)?;
        self.partial.extend_from_slice(mem::take(input));
        Ok(None)
    }

    fn check(&self, more: &[u8]) -> Result<(), Malformed> {
        let limit = self.line_bytes_max;
        let fits = self.partial.len() + more.len() <= limit;
        if fits { Ok(()) } else { Err(Malformed::TooLong { limit }) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{cuts, item, pieces};

    fn items(pieces: &[&[u8]], line_bytes_max: usize) -> Result<Vec<Item<'static>>, Malformed> {
        let (mut lines, mut items) = (ItemLines::new(line_bytes_max), Vec::new());
        for mut piece in pieces.iter().copied() {
            while let Some(item) = lines.decode(&mut piece)? {
                items.push(item);
            }
        }
        Ok(items)
    }

    #[test]
    fn a_line_has_an_end_and_a_limit() {
        let skipped = |count| Item::Skipped { count, last: None };
        let text = b"{\"skipped\":1}\r\n\n\r\n{\"weather\":2}\n{\"skipped\":3}\n{\"skip";
        assert_eq!(items(&[text], 14).unwrap(), [skipped(1), skipped(3)]);
        let (first, second) = (&b"{\"skipped\":1}\n{\"skip"[..], &b"ped\":2}\n"[..]);
        assert_eq!(items(&[first, second], 13).unwrap(), [skipped(1), skipped(2)]);
        assert!(items(&[first, second], 12).is_err());
        assert!(items(&[b"{\"skip", b"ped\":"], 10).is_err());
    }

    proptest! {
        #[test]
        fn any_split_gives_the_items_that_were_written(
            written in prop::collection::vec(item(), 0..6),
            cuts in cuts(),
        ) {
            let mut text = String::new();
            written.iter().for_each(|item| item.write_line(&mut text));
            prop_assert_eq!(items(&pieces(text.as_bytes(), &cuts), 1000).unwrap(), written);
        }
    }
}
