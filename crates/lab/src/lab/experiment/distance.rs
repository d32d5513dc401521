//! `distance`: measures the latency of a stream at several delays of the network. Finds the delay from which polls fall
//! behind (B).

use std::time::Duration;

use super::events::{Connections, LATENCY, PERIOD, Plan, PlannedReader, has, stream};
use crate::lab::link::Link;
use crate::lab::numbers::fixed;
use crate::lab::probe::Transport;
use crate::lab::report::{Model, Published, Report, Verdict, ms};
use crate::lab::session::{POLL_PAUSE, Session};
use crate::lab::theory;

const TOPIC: &str = "/topics/scratch-lab-distance";
/// The delays in one direction, in milliseconds. Long polling falls behind at 125. With a new connection for each
/// request, it falls behind at 62.5.
const DELAYS_MS: [u64; 11] = [0, 10, 20, 40, 60, 65, 90, 120, 130, 150, 200];
const QUICK_DELAYS_MS: [u64; 3] = [20, 90, 130];
/// The readers. Each has a name, a transport, and a use of connections.
const READERS: [(&str, Transport, Connections); 5] = [
    ("WebSocket", Transport::WebSocket, Connections::Kept),
    ("long poll", Transport::LongPoll, Connections::Kept),
    (LONG_POLL_NEW, Transport::LongPoll, Connections::New),
    ("poll", Transport::Poll, Connections::Kept),
    ("poll, new connections", Transport::Poll, Connections::New),
];
const LONG_POLL_NEW: &str = "long poll, new connections";
/// The greatest difference in milliseconds with which two readers count as equally early.
const EARLY_MS: f64 = 5.0;
/// The delay to Edmonton in the publication, and the latency of polling there, in milliseconds. A WebSocket took 40.3
/// ms.
const EDMONTON: (u64, f64) = (40, 151.3);

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let delays = session.pace.full_or_quick(&DELAYS_MS[..], &QUICK_DELAYS_MS[..]);
    let base = Link { name: None, ..session.settings.link.clone() };
    let mut readers = Vec::new();
    for reader in READERS {
        if has(session, reader.1)? {
            readers.push(reader);
        }
    }
    let mut contenders = Vec::new();
    for delay_ms in delays {
        let link = Link { delay: Duration::from_millis(*delay_ms), ..base.clone() };
        let place = session.web_behind(&link)?;
        contenders.extend(readers.iter().map(|&(name, transport, connections)| PlannedReader {
            case: case(*delay_ms),
            x: Some(*delay_ms as f64),
            name: name.to_owned(),
            transport,
            connections,
            place: place.clone(),
        }));
    }
    let longest = Duration::from_millis(delays.iter().copied().max().unwrap_or(0)) + base.jitter;
    let plan = Plan::of_sensor(session, TOPIC);
    let streamed = stream(session, plan, contenders, longest)?;
    let question =
        "How far away may a reader be until polls bring a stream of four events a second later?";
    let mut report = streamed.report(session, "distance", question);
    report.compare_with(Transport::WebSocket.name());
    report.models = models(delays, ms(base.jitter / 2));
    answer(&mut report, delays);
    report.method.push("All delays were measured at the same time, on the same events.".to_owned());
    Ok(report)
}

fn case(delay_ms: u64) -> String {
    format!("{delay_ms} ms each way")
}

/// Returns the latency of each reader at each delay according to theory.
fn models(delays: &[u64], more_ms: f64) -> Vec<Model> {
    let of = |delay_ms: &u64| {
        let d = *delay_ms as f64 + more_ms;
        READERS.map(|(name, transport, connections)| {
            let round_trips = if connections == Connections::New { 1.0 } else { 0.0 };
            let latency = match transport {
                Transport::LongPoll => theory::long_poll(d, round_trips, ms(PERIOD)),
                Transport::Poll => theory::poll(d, round_trips, ms(POLL_PAUSE)),
                _ => theory::stream(d),
            };
            Model::new(&case(*delay_ms), Some(*delay_ms as f64), name, latency)
        })
    };
    delays.iter().flat_map(of).collect()
}

