//! A reader of server-sent events.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

use crate::server::http::{Reply, try_line};

/// A stream of blocks, one for each event or notice.
pub struct EventStream<S = TcpStream> {
    reader: BufReader<S>,
    pub head: Reply,
}

impl<S: Read + Write> EventStream<S> {
    /// Sends a request, whose answer is the stream.
    pub fn over(mut stream: S, request: &str) -> io::Result<Self> {
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let head = Reply::try_read_head(&mut reader)?;
        assert_eq!(head.field("content-type"), Some("text/event-stream"), "{head:?}");
        Ok(Self { reader, head })
    }

    /// Returns the underlying stream.
    pub fn get_ref(&self) -> &S {
        self.reader.get_ref()
    }

    /// The next block, without the framing of chunks; `None` at the end.
    pub fn block(&mut self) -> Option<String> {
        self.try_block().unwrap()
    }

    /// The next block, which must be an event; its time is left out.
    pub fn event(&mut self) -> String {
        let block = self.block().unwrap();
        let (id, rest) = block.split_once("\ntime: ").unwrap_or_else(|| panic!("{block:?}"));
        let (time, data) = rest.split_once('\n').unwrap();
        assert!(time.parse::<f64>().unwrap() > 1.7e12, "{block:?}");
        format!("{id}\n{data}")
    }

    /// The next block; an error if the connection fails.
    pub fn try_block(&mut self) -> io::Result<Option<String>> {
        let mut block = String::new();
        while let Some(line) = try_line(&mut self.reader)? {
            if line == "\n" {
                return Ok(Some(block));
            }
            block += &line;
        }
        Ok(None)
    }
}
