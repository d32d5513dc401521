//! Server-Sent Events, line by line (HTML Living Standard, section 9.2.6).

use super::piece::Piece;
use super::{Fault, within_limit};

/// The current event: its lines are arriving.
#[derive(Debug)]
pub(super) struct Sse {
    /// True if the server is not Anemone, so that only the data of events has a meaning.
    is_plain: bool,
    data: Option<Vec<u8>>,
}

impl Sse {
    pub(super) fn new(is_plain: bool) -> Self {
        Self { is_plain, data: None }
    }

    /// Takes a line without its line feed. Returns the piece that the line completes, if any. Stores its position in
    /// `position`.
    pub(super) fn line(
        &mut self,
        line: &[u8],
        position: &mut String,
    ) -> Result<Option<Piece>, Fault> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(self.data.take().map(|data| self.piece(data)));
        }
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(end) => (&line[..end], &line[end + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (name, &mut self.data) {
            (b"data", Some(data)) => {
                data.push(b'\n');
                data.extend_from_slice(value);
                within_limit(data.len())?;
            }
            (b"data", none) => *none = Some(value.to_vec()),
            (b"id", _) => *position = String::from_utf8_lossy(value).into_owned(),
            (b"event", _) if value == b"gap" && !self.is_plain => {
                return Err(Fault::wrong("a gap came", line));
            }
            _ => {}
        }
        Ok(None)
    }

    fn piece(&self, data: Vec<u8>) -> Piece {
        let is_end = !self.is_plain && data.starts_with(br#"{"end":"#);
        if is_end { Piece::End } else { Piece::Event(data) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, is_plain: bool) -> Result<(Vec<Piece>, String), Fault> {
        let (mut sse, mut position, mut pieces) = (Sse::new(is_plain), String::new(), Vec::new());
        for line in text.split_terminator('\n') {
            pieces.extend(sse.line(line.as_bytes(), &mut position)?);
        }
        Ok((pieces, position))
    }

    fn event(data: &str) -> Piece {
        Piece::Event(data.as_bytes().to_vec())
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let (pieces, position) =
            read("retry: 1000\n\nid: e-1\ndata: 7\n\n: quiet\n", false).unwrap();
        assert_eq!((pieces, position.as_str()), (vec![event("7")], "e-1"));
        // The space is optional, and so are the line feed alone and the one line.
        let (pieces, position) = read("id:4\r\ndata:{\r\ndata: }\r\n\r\ndata\n\n", false).unwrap();
        assert_eq!((pieces, position.as_str()), (vec![event("{\n}"), event("")], "4"));
        assert_eq!(read("data: 7\n", false).unwrap().0, [], "an event ends with an empty line");
    }

    #[test]
    fn ends_and_gaps_are_words_of_anemone() {
        let end = "data: {\"end\":{\"reason\":\"ended\"}}\n\n";
        assert_eq!(read(end, false).unwrap().0, [Piece::End]);
        assert!(matches!(read(end, true).unwrap().0[..], [Piece::Event(_)]));
        let gap = "event: gap\ndata: {}\n\n";
        assert!(read(gap, false).is_err());
        assert_eq!(read(gap, true).unwrap().0, [event("{}")]);
    }
}
