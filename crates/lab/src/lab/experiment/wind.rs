//! `wind`: the one-way latency of four events a second, over each transport at once (B).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

use crate::histogram::Histogram;
use crate::lab::probe::{Fault, FaultKind, Feed, Http, Piece, Place, Source, Way};
use crate::lab::report::{Published, Quantity, Report, Series, Verdict, ms};
use crate::lab::session::Session;
use crate::lab::strain::{Moment, StrainMeter, Strained};
use crate::lab::theory;
use crate::statistics::median;

const LATENCY: Quantity = Quantity { name: "one-way latency", unit: "ms" };
const CASE: &str = "4 events a second";
const PERIOD: Duration = Duration::from_millis(250);
/// The client of the publication waits so long after each answer to a poll.
const PAUSE: Duration = Duration::from_millis(150);
/// The number of events of the publication.
const EVENTS: usize = 1200;
const QUICK_EVENTS: usize = 48;
const TOPIC: &str = "/topics/scratch-lab-wind";
/// The first events, while connections and caches are new.
const WARM_UP_EVENTS: usize = 4;
const WAYS: [Way; 7] =
    [Way::WebSocket, Way::Multiplexed, Way::Tcp, Way::Sse, Way::Ndjson, Way::LongPoll, Way::Poll];
/// The publication's ratios of polling to WebSocket.
const PUBLISHED_POLLING: std::ops::RangeInclusive<f64> = 2.3..=4.5;

/// The time of each event at a reader, by its number.
type Arrivals = BTreeMap<usize, Instant>;

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let events = session.full_or_quick(EVENTS, QUICK_EVENTS);
    let web = session.web()?;
    let tcp = session.tcp()?;
    let direct = Place { host: session.target.host(), ..Place::new(session.target.web()) };
    publish(&mut Http::connect(&direct)?, 0)
        .context("publishing to the topic of this experiment")?;
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = WAYS
        .into_iter()
        .filter_map(|way| {
            let place = if way == Way::Tcp { tcp.clone()? } else { web.clone() };
            let (seed, over) = (session.random.next(), Arc::clone(&is_over));
            // A poll begins in another phase each time, which otherwise decides what it finds.
            let phase = PAUSE.mul_f64(session.random.below(1000) as f64 / 1000.0);
            Some((way, thread::spawn(move || read(way, &place, phase, seed, &over))))
        })
        .collect();
    // Every reader is connected by then, through the slowest of links.
    thread::sleep(Duration::from_millis(500) + 8 * session.settings.link.mean_delay());
    let (meter, begun) = (StrainMeter::start(), Moment::now());
    let (sent, lag) = send(session, &direct, events)?;
    thread::sleep(PERIOD + PAUSE + 8 * session.settings.link.mean_delay());
    let mut strained = meter.since(begun);
    strained.lag.add(&lag);
    is_over.store(true, Ordering::Relaxed);
    // The last event lets every reader look at the flag.
    publish(&mut Http::connect(&direct)?, events + 1)?;
    let mut series = Vec::new();
    for (way, reader) in readers {
        let (arrivals, fault) = reader.join().ok().context("a reader has panicked")?;
        if let Some(fault) = &fault {
            session.say(&format!("{}: {fault}", way.name()));
        }
        series.push(evaluate(session, way, &sent, &arrivals, fault, &strained));
    }
    let question = "Which transport brings a stream of four events a second soonest?";
    let mut report = session.report("wind", question, LATENCY, series);
    report.compare_with(Way::WebSocket.name());
    judge(&mut report, session.settings.link.mean_delay());
    // The rounds of this experiment are made of events.
    report.method[0] = format!(
        "{} events, one every {} ms, to one topic that all transports read at the same time; latency from the moment before \
         the event is published, on the same clock, until its reader has parsed it; the first {WARM_UP_EVENTS} are dropped, \
         and the others are cut into {} rounds, whose medians are paired by event. Polls wait {} ms after each answer, as \
         published. The publisher was at most {:.1} ms late.",
        sent.len(),
        PERIOD.as_millis(),
        session.rounds(),
        PAUSE.as_millis(),
        lag.percentile(1.0).map_or(0.0, ms)
    );
    Ok(report)
}

