//! `calibrate`: finds out if the figures of this machine can be trusted. It measures equal contenders, timers, clocks,
//! and the CPU time of the generator itself.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anemone_ws::proto::Opcode;
use serde_json::Value;
use statrs::distribution::{Binomial, DiscreteCDF as _};

use super::calls::SERVICE;
use super::echo::ROUND_TRIP;
use crate::cpu::{OTHERS_MAX, machine_ns, thread_time_ns};
use crate::lab::clock::{Offset, PROBES, Probe};
use crate::lab::numbers::fixed;
use crate::lab::probe::{Fault, Http, Place, Stream, WebSocket};
use crate::lab::report::{Quantity, Report, Series, compare, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::lab::strain::{late, thread_time};
use crate::statistics::{DOUBT, Random};

const COST: Quantity = Quantity::less("client CPU for each", "µs");
const LATE: Quantity = Quantity::less("delay of a timer", "ms");
const OFFSET: Quantity = Quantity::less("clock of the server less this one", "ms");
const BOUND: Quantity = Quantity::less("bound of that", "ms");
const CONTROL: Quantity = Quantity::less("difference of equals", "%");
const AGAIN: &str = " again";
const LATER: &str = " and 1 ms";
/// The delay of the slower contender. The lab must find this difference.
const ADDED: Duration = Duration::from_millis(1);
const PAYLOAD: [u8; 22] = [b'a'; 22];
const TOPIC: &str = "/topics/scratch-lab-clock";
/// The greatest difference of equals, in per cent. With a greater one, no figure can be trusted. Below, the greatest
/// delay of timers.
const RESOLUTION_MAX: f64 = 10.0;
const LATE_MS_MAX: f64 = 5.0;
/// The number of rounds in one repetition of the control; below, the number of echoes in each round.
const CONTROL_ROUNDS: usize = 10;
const CONTROL_ECHOES: usize = 15;

#[derive(Clone, Debug)]
enum EqualPair {
    Tcp(Place),
    WebSocket(Place),
    Http(Place),
}

#[derive(Clone, Debug)]
struct CalibrateWork {
    pair: EqualPair,
    added: Duration,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let (begun, before) = (Instant::now(), used(session));
    let cells = pairs(session)?;
    let count = session.pace.full_or_quick(500, 50);
    let mut series = interleaved(session, ROUND_TRIP, &cells, |session, cell| {
        let seed = session.pace.random.next();
        let mut sample = Sample { expected: count, ..Sample::default() };
        if let Err(fault) = measure(&cell.key, count, seed, &mut sample) {
            sample.fault(&fault);
        }
        sample
    });
    series.extend(timers(session));
    let web = session.web()?;
    let (clocks, drift) = clocks(session, &web);
    series.extend(clocks);
    let (controls, held) = controls(session, &cells[0].key)?;
    let repetitions = controls.rounds.len();
    series.push(controls);
    let others = used(session)
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before) as f64 / begun.elapsed().as_nanos() as f64);
    let question = "Can figures of this machine be trusted?";
    let mut report = session.report("calibrate", question, ROUND_TRIP, series);
    compare_pairs(&mut report);
    judge(&mut report, others, held, repetitions);
    report.method.push(format!(
        "{count} echoes and calls of {} bytes in each round for each of two equal contenders, and for one whose client adds 1 ms; \
         the peer in this process shows what the client itself costs. The resolution is the far end of the widest interval of \
         two equals. Of {repetitions} comparisons of equals, {held} intervals held 0; 95 in 100 are expected.",
        PAYLOAD.len()
    ));
    report.method.push(format!("{} {drift}", clock_of_this_machine()));
    Ok(report)
}

/// Returns the cells for pairs of equal contenders. Each pair also has a contender that is 1 ms slower.
fn pairs(session: &mut Session) -> anyhow::Result<Vec<Cell<CalibrateWork>>> {
    let web = session.web()?;
    let mut pairs = vec![("peer in this process", EqualPair::Tcp(Place::new(start_peer()?)))];
    pairs.extend(session.tcp_echo()?.map(|place| ("TCP", EqualPair::Tcp(place))));
    pairs.push(("WebSocket", EqualPair::WebSocket(web.clone())));
    pairs.push(("HTTP", EqualPair::Http(web)));
    let all = pairs.into_iter().flat_map(|(name, pair)| {
        [("", Duration::ZERO), (AGAIN, Duration::ZERO), (LATER, ADDED)].map(|(more, added)| {
            Cell::new(name, format!("{name}{more}"), CalibrateWork { pair: pair.clone(), added })
        })
    });
    Ok(all.collect())
}

/// Starts the simplest possible echo. It serves one connection after the other.
fn start_peer() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 1024];
            while let Ok(len @ 1..) = stream.read(&mut bytes) {
                if stream.write_all(&bytes[..len]).is_err() {
                    break;
                }
            }
        }
    });
    Ok(address)
}

