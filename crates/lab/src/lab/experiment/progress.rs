//! `progress`: measures the two published computations over each transport (D). The figures are communications,
//! packets, bytes and time.

use std::time::Instant;

use serde_json::Value;

use crate::cpu::stat_time_ns;
use crate::lab::description::Form;
use crate::lab::numbers::fixed;
use crate::lab::probe::{Fault, Feed, Piece, Place, Source, Transport};
use crate::lab::report::{Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;

const TIME: Quantity = Quantity::less("time", "ms");
const COMMUNICATIONS: Quantity = Quantity::less("communications", "");
const OTHERS: Quantity = Quantity::less("other messages", "");
const EMPTY: Quantity = Quantity::less("polls without news", "");
const RATE: Quantity = Quantity::more("states a second", "");
const CPU: Quantity = Quantity::less("server CPU of a state", "µs");
const PACKETS: Quantity = Quantity::less("packets", "");
const PAYLOAD: Quantity = Quantity::less("payload", "B");
const WIRE: Quantity = Quantity::less("on the wire", "B");
const AS_PUBLISHED: Quantity = Quantity::less("as the publication counts", "B");
const QUICK_ROUNDS: usize = 2;
/// The least number of states for which CPU time can be measured.
const STATES_MIN: u64 = 1_000;
/// The path of the service. Each state comes in a message of its own, as in the publication.
const TARGET: &str = "/computations?batch=1";
const PAGE: u32 = 1;

/// A computation in the publication.
#[derive(Clone, Copy, Debug)]
struct Computation {
    name: &'static str,
    document: &'static str,
    states: u64,
    rest: Captured,
    web_socket: Captured,
}

/// The captured figures in the publication.
#[derive(Clone, Copy, Debug)]
struct Captured {
    communications: u64,
    packets: u64,
    bytes: u64,
    ms: f64,
}

const COMPUTATIONS: [Computation; 2] = [
    Computation {
        name: "2 states",
        document: include_str!("../../../../../examples/computations/smallest.json"),
        states: 2,
        rest: Captured { communications: 4, packets: 44, bytes: 7_127, ms: 48.0 },
        web_socket: Captured { communications: 3, packets: 22, bytes: 2_489, ms: 15.0 },
    },
    Computation {
        name: "22,479 states",
        document: include_str!("../../../../../examples/computations/22479-states.json"),
        states: 22_479,
        rest: Captured {
            communications: 22_481,
            packets: 135_098,
            bytes: 27_634_885,
            ms: 86_778.0,
        },
        web_socket: Captured {
            communications: 22_480,
            packets: 44_976,
            bytes: 4_723_849,
            ms: 35_226.0,
        },
    },
];

#[derive(Clone, Debug)]
struct Watch {
    place: Place,
    transport: Transport,
    computation: Computation,
}

/// The messages of a computation. Communications are counted as in the publication: the request, each state, and over
/// REST the last poll, which reports the end.
#[derive(Clone, Copy, Debug, Default)]
struct Messages {
    communications: u64,
    states: u64,
    /// The number of messages that the publication does not have: the plan, complete lists for new readers, progress,
    /// and the result.
    others: u64,
    /// The number of answers to polls with nothing new.
    empty: u64,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    if session.pace.is_quick {
        // Each round shows 157,000 states: it warms itself up.
        session.pace.warm_up = 0;
        session.pace.rounds = session.settings.rounds.unwrap_or(QUICK_ROUNDS);
    }
    let web = session.web()?;
    let tcp = session.tcp()?;
    let mut cells = Vec::new();
    for computation in COMPUTATIONS {
        for transport in Transport::ALL {
            let place = if transport == Transport::Tcp { tcp.clone() } else { Some(web.clone()) };
            cells.extend(place.map(|place| {
                let key = Watch { place, transport, computation };
                Cell::new(computation.name, transport.name(), key).at(computation.states as f64)
            }));
        }
    }
    let pid = session.target.pid();
    let series = interleaved(session, TIME, &cells, |session, cell| {
        let seed = session.pace.random.next();
        let mut sample = Sample { expected: cell.key.computation.states, ..Sample::default() };
        // The threads of runs have ended by then, so it is the time of the whole process, in ticks.
        let cpu_ns = || pid.and_then(|pid| stat_time_ns(pid).ok());
        let before = cpu_ns();
        if let Err(fault) = watch(&cell.key, seed, &mut sample) {
            sample.fault(&fault);
        }
        // A tick of 10 ms is nothing to a few states.
        let is_long = cell.key.computation.states >= STATES_MIN && sample.faults.is_empty();
        if let Some((before, after)) = before.zip(cpu_ns()).filter(|_| is_long) {
            let states = sample.received as f64;
            sample.figures.push((CPU, after.saturating_sub(before) as f64 / 1e3 / states));
        }
        sample
    });
    let question = "What does it cost to show every state of a long computation?";
    let mut report = session.report("progress", question, TIME, series);
    report.compare_with(Transport::WebSocket.name());
    judge(&mut report, session.target.is_secure());
    report.method.push(
        "Each state in a message of its own. Over REST, a POST starts the computation and a poll asks for the next event, as \
         published; a long poll waits for it. Other transports take the reply of the POST itself. Communications are those \
         of the publication: the request, each state, and over REST the poll that tells the end. The plan, the whole lists for \
         those who join later, progress and the result are counted beside them, and so are polls without news. Packets are \
         all segments of the connection by TCP_INFO, those that open and close it, too."
            .to_owned(),
    );
    Ok(report)
}

fn watch(watch: &Watch, seed: u64, sample: &mut Sample) -> Result<(), Fault> {
    let Watch { place, transport, computation } = watch;
    let is_polled = matches!(transport, Transport::Poll | Transport::LongPoll);
    let body = computation.document.as_bytes();
    let begun = Instant::now();
    let source = Source {
        target: TARGET,
        body: Some(body),
        page: is_polled.then_some(PAGE),
        after: None,
        form: Form::Anemone,
    };
    let mut feed = Feed::open(*transport, place, source, seed)?;
    let mut messages = Messages { communications: 1, ..Messages::default() };
    let mut is_news = false;
    loop {
        match feed.next()? {
            Piece::Event(data) => {
                is_news = true;
                if is_state(&data)? {
                    messages.states += 1;
                    messages.communications += 1;
                } else {
                    messages.others += 1;
                }
            }
            Piece::Answer => {
                messages.empty += u64::from(!is_news);
                is_news = false;
            }
            Piece::End => break,
        }
    }
    let time = begun.elapsed();
    if is_polled {
        // The poll that told the end.
        messages.communications += 1;
        messages.others = messages.others.saturating_sub(1);
    }
    let traffic = feed.finish()?;
    sample.received = messages.states;
    sample.durations.record(time);
    sample.figures = vec![
        (TIME, ms(time)),
        (RATE, messages.states as f64 / time.as_secs_f64()),
        (COMMUNICATIONS, messages.communications as f64),
        (OTHERS, messages.others as f64),
        (EMPTY, messages.empty as f64),
        (PACKETS, traffic.segments as f64),
        (PAYLOAD, traffic.payload_bytes() as f64),
        (WIRE, traffic.wire_bytes() as f64),
        (AS_PUBLISHED, traffic.published_bytes() as f64),
    ];
    sample.add_traffic(traffic);
    Ok(())
}

/// Returns true if an event has changes of a list, and is thus a state.
fn is_state(data: &[u8]) -> Result<bool, Fault> {
    let event: Value =
        serde_json::from_slice(data).map_err(|_| Fault::wrong("no JSON came", data))?;
    let changes = event.pointer("/partial/changes").or_else(|| event.get("changes"));
    Ok(changes.and_then(Value::as_array).is_some_and(|changes| !changes.is_empty()))
}

fn judge(report: &mut Report, is_secure: bool) {
    let mut published = Vec::new();
    for computation in COMPUTATIONS {
        for (transport, captured, name) in [
            (Transport::Poll, computation.rest, "REST"),
            (Transport::WebSocket, computation.web_socket, "WebSocket"),
        ] {
            let median = |quantity: Quantity| {
                report.median(computation.name, transport.name(), quantity.name)
            };
            let mut row = |figure: &str,
                           of: Quantity,
                           value: f64,
                           is_so: fn(f64, f64) -> bool,
                           because: &str| {
                let Some(measured) = median(of) else { return };
                published.push(Published {
                    figure: format!("{}, {name}: {figure} (D)", computation.name),
                    published: fixed(value, 0),
                    measured: fixed(measured, 0),
                    verdict: Verdict::of(is_so(value, measured)),
                    because: because.to_owned(),
                });
            };
            row(
                "communications",
                COMMUNICATIONS,
                captured.communications as f64,
                |a, b| a == b,
                "",
            );
            let fewer = "their client and server sent more packets for each message, and ours acknowledge several at once";
            row("packets", PACKETS, captured.packets as f64, alike, fewer);
            let other = match is_secure {
                true => {
                    "ours are within TLS, in fewer packets, and their messages held other fields"
                }
                false => "their messages held other fields, and ours fewer packets",
            };
            row("bytes", AS_PUBLISHED, captured.bytes as f64, alike, other);
            row(
                "ms",
                TIME,
                captured.ms,
                alike,
                "another program on another machine, over a network",
            );
        }
    }
    report.published = published;
    let big = &COMPUTATIONS[1];
    let median =
        |transport: Transport, of: Quantity| report.median(big.name, transport.name(), of.name);
    if let (Some(poll), Some(web_socket), Some(poll_bytes), Some(bytes)) = (
        median(Transport::Poll, TIME),
        median(Transport::WebSocket, TIME),
        median(Transport::Poll, WIRE),
        median(Transport::WebSocket, WIRE),
    ) {
        report.answer = format!(
            "To show 22,479 states one by one, REST takes {:.1} times as long as WebSocket ({} against {} ms) \
             and {:.1} times the bytes on the wire.",
            poll / web_socket,
            fixed(poll, 0),
            fixed(web_socket, 0),
            poll_bytes / bytes
        );
    }
}

/// Returns true if two figures differ by less than a tenth.
fn alike(published: f64, measured: f64) -> bool {
    (measured / published - 1.0).abs() < 0.1
}
