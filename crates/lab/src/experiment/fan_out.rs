//! Measures one topic with many readers on each transport. The figures are the server's CPU time for a delivery, the
//! latency, and the server's memory for an idle reader.
//!
//! Each sample has a new server, since memory can be measured only at a server that has done nothing before.

use std::time::Duration;

use anyhow::{Context, ensure};

use super::layout::{Column, Layout, OWN};
use super::session::{BenchSession, Measured};
use super::work::DELIVERY;
use crate::cpu::{Growth, Meter};
use crate::goals::{Goal, SSE_READER_BYTES, WEBSOCKET_READER_BYTES_MORE};
use crate::lab::numbers::figure;
use crate::lab::report::{Quantity, Report, ms};
use crate::lab::rounds::{Cell, Sample, try_interleaved};
use crate::load::{Delivery, Opener, Protocol, Readers, open};
use crate::server::Server;
use crate::statistics::Random;

pub(crate) const LATENCY: Quantity = Quantity::less("latency, p99", "ms");
pub(crate) const OPENED: Quantity =
    Quantity::less("user memory of the server for each idle reader, before any event", "B");
pub(crate) const SERVED: Quantity =
    Quantity::less("user memory of the server for each idle reader, after some events", "B");
/// The contender with which a reader is compared: a silent WebSocket to the echo.
pub(crate) const BARE: &str = "WebSocket, no topic";
/// The number of connections that are opened and closed first. After them, memory that is allocated only once does not
/// count.
const FIRST_READERS: usize = 10;
const WARM_UP_EVENTS: usize = 1;

#[derive(Clone, Copy, Debug)]
struct ReaderGroup {
    /// The transport of the readers; `None` for connections that read no topic.
    delivery: Option<Delivery>,
    readers: usize,
    events_per_second: f64,
    /// The number of events in a sample.
    events: usize,
}

/// Measures readers over every transport. Each number of readers is a case. `deliveries_per_second` is the rate of all
/// readers together; the rate of events follows from it. A sample has at least `events_min` events, and takes longer if
/// necessary.
pub(crate) fn run(
    session: &mut BenchSession,
    readers: &[usize],
    deliveries_per_second: f64,
    events_min: usize,
) -> anyhow::Result<Measured> {
    let mut cells = Vec::new();
    for &readers in readers {
        let events_per_second = deliveries_per_second / readers as f64;
        let events = (session.times.sample.as_secs_f64() * events_per_second).ceil() as usize;
        let events = events.max(events_min);
        let case = format!("{readers} readers, {} events a second", figure(events_per_second));
        cells.extend([None].into_iter().chain(Delivery::ALL.map(Some)).map(|delivery| {
            let contender = delivery.map_or_else(|| BARE.to_owned(), |of| of.to_string());
            Cell::new(
                &case,
                contender,
                ReaderGroup { delivery, readers, events_per_second, events },
            )
        }));
    }
    let series = try_interleaved(session, LATENCY, &cells, |session, cell| {
        let server = session.server.start(session.cores)?;
        let sample = match cell.key.delivery {
            None => bare(session, &server, cell.key.readers),
            Some(delivery) => reading(session, &server, cell.key, delivery),
        };
        sample.with_context(|| format!("{}: {}", cell.case, cell.contender))
    })?;
    let question = "What do a delivery and an idle reader of a topic cost by each transport?";
    let mut report = session.report(&session.server, question, LATENCY, series);
    report.compare_with(&Delivery::WebSocket.to_string());
    report.method.push(
        "Events of 100 B. A delivery's time counts from when its event was planned to be sent until a reader has it, over all rounds."
            .to_owned(),
    );
    let goals = goals(&report);
    Ok(Measured { report, goals, layouts: layouts().into() })
}

pub(crate) fn layouts() -> [Layout; 2] {
    let deliveries = vec![
        Column::Cost(DELIVERY, OWN),
        Column::Ratio(DELIVERY, OWN, "WebSocket"),
        Column::Percentile(LATENCY, OWN, 0.5),
        Column::Percentile(LATENCY, OWN, 0.99),
        Column::Came(LATENCY, OWN),
        Column::Lag(LATENCY, OWN),
        Column::Busy(&[OWN]),
    ];
    let memory = vec![
        Column::Interval(OPENED, OWN).named("before any event"),
        Column::Interval(SERVED, OWN).named("after some"),
        Column::Goal(SERVED, OWN),
    ];
    let of_readers = "user memory of the server for each idle reader of a topic, B";
    [
        Layout::of_contenders("deliveries of one topic, times in ms", LATENCY, deliveries),
        Layout::of_contenders(of_readers, SERVED, memory),
    ]
}