/// Sends the events at their times. Returns the moments at which each was sent, and the delays behind the plan.
fn send(
    session: &mut Session,
    place: &Place,
    events: usize,
) -> anyhow::Result<(BTreeMap<usize, Instant>, Histogram)> {
    let mut http = Http::connect(place)?;
    let begun = Instant::now() + PERIOD;
    let (mut sent, mut lag) = (BTreeMap::new(), Histogram::default());
    session.begin(events);
    for number in 1..=events {
        let planned = begun + PERIOD * number as u32;
        thread::sleep(planned.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        lag.record(now.saturating_duration_since(planned));
        sent.insert(number, now);
        publish(&mut http, number)?;
        session.step();
        if session.is_stopped() {
            break;
        }
    }
    Ok((sent, lag))
}

fn publish(http: &mut Http, number: usize) -> Result<(), Fault> {
    // As long as a message of the sensor.
    let body = format!(r#"{{"n":{number:>6},"m":1.2}}"#);
    http.call("POST", TOPIC, "Content-Type: application/json\r\n", body.as_bytes())?.expect(201)?;
    Ok(())
}

/// Reads until it is over.
fn read(
    way: Way,
    place: &Place,
    phase: Duration,
    seed: u64,
    is_over: &AtomicBool,
) -> (Arrivals, Option<Fault>) {
    let mut arrivals = Arrivals::new();
    let mut go_on = || {
        let source = Source { target: TOPIC, body: None, page: None };
        let mut feed = Feed::open(way, place, source, seed)?;
        if way == Way::Poll {
            thread::sleep(phase);
        }
        while !is_over.load(Ordering::Relaxed) {
            match feed.next()? {
                Piece::Event(data) => {
                    let number = number(&data)?;
                    arrivals.entry(number).or_insert_with(Instant::now);
                }
                Piece::Answer if way == Way::Poll => thread::sleep(PAUSE),
                Piece::Answer => {}
                Piece::End => return Err(Fault::Closed),
            }
        }
        Ok(())
    };
    let fault = go_on().err();
    (arrivals, fault)
}

fn number(data: &[u8]) -> Result<usize, Fault> {
    let event: Value =
        serde_json::from_slice(data).map_err(|_| Fault::wrong("no JSON came", data))?;
    let number = event["n"].as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Fault::wrong("another event came", data))
}

/// Cuts the events into rounds, and takes the median of each.
fn evaluate(
    session: &Session,
    way: Way,
    sent: &BTreeMap<usize, Instant>,
    arrivals: &Arrivals,
    fault: Option<Fault>,
    strained: &Strained,
) -> Series {
    let counted: Vec<_> = sent.iter().skip(WARM_UP_EVENTS).collect();
    let mut durations = Histogram::default();
    let mut received = 0;
    let mut rounds = Vec::new();
    for block in counted.chunks(counted.len().div_ceil(session.rounds()).max(1)) {
        let latencies = block.iter().filter_map(|(number, sent)| {
            Some(arrivals.get(number)?.saturating_duration_since(**sent))
        });
        let latencies: Vec<_> = latencies.collect();
        received += latencies.len() as u64;
        latencies.iter().for_each(|latency| durations.record(*latency));
        rounds.push(median(&latencies.into_iter().map(ms).collect::<Vec<_>>()));
    }
    let faults: Vec<(FaultKind, u64)> = fault.iter().map(|fault| (fault.kind(), 1)).collect();
    Series {
        case: CASE.to_owned(),
        x: None,
        contender: way.name().to_owned(),
        quantity: LATENCY.name.to_owned(),
        unit: LATENCY.unit.to_owned(),
        rounds,
        histogram: durations.encoded().ok(),
        expected: counted.len() as u64,
        received,
        faults: faults.into_iter().collect(),
        traffic: None,
        strain: Some(strained.strain(false)),
    }
}

fn judge(report: &mut Report, delay: Duration) {
    let d = ms(delay);
    let expected = [
        (Way::WebSocket, theory::stream(d)),
        (Way::LongPoll, theory::long_poll(d, 0.0, ms(PERIOD))),
        (Way::Poll, theory::poll(d, 0.0, ms(PAUSE))),
    ];
    let measured = expected.map(|(way, _)| report.median(CASE, way.name(), LATENCY.name));
    let [Some(web_socket), Some(long_poll), Some(poll)] = measured else { return };
    report.answer = format!(
        "An event is at its reader after {web_socket:.1} ms over WebSocket, {long_poll:.1} ms by long polling and {poll:.1} ms by \
         polling; theory says {:.1}, {:.1} and {:.1} ms and the time of both ends.",
        expected[0].1, expected[1].1, expected[2].1
    );
    let ratio = poll / web_socket;
    report.published.push(Published {
        figure: "polling, times WebSocket (B)".to_owned(),
        published: "2.3 to 4.5".to_owned(),
        measured: format!("{ratio:.1}"),
        verdict: Verdict::of(PUBLISHED_POLLING.contains(&ratio)),
        because: format!(
            "polling waits half of its cycle of {} ms and a round trip, so the ratio falls with the delay, which is {d} ms here and was \
             40 to 190 ms there",
            PAUSE.as_millis()
        ),
    });
    let shift = report.comparisons.iter().find(|comparison| comparison.of == Way::LongPoll.name());
    if let Some(shift) = shift.map(|comparison| comparison.shift) {
        report.published.push(Published {
            figure: "long polling less WebSocket, ms (B)".to_owned(),
            published: "-4.4 to 1.0 (Edmonton, Caracas, Lund)".to_owned(),
            measured: format!("{:.2} [{:.2}, {:.2}]", shift.median, shift.low, shift.high),
            verdict: Verdict::of(shift.median.abs() <= 4.4),
            because: String::new(),
        });
    }
}
