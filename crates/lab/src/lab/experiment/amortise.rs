//! `amortise`: the number of calls from which the set-up of a socket pays (E).

use super::calls::{BODY, HTTP, MULTIPLEXED, SERVICE};
use crate::lab::probe::{Fault, Place};
use crate::lab::report::{Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::load::{CallWay, CalledService};
use crate::statistics::Random;

const RATE: Quantity = Quantity::more("calls a second, set-up included", "");
const TIME: Quantity = Quantity::less("time of all connections", "ms");
const BYTES: Quantity = Quantity::less("a call with its share of the set-up, on the wire", "B");
const CONNECTIONS: usize = 100;
/// The calls of each connection, as published.
const CALLS: [usize; 6] = [1, 10, 50, 500, 1000, 2000];
const QUICK_CALLS: [usize; 3] = [1, 10, 50];
/// The most seconds of round trips in a sample: through a slow link, there are fewer calls.
const ROUND_TRIPS_MAX: f64 = 20.0;
/// The publication's gain of the socket over REST for some numbers of calls.
const PUBLISHED: [(usize, &str, std::ops::Range<f64>); 3] =
    [(1, "50 % slower", 0.4..0.6), (10, "slower", 0.0..1.0), (50, "50 % faster", 1.4..1.6)];
const PUBLISHED_PEAKS: [f64; 2] = [950.0, 3900.0];

#[derive(Clone, Debug)]
struct Talk {
    place: Place,
    way: CallWay,
    calls: usize,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let place = session.web()?;
    let round_trip = 2.0 * session.settings.link.mean_delay().as_secs_f64();
    let all = session.full_or_quick(&CALLS[..], &QUICK_CALLS);
    let all: Vec<_> = all
        .iter()
        .copied()
        .filter(|calls| *calls == 1 || *calls as f64 * round_trip <= ROUND_TRIPS_MAX)
        .collect();
    let cells: Vec<_> = all
        .iter()
        .flat_map(|&calls| {
            let place = &place;
            [(HTTP, CallWay::Http), (MULTIPLEXED, CallWay::Multiplexed)].map(|(name, way)| Cell {
                case: case(calls),
                x: Some(calls as f64),
                contender: name.to_owned(),
                key: Talk { place: place.clone(), way, calls },
            })
        })
        .collect();
    let series = interleaved(session, RATE, &cells, |session, cell| {
        let mut random = Random::new(session.random.next());
        let expected = (CONNECTIONS * cell.key.calls) as u64;
        let mut sample = Sample { expected, is_load: true, ..Sample::default() };
        if let Err(fault) = measure(&cell.key, &mut random, &mut sample) {
            sample.fault(&fault);
        }
        sample
    });
    let question = "After how many calls has the set-up of a socket paid?";
    let mut report = session.report("amortise", question, RATE, series);
    report.compare_with(HTTP);
    judge(&mut report, &all);
    report.method.push(format!(
        "{CONNECTIONS} connections are opened at once, and each makes its calls (GET {SERVICE}) one after the other, from one \
         thread; each reply is compared with what must come. The time begins with the first connection and ends with the last \
         reply."
    ));
    Ok(report)
}

fn case(calls: usize) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

fn measure(talk: &Talk, random: &mut Random, sample: &mut Sample) -> Result<(), Fault> {
    let (path, body) = (SERVICE.to_owned(), BODY.to_owned());
    let service = CalledService { address: talk.place.address, path, body };
    let (time, traffic) =
        service.converse(talk.way, CONNECTIONS, talk.calls, random).map_err(Fault::of_load)?;
    sample.received = sample.expected;
    let calls = sample.expected as f64;
    sample.figures = vec![
        (RATE, calls / time.as_secs_f64()),
        (TIME, ms(time)),
        (BYTES, traffic.wire_bytes() as f64 / calls),
    ];
    sample.add_traffic(traffic);
    Ok(())
}

fn judge(report: &mut Report, all: &[usize]) {
    let rate = |calls: usize, contender| report.median(&case(calls), contender, RATE.name);
    let gain = |calls: usize| Some(rate(calls, MULTIPLEXED)? / rate(calls, HTTP)?);
    let gains: Vec<_> = all.iter().filter_map(|&calls| Some((calls, gain(calls)?))).collect();
    let (Some(first), Some(last)) = (gains.first(), gains.last()) else { return };
    let peak = |contender| {
        let rates = all.iter().filter_map(|&calls| rate(calls, contender));
        rates.fold(0.0, f64::max)
    };
    let peaks = [HTTP, MULTIPLEXED].map(peak);
    let crossing = match crossing(&gains) {
        Some(calls) => {
            format!("from about {calls:.0} calls on a connection on, the socket has paid")
        }
        None if first.1 >= 1.0 => "the socket pays from the first call on".to_owned(),
        None => format!("the socket has not paid after {} calls", last.0),
    };
    report.answer = format!(
        "With set-up, the socket makes {:.2} times the calls of HTTP at {} and {:.2} times at {}: {crossing}.",
        first.1,
        case(first.0),
        last.1,
        case(last.0)
    );
    let because = "theirs were Node servers behind a framework, where a call over REST cost more than its bytes";
    for (calls, published, range) in PUBLISHED {
        let Some((_, gain)) = gains.iter().find(|(of, _)| *of == calls) else { continue };
        report.published.push(Published {
            figure: format!("the socket at {} for each connection (E)", case(calls)),
            published: published.to_owned(),
            measured: format!("{:+.0} %", (gain - 1.0) * 100.0),
            verdict: Verdict::of(range.contains(gain)),
            because: because.to_owned(),
        });
    }
    report.published.push(Published {
        figure: "most calls a second, REST against the socket (E)".to_owned(),
        published: format!("{} / {}", PUBLISHED_PEAKS[0], PUBLISHED_PEAKS[1]),
        measured: format!("{:.0} / {:.0}", peaks[0], peaks[1]),
        verdict: Verdict::of((peaks[1] / peaks[0] - 4.1).abs() < 0.4),
        because: because.to_owned(),
    });
}

/// Returns the number of calls at which the gain passes 1 for good, between two numbers on a logarithmic axis.
fn crossing(gains: &[(usize, f64)]) -> Option<f64> {
    let below = gains.iter().rposition(|(_, gain)| *gain < 1.0)?;
    let ((from, low), (to, high)) = (gains[below], *gains.get(below + 1)?);
    let share = (1.0 - low) / (high - low);
    let [from, to] = [from, to].map(|calls| (calls as f64).ln());
    Some((from + (to - from) * share).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_where_the_gain_passes_1_for_good() {
        let found = crossing(&[(1, 0.5), (10, 0.5), (1000, 1.5)]).unwrap();
        assert!((found - 100.0).abs() < 1e-9, "{found}");
        assert_eq!(crossing(&[(1, 1.1), (10, 1.2)]), None, "from the first call on");
        assert_eq!(crossing(&[(1, 0.5), (10, 0.9)]), None, "never");
        assert_eq!(crossing(&[]), None);
    }
}
