//! Measures a stream of events that several readers read at the same time over several transports. Used by `wind`,
//! `distance` (B) and `advise`.
//!
//! Owns the publisher, the readers and the medians of the rounds. The experiments choose the readers, and interpret the
//! figures.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::histogram::Histogram;
use crate::lab::description::{Form, StreamPaths};
use crate::lab::lines::Events;
use crate::lab::numbers::count;
use crate::lab::pace::Pace;
use crate::lab::probe::{
    EVENT_BYTES_MIN, Fault, FaultKind, Feed, Http, Piece, Place, Source, Transport, number,
};
use crate::lab::report::{Quantity, Report, Series, ms};
use crate::lab::session::{POLL_PAUSE, Session};
use crate::lab::strain::{Moment, StrainMeter, Strained};
use crate::lab::target::missing;
use crate::statistics::{Random, median};
use crate::tcp_info::Traffic;

pub(super) const LATENCY: Quantity = Quantity::less("one-way latency", "ms");
/// The period of the sensor in the publication. It sends four events a second, of 22 bytes each.
pub(super) const PERIOD: Duration = Duration::from_millis(250);
const EVENT_BYTES: usize = 22;
/// The number of events at the beginning that do not count, since connections and caches are new then.
pub(super) const WARM_UP_EVENTS: usize = 4;
/// The note for a server with which this program has to publish the events itself.
const FROM_HERE: &str =
    "They were published from here, so their way to the server is part of the latency. ";
/// The number of events in the publication.
const EVENTS: usize = 1200;
const QUICK_EVENTS: usize = 24;

/// The way in which polls use connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Connections {
    Kept,
    New,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) topic: &'static str,
    pub(super) period: Duration,
    /// The bytes of an event; at least [`Plan::BYTES_MIN`].
    pub(super) bytes: usize,
    pub(super) events: usize,
    /// The pause of a poll after each answer.
    pub(super) pause: Duration,
    /// The time without events after the last one. Its traffic is counted separately.
    pub(super) quiet: Duration,
}

impl Plan {
    /// The bytes of an event with nothing but its number.
    pub(super) const BYTES_MIN: usize = EVENT_BYTES_MIN;

    /// Returns the plan for the stream of the publication.
    pub(super) fn of_sensor(session: &Session, topic: &'static str) -> Self {
        let events = session.pace.full_or_quick(EVENTS, QUICK_EVENTS);
        let (period, bytes) = (PERIOD, EVENT_BYTES);
        Self { topic, period, bytes, events, pause: POLL_PAUSE, quiet: Duration::ZERO }
    }
}

/// A reader that will be started, with its place in the report.
#[derive(Clone, Debug)]
pub(super) struct PlannedReader {
    pub(super) case: String,
    pub(super) x: Option<f64>,
    pub(super) name: String,
    pub(super) transport: Transport,
    pub(super) connections: Connections,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) struct Streamed {
    pub(super) series: Vec<Series>,
    /// The traffic of each reader. `None` for a reader with several connections, or if the quiet time of the plan was
    /// cut short.
    pub(super) carried: Vec<Option<Carried>>,
    /// The sentences about the method.
    pub(super) method: String,
    /// The reason why publishing ended early; `None` if it did not.
    pub(super) fault: Option<String>,
}

impl Streamed {
    /// Makes the report. Its rounds are parts of one stream, so it has its own sentences about the method.
    pub(super) fn report(self, session: &Session, experiment: &str, question: &str) -> Report {
        let mut report = session.report(experiment, question, LATENCY, self.series);
        report.method[0] = self.method;
        if let Some(fault) = self.fault {
            report.invalid.get_or_insert(fault);
        }
        report
    }
}

/// The traffic of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    /// The traffic from the end of the warm-up to the last event of the plan, and the duration of that time.
    pub(super) events: (Traffic, Duration),
    /// The traffic after that, until the event that ends the quiet time, and the duration of that time.
    pub(super) quiet: (Traffic, Duration),
}

/// The time at which each event arrived at a reader, by the number of the event.
type Arrivals = BTreeMap<usize, Instant>;

