//! A stream of lines into a topic.
//!
//! Owns how lines become events and bad lines. What state the source is in is the source's.

use std::borrow::Cow;
use std::sync::Arc;

use anemone_hub::{Topic, UnixTime};

use crate::lines::{self, Line, Lines};
use crate::status::{Status, chain, printable};

/// How many lines to publish before others have their turn: some hundred microseconds.
const TURN_LINES: usize = 256;

/// How much of a bad line is told, in characters.
const SHOWN_CHARS: usize = 60;

#[derive(Debug)]
pub(crate) struct Feed {
    topic: Arc<Topic>,
    lines: Lines,
    line_bytes_max: usize,
}

impl Feed {
    pub(crate) fn new(topic: Arc<Topic>, line_bytes_max: usize) -> Self {
        Self { topic, lines: Lines::new(line_bytes_max), line_bytes_max }
    }

    /// Publishes the lines that these bytes end, as events of time `at`. Returns how many events
    /// that were.
    pub(crate) async fn receive(
        &mut self,
        status: &mut Status,
        at: UnixTime,
        mut bytes: &[u8],
    ) -> usize {
        let (mut events, mut lines) = (0, 0);
        while let Some(line) = self.lines.next(&mut bytes) {
            events += usize::from(publish(&self.topic, status, at, line, self.line_bytes_max));
            lines += 1;
            if lines % TURN_LINES == 0 {
                tokio::task::yield_now().await;
            }
        }
        // Bytes without a line take their time too.
        tokio::task::yield_now().await;
        events
    }

    /// The stream has ended: publishes its last line if that had no end of its own.
    pub(crate) fn finish(&mut self, status: &mut Status, at: UnixTime) -> usize {
        let Some(line) = self.lines.finish() else { return 0 };
        usize::from(publish(&self.topic, status, at, line, self.line_bytes_max))
    }
}

/// Says whether it became an event.
fn publish(
    topic: &Topic,
    status: &mut Status,
    at: UnixTime,
    line: Line<'_>,
    bytes_max: usize,
) -> bool {
    let line = match line {
        Line::Whole(line) => line,
        Line::TooLong(start) => {
            let start = printable(&lines::text(start), SHOWN_CHARS);
            status.bad_line(format!("longer than {bytes_max} bytes, skipped: \"{start}\""));
            return false;
        }
    };
    let text = lines::text(line);
    if let Err(error) = topic.publish(at, lines::data(&text)) {
        let shown = printable(&text, SHOWN_CHARS);
        status.bad_line(format!("not published, {}: \"{shown}\"", chain(&error)));
        return false;
    }
    status.event();
    if let Cow::Owned(text) = text {
        let shown = printable(&text, SHOWN_CHARS);
        status.bad_line(format!("not UTF-8, published with U+FFFD: \"{shown}\""));
    }
    true
}
