//! Measures runs. The figures are the CPU time of a partial result, compared with that of a topic's event, and the
//! waits of a normal client beside many runs.

use std::io::Read;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anemone_ws::proto::handshake::{ClientHandshake, Nonce};
use anemone_ws::proto::{Header, Opcode};
use anyhow::{Context, ensure};
use serde_json::Value;

use super::hostile::witness::{WAIT, Witness, wait_columns, waits};
use super::layout::{Column, Layout};
use super::session::{BenchSession, Measured, of_cpu, of_round};
use crate::cpu::Meter;
use crate::goals::{FLOOD_WAIT_P99, Goal, PARTIAL_RESULT_TO_EVENT};
use crate::histogram::Histogram;
use crate::lab::report::{Quantity, ms};
use crate::lab::rounds::{Cell, Sample, try_interleaved};
use crate::load::{Protocol, connect, post, shake_hands_with_talker};
use crate::server::Server;

pub(crate) const RESULT: Quantity =
    Quantity::less("server CPU for each partial result of a run with one watcher", "µs");
pub(crate) const PARTIAL: &str = "partial result";
pub(crate) const EVENT: &str = "event of a topic with one reader";
pub(crate) const ECHO: &str = "echo";
/// The number of partial results of a run. The publication that this experiment repeats has as many.
const RESULTS: usize = 22_479;
/// The number of runs in one sample.
const REPEATS: usize = 10;
/// The number of runs beside a normal client. Some compute, and the others wait for their turn.
const RUNS: usize = 16;
const ECHO_PATH: &str = "/echo";
const WARM_UP: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_micros(50);
const READ_BYTES: usize = 256 << 10;
const TOPIC: &str = "/topics/filled";
const RESPOND_ASYNC: &str = "Prefer: respond-async\r\n";

/// Measures partial results beside events. Then measures the waits of a normal client for this time. The program has
/// the run services `/count`, `/fill` and `/spin`. A run of `/fill` publishes to a topic the values that a run of
/// `/count` has as partial results.
pub(crate) fn run(session: &mut BenchSession, time: Duration) -> anyhow::Result<Measured> {
    let case = format!("{RESULTS} results");
    let cells = [(PARTIAL, true), (EVENT, false)]
        .map(|(contender, is_run)| Cell::new(&case, contender, is_run));
    let mut server = None;
    let mut series = try_interleaved(session, RESULT, &cells, |session, cell| {
        let start = |_| session.services.start(session.cores);
        sample(of_round(&mut server, session.pace.round, start)?, cell.key)
    })?;
    drop(server);
    let mut goals = vec![Goal::new(RESULT, &case, PARTIAL, Some(EVENT), PARTIAL_RESULT_TO_EVENT)];
    for runs in [0, RUNS] {
        if session.pace.cut_if_stopped() {
            break;
        }
        session.pace.say(&format!("an echo beside {runs} runs, for {} s", time.as_secs()));
        let case = format!("{runs} runs");
        series.extend(waits(&case, ECHO, &beside(session, runs, time)?));
        goals.push(Goal::new(WAIT, &case, ECHO, None, ms(FLOOD_WAIT_P99)));
    }
    let question = "What does a partial result of a run cost, and how long does a normal client wait beside runs?";
    let mut report = session.report(&session.services, question, RESULT, series);
    report.compare_with(EVENT);
    report.method.push(
        "Waits: once; the server and its runs have one core. An echo of 125 B every 15 ms, timed from when it was planned."
            .to_owned(),
    );
    Ok(Measured { report, goals, layouts: layouts() })
}

pub(crate) fn layouts() -> Vec<Layout> {
    let costs = vec![
        Column::Cost(RESULT, PARTIAL),
        Column::Cost(RESULT, EVENT),
        Column::Ratio(RESULT, PARTIAL, EVENT).named("ratio"),
        Column::Goal(RESULT, PARTIAL),
        Column::Busy(&[PARTIAL]),
    ];
    let title = "wait of a normal client for an echo beside runs that compute, ms".to_owned();
    let mut waits = Layout::of_cases(WAIT, wait_columns(ECHO));
    waits.title = title;
    vec![Layout::of_cases(RESULT, costs), waits]
}

/// Returns the waits of a normal client beside this number of runs. They compute on the server's core.
fn beside(session: &BenchSession, runs: usize, time: Duration) -> anyhow::Result<Histogram> {
    let server = session.services.start(session.cores)?;
    let endpoint = server.endpoint(Protocol::WebSocket, ECHO_PATH).context("no echo")?;
    let mut witness = Witness::new(&endpoint)?;
    for _ in 0..runs {
        let (status, body) = post(endpoint.address, "/spin", RESPOND_ASYNC, b"0")?;
        ensure!(status == 202, "a run is not started: {status} {body}");
    }
    for time in [WARM_UP, time] {
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

/// Makes several runs, each with partial results or events, while one reader reads them. The meter counts the time of
/// threads that have ended, since those of a run end with it.
fn sample(server: &Server, is_run: bool) -> anyhow::Result<Sample> {
    let meter = Meter::of_process(server.pid())?;
    for _ in 0..REPEATS {
        make_and_read(server, is_run)?;
    }
    Ok(of_cpu(RESULT, meter.stop()?, (REPEATS * RESULTS) as u64))
}

fn make_and_read(server: &Server, is_run: bool) -> anyhow::Result<()> {
    let address = server.called("/", "").context("no web server")?.address;
    let body = RESULTS.to_string();
    if is_run {
        let (status, state) = post(address, "/count", RESPOND_ASYNC, body.as_bytes())?;
        ensure!(status == 202, "the run is not started: {status} {state}");
        let state: Value = serde_json::from_str(&state)?;
        let key = state["key"].as_str().context("a run without a key")?;
        follow(address, &format!("/runs/{key}"), br#"{"partial":"#)?;
    } else {
        let position = server.topic(TOPIC).context("no topic")?.next()?;
        let (status, state) = post(address, "/fill", RESPOND_ASYNC, body.as_bytes())?;
        ensure!(status == 202, "the topic is not filled: {status} {state}");
        follow(address, &format!("{TOPIC}?after={position}"), b"{")?;
    }
    Ok(())
}

/// Reads messages until [`RESULTS`] of them have begun with `begin`.
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

/// Counts the complete messages that begin with `begin`. Returns the length of all complete messages.
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
}