/// Returns the longest measured delay up to which a reader is never later than a WebSocket. Returns `None` if it is
/// always later.
fn reach(report: &Report, delays: &[u64], name: &str) -> Option<u64> {
    let is_early = |delay: &&u64| {
        let [own, other] = [name, Transport::WebSocket.name()]
            .map(|name| report.median(&case(**delay), name, LATENCY.name));
        own.zip(other).is_some_and(|(own, other)| own <= other + EARLY_MS)
    };
    delays.iter().take_while(is_early).last().copied()
}

fn answer(report: &mut Report, delays: &[u64]) {
    let up_to = |name| {
        let reached = reach(report, delays, name);
        reached.map_or_else(|| "at none".to_owned(), |delay| format!("up to {delay} ms"))
    };
    let polls = READERS[3].0;
    let behind = delays.iter().filter_map(|delay| {
        let of = |name| report.median(&case(*delay), name, LATENCY.name);
        Some(of(polls)? - of(Transport::WebSocket.name())?)
    });
    let (least, most) = behind
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ms| (low.min(ms), high.max(ms)));
    if least > most {
        return;
    }
    report.answer = format!(
        "Long polling is as early as a WebSocket {} of the delays that were measured (theory: 125 ms each way). If each request \
         opens a connection, it is so {} (theory: 62.5 ms). Polling is {} to {} ms later than a WebSocket.",
        up_to(READERS[1].0),
        up_to(LONG_POLL_NEW),
        fixed(least, 0),
        fixed(most, 0),
    );
    let (delay, published) = EDMONTON;
    if let Some(measured) = report.median(&case(delay), polls, LATENCY.name) {
        report.published.push(Published {
            figure: "polling where WebSocket takes 40 ms (Edmonton, B), ms".to_owned(),
            published: published.to_string(),
            measured: format!("{measured:.1}"),
            verdict: Verdict::of((measured / published - 1.0).abs() <= 0.1),
            because: "a poll waits half of its cycle, whose length there included the time of browser and server".to_owned(),
        });
    }
    let far = delays.iter().copied().filter(|delay| *delay > 125).max();
    let ratio = far.and_then(|far| {
        let of = |name| report.median(&case(far), name, LATENCY.name);
        Some(of(READERS[1].0)? / of(Transport::WebSocket.name())?)
    });
    if let Some(ratio) = ratio {
        report.published.push(Published {
            figure: "long polling far away, times WebSocket (Nagaoka, B)".to_owned(),
            published: "3.6 to 4.2".to_owned(),
            measured: format!("{ratio:.1}"),
            verdict: Verdict::of((3.6..=4.2).contains(&ratio)),
            because: "a cycle of one round trip gives 2, and of two round trips 3; there, packets were also lost or late".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::report::tests::{report, series};

    #[test]
    fn a_reader_reaches_as_far_as_it_is_early_at_every_delay() {
        let mut report = report();
        for (delay, latency) in [(20, 21.0), (90, 91.0), (130, 260.0), (150, 150.0)] {
            for (name, value) in [("WebSocket", delay as f64), ("long poll", latency)] {
                let case = case(delay);
                let quantity = LATENCY.name.to_owned();
                report.series.push(crate::lab::report::Series {
                    case,
                    quantity,
                    ..series(name, &[value; 3])
                });
            }
        }
        assert_eq!(reach(&report, &[20, 90, 130, 150], "long poll"), Some(90));
        assert_eq!(reach(&report, &[130], "long poll"), None);
        assert_eq!(reach(&report, &[20], "poll"), None, "it was not measured");
    }

    #[test]
    fn theory_falls_off_at_half_the_period() {
        let models = models(&[60, 65, 120, 130], 0.0);
        let of = |name| -> Vec<f64> {
            models.iter().filter(|model| model.contender == name).map(|model| model.value).collect()
        };
        assert_eq!(of("long poll"), [60.0, 65.0, 120.0, 260.0]);
        assert_eq!(of(LONG_POLL_NEW), [60.0, 195.0, 360.0, 390.0]);
        assert_eq!(of("poll"), [195.0, 205.0, 315.0, 335.0]);
    }
}
