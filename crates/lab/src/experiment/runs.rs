//! Runs: CPU time for each partial result, beside an event of a topic; and a normal client's waits beside many runs.

use std::io::Read;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Header, Opcode};
use anyhow::{Context, ensure};

use super::hostile::{Waits, Witness};
use super::rounds::{RunPlan, progress, undisturbed};
use super::work::Sample;
use crate::cpu::{Meter, Used, stat_time_ns};
use crate::load::{Protocol, connect, post, shake_hands_with_talker};
use crate::server::{Program, Server};

/// As many as in the publication that this repeats.
pub(crate) const RESULTS: usize = 22_479;
/// The runs of one sample.
const REPEATS: usize = 10;
/// The runs that compute at once or wait to.
pub(crate) const RUNS: usize = 16;
const ECHO_PATH: &str = "/echo";
const WARM_UP: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_micros(50);
const READ_BYTES: usize = 256 << 10;
const TOPIC: &str = "/topics/filled";
const RESPOND_ASYNC: &str = "Prefer: respond-async\r\n";

/// The plan.
#[derive(Clone, Debug)]
pub(crate) struct RunsPlan {
    pub(crate) run: RunPlan,
    /// A program with the run services `/count`, `/fill` and `/spin`. A run of `/fill` publishes to a topic what one of
    /// `/count` makes as partial results.
    pub(crate) program: Program,
    /// The time for a normal client's waits.
    pub(crate) time: Duration,
}

/// The results.
#[derive(Debug, Default)]
pub(crate) struct RunsResults {
    /// The samples of partial results, one for each round.
    pub(crate) results: Vec<Sample>,
    /// The samples of a topic's events.
    pub(crate) events: Vec<Sample>,
    /// The waits for an echo, alone and beside runs.
    pub(crate) alone: Waits,
    pub(crate) beside: Waits,
}

impl RunsPlan {
    pub(crate) fn run(&self) -> anyhow::Result<RunsResults> {
        let mut results = RunsResults::default();
        for round in 1..=self.run.rounds {
            progress(&format!("round {round} of {}: runs", self.run.rounds));
            let server = self.program.start(self.run.cores)?;
            // The order alternates.
            for is_run in [round % 2 == 0, round % 2 != 0] {
                let take = || sample(&server, is_run);
                let is_disturbed = |sample: &Sample| sample.busy.is_disturbed();
                let sample = undisturbed(self.run.retries, take, is_disturbed)?;
                let samples = if is_run { &mut results.results } else { &mut results.events };
                samples.push(sample);
            }
        }
        progress("an echo beside runs");
        results.alone = self.waits(0)?;
        results.beside = self.waits(RUNS)?;
        Ok(results)
    }

    /// Returns the waits of a normal client beside so many runs that compute, on the same core.
    fn waits(&self, runs: usize) -> anyhow::Result<Waits> {
        let server = self.program.start(self.run.cores)?;
        let endpoint = server.endpoint(Protocol::WebSocket, ECHO_PATH).context("no echo")?;
        let mut witness = Witness::new(&endpoint)?;
        for _ in 0..runs {
            let (status, body) = post(endpoint.address, "/spin", RESPOND_ASYNC, b"0")?;
            ensure!(status == 202, "a run is not started: {status} {body}");
        }
        for time in [WARM_UP, self.time] {
            witness.begin();
            let until = Instant::now() + time;
            while Instant::now() < until {
                if !witness.turn()? {
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(witness.end().0)
    }
}

/// Has so many partial results or events made, several times, and one reader read them. The threads of runs have ended
/// by then, so their time is that of the whole process, in ticks.
fn sample(server: &Server, is_run: bool) -> anyhow::Result<Sample> {
    let (meter, before) = (Meter::start(server.pid())?, stat_time_ns(server.pid())?);
    for _ in 0..REPEATS {
        make_and_read(server, is_run)?;
    }
    let (used, results) = (meter.stop()?, (REPEATS * RESULTS) as u64);
    let server_ns = stat_time_ns(server.pid())? - before;
    Ok(Sample::of_cpu(Used { server_ns, ..used }, results))
}

fn make_and_read(server: &Server, is_run: bool) -> anyhow::Result<()> {
    let address = server.called("/", "").context("no web server")?.address;
    let body = RESULTS.to_string();
    if is_run {
        let (status, state) = post(address, "/count", RESPOND_ASYNC, body.as_bytes())?;
        ensure!(status == 202, "the run is not started: {status} {state}");
        let key = member(&state, "key").context("a run without a key")?;
        follow(address, &format!("/runs/{key}"), br#"{"partial":"#)?;
    } else {
        let position = server.topic(TOPIC).context("no topic")?.next()?;
        let (status, state) = post(address, "/fill", RESPOND_ASYNC, body.as_bytes())?;
        ensure!(status == 202, "the topic is not filled: {status} {state}");
        follow(address, &format!("{TOPIC}?after={position}"), b"{")?;
    }
    Ok(())
}

/// Returns a member of a JSON object that is a string without escapes.
fn member<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split_once('"')?.0)
}

/// Reads messages until [`RESULTS`] of them begin like this.
fn follow(address: SocketAddr, path: &str, begin: &[u8]) -> anyhow::Result<()> {
    let mut stream = connect(address)?;
    let handshake = ClientHandshake::new(Nonce([3; 16]), &[]);
    let mut received = shake_hands_with_talker(&mut stream, handshake, path)?.rest.to_vec();
    let (mut buffer, mut counted) = (vec![0; READ_BYTES], 0);
    loop {
        let read = count(&received, begin, &mut counted)?;
        received.drain(..read);
        if counted >= RESULTS {
            break;
        }
        let len = stream.read(&mut buffer).context("waiting for messages")?;
        ensure!(len > 0, "the stream ended after {counted} messages");
        received.extend_from_slice(&buffer[..len]);
    }
    ensure!(counted == RESULTS, "{counted} messages came instead of {RESULTS}");
    Ok(())
}

/// Counts the complete messages that begin like this; returns the bytes of all complete ones.
fn count(bytes: &[u8], begin: &[u8], counted: &mut usize) -> anyhow::Result<usize> {
    let mut read = 0;
    while let Some((header, header_bytes)) = Header::decode(&bytes[read..])? {
        let from = read + header_bytes;
        let Some(payload) = bytes.get(from..from + header.payload_len as usize) else { break };
        if header.opcode == Opcode::Close {
            break;
        }
        *counted += usize::from(header.opcode == Opcode::Text && payload.starts_with(begin));
        read = from + payload.len();
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_their_beginning() {
        let mut bytes = Vec::new();
        for text in [r#"{"partial":1}"#, r#"{"progress":0.5}"#, r#"{"partial":2}"#] {
            Header::new(Opcode::Text, text.len() as u64).encode(&mut bytes);
            bytes.extend_from_slice(text.as_bytes());
        }
        let mut counted = 0;
        let read = count(&bytes[..bytes.len() - 1], br#"{"partial":"#, &mut counted).unwrap();
        assert_eq!((counted, read), (1, 15 + 18));
        count(&bytes[read..], br#"{"partial":"#, &mut counted).unwrap();
        assert_eq!(counted, 2);
    }

    #[test]
    fn a_member_is_found() {
        assert_eq!(member(r#"{"key":"0f","state":"queued"}"#, "state"), Some("queued"));
        assert_eq!(member("{}", "state"), None);
    }
}
