//! Measures calls of a trivial service: the CPU time for each call, beside an echo of as many bytes and beside the HTTP
//! library alone.

use anyhow::Context;

use super::layout::{Column, Layout};
use super::session::{BenchSession, Measured, metered, of_round};
use crate::goals::{self as limits, Goal};
use crate::lab::report::Quantity;
use crate::lab::rounds::{Cell, try_interleaved};
use crate::load::{CallWay, Calls, Frames, Generator, Opener, Protocol, Shape, open};
use crate::server::Server;
use crate::statistics::Random;

pub(crate) const CALL: Quantity =
    Quantity::less("server CPU for each call of a trivial service", "µs");
const SERVICE: &str = "service";
const ECHO: &str = "WebSocket echo";
const HYPER: &str = "hyper alone";
const PATH: &str = "/hello";
const BODY: &str = r#"{"id":"testing"}"#;
const ECHO_PATH: &str = "/echo";
const IN_FLIGHT: [usize; 2] = [1, 16];
const CONNECTIONS: usize = 100;

const WAYS: [CallWay; 3] = [CallWay::Multiplexed, CallWay::Http, CallWay::Http2];
const PROGRAMS: [&[&str]; 4] = [&[], &["--tls"], &["--hyper"], &["--hyper", "--tls"]];

/// Returns the contender with which a call is compared. For multiplexed calls, it is the server's WebSocket echo, with
/// messages as long as a call. For the others, it is the same service in hyper, without the server.
fn beside(way: CallWay) -> &'static str {
    if way == CallWay::Multiplexed { ECHO } else { HYPER }
}

/// Returns the index in [`PROGRAMS`] of the program that answers.
fn program(contender: &str, way: CallWay) -> usize {
    2 * usize::from(contender == HYPER) + usize::from(way == CallWay::Http2)
}

fn cases() -> impl Iterator<Item = (String, CallWay, usize)> {
    let all = IN_FLIGHT.into_iter().flat_map(|in_flight| WAYS.map(|way| (way, in_flight)));
    all.map(|(way, in_flight)| (format!("{way}, {in_flight} in flight"), way, in_flight))
}

/// Measures all calls. The program has an echo and the service. With `--hyper`, hyper serves the calls, and there is no
/// echo. With `--tls`, the program uses TLS.
pub(crate) fn run(session: &mut BenchSession) -> anyhow::Result<Measured> {
    let cells = cases().flat_map(|(case, way, in_flight)| {
        [SERVICE, beside(way)].map(|of| Cell::new(&case, of, (of, way, in_flight)))
    });
    let cells: Vec<_> = cells.collect();
    let mut servers = None;
    let series = try_interleaved(session, CALL, &cells, |session, cell| {
        let servers = of_round(&mut servers, session.pace.round, |_| {
            let start = |args| session.services.with(args).start(session.cores);
            PROGRAMS.into_iter().map(start).collect::<anyhow::Result<Vec<_>>>()
        })?;
        let (contender, way, in_flight) = cell.key;
        let server = &servers[program(contender, way)];
        let random = &mut Random::new(session.pace.random.next());
        let sample = calls(contender, way, in_flight, server, random).and_then(|mut calls| {
            metered(CALL, server.pid(), session.times, |time| calls.run(time))
        });
        sample.with_context(|| format!("{}: {contender}", cell.case))
    })?;
    let question =
        "What does a call of a trivial service cost, beside an echo and beside hyper alone?";
    let mut report = session.report(&session.services, question, CALL, series);
    [ECHO, HYPER].into_iter().for_each(|beside| report.compare_with(beside));
    Ok(Measured { report, goals: goals(), layouts: vec![layout()] })
}

/// Returns a table with a row for each way of calling and each number of calls in flight.
pub(crate) fn layout() -> Layout {
    let mut columns = [SERVICE, ECHO, HYPER].map(|of| Column::Cost(CALL, of)).to_vec();
    columns.extend([ECHO, HYPER].map(|beside| Column::Ratio(CALL, SERVICE, beside)));
    columns.extend([Column::Goal(CALL, SERVICE), Column::Busy(&[SERVICE])]);
    Layout::of_cases(CALL, columns)
}

/// Returns the goals: the highest cost of a call, relative to an echo or to hyper.
pub(crate) fn goals() -> Vec<Goal> {
    let goals = cases().filter_map(|(case, way, in_flight)| {
        Some(Goal::new(CALL, &case, SERVICE, Some(beside(way)), limits::call(way, in_flight)?))
    });
    goals.collect()
}

fn calls(
    contender: &str,
    way: CallWay,
    in_flight: usize,
    server: &Server,
    random: &mut Random,
) -> anyhow::Result<Calls> {
    if contender == ECHO {
        let shape = Shape { payload_bytes: format!("GET 00 {PATH}").len(), in_flight };
        let frames = Frames::new(Protocol::WebSocket, shape, random);
        let endpoint = server.endpoint(Protocol::WebSocket, ECHO_PATH).context("no echo")?;
        let streams = open(&mut Opener::new(endpoint, random)?, CONNECTIONS)?;
        return Ok(Calls::Framed(Generator::new(streams, frames)?));
    }
    let service = server.called(PATH, BODY).context("no service is offered")?;
    service.calls(way, CONNECTIONS, in_flight, random)
}