fn measure(work: &CalibrateWork, count: u64, seed: u64, sample: &mut Sample) -> Result<(), Fault> {
    let mut connection = EqualConnection::open(&work.pair, seed)?;
    connection.exchange()?;
    let cpu = thread_time();
    for _ in 0..count {
        let begun = Instant::now();
        connection.exchange()?;
        // Awake, since a timer may be late.
        let until = Instant::now() + work.added;
        while Instant::now() < until {}
        sample.durations.record(begun.elapsed());
        sample.received += 1;
    }
    let cpu = thread_time().saturating_sub(cpu);
    sample.figures.extend(sample.durations.percentile(0.5).map(|time| (ROUND_TRIP, ms(time))));
    sample.figures.push((COST, ms(cpu) * 1e3 / count as f64));
    Ok(())
}

enum EqualConnection {
    Tcp(Stream),
    WebSocket(Box<WebSocket>, Vec<u8>),
    Http(Http),
}

impl EqualConnection {
    fn open(pair: &EqualPair, seed: u64) -> Result<Self, Fault> {
        Ok(match pair {
            EqualPair::Tcp(place) => Self::Tcp(Stream::connect(place)?),
            EqualPair::WebSocket(place) => {
                let mut socket = WebSocket::connect(place, "/echo", &[], seed)?;
                let frame = socket.frame(Opcode::Binary, &PAYLOAD);
                Self::WebSocket(Box::new(socket), frame)
            }
            EqualPair::Http(place) => Self::Http(Http::connect(place)?),
        })
    }

    fn exchange(&mut self) -> Result<(), Fault> {
        let echoed = match self {
            Self::Tcp(stream) => {
                stream.exchange(&PAYLOAD, PAYLOAD.len())?;
                stream.take(PAYLOAD.len())
            }
            Self::WebSocket(socket, frame) => socket.exchange(frame)?,
            Self::Http(http) => {
                http.call("GET", SERVICE, "", b"")?.expect(200)?;
                return Ok(());
            }
        };
        if echoed == PAYLOAD { Ok(()) } else { Err(Fault::wrong("another echo came", &echoed)) }
    }
}

fn timers(session: &mut Session) -> Vec<Series> {
    let count = session.pace.full_or_quick(500, 50);
    let cells = [Cell::new("timer", "sleep of 1 ms", Duration::from_millis(1))];
    interleaved(session, LATE, &cells, |_, cell| {
        let mut sample = Sample { expected: count, received: count, ..Sample::default() };
        (0..count).for_each(|_| sample.durations.record(late(cell.key)));
        sample.figures.extend(sample.durations.percentile(0.5).map(|time| (LATE, ms(time))));
        sample
    })
}

/// Compares the clocks of both ends once in each round. Returns the series, and a sentence about the drift.
fn clocks(session: &mut Session, web: &Place) -> (Vec<Series>, String) {
    let begun = Instant::now();
    let mut offsets = Vec::new();
    let (case, contender) = ("clock".to_owned(), "server".to_owned());
    let cells = [Cell::new(case, contender, web.clone())];
    let series = interleaved(session, OFFSET, &cells, |_, cell| {
        let mut sample = Sample { expected: PROBES as u64, ..Sample::default() };
        match probes(&cell.key) {
            Ok(probes) => {
                sample.received = probes.len() as u64;
                if let Some(Offset { offset, bound }) = Offset::of(&probes) {
                    offsets.push((begun.elapsed().as_secs_f64(), offset, bound));
                    sample.figures = vec![(OFFSET, offset), (BOUND, bound)];
                }
            }
            Err(fault) => sample.fault(&fault),
        }
        sample
    });
    let ends = offsets.first().zip(offsets.last()).filter(|(first, last)| last.0 > first.0);
    let drift = ends.map(|((from, first, one), (until, last, other))| {
        let time = until - from;
        let drift = (last - first) / time * 1e3;
        let bound = (one + other) / time * 1e3;
        let drift = fixed(drift, 1);
        format!("It drifts by {drift} ± {bound:.1} µs a second from that of the server.")
    });
    (series, drift.unwrap_or_default())
}

/// Publishes events, and reads the server's time from them.
fn probes(place: &Place) -> Result<Vec<Probe>, Fault> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, ms);
    let mut http = Http::connect(place)?;
    let mut probes = Vec::new();
    for _ in 0..PROBES {
        let asked = now();
        http.call("POST", TOPIC, "", b"1")?.expect(201)?;
        let answered = now();
        let page = http.call("GET", TOPIC, "", b"")?.expect(200)?;
        let time = serde_json::from_slice(&page).ok();
        let time = time.and_then(|page: Value| page.pointer("/events/0/time")?.as_f64());
        let theirs = time.ok_or_else(|| Fault::wrong("an event without a time", &page))?;
        probes.push(Probe { asked, theirs, answered });
    }
    Ok(probes)
}

