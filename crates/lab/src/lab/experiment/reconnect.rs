//! `reconnect`: cuts connections. Measures the time until the next event, and counts the events that are lost or
//! doubled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::events::Plan;
use crate::lab::description::Form;
use crate::lab::probe::{Fault, Feed, Http, Piece, Place, Source, Transport, number};
use crate::lab::report::{Quantity, Report, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::statistics::Random;

const GAP: Quantity = Quantity::less("from a cut to the next event", "ms");
const LOST: Quantity = Quantity::less("events lost", "");
const DOUBLED: Quantity = Quantity::less("events doubled", "");
const CASE: &str = "100 events a second";
const TOPIC: &str = "/topics/scratch-lab-reconnect";
const PERIOD: Duration = Duration::from_millis(10);
const CUTS: u64 = 10;
const QUICK_CUTS: u64 = 3;
/// The shortest time between two cuts. The longest is twice as long, and each time is random.
const BETWEEN: Duration = Duration::from_millis(60);
/// The pause of a poll after an answer. A long poll has none.
const PAUSE: Duration = Duration::from_millis(150);

#[derive(Clone, Debug)]
struct Cuts {
    transport: Transport,
    place: Place,
    count: u64,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let (web, tcp) = (session.web()?, session.tcp()?);
    let count = session.pace.full_or_quick(CUTS, QUICK_CUTS);
    let cells = Transport::ALL.into_iter().filter_map(|transport| {
        let place = if transport == Transport::Tcp { tcp.clone()? } else { web.clone() };
        let (case, contender) = (CASE.to_owned(), transport.name().to_owned());
        Some(Cell::new(case, contender, Cuts { transport, place, count }))
    });
    let cells: Vec<_> = cells.collect();
    let direct = session.target.place();
    let mut http = Http::connect(&direct)?;
    http.publish(TOPIC, 0, Plan::BYTES_MIN)
        .context("publishing to the topic of this experiment")?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let publisher = thread::spawn(move || publish_until(&over, &mut http));
    let series = interleaved(session, GAP, &cells, |session, cell| {
        let mut random = Random::new(session.pace.random.next());
        let mut sample = Sample { expected: cell.key.count, ..Sample::default() };
        if let Err(fault) = measure(&cell.key, &mut random, &mut sample) {
            sample.fault(&fault);
        }
        sample
    });
    is_over.store(true, Ordering::Relaxed);
    publisher.join().ok().context("the publisher has panicked")??;
    let question = "How soon does a reader whose connection is cut go on, and what does it miss?";
    let mut report = session.report("reconnect", question, GAP, series);
    report.compare_with(Transport::WebSocket.name());
    answer(&mut report);
    report.method.push(format!(
        "An event every {} ms. A reader closes its connection at a random moment, opens another at once, and asks for what came after its \
         last position. (A client for users waits a random time first, so that a server that comes back is not overrun.) Events have \
         numbers: those that are missing are lost, and those that come again are doubled. A WebSocket has the subprotocol anemone.events; \
         a poll waits {} ms after each answer, but not after a cut.",
        PERIOD.as_millis(),
        PAUSE.as_millis()
    ));
    Ok(report)
}

fn publish_until(is_over: &AtomicBool, http: &mut Http) -> Result<(), Fault> {
    let begun = Instant::now();
    for event in 1.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let planned = begun + PERIOD * event;
        thread::sleep(planned.saturating_duration_since(Instant::now()));
        http.publish(TOPIC, event as usize, Plan::BYTES_MIN)?;
    }
    Ok(())
}

/// The events that a reader has got so far.
#[derive(Debug, Default)]
struct Seen {
    newest: Option<usize>,
    lost: usize,
    doubled: usize,
}

impl Seen {
    fn add(&mut self, number: usize) {
        match self.newest {
            Some(newest) if number <= newest => self.doubled += 1,
            Some(newest) => self.lost += number - newest - 1,
            None => {}
        }
        self.newest = self.newest.max(Some(number));
    }
}

