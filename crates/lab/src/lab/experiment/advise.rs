//! `advise`: recommends a transport for a stream of the user. Its answer contains how much that transport saves, and
//! when this does not matter.

use std::time::Duration;

use super::events::{
    Carried, Connections, LATENCY, Plan, PlannedReader, WARM_UP_EVENTS, has, stream,
};
use crate::lab::link::Link;
use crate::lab::numbers::{count, fixed};
use crate::lab::probe::{Place, Transport};
use crate::lab::report::{Model, Quantity, Report, Series, ms};
use crate::lab::session::{POLL_PAUSE, Session, Wish};
use crate::lab::theory;
use crate::tcp_info::Traffic;

const TOPIC: &str = "/topics/scratch-lab-advise";
const BYTES: Quantity = Quantity::less("on the wire, each reader", "kB/h");
const TIME: Duration = Duration::from_secs(60);
const QUICK_TIME: Duration = Duration::from_secs(6);
/// The number of events that are measured: at least 16, even for a slow stream, and at most 20,000.
const EVENTS: std::ops::RangeInclusive<usize> = 16..=20_000;
/// The period of events that replace those of a stream that is too slow to wait for. It is longer than any round trip.
const SLOW_PERIOD: Duration = Duration::from_secs(1);
/// The time without events at the end, if the stream is slow. It has room for several heartbeats, and for the longest
/// wait of a long poll.
const QUIET: Duration = Duration::from_secs(70);
const QUICK_QUIET: Duration = Duration::from_secs(35);
/// The least number of pauses of a poll in a run. The latency of an event depends on the moment in the pause at which
/// it comes.
const PAUSES: u32 = 6;
const QUICK_PAUSES: u32 = 2;
const DISTANCE: Duration = Duration::from_millis(20);
/// The transports that browsers have.
const TRANSPORTS: [Transport; 6] = [
    Transport::WebSocket,
    Transport::Multiplexed,
    Transport::Sse,
    Transport::Ndjson,
    Transport::LongPoll,
    Transport::Poll,
];
/// The least delay of a picture that a person may see, in milliseconds. RAIL calls 100 ms instantaneous.
const SEEN_MS: f64 = 50.0;
/// The greatest difference from the best latency, in milliseconds, with which another counts as equal; below, the same
/// for bytes, as a factor.
const ALIKE_MS: f64 = 2.0;
const ALIKE_SHARE: f64 = 1.1;

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let Wish { rate, readers, distance, .. } = session.settings.wish;
    if let Some(delay) = distance {
        session.settings.link = Link { name: None, delay, ..session.settings.link.clone() };
    } else if session.settings.link.is_direct() && session.target.pid().is_some() {
        session.settings.link = Link::with_delay(DISTANCE);
    }
    let plan = plan(session);
    let web = session.web()?;
    let place = Place { patience: web.patience + plan.quiet.max(plan.pause), ..web };
    let case = format!("{rate} of {} B", plan.bytes);
    let mut transports = Vec::new();
    for transport in TRANSPORTS {
        if has(session, transport)? {
            transports.push(transport);
        }
    }
    let contenders = transports.iter().map(|&transport| PlannedReader {
        case: case.clone(),
        x: None,
        name: transport.name().to_owned(),
        transport,
        connections: Connections::Kept,
        place: place.clone(),
    });
    let delay = session.settings.link.mean_delay();
    let mut streamed = stream(session, plan, contenders.collect(), delay)?;
    let all = streamed.series.iter().zip(&streamed.carried);
    let bytes = all.filter_map(|(series, carried)| {
        let carried = (*carried)?;
        Some(on_the_wire(series, kb_an_hour(carried, plan, rate.per_hour())))
    });
    let bytes: Vec<_> = bytes.collect();
    streamed.series.extend(bytes);
    let question = format!(
        "Which transport for {rate} of {} B, {} readers, {} ms away?",
        count(plan.bytes as u64),
        count(readers),
        ms(delay)
    );
    let mut report = streamed.report(session, "advise", &question);
    report.compare_with(Transport::WebSocket.name());
    report.models = TRANSPORTS
        .map(|transport| {
            Model::new(
                &case,
                None,
                transport.name(),
                latency(transport, delay, plan.pause, rate.period()),
            )
        })
        .to_vec();
    let all = TRANSPORTS.iter().filter_map(|transport| {
        let of = |quantity: Quantity| report.median(&case, transport.name(), quantity.name);
        Some(Cost { transport: *transport, latency_ms: of(LATENCY)?, kb_an_hour: of(BYTES)? })
    });
    let all: Vec<_> = all.collect();
    if let Some(advice) = advice(&all, readers, rate.period()) {
        report.answer = advice;
    }
    report.method.extend(method(plan));
    Ok(report)
}

