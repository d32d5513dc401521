//! The protocol between a lab and an agent: lines of JSON, with one question at a time.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

/// The version of the protocol. Both ends must have the same.
pub(crate) const VERSION: u32 = 2;
const LINE_BYTES_MAX: usize = 4 << 10;

/// A question of the lab.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Asks for a server. This is the first line.
    Hello { version: u32 },
    /// Asks for the time on the agent's clock.
    Time,
    /// Asks the agent to publish events. The agent sends [`Answer::Sent`] for each, and [`Answer::Done`] at the end.
    Publish(Events),
    /// Asks the agent to stop publishing.
    Stop,
}

/// Numbered events at planned times.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Events {
    pub(crate) topic: String,
    /// The number of the first event.
    pub(crate) first: usize,
    pub(crate) count: u32,
    pub(crate) period_ms: f64,
    pub(crate) bytes: usize,
}

/// An answer of the agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The greeting of the agent, which it sends at once.
    Hello {
        version: u32,
    },
    /// The answer to [`Ask::Hello`]: the ports of the server.
    Ready {
        machine: String,
        web: u16,
        tcp: u16,
        tcp_echo: u16,
    },
    /// The time on the agent's clock, in milliseconds. That clock is never set.
    Time(f64),
    /// An event was published. The answer has the time right before that, and the delay behind the plan.
    Sent {
        number: usize,
        at_ms: f64,
        late_ms: f64,
    },
    /// No more events will be published.
    Done,
    Failed(String),
}

/// Writes a message as one line.
pub(crate) fn say(writer: &mut TcpStream, message: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(writer.write_all(&line)?)
}

/// Waits for a complete line until `deadline`. Returns `None` at the end of the connection.
pub(crate) fn hear<T: for<'a> Deserialize<'a>>(
    reader: &mut BufReader<TcpStream>,
    deadline: Instant,
) -> anyhow::Result<Option<T>> {
    let mut line = Vec::new();
    loop {
        let bytes = match within(reader, deadline) {
            // A signal, such as Ctrl-C, which lets what is begun come to its end.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                bail!("no whole line came in time")
            }
            bytes => bytes?,
        };
        if bytes.is_empty() && line.is_empty() {
            return Ok(None);
        }
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let len = end.unwrap_or(bytes.len());
        line.extend_from_slice(&bytes[..len]);
        reader.consume(len);
        if len == 0 || line.len() > LINE_BYTES_MAX {
            bail!("a line is cut or has more than {LINE_BYTES_MAX} bytes");
        }
        if end.is_some() {
            break;
        }
    }
    serde_json::from_slice(&line).map(Some).context("what came is not a line of the lab")
}

/// Waits for bytes until `deadline`. Returns them, or nothing at the end of the connection.
fn within(reader: &mut BufReader<TcpStream>, deadline: Instant) -> io::Result<&[u8]> {
    if reader.buffer().is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        reader.get_ref().set_read_timeout(Some(left))?;
    }
    reader.fill_buf()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Returns the two ends of a connection.
    fn pair() -> (TcpStream, BufReader<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (writer, BufReader::new(listener.accept().unwrap().0))
    }

    fn later(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn a_line_that_comes_byte_by_byte_is_waited_for_once() {
        let (mut writer, mut reader) = pair();
        let begun = Instant::now();
        // It ends when the reader has gone.
        let trickle = thread::spawn(move || {
            while writer.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let error = hear::<Ask>(&mut reader, later(200)).unwrap_err();
        assert_eq!(error.to_string(), "no whole line came in time");
        // 4,096 bytes take more than a minute.
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        drop(reader);
        trickle.join().unwrap();
    }

    #[test]
    fn lines_come_one_after_the_other_and_are_bounded() {
        let (mut writer, mut reader) = pair();
        say(&mut writer, &Ask::Time).unwrap();
        say(&mut writer, &Ask::Stop).unwrap();
        let mut next = || hear::<Ask>(&mut reader, later(60_000));
        assert!(matches!(next(), Ok(Some(Ask::Time))));
        assert!(matches!(next(), Ok(Some(Ask::Stop))));
        writer.write_all(&[b' '; 5000]).unwrap();
        assert!(next().unwrap_err().to_string().contains("more than 4096 bytes"));
        drop(writer);
        while next().is_err() {}
        assert!(matches!(next(), Ok(None)));
    }
}
