//! `wind`: measures the one-way latency of four events a second, over all transports at once (B).

use std::time::Duration;

use super::events::{Connections, LATENCY, PERIOD, Plan, PlannedReader, has, stream};
use crate::lab::numbers::fixed;
use crate::lab::probe::Transport;
use crate::lab::report::{Model, Published, Report, Verdict, ms};
use crate::lab::session::{POLL_PAUSE, Session};
use crate::lab::theory;

const CASE: &str = "4 events a second";
const TOPIC: &str = "/topics/scratch-lab-wind";
/// The ratios of polling to WebSocket in the publication.
const PUBLISHED_POLLING: std::ops::RangeInclusive<f64> = 2.3..=4.5;
/// The differences between long polling and WebSocket in the publication, in milliseconds. They hold while long polling
/// does not fall behind.
const PUBLISHED_LONG_POLLING: std::ops::RangeInclusive<f64> = -4.4..=1.0;

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let (web, tcp) = (session.web()?, session.tcp()?);
    let mut transports = Vec::new();
    for transport in Transport::ALL {
        if has(session, transport)? {
            transports.push(transport);
        }
    }
    let contenders = transports.into_iter().filter_map(|transport| {
        let place = if transport == Transport::Tcp { tcp.clone()? } else { web.clone() };
        let (case, name) = (CASE.to_owned(), transport.name().to_owned());
        Some(PlannedReader {
            case,
            x: None,
            name,
            transport,
            connections: Connections::Kept,
            place,
        })
    });
    let delay = session.settings.link.mean_delay();
    let plan = Plan::of_sensor(session, TOPIC);
    let streamed = stream(session, plan, contenders.collect(), delay)?;
    let question = "Which transport brings a stream of four events a second soonest?";
    let mut report = streamed.report(session, "wind", question);
    report.compare_with(Transport::WebSocket.name());
    judge(&mut report, delay, session.target.is_own());
    Ok(report)
}

/// Adds the models and the verdicts. Theory knows the delay between a server and its readers. It does not know the
/// delay from the publisher to a `--target`.
fn judge(report: &mut Report, delay: Duration, is_published_there: bool) {
    let d = ms(delay);
    let latency = |transport| match transport {
        Transport::LongPoll => theory::long_poll(d, 0.0, ms(PERIOD)),
        Transport::Poll => theory::poll(d, 0.0, ms(POLL_PAUSE)),
        _ => theory::stream(d),
    };
    if is_published_there {
        report.models = Transport::ALL
            .map(|transport| Model::new(CASE, None, transport.name(), latency(transport)))
            .to_vec();
    }
    let expected = [Transport::WebSocket, Transport::LongPoll, Transport::Poll]
        .map(|transport| (transport, latency(transport)));
    let measured =
        expected.map(|(transport, _)| report.median(CASE, transport.name(), LATENCY.name));
    let [Some(web_socket), Some(long_poll), Some(poll)] = measured else { return };
    let theory = match is_published_there {
        true => format!(
            "; theory says {:.1}, {:.1} and {:.1} ms and the time of both ends.",
            expected[0].1, expected[1].1, expected[2].1
        ),
        false => ", the way from here to the server included.".to_owned(),
    };
    report.answer = format!(
        "An event is at its reader after {web_socket:.1} ms over WebSocket, {long_poll:.1} ms by long polling and {poll:.1} ms by \
         polling{theory}"
    );
    let ratio = poll / web_socket;
    report.published.push(Published {
        figure: "polling, times WebSocket (B)".to_owned(),
        published: format!("{} to {}", PUBLISHED_POLLING.start(), PUBLISHED_POLLING.end()),
        measured: format!("{ratio:.1}"),
        verdict: Verdict::of(PUBLISHED_POLLING.contains(&ratio)),
        because: format!(
            "polling waits half of its cycle of {} ms and a round trip, so the ratio falls with the delay, which is {d} ms here and was \
             40 to 190 ms there",
            POLL_PAUSE.as_millis()
        ),
    });
    let shift =
        report.comparisons.iter().find(|comparison| comparison.of == Transport::LongPoll.name());
    if let Some(shift) = shift.map(|comparison| comparison.shift) {
        report.published.push(Published {
            figure: "long polling less WebSocket, ms (B)".to_owned(),
            published: format!(
                "{} to {} (Edmonton, Caracas, Lund)",
                fixed(*PUBLISHED_LONG_POLLING.start(), 1),
                fixed(*PUBLISHED_LONG_POLLING.end(), 1)
            ),
            measured: format!(
                "{} [{}, {}]",
                fixed(shift.value, 2),
                fixed(shift.low, 2),
                fixed(shift.high, 2)
            ),
            verdict: Verdict::of(PUBLISHED_LONG_POLLING.contains(&shift.value)),
            because: "their clocks were set over the network, which left some milliseconds; from half of the period on, a long poll is \
                      later by a round trip"
                .to_owned(),
        });
    }
}