/// Publishes the events to a topic, while all contenders read it at the same time.
pub(super) fn stream(
    session: &mut Session,
    plan: Plan,
    contenders: Vec<PlannedReader>,
    delay_max: Duration,
) -> anyhow::Result<Streamed> {
    let Plan { topic, period, events, pause, quiet, .. } = plan;
    let direct = session.target.place();
    let offered = stream_of(session)?.map(Arc::new);
    let topic = offered.as_ref().map_or(topic, |stream| &stream.publish).to_owned();
    let mut publisher = PlanPublisher { place: direct, topic, plan };
    publisher.one(session, 0).context("publishing to the topic of this experiment")?;
    let end = Arc::new(OnceLock::new());
    let block = block_len(events.saturating_sub(WARM_UP_EVENTS), session.pace.rounds);
    let readers = contenders.into_iter().map(|contender| {
        let (seed, end) = (session.pace.random.next(), Arc::clone(&end));
        let reading = contender.clone();
        (contender, {
            let stream = offered.clone();
            thread::spawn(move || read(&reading, plan, stream.as_deref(), block, seed, &end))
        })
    });
    let readers: Vec<_> = readers.collect();
    // Every reader is connected by then, through the slowest of links.
    thread::sleep(Duration::from_millis(500) + 8 * delay_max);
    let (meter, begun) = (StrainMeter::start(), Moment::now());
    let is_read = || readers.iter().any(|(_, reader)| !reader.is_finished());
    let SentEvents { sent, lag, clocks, mut fault } = publisher.all(session, is_read)?;
    let quiet_begun = Instant::now();
    let is_whole =
        quiet.is_zero() || (sent.len() == events && keep_quiet(&mut session.pace, quiet));
    thread::sleep((period + pause + 8 * delay_max).saturating_sub(quiet_begun.elapsed()));
    let mut strained = meter.since(begun);
    strained.behind.add(&lag);
    let last = sent.last_key_value().map_or(0, |(&number, _)| number);
    let _ = end.set(ReadingEnd { last, at: Instant::now() + publisher.place.patience });
    // Another event lets every reader look at that; without it, each ends after its patience.
    if let Err(error) = publisher.one(session, events + 1) {
        fault.get_or_insert(format!("the last event could not be published: {error:#}"));
    }
    let (mut series, mut all_carried) = (Vec::new(), Vec::new());
    for (contender, reader) in readers {
        let Read { arrivals, doubled, carried, fault } =
            reader.join().ok().context("a reader has panicked")?;
        if let Some(fault) = &fault {
            session.pace.say(&format!("{}, {}: {fault}", contender.case, contender.name));
        }
        let mut own = evaluate(block, &contender, &sent, &arrivals, fault, &strained);
        if doubled > 0 {
            session.pace.say(&format!(
                "{}, {}: {doubled} events came twice",
                contender.case, contender.name
            ));
            *own.faults.entry(FaultKind::Wrong).or_default() += doubled;
        }
        own.traffic = carried.map(|carried| carried.events.0);
        // The bytes of events and those of silence can be told apart only with the whole of both.
        all_carried.push(carried.filter(|_| is_whole));
        series.push(own);
    }
    let from = if session.target.is_own() { "" } else { FROM_HERE };
    let method =
        format!("{}{from}{}", method(&series, sent.len(), plan), told(plan, &lag, &clocks));
    Ok(Streamed { series, carried: all_carried, method, fault })
}

/// Publishes nothing for the quiet time of a plan, and tells the user. Returns false if the user has cut it short.
fn keep_quiet(pace: &mut Pace, quiet: Duration) -> bool {
    let seconds = quiet.as_secs();
    pace.say(&format!(
        "publishing nothing for {seconds} s, to measure the bytes of a quiet stream"
    ));
    pace.wait(quiet)
}

/// Returns the sentences about the method, for a stream with this number of events.
fn method(series: &[Series], events: usize, plan: Plan) -> String {
    let rounds = series.iter().map(|series| series.rounds.len()).max().unwrap_or(0);
    format!(
        "{} events, one every {} ms, to one topic that all transports read at the same time. Latency counts from the moment for which \
         the event is planned until its reader has parsed it. The first {WARM_UP_EVENTS} are dropped, \
         and the others are cut into {rounds} rounds, one after the other, whose medians are paired by event. ",
        count(events as u64),
        plan.period.as_millis()
    )
}

/// Returns the sentences about the polls, and about the punctuality of the publisher.
fn told(plan: Plan, lag: &Histogram, clocks: &str) -> String {
    format!(
        "Polls wait {} ms after each answer{}, and begin each round in another phase. The publisher was at most {:.1} ms late. {clocks}",
        plan.pause.as_millis(),
        if plan.pause == POLL_PAUSE { ", as published" } else { "" },
        lag.percentile(1.0).map_or(0.0, ms)
    )
}

/// Returns the stream in the server's description; `None` for an Anemone server.
fn stream_of(session: &Session) -> anyhow::Result<Option<StreamPaths>> {
    let Some(offer) = session.target.offer() else { return Ok(None) };
    Ok(Some(offer.stream.clone().with_context(|| missing("[stream]"))?))
}

/// Returns true if the server offers events over this transport.
pub(super) fn has(session: &Session, transport: Transport) -> anyhow::Result<bool> {
    Ok(stream_of(session)?.is_none_or(|stream| stream.has(transport)))
}