/// Returns the sentences about the method. Most of them are about the bytes.
fn method(plan: Plan) -> Vec<String> {
    let bytes = format!(
        "Bytes are those of the client's kernel for one connection, without its opening, with the headers of Ethernet, IP and TCP. Each \
         transport had one reader: whether the server bears as many as you have, lab fanout tells. A poll waits {} ms after each answer: a longer pause, by --poll-every, saves as many bytes as it costs latency.",
        count(plan.pause.as_millis() as u64)
    );
    let rare = format!(
        "Your events are too rare to wait for: latency is that of one event a second, and bytes are put together from those of an event and \
         those of {} s without one.",
        plan.quiet.as_secs()
    );
    if plan.quiet.is_zero() { vec![bytes] } else { vec![bytes, rare] }
}

/// Returns a plan that takes about a minute, however slow the stream is.
fn plan(session: &Session) -> Plan {
    let Wish { rate, bytes, poll_every: pause, .. } = session.settings.wish;
    let time = session.pace.full_or_quick(TIME, QUICK_TIME);
    let pauses = session.pace.full_or_quick(PAUSES, QUICK_PAUSES);
    let time = if pause == POLL_PAUSE { time } else { time.max(pauses * pause) };
    let (mut period, mut quiet) = (rate.period(), Duration::ZERO);
    if period * *EVENTS.start() as u32 > TIME {
        period = SLOW_PERIOD;
        quiet = session.pace.full_or_quick(QUIET, QUICK_QUIET).max(2 * pause);
    }
    let events = (time.as_secs_f64() / period.as_secs_f64()) as usize;
    let events = events.clamp(*EVENTS.start(), *EVENTS.end());
    Plan { topic: TOPIC, period, bytes, events, pause, quiet }
}

fn latency(transport: Transport, delay: Duration, pause: Duration, period: Duration) -> f64 {
    match transport {
        Transport::LongPoll => theory::long_poll(ms(delay), 0.0, ms(period)),
        Transport::Poll => theory::poll(ms(delay), 0.0, ms(pause)),
        _ => theory::stream(ms(delay)),
    }
}

/// Returns the kilobytes of a reader in an hour. With a quiet time, there are two sums of bytes: one with many events,
/// and one with a single event. Both include the traffic without events. So the bytes of an event, and those without
/// events, can be computed.
fn kb_an_hour(carried: Carried, plan: Plan, events_an_hour: f64) -> f64 {
    let sum =
        |(traffic, time): (Traffic, Duration)| (traffic.wire_bytes() as f64, time.as_secs_f64());
    let (bytes, seconds) = sum(carried.events);
    if plan.quiet.is_zero() {
        return bytes / seconds * 3600.0 / 1e3;
    }
    let (quiet_bytes, quiet_seconds) = sum(carried.quiet);
    let events = (plan.events - WARM_UP_EVENTS) as f64;
    let idle = (quiet_bytes * events - bytes) / (quiet_seconds * events - seconds);
    let event = ((bytes - idle * seconds) / events).max(0.0);
    (idle.max(0.0) * 3600.0 + event * events_an_hour) / 1e3
}

/// Returns the series for the bytes of a reader in an hour.
fn on_the_wire(series: &Series, kb: f64) -> Series {
    Series {
        quantity: BYTES.name.to_owned(),
        unit: BYTES.unit.to_owned(),
        rounds: vec![Some(kb)],
        histogram: None,
        ..series.clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    transport: Transport,
    latency_ms: f64,
    kb_an_hour: f64,
}

/// Returns the advice in sentences. It has the cheapest of the fastest transports, how much that saves, and when this
/// does not matter.
fn advice(all: &[Cost], readers: u64, period: Duration) -> Option<String> {
    let soonest = all.iter().map(|cost| cost.latency_ms).reduce(f64::min)?;
    let soon = all.iter().filter(|cost| cost.latency_ms <= soonest + ALIKE_MS);
    let least = soon.clone().map(|cost| cost.kb_an_hour).reduce(f64::min)?;
    let alike: Vec<_> = soon.filter(|cost| cost.kb_an_hour <= least * ALIKE_SHARE).collect();
    let best = alike.first()?;
    let names: Vec<_> = alike.iter().map(|cost| words_of(cost.transport)).collect();
    let total = |kb: f64| kb * readers as f64 / 1e3;
    let mut words = format!(
        "Take {}: an event is there after {} ms, and {} readers cost {} an hour.",
        names.join(" or "),
        fixed(best.latency_ms, 1),
        count(readers),
        volume(total(best.kb_an_hour))
    );
    for transport in [Transport::LongPoll, Transport::Poll] {
        let Some(other) = all
            .iter()
            .find(|cost| cost.transport == transport && !names.contains(&words_of(transport)))
        else {
            continue;
        };
        let later = other.latency_ms - best.latency_ms;
        let more = total(other.kb_an_hour - best.kb_an_hour);
        let seen = if later < SEEN_MS { ", which nobody sees," } else { "" };
        let more = match more < 0.0 {
            true => format!(", and costs {} an hour more", volume(-more)),
            false => format!(" and {} an hour", volume(more)),
        };
        words += &format!(
            " Against a {} it saves {} ms{seen}{more}.",
            words_of(transport),
            fixed(later.max(0.0), 1)
        );
    }
    if ms(period) > 20.0 * SEEN_MS {
        words += " With so few events, none of this matters to a reader who may wait as long as a long poll takes.";
    }
    Some(words)
}

/// Returns the name of a transport in the advice.
fn words_of(transport: Transport) -> &'static str {
    match transport {
        Transport::Multiplexed => "one WebSocket shared by all requests",
        other => other.name(),
    }
}

