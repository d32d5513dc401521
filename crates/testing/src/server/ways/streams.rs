//! Streams over HTTP/1.1: blocks of SSE, lines of NDJSON, calls of a forever-frame.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;

use serde_json::json;

use super::told::{parse, told};
use super::{Reading, Told, Wire};
use crate::{EventStream, Reply, request, try_line};

impl<S: io::Read + Write + Send> Reading for EventStream<S> {
    fn read(&mut self) -> io::Result<Told> {
        loop {
            let Some(block) = self.try_block()? else { return Ok(Told::End(None)) };
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(&*format!("{name}: ")))
            };
            let id = field("id").map(str::to_owned);
            match (field("event"), field("data").map(parse)) {
                (None, Some(data)) => {
                    let time: f64 = field("time").unwrap().parse().unwrap();
                    assert!(time > 1.7e12, "{block}");
                    return Ok(Told::Event { position: id, data });
                }
                (Some(name), Some(notice)) => {
                    assert!(!notice[name].is_null(), "{block}");
                    let told = told(&notice);
                    if let Told::Gap(gap) = &told {
                        assert_eq!(gap["resume"], json!(id), "{block}");
                    }
                    return Ok(told);
                }
                (None, None) if block == ":\n" => {}
                (None, None) => return Ok(Told::Position(id.unwrap())),
                (Some(_), None) => panic!("unexpected {block:?}"),
            }
        }
    }
}

/// A stream of lines.
pub struct Lines {
    reader: BufReader<Wire>,
    pub head: Reply,
    is_frame: bool,
    has_begun: bool,
}

impl Lines {
    /// Reads the NDJSON that answers a request on this connection.
    pub fn following(stream: TcpStream) -> Self {
        Self::answering(Wire::new(stream), false).unwrap()
    }

    pub(super) fn open(
        mut wire: Wire,
        is_frame: bool,
        fields: &[(&str, &str)],
        target: &str,
    ) -> io::Result<Self> {
        let request = request(wire.peer(), "GET", target, fields);
        wire.write_all(request.as_bytes())?;
        Self::answering(wire, is_frame)
    }

    fn answering(wire: Wire, is_frame: bool) -> io::Result<Self> {
        let mut reader = BufReader::new(wire);
        let head = Reply::try_read_head(&mut reader)?;
        let media_type = if is_frame { "text/html; charset=utf-8" } else { "application/x-ndjson" };
        assert_eq!((head.status, head.field("content-type")), (200, Some(media_type)), "{head:?}");
        let mut lines = Self { reader, head, is_frame, has_begun: false };
        if is_frame {
            let line = lines.try_line()?.unwrap();
            let guard = "<script>parent===window&&(parent=null)</script>";
            let comment = line.strip_prefix(guard).unwrap_or_else(|| panic!("{line:?}"));
            assert!(comment.starts_with("<!--") && comment.ends_with("-->\n"), "{comment:?}");
            assert_eq!(comment.len(), 1024);
        }
        Ok(lines)
    }

    /// The next line, without the framing of chunks; `None` at the end.
    pub fn line(&mut self) -> Option<String> {
        self.try_line().unwrap()
    }

    fn try_line(&mut self) -> io::Result<Option<String>> {
        try_line(&mut self.reader)
    }
}

impl Reading for Lines {
    fn read(&mut self) -> io::Result<Told> {
        loop {
            let Some(line) = self.try_line()? else { return Ok(Told::End(None)) };
            let json = if self.is_frame {
                let call = line
                    .strip_prefix("<script>parent.app.receive(")
                    .unwrap_or_else(|| panic!("{line:?}"));
                let json = call.strip_suffix(")</script>\n").unwrap_or_else(|| panic!("{line:?}"));
                assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{line:?}");
                json
            } else {
                &*line
            };
            let told = told(&parse(json));
            // Only the first contains a position; the others are heartbeats.
            if !matches!(told, Told::Position(_)) || !std::mem::replace(&mut self.has_begun, true) {
                return Ok(told);
            }
        }
    }
}