/// Returns the number of events in each round.
fn block_len(events: usize, rounds: usize) -> usize {
    events.div_ceil(rounds).max(1)
}

/// Returns the round of an event. The events of the warm-up belong to the first round.
fn round_of(number: usize, block: usize) -> usize {
    number.saturating_sub(WARM_UP_EVENTS + 1) / block
}

/// Publishes the events of a plan: directly, or through the agent on a second machine.
struct PlanPublisher {
    /// The place of the server, without a link.
    place: Place,
    topic: String,
    plan: Plan,
}

struct SentEvents {
    /// The planned time of each event. Latency is measured from it, since a server that delays the publisher delays its
    /// readers, too.
    sent: BTreeMap<usize, Instant>,
    /// The delays of the events behind the plan.
    lag: Histogram,
    /// A sentence about the clocks.
    clocks: String,
    /// The reason why publishing ended early; `None` if it did not.
    fault: Option<String>,
}

impl PlanPublisher {
    fn events(&self, first: usize, count: usize) -> Events {
        let (topic, period_ms) = (self.topic.clone(), ms(self.plan.period));
        Events { topic, first, count: count as u32, period_ms, bytes: self.plan.bytes }
    }

    /// Publishes one event at once.
    fn one(&mut self, session: &mut Session, number: usize) -> anyhow::Result<()> {
        let events = self.events(number, 1);
        match session.target.agent() {
            Some(agent) => agent.publish(&events, || true).map(|_| ()),
            None => {
                Ok(Http::connect(&self.place)?.publish(&self.topic, number, self.plan.bytes)?)
            }
        }
    }

    /// Publishes all events at their times. Ends early if no reader is left.
    fn all(
        &mut self,
        session: &mut Session,
        is_read: impl Fn() -> bool,
    ) -> anyhow::Result<SentEvents> {
        let Plan { period, events, bytes, .. } = self.plan;
        session.pace.begin(events);
        let (mut sent, mut lag, mut fault) = (BTreeMap::new(), Histogram::default(), None);
        let whole = self.events(1, events);
        let (progress, stop) = (session.pace.bar(), session.pace.stop_flag());
        if let Some(agent) = session.target.agent() {
            let mut count = 0;
            let step = || {
                progress.inc(1);
                count += 1;
                !stop.load(Ordering::Relaxed) && (count <= WARM_UP_EVENTS || is_read())
            };
            let (told, clocks) = agent.publish(&whole, step)?;
            for event in told {
                sent.insert(event.number, event.at.checked_sub(event.late).unwrap_or(event.at));
                lag.record(event.late);
            }
            if sent.len() < events {
                session.pace.cut_if_stopped();
            }
            return Ok(SentEvents { sent, lag, clocks, fault });
        }
        let mut http = Http::connect(&self.place)?;
        let begun = Instant::now() + period;
        for number in 1..=events {
            let planned = begun + period * number as u32;
            thread::sleep(planned.saturating_duration_since(Instant::now()));
            lag.record(Instant::now().saturating_duration_since(planned));
            if let Err(error) = http.publish(&self.topic, number, bytes) {
                fault = Some(format!("event {number} of {events} could not be published: {error}"));
                break;
            }
            sent.insert(number, planned);
            session.pace.step();
            let is_cut = number < events && session.pace.cut_if_stopped();
            if is_cut || (number > WARM_UP_EVENTS && !is_read()) {
                break;
            }
        }
        Ok(SentEvents { sent, lag, clocks: "Both ends have the same clock.".to_owned(), fault })
    }
}

/// The result of one reader.
struct Read {
    arrivals: Arrivals,
    /// The number of events that came twice.
    doubled: u64,
    /// The traffic of the reader's connection; `None` if it had several.
    carried: Option<Carried>,
    fault: Option<Fault>,
}

/// The condition on which reading ends.
#[derive(Clone, Copy, Debug)]
struct ReadingEnd {
    /// The last event. Reading ends with it, or with a later one.
    last: usize,
    /// The latest time. Reading ends with the first answer or event after it.
    at: Instant,
}

impl ReadingEnd {
    fn is_there(self, newest: usize) -> bool {
        newest >= self.last || Instant::now() >= self.at
    }
}

