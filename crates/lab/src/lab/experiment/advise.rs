//! `advise`: which transport for a stream of the user's, what it saves, and when that does not matter.

use std::time::Duration;

use super::events::{Connections, Contender, LATENCY, PAUSE, Plan, has, stream};
use crate::lab::link::Link;
use crate::lab::numbers::{count, fixed};
use crate::lab::probe::Transport;
use crate::lab::report::{Model, Quantity, Report, Series, ms};
use crate::lab::session::{Session, Wish};
use crate::lab::theory;

const TOPIC: &str = "/topics/scratch-lab-advise";
const BYTES: Quantity = Quantity::less("on the wire, each reader", "kB/h");
const TIME: Duration = Duration::from_secs(60);
const QUICK_TIME: Duration = Duration::from_secs(6);
/// The events of a slow stream, and of a fast one.
const EVENTS: std::ops::RangeInclusive<usize> = 16..=20_000;
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
/// Nobody sees a difference of less than this between two events of a picture (RAIL calls 100 ms instantaneous).
const SEEN_MS: f64 = 50.0;
/// A latency is as good as the best within so much, and bytes within a share.
const ALIKE_MS: f64 = 2.0;
const ALIKE_SHARE: f64 = 1.1;

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let Wish { rate, bytes, readers, distance } = session.settings.wish;
    if let Some(delay) = distance {
        session.settings.link = Link { name: None, delay, ..session.settings.link.clone() };
    } else if session.settings.link.is_direct() && session.target.pid().is_some() {
        session.settings.link = Link::with_delay(DISTANCE);
    }
    let time = session.pace.full_or_quick(TIME, QUICK_TIME).as_secs_f64();
    let events = ((rate * time) as usize).clamp(*EVENTS.start(), *EVENTS.end());
    let plan = Plan { topic: TOPIC, period: Duration::from_secs_f64(1.0 / rate), bytes, events };
    let place = session.web()?;
    let case = format!("{rate} events a second of {bytes} B");
    let mut transports = Vec::new();
    for transport in TRANSPORTS {
        if has(session, transport)? {
            transports.push(transport);
        }
    }
    let contenders = transports.iter().map(|&transport| Contender {
        case: case.clone(),
        x: None,
        name: transport.name().to_owned(),
        transport,
        connections: Connections::Kept,
        place: place.clone(),
    });
    let delay = session.settings.link.mean_delay();
    let mut streamed = stream(session, plan, contenders.collect(), delay)?;
    let all = streamed.series.iter().zip(&streamed.times);
    let bytes: Vec<_> = all.filter_map(|(series, time)| on_the_wire(series, (*time)?)).collect();
    streamed.series.extend(bytes);
    let question = format!(
        "Which transport for {rate} events a second of {} B, {} readers, {} ms away?",
        count(plan.bytes as u64),
        count(readers),
        ms(delay)
    );
    let mut report = streamed.report(session, "advise", &question);
    report.compare_with(Transport::WebSocket.name());
    report.models = TRANSPORTS
        .map(|transport| Model::new(&case, None, transport.name(), latency(transport, delay, plan)))
        .to_vec();
    let all = TRANSPORTS.iter().filter_map(|transport| {
        let of = |quantity: Quantity| report.median(&case, transport.name(), quantity.name);
        Some(Cost { transport: *transport, latency_ms: of(LATENCY)?, kb_an_hour: of(BYTES)? })
    });
    let all: Vec<_> = all.collect();
    if let Some(advice) = advice(&all, readers, plan.period) {
        report.answer = advice;
    }
    report.method.push(
        "Bytes are those of the client's kernel for one connection, without its opening, with the headers of Ethernet, IP and TCP. Each \
         transport had one reader: whether the server bears as many as you have, lab fanout tells. A poll waits 150 ms after each answer: a longer pause saves as many bytes as it costs latency."
            .to_owned(),
    );
    Ok(report)
}

fn latency(transport: Transport, delay: Duration, plan: Plan) -> f64 {
    match transport {
        Transport::LongPoll => theory::long_poll(ms(delay), 0.0, ms(plan.period)),
        Transport::Poll => theory::poll(ms(delay), 0.0, ms(PAUSE)),
        _ => theory::stream(ms(delay)),
    }
}

/// Returns a figure of the bytes of a reader in an hour, from those of this time.
fn on_the_wire(series: &Series, time: Duration) -> Option<Series> {
    let kb = series.traffic?.wire_bytes() as f64 / 1e3 * 3600.0 / time.as_secs_f64();
    Some(Series {
        quantity: BYTES.name.to_owned(),
        unit: BYTES.unit.to_owned(),
        rounds: vec![Some(kb)],
        histogram: None,
        ..series.clone()
    })
}

/// What a transport costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    transport: Transport,
    latency_ms: f64,
    kb_an_hour: f64,
}

/// Returns the advice in sentences: the transport that costs least of those that are soonest, what it saves, and when that does
/// not matter.
fn advice(all: &[Cost], readers: u64, period: Duration) -> Option<String> {
    let soonest = all.iter().map(|cost| cost.latency_ms).reduce(f64::min)?;
    let soon = all.iter().filter(|cost| cost.latency_ms <= soonest + ALIKE_MS);
    let least = soon.clone().map(|cost| cost.kb_an_hour).reduce(f64::min)?;
    let alike: Vec<_> = soon.filter(|cost| cost.kb_an_hour <= least * ALIKE_SHARE).collect();
    let best = alike.first()?;
    let names: Vec<_> = alike.iter().map(|cost| cost.transport.name()).collect();
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
            .find(|cost| cost.transport == transport && !names.contains(&transport.name()))
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
            transport.name(),
            fixed(later.max(0.0), 1)
        );
    }
    if ms(period) > 20.0 * SEEN_MS {
        words += " With so few events, none of this matters to a reader who may wait as long as a long poll takes.";
    }
    Some(words)
}

/// Returns megabytes as people say them.
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
    }
}