/// Returns the goals for the memory of readers. The limit for a WebSocket reader is the memory of a WebSocket without a
/// topic, plus a constant.
pub(crate) fn goals(report: &Report) -> Vec<Goal> {
    let websocket = Delivery::WebSocket.to_string();
    let mut goals = Vec::new();
    for case in report.cases(SERVED.name) {
        let bare = report.median(case, BARE, OPENED.name);
        goals.extend(bare.map(|bytes| {
            Goal::new(SERVED, case, &websocket, None, bytes + WEBSOCKET_READER_BYTES_MORE)
        }));
        goals.push(Goal::new(SERVED, case, &Delivery::Sse.to_string(), None, SSE_READER_BYTES));
    }
    goals
}

fn bare(session: &mut BenchSession, server: &Server, count: usize) -> anyhow::Result<Sample> {
    let random = &mut Random::new(session.pace.random.next());
    let echo = server.endpoint(Protocol::WebSocket, &session.echo_path).context("no WebSockets")?;
    let mut opener = Opener::new(echo, random)?;
    drop(open(&mut opener, FIRST_READERS)?);
    let growth = Growth::start(server.pid())?;
    let _connections = open(&mut opener, count)?;
    let bytes = growth.each(count)?;
    Ok(Sample {
        figures: vec![(OPENED, bytes), (SERVED, bytes)],
        expected: count as u64,
        received: count as u64,
        ..Sample::default()
    })
}

fn reading(
    session: &mut BenchSession,
    server: &Server,
    group: ReaderGroup,
    delivery: Delivery,
) -> anyhow::Result<Sample> {
    let random = &mut Random::new(session.pace.random.next());
    let topic = server.topic(&session.topic_path).context("no topic is served")?;
    ensure!(topic.create()?, "{} cannot be published to: is --demo missing?", topic.path);
    drop(Readers::open(delivery, &topic, FIRST_READERS, random)?);
    let growth = Growth::start(server.pid())?;
    let mut readers = Readers::open(delivery, &topic, group.readers, random)?;
    let opened = growth.each(group.readers)?;

    let interval = Duration::from_secs_f64(1.0 / group.events_per_second);
    let warm_up = readers.run(&times(WARM_UP_EVENTS, interval, random))?;
    ensure!(warm_up.received == warm_up.expected, "readers missed the first event");
    let meter = Meter::start(server.pid())?;
    let deliveries = readers.run(&times(group.events, interval, random))?;
    let used = meter.stop()?;
    let cpu_us = used.server_ns as f64 / 1e3 / deliveries.received as f64;
    let latency = deliveries.latency.percentile(0.99).map(|time| (LATENCY, ms(time)));
    let others = [(DELIVERY, cpu_us), (OPENED, opened), (SERVED, growth.each(group.readers)?)];
    let mut sample = Sample {
        figures: latency.into_iter().chain(others).collect(),
        durations: deliveries.latency,
        expected: deliveries.expected,
        received: deliveries.received,
        busy: Some(used.busy),
        ..Sample::default()
    };
    sample.strained.behind.add(&deliveries.lag);
    Ok(sample)
}

/// Returns the times of events. The first event comes at once. The others are half to one and a half intervals apart,
/// so that they do not keep pace with anything else.
fn times(events: usize, interval: Duration, random: &mut Random) -> Vec<Duration> {
    let mut time = Duration::ZERO;
    let mut next = || {
        let share = 0.5 + random.next() as f64 / u64::MAX as f64;
        let after = time + interval.mul_f64(share);
        std::mem::replace(&mut time, after)
    };
    (0..events).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_half_to_one_and_a_half_intervals_apart() {
        let interval = Duration::from_millis(100);
        let times = times(1000, interval, &mut Random::new(1));
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (interval / 2..=interval * 3 / 2).contains(gap)));
        assert_eq!(times[0], Duration::ZERO);
        let mean = times[999] / 999;
        assert!((interval * 95 / 100..interval * 105 / 100).contains(&mean), "{mean:?}");
    }
}