/// Reads a stream until `end`.
fn read(
    contender: &PlannedReader,
    plan: Plan,
    offered: Option<&StreamPaths>,
    block: usize,
    seed: u64,
    end: &OnceLock<ReadingEnd>,
) -> Read {
    let (mut arrivals, mut carried, mut doubled) = (Arrivals::new(), None, 0);
    let mut random = Random::new(seed);
    let mut go_on = || {
        let (path, form) = match offered {
            Some(stream) => (
                stream.target(contender.transport, ""),
                Form::Plain(stream.poll(contender.transport)),
            ),
            None => (Some(plan.topic.to_owned()), Form::Anemone),
        };
        let path = path.ok_or_else(|| Fault::Wrong("no such stream".to_owned()))?;
        let source = Source { target: &path, body: None, page: None, after: None, form };
        let mut feed = Feed::open(contender.transport, &contender.place, source, seed)?;
        let (mut newest, mut round, mut opened, mut quiet) = (0, None, None, None);
        while !end.get().is_some_and(|end| end.is_there(newest)) {
            match feed.next()? {
                Piece::Event(data) => {
                    newest = number(&data)?;
                    match arrivals.entry(newest) {
                        Entry::Vacant(first) => _ = first.insert(Instant::now()),
                        Entry::Occupied(_) => doubled += 1,
                    }
                    if newest == WARM_UP_EVENTS {
                        opened = Some((feed.traffic()?, Instant::now()));
                    }
                    if newest == plan.events {
                        quiet = Some((feed.traffic()?, Instant::now()));
                    }
                }
                Piece::Answer => {
                    if contender.transport == Transport::Poll {
                        thread::sleep(plan.pause);
                        // The phase decides what a poll finds where its cycle is a simple fraction of the period.
                        if round != Some(round_of(newest, block)) {
                            round = Some(round_of(newest, block));
                            thread::sleep(plan.period.mul_f64(random.below(1000) as f64 / 1000.0));
                        }
                    }
                    if contender.connections == Connections::New {
                        feed.reconnect(&contender.place)?;
                    }
                }
                Piece::End => return Err(Fault::Closed),
            }
        }
        let is_kept = contender.connections == Connections::Kept;
        if let (true, Some((opened, began))) = (is_kept, opened) {
            let now = (feed.traffic()?, Instant::now());
            // A plan that was cut has no last event.
            let (traffic, at) = quiet.unwrap_or(now);
            carried = Some(Carried {
                events: (traffic - opened, at - began),
                quiet: (now.0 - traffic, now.1 - at),
            });
        }
        Ok(())
    };
    let fault = go_on().err();
    Read { arrivals, doubled, carried, fault }
}

/// Divides the events into rounds, and takes the median latency of each.
fn evaluate(
    block: usize,
    contender: &PlannedReader,
    sent: &BTreeMap<usize, Instant>,
    arrivals: &Arrivals,
    fault: Option<Fault>,
    strained: &Strained,
) -> Series {
    let counted: Vec<_> = sent.iter().skip(WARM_UP_EVENTS).collect();
    let mut durations = Histogram::default();
    let mut received = 0;
    let mut rounds = Vec::new();
    let is_same = |one: &(&usize, _), other: &(&usize, _)| {
        round_of(*one.0, block) == round_of(*other.0, block)
    };
    for round in counted.chunk_by(is_same) {
        let latencies = round.iter().filter_map(|(number, sent)| {
            Some(arrivals.get(number)?.saturating_duration_since(**sent))
        });
        let latencies: Vec<_> = latencies.collect();
        received += latencies.len() as u64;
        latencies.iter().for_each(|latency| durations.record(*latency));
        rounds.push(median(&latencies.into_iter().map(ms).collect::<Vec<_>>()));
    }
    let faults: Vec<(FaultKind, u64)> = fault.iter().map(|fault| (fault.kind(), 1)).collect();
    Series {
        case: contender.case.clone(),
        x: contender.x,
        contender: contender.name.clone(),
        quantity: LATENCY.name.to_owned(),
        unit: LATENCY.unit.to_owned(),
        is_more_better: LATENCY.is_more_better,
        rounds,
        histogram: durations.encoded().ok(),
        expected: counted.len() as u64,
        received,
        faults: faults.into_iter().collect(),
        strain: strained.strain(false),
        ..Series::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounds_of_a_stream_are_cut_as_its_polls_change_their_phase() {
        let block = block_len(48 - WARM_UP_EVENTS, 4);
        assert_eq!(block, 11);
        assert_eq!(
            [1, 5, 15, 16, 26, 27, 48].map(|number| round_of(number, block)),
            [0, 0, 0, 1, 1, 2, 3]
        );
        assert_eq!(block_len(0, 10), 1, "also of a stream that is too short");
    }

    #[test]
    fn a_reader_reads_until_the_last_event_and_not_for_ever() {
        let at = Instant::now() + Duration::from_secs(3600);
        let end = ReadingEnd { last: 5, at };
        assert_eq!([4, 5, 6].map(|newest| end.is_there(newest)), [false, true, true]);
        assert!(ReadingEnd { last: 5, at: Instant::now() }.is_there(0));
    }
}
