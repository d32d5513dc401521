//! What a lab and an agent say to each other: lines of JSON, one question at a time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

/// The version of the lines; both ends must have the same.
pub(crate) const VERSION: u32 = 1;
const LINE_BYTES_MAX: u64 = 4 << 10;

/// What a lab asks for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// The time on the agent's clock.
    Time,
    /// Events, each answered by [`Answer::Sent`], and the last followed by [`Answer::Done`].
    Publish(Events),
    /// The end of the events before the last.
    Stop,
}

/// Numbered events at planned times.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Events {
    /// The path of the topic.
    pub(crate) topic: String,
    /// The number of the first.
    pub(crate) first: usize,
    pub(crate) count: u32,
    pub(crate) period_ms: f64,
    pub(crate) bytes: usize,
}

/// What the agent says.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The first line, at once.
    Hello {
        version: u32,
    },
    /// The second: the ports of the server.
    Ready {
        machine: String,
        web: u16,
        tcp: u16,
        tcp_echo: u16,
    },
    /// Milliseconds on the agent's clock, which is never set.
    Time(f64),
    /// An event, with the moment before it was published, and its delay behind the plan.
    Sent {
        number: usize,
        at_ms: f64,
        late_ms: f64,
    },
    /// No more events come.
    Done,
    Failed(String),
}

/// Writes a line.
pub(crate) fn say(writer: &mut TcpStream, message: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(writer.write_all(&line)?)
}

/// Waits for a line; `None` at the end.
pub(crate) fn hear<T: for<'a> Deserialize<'a>>(
    reader: &mut BufReader<TcpStream>,
) -> anyhow::Result<Option<T>> {
    let mut line = Vec::new();
    reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if !line.ends_with(b"\n") {
        bail!("a line is cut or has more than {LINE_BYTES_MAX} bytes");
    }
    serde_json::from_slice(&line).map(Some).context("what came is no line of the lab")
}
