//! `amortise`: finds the number of calls on a connection from which opening a socket pays (E).

use super::calls::{BODY, HTTP, MULTIPLEXED, SERVICE};
use crate::lab::numbers::{fixed, signed};
use crate::lab::probe::{Fault, Place};
use crate::lab::report::{Comparison, Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::load::{CallWay, CalledService};
use crate::statistics::Random;

const RATE: Quantity = Quantity::more("calls a second, set-up included", "");
const TIME: Quantity = Quantity::less("time of all connections", "ms");
const BYTES: Quantity = Quantity::less("a call with its share of the set-up, on the wire", "B");
const CONNECTIONS: usize = 100;
/// The numbers of calls on each connection, as in the publication.
const CALLS: [usize; 6] = [1, 10, 50, 500, 1000, 2000];
const QUICK_CALLS: [usize; 3] = [1, 10, 50];
/// The most seconds that the round trips of a sample may take. A slow link therefore gets fewer calls.
const ROUND_TRIPS_MAX: f64 = 20.0;
/// The gain of the socket over REST in the publication, for some numbers of calls.
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
    let all = session.pace.full_or_quick(&CALLS[..], &QUICK_CALLS);
    let all: Vec<_> = all
        .iter()
        .copied()
        .filter(|calls| *calls == 1 || *calls as f64 * round_trip <= ROUND_TRIPS_MAX)
        .collect();
    let cells: Vec<_> = all
        .iter()
        .flat_map(|&calls| {
            let place = &place;
            [(HTTP, CallWay::Http), (MULTIPLEXED, CallWay::Multiplexed)].map(|(name, way)| {
                Cell::new(case(calls), name, Talk { place: place.clone(), way, calls })
                    .at(calls as f64)
            })
        })
        .collect();
    let series = interleaved(session, RATE, &cells, |session, cell| {
        let mut random = Random::new(session.pace.random.next());
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
    let is_told = |calls: usize| {
        let of = |one: &&Comparison| one.case == case(calls) && one.of == MULTIPLEXED;
        report.comparisons.iter().find(of).is_some_and(Comparison::is_distinguishable)
    };
    let told: Vec<_> = gains.iter().map(|&(calls, gain)| (calls, gain, is_told(calls))).collect();
    let words = when_it_pays(&told);
    report.answer = format!(
        "With set-up, the socket makes {:.2} times the calls of HTTP at {} and {:.2} times at {}: {words}.",
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
            measured: format!("{} %", signed((gain - 1.0) * 100.0, 0)),
            verdict: Verdict::of(range.contains(gain)),
            because: because.to_owned(),
        });
    }
    report.published.push(Published {
        figure: "most calls a second, REST against the socket (E)".to_owned(),
        published: PUBLISHED_PEAKS.map(|peak| fixed(peak, 0)).join(" / "),
        measured: peaks.map(|peak| fixed(peak, 0)).join(" / "),
        verdict: Verdict::of((peaks[1] / peaks[0] - 4.1).abs() < 0.4),
        because: because.to_owned(),
    });
}

/// Returns the words about the number of calls from which the set-up pays. `gains` has an entry for each number of
/// calls: the number, the gain, and true if the difference is sure.
fn when_it_pays(gains: &[(usize, f64, bool)]) -> String {
    let is_slower = |(_, gain, is_told): &(usize, f64, bool)| *is_told && *gain < 1.0;
    if gains.iter().all(|(.., is_told)| !is_told) {
        return "no difference can be told".to_owned();
    }
    let Some(slower) = gains.iter().rposition(is_slower) else {
        return "the socket pays from the first call on".to_owned();
    };
    match gains.get(slower + 1) {
        Some((calls, ..)) => format!(
            "up to {} on a connection the set-up has not paid, and from {calls} on it has, as far as can be told",
            case(gains[slower].0)
        ),
        None => format!("the socket has not paid after {}", case(gains[slower].0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_up_has_paid_where_the_socket_is_no_longer_slower() {
        let words = |gains: &[(usize, f64, bool)]| when_it_pays(gains);
        let found = words(&[(1, 0.5, true), (10, 0.7, true), (50, 0.98, false), (500, 1.2, true)]);
        let expected =
            "up to 10 calls on a connection the set-up has not paid, and from 50 on it has";
        assert!(found.starts_with(expected), "{found}");
        let found = words(&[(1, 1.1, true), (10, 0.9, false)]);
        assert_eq!(found, "the socket pays from the first call on");
        let found = words(&[(1, 0.5, true), (10, 0.9, true)]);
        assert_eq!(found, "the socket has not paid after 10 calls");
        assert_eq!(words(&[(1, 0.5, false), (10, 1.5, false)]), "no difference can be told");
    }
}