/// Repeats the comparison of two equals. Returns the differences, and the number of intervals that contain 0.
fn controls(session: &mut Session, work: &CalibrateWork) -> anyhow::Result<(Series, usize)> {
    let repetitions = session.pace.full_or_quick(100, 10);
    let (mut held, mut differences) = (0, Vec::new());
    session.pace.begin(repetitions);
    let mut connection = EqualConnection::open(&work.pair, 1)?;
    for _ in 0..repetitions {
        if session.pace.cut_if_stopped() {
            break;
        }
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..CONTROL_ROUNDS {
            let mut order = [0, 1];
            session.pace.random.shuffle(&mut order);
            for at in order {
                let begun = Instant::now();
                (0..CONTROL_ECHOES).try_for_each(|_| connection.exchange())?;
                both[at].push(ms(begun.elapsed()) / CONTROL_ECHOES as f64);
            }
        }
        let shift = crate::statistics::shift(&both[0], &both[1], &mut Random::new(1));
        let middle = crate::statistics::median(&both[1]);
        if let (Some(shift), Some(middle)) = (shift, middle) {
            held += usize::from(shift.holds(0.0));
            differences.push(Some(shift.value / middle * 100.0));
        }
        session.pace.step();
    }
    let series = Series {
        case: "control".to_owned(),
        contender: "equals, again and again".to_owned(),
        quantity: CONTROL.name.to_owned(),
        unit: CONTROL.unit.to_owned(),
        is_more_better: CONTROL.is_more_better,
        expected: repetitions as u64,
        received: differences.len() as u64,
        rounds: differences,
        ..Series::default()
    };
    Ok((series, held))
}

/// Compares the second and the third contender of each pair with the first one.
fn compare_pairs(report: &mut Report) {
    let mut comparisons = Vec::new();
    for of in report.series.iter().filter(|series| series.quantity == ROUND_TRIP.name) {
        let to = report.find(&of.case, &of.case, ROUND_TRIP.name);
        comparisons
            .extend(to.filter(|to| to.contender != of.contender).and_then(|to| compare(of, to)));
    }
    report.comparisons = comparisons;
}

/// Returns the least plausible number of intervals that contain the true value. There are fewer in only one of a
/// hundred cases.
fn held_min(repetitions: usize) -> usize {
    const WONDER: f64 = 0.01;
    let all = Binomial::new(1.0 - DOUBT, repetitions as u64);
    all.map_or(0, |all| all.inverse_cdf(WONDER) as usize)
}

fn judge(report: &mut Report, others: Option<f64>, held: usize, repetitions: usize) {
    let of = |ending: &'static str| {
        report.comparisons.iter().filter(move |comparison| comparison.of.ends_with(ending))
    };
    let widest = of(AGAIN)
        .filter_map(|comparison| {
            let ratio = comparison.ratio?;
            Some(((ratio.low - 1.0).abs().max((ratio.high - 1.0).abs()) * 100.0, &comparison.to))
        })
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((resolution, of_whom)) = widest else { return };
    let found = of(LATER).filter(|comparison| comparison.shift.low > 0.0).count();
    let late = report.series.iter().find(|series| series.quantity == LATE.name);
    let Some(late) = late.and_then(|series| series.percentile(0.99)).map(ms) else { return };
    let mut doubts = Vec::new();
    if held < held_min(repetitions) {
        doubts.push(format!(
            "equals seem different in {} of {repetitions} comparisons",
            repetitions - held
        ));
    }
    if resolution > RESOLUTION_MAX {
        doubts.push(format!("equals differ by up to {resolution:.0} %"));
    }
    if found < of(LATER).count() {
        doubts.push("a difference of 1 ms is not always found".to_owned());
    }
    if late > LATE_MS_MAX {
        doubts.push(format!("one timer in a hundred is more than {late:.1} ms late"));
    }
    if let Some(others) = others.filter(|others| *others > OTHERS_MAX) {
        doubts.push(format!("other programs use {:.0} % of a core", others * 100.0));
    }
    report.answer = if doubts.is_empty() {
        format!(
            "Yes: differences from {resolution:.1} % on are real (two equals over {of_whom} differ by less), a difference of 1 ms is \
             found, and 99 of 100 timers are at most {late:.2} ms late."
        )
    } else {
        format!("Not now: {}.", doubts.join("; "))
    };
}

/// Returns the CPU time of all other programs so far; `None` if the lab has not started the server.
fn used(session: &Session) -> Option<u64> {
    let server = thread_time_ns(session.target.pid()?).ok()?;
    let own = thread_time_ns(std::process::id()).ok()?;
    Some(machine_ns().ok()?.saturating_sub(server + own))
}

fn clock_of_this_machine() -> String {
    const READS: u32 = 10_000;
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(source).unwrap_or_default();
    let begun = Instant::now();
    let (mut last, mut steps) = (begun, Vec::new());
    for _ in 0..READS {
        let now = Instant::now();
        steps.extend((now > last).then(|| now - last));
        last = now;
    }
    let each = begun.elapsed() / READS;
    let least = steps.into_iter().min().unwrap_or_default();
    format!("The clock ({}) is read in {each:?} and steps by {least:?}.", source.trim())
}