/// Formats megabytes for people.
fn volume(mb: f64) -> String {
    match mb.abs() < 1e4 {
        true => format!("{} MB", fixed(mb, 0)),
        false => format!("{} GB", fixed(mb / 1e3, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_transport_that_costs_least_is_advised_with_what_it_saves() {
        let cost = |transport, latency_ms, kb_an_hour| Cost { transport, latency_ms, kb_an_hour };
        let all = [
            cost(Transport::WebSocket, 20.0, 1000.0),
            cost(Transport::Sse, 20.5, 1500.0),
            cost(Transport::Ndjson, 19.9, 1050.0),
            cost(Transport::LongPoll, 21.0, 5000.0),
            cost(Transport::Poll, 115.0, 6000.0),
        ];
        let words = advice(&all, 100, Duration::from_millis(250)).unwrap();
        assert_eq!(
            words,
            "Take WebSocket or NDJSON: an event is there after 20.0 ms, and 100 readers cost 100 MB an hour. Against a long poll it saves \
             1.0 ms, which nobody sees, and 400 MB an hour. Against a poll it saves 95.0 ms and 500 MB an hour."
        );
        assert!(advice(&all, 1, Duration::from_secs(2)).unwrap().ends_with("takes."));
        let cheap = [all[0], cost(Transport::Poll, 115.0, 400.0)];
        let words = advice(&cheap, 100, Duration::from_millis(1)).unwrap();
        assert!(words.ends_with("saves 95.0 ms, and costs 60 MB an hour more."), "{words}");
        let words = advice(&all, 1500, Duration::from_millis(250)).unwrap();
        assert!(words.contains(", and 1,500 readers cost 1,500 MB an hour."), "{words}");
        assert_eq!(advice(&[], 1, Duration::from_secs(1)), None);
        let shared = advice(&[cost(Transport::Multiplexed, 1.0, 1.0)], 1, Duration::from_millis(1));
        assert!(shared.unwrap().starts_with("Take one WebSocket shared by all requests: "));
    }

    #[test]
    fn the_bytes_of_a_rare_event_and_of_the_time_without_one_are_told_apart() {
        let plan = |events, quiet| Plan {
            topic: TOPIC,
            period: SLOW_PERIOD,
            bytes: 22,
            events: events + WARM_UP_EVENTS,
            pause: POLL_PAUSE,
            quiet: Duration::from_secs(quiet),
        };
        let traffic = |bytes, seconds| {
            (Traffic { received_bytes: bytes, ..Traffic::default() }, Duration::from_secs(seconds))
        };
        // 10 B a second, and 200 B an event.
        let carried =
            Carried { events: traffic(56 * 200 + 560, 56), quiet: traffic(200 + 700, 70) };
        let kb = kb_an_hour(carried, plan(56, 70), 60.0);
        assert!((kb - (36.0 + 12.0)).abs() < 1e-9, "{kb}");
        // Without a quiet time, the run is a piece of an hour.
        let kb = kb_an_hour(carried, plan(56, 0), 3600.0);
        assert!((kb - 11.76 * 3600.0 / 56.0).abs() < 1e-9, "{kb}");
        // Polls carry as much without events, whatever the noise.
        let polls = Carried { events: traffic(5600, 56), quiet: traffic(7100, 70) };
        assert!((kb_an_hour(polls, plan(56, 70), 1.0) - 365.0).abs() < 10.0);
    }
}
