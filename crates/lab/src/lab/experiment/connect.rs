//! `connect`: the cost of opening, until the first byte of an answer is there (A1).

use std::time::{Duration, Instant};

use crate::lab::probe::{Fault, Http, Place, Stream, WebSocket};
use crate::lab::report::{Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;

const OPENING: Quantity = Quantity { name: "opening", unit: "ms" };
const CASE: &str = "to the first byte of an answer";
const TCP: &str = "TCP";
/// The publication's times on gigabit Ethernet, and their ratio.
const PUBLISHED_TCP_MS: f64 = 0.965;
const PUBLISHED_WEB_SOCKET_MS: f64 = 3.533;
/// A ratio within this factor of the published one replicates it.
const ALIKE: f64 = 1.25;

#[derive(Clone, Debug)]
enum Opening {
    Tcp(Place),
    Http(Place),
    WebSocket(Place),
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let web = session.web()?;
    let tcp = session.tcp_echo()?;
    let cell = |contender: &str, key| Cell {
        case: CASE.to_owned(),
        x: None,
        contender: contender.to_owned(),
        key,
    };
    let mut cells = Vec::new();
    if let Some(place) = tcp {
        cells.push(cell(TCP, Opening::Tcp(place.clone())));
        cells.push(cell("TCP again", Opening::Tcp(place)));
    }
    cells.push(cell("HTTP", Opening::Http(web.clone())));
    cells.push(cell("WebSocket", Opening::WebSocket(web)));
    let count = session.full_or_quick(50, 10);
    let series = interleaved(session, OPENING, &cells, |session, cell| {
        let seed = session.random.next();
        measure(&cell.key, count, seed)
    });
    let question = "What does opening a connection cost, until it can be used?";
    let mut report = session.report("connect", question, OPENING, series);
    report.compare_with(TCP);
    let median = |contender: &str| report.median(CASE, contender, OPENING.name);
    if let (Some(tcp), Some(web_socket)) = (median(TCP), median("WebSocket")) {
        let ratio = web_socket / tcp;
        let published = PUBLISHED_WEB_SOCKET_MS / PUBLISHED_TCP_MS;
        report.answer = format!(
            "A WebSocket is open after {web_socket:.3} ms, {ratio:.1} times as late as the first byte over TCP ({tcp:.3} ms)."
        );
        report.published.push(Published {
            figure: "set-up of a WebSocket, times that of TCP (A1)".to_owned(),
            published: format!("{published:.2}"),
            measured: format!("{ratio:.2}"),
            verdict: Verdict::of((published / ALIKE..=published * ALIKE).contains(&ratio)),
            because: "theirs was Java on two hosts, and TCP's was connect() alone; ours is until the first byte of an answer, \
                      which is when the kernel of the server has also woken its program"
                .to_owned(),
        });
    }
    report.method.push(format!(
        "{count} connections in each round, one after the other; TCP is open when its first byte is back, HTTP when a small \
         answer is there, a WebSocket after its handshake."
    ));
    Ok(report)
}

fn measure(opening: &Opening, count: u64, seed: u64) -> Sample {
    let mut sample = Sample { expected: count, ..Sample::default() };
    for number in 0..count {
        match open(opening, seed ^ number) {
            Ok(time) => {
                sample.durations.record(time);
                sample.received += 1;
            }
            Err(fault) => sample.fault(&fault),
        }
    }
    sample.figures.extend(sample.durations.percentile(0.5).map(|time| (OPENING, ms(time))));
    sample
}

fn open(opening: &Opening, seed: u64) -> Result<Duration, Fault> {
    let begun = Instant::now();
    match opening {
        Opening::Tcp(place) => {
            let mut stream = Stream::connect(place)?;
            stream.send(b"a")?;
            stream.fill()?;
        }
        Opening::Http(place) => {
            Http::connect(place)?.call("GET", "/health/live", "", b"")?;
        }
        Opening::WebSocket(place) => {
            WebSocket::connect(place, "/echo", &[], seed)?;
        }
    }
    Ok(begun.elapsed())
}