fn measure(cuts: &Cuts, random: &mut Random, sample: &mut Sample) -> Result<(), Fault> {
    let open = |after: &str, seed| {
        let source = Source {
            target: TOPIC,
            body: None,
            page: None,
            after: Some(after),
            form: Form::Anemone,
        };
        Feed::open(cuts.transport, &cuts.place, source, seed)
    };
    let mut seen = Seen::default();
    let mut feed = open("latest", random.next())?;
    read_until(&mut feed, cuts.transport, &mut seen, Instant::now())?;
    for _ in 0..cuts.count {
        let time = BETWEEN.mul_f64(1.0 + random.below(1000) as f64 / 1000.0);
        let position = read_until(&mut feed, cuts.transport, &mut seen, Instant::now() + time)?;
        let cut = Instant::now();
        drop(feed);
        feed = open(&position, random.next())?;
        next_event(&mut feed, cuts.transport, &mut seen, Duration::ZERO)?;
        sample.durations.record(cut.elapsed());
        sample.received += 1;
    }
    read_until(&mut feed, cuts.transport, &mut seen, Instant::now())?;
    sample.figures.extend(sample.durations.percentile(0.5).map(|gap| (GAP, ms(gap))));
    sample.figures.extend([(LOST, seen.lost as f64), (DOUBLED, seen.doubled as f64)]);
    Ok(())
}

/// Reads at least one event. Goes on until `until` has passed and no event waits. Returns the position.
fn read_until(
    feed: &mut Feed,
    transport: Transport,
    seen: &mut Seen,
    end: Instant,
) -> Result<String, Fault> {
    loop {
        next_event(feed, transport, seen, PAUSE)?;
        if let Some(position) = feed.position().filter(|_| Instant::now() >= end) {
            return Ok(position.to_owned());
        }
    }
}

fn next_event(
    feed: &mut Feed,
    transport: Transport,
    seen: &mut Seen,
    pause: Duration,
) -> Result<(), Fault> {
    loop {
        match feed.next()? {
            Piece::Event(data) => {
                seen.add(number(&data)?);
                return Ok(());
            }
            Piece::Answer if transport == Transport::Poll => thread::sleep(pause),
            Piece::Answer => {}
            Piece::End => return Err(Fault::Closed),
        }
    }
}

fn answer(report: &mut Report) {
    let median = |transport: Transport| {
        report.median(CASE, transport.name(), GAP.name).map(|gap| (gap, transport))
    };
    let gaps: Vec<_> = Transport::ALL.into_iter().filter_map(median).collect();
    let sum = |quantity: Quantity| -> f64 {
        let all = report.series.iter().filter(|series| series.quantity == quantity.name);
        all.flat_map(|series| series.values()).sum()
    };
    let by_gap = |one: &&(f64, Transport), other: &&(f64, Transport)| one.0.total_cmp(&other.0);
    let (Some(soonest), Some(latest)) = (gaps.iter().min_by(by_gap), gaps.iter().max_by(by_gap))
    else {
        return;
    };
    let cuts = report.series.iter().filter(|series| series.quantity == GAP.name);
    let cuts: u64 = cuts.map(|series| series.received).sum();
    report.answer = format!(
        "After a cut, the next event is there after {:.1} ms ({}) to {:.1} ms ({}); {} events were lost and {} doubled in {cuts} cuts.",
        soonest.0,
        soonest.1.name(),
        latest.0,
        latest.1.name(),
        sum(LOST),
        sum(DOUBLED)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_lost_and_what_comes_again_is_doubled() {
        let mut seen = Seen::default();
        [7, 8, 11, 11, 10, 12].into_iter().for_each(|number| seen.add(number));
        assert_eq!((seen.newest, seen.lost, seen.doubled), (Some(12), 2, 2));
    }
}
