//! `fanout`: finds the number of readers of one topic from which events come late. Does so for each transport.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::cpu::{since, thread_time_ns};
use crate::lab::numbers::count;
use crate::lab::probe::Fault;
use crate::lab::report::{Quantity, Report, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::lab::strain::thread_time;
use crate::lab::terminal::printable;
use crate::load::{Deliveries, Delivery, Readers, Topic, raise_descriptor_limit};
use crate::statistics::Random;

const LATENCY: Quantity = Quantity::less("latency, p99", "ms");
const CPU: Quantity = Quantity::less("server CPU of a delivery", "µs");
const REACH: Quantity = Quantity::more("reach", "%");
const PATH: &str = "/topics/scratch-lab-fanout";
const PERIOD: Duration = Duration::from_millis(250);
const EVENTS: u32 = 12;
const QUICK_EVENTS: u32 = 2;
/// The numbers of readers to try, one after the other.
const READERS: [usize; 5] = [100, 1_000, 2_000, 4_000, 8_000];
const QUICK_READERS: [usize; 2] = [50, 200];
/// The number of descriptors that are kept for everything but readers.
pub(super) const OTHER_DESCRIPTORS: usize = 200;
/// The most readers over an emulated link. A link has threads for each connection.
const READERS_OF_LINK: usize = 200;
/// The greatest share of the time in which the generator may work. With a greater one, the generator is the bottleneck.
const BUSY_MAX: f64 = 0.9;

#[derive(Clone, Debug)]
struct Fan {
    topic: Topic,
    delivery: Delivery,
    readers: usize,
}

/// The reason why a transport does not serve more readers.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Bend {
    /// The transport served the greatest number that was tried.
    None,
    /// With this many readers, an event was lost, or more than 1 % of the events came after the next one was due.
    Late(usize),
    /// With this many readers, the generator was busy all the time.
    Generator(usize),
    /// This many readers could not be tried; the text is the reason.
    Fault(usize, String),
}

impl Bend {
    /// Returns the number of readers that was too great; `None` if none was.
    fn readers(&self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Late(readers) | Self::Generator(readers) | Self::Fault(readers, _) => {
                Some(*readers)
            }
        }
    }
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let topic = Topic { address: session.web()?.address, path: PATH.to_owned() };
    ensure!(topic.create()?, "{PATH} cannot be published to: the server needs --demo");
    let steps = steps(session)?;
    let events = session.pace.full_or_quick(EVENTS, QUICK_EVENTS);
    let mut cells = Vec::new();
    let mut bends = Vec::new();
    for delivery in Delivery::ALL {
        let fan = |readers| Fan { topic: topic.clone(), delivery, readers };
        let (held, bend) = climb(session, &steps, events, fan);
        let cell = |readers| Cell::new(case(readers), delivery, fan(readers)).at(readers as f64);
        cells.extend(held.into_iter().map(cell));
        bends.push((delivery, bend));
    }
    let pid = session.target.pid();
    let series = interleaved(session, LATENCY, &cells, |session, cell| {
        let mut random = Random::new(session.pace.random.next());
        let expected = (cell.key.readers as u64) * u64::from(events);
        let mut sample = Sample { expected, is_load: true, ..Sample::default() };
        if let Err(error) = measure(&cell.key, events, pid, &mut random, &mut sample) {
            sample.fault(&Fault::of_load(error));
        }
        sample
    });
    let question = "How many readers does each transport serve until events come late?";
    let mut report = session.report("fanout", question, LATENCY, series);
    answer(&mut report, &bends, &steps);
    report.method.push(format!(
        "One topic, an event of 100 B every {} ms; all readers are on one thread, which publishes, too. Latency counts from the \
         planned time of an event to its delivery. A number of readers holds if all came, 99 of 100 within {} ms, and the thread of \
         the readers works for less than {:.0} % of the time. The next greater number is tried until one does not hold, and what held \
         is measured in rounds.",
        PERIOD.as_millis(),
        PERIOD.as_millis(),
        BUSY_MAX * 100.0
    ));
    Ok(report)
}

fn case(readers: usize) -> String {
    if readers == 1 { "1 reader".to_owned() } else { format!("{readers} readers") }
}

/// Returns the numbers of readers to try. None is greater than the descriptors of this process and the link allow.
fn steps(session: &Session) -> anyhow::Result<Vec<usize>> {
    let steps = session.pace.full_or_quick(&READERS[..], &QUICK_READERS[..]);
    let allowed = raise_descriptor_limit()?.saturating_sub(OTHER_DESCRIPTORS).max(1);
    let is_direct = session.settings.link.is_direct();
    let most = if is_direct { allowed } else { allowed.min(READERS_OF_LINK) };
    Ok(steps.iter().map(|readers| (*readers).min(most)).collect())
}

/// Tries rising numbers of readers. Returns the numbers that were served, and the reason for the end. If none was
/// served, returns the least number.
fn climb(
    session: &mut Session,
    steps: &[usize],
    events: u32,
    fan: impl Fn(usize) -> Fan,
) -> (Vec<usize>, Bend) {
    let mut held = Vec::new();
    for &readers in steps {
        if held.contains(&readers) || session.pace.cut_if_stopped() {
            break;
        }
        let mut random = Random::new(session.pace.random.next());
        let (begun, cpu) = (Instant::now(), thread_time());
        let measured = deliver(&fan(readers), events, &mut random);
        let busy = (thread_time() - cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
        let bend = match &measured {
            Ok(deliveries) if holds(deliveries) && busy <= BUSY_MAX => Bend::None,
            Ok(_) if busy > BUSY_MAX => Bend::Generator(readers),
            Ok(_) => Bend::Late(readers),
            Err(error) => Bend::Fault(readers, printable(&format!("{error:#}"))),
        };
        if bend == Bend::None || held.is_empty() {
            held.push(readers);
        }
        if bend != Bend::None {
            return (held, bend);
        }
    }
    (held, Bend::None)
}

fn holds(deliveries: &Deliveries) -> bool {
    let is_soon = deliveries.latency.percentile(0.99).is_some_and(|latency| latency <= PERIOD);
    deliveries.received == deliveries.expected && is_soon
}

fn deliver(fan: &Fan, events: u32, random: &mut Random) -> anyhow::Result<Deliveries> {
    let (mut readers, times) = open(fan, events, random)?;
    readers.run(&times)
}

fn open(fan: &Fan, events: u32, random: &mut Random) -> anyhow::Result<(Readers, Vec<Duration>)> {
    let mut readers = Readers::open(fan.delivery, &fan.topic, fan.readers, random)?;
    // The first event finds every connection as its opening has left it.
    readers.run(&[Duration::ZERO])?;
    Ok((readers, (1..=events).map(|number| PERIOD * number).collect()))
}

fn measure(
    fan: &Fan,
    events: u32,
    pid: Option<u32>,
    random: &mut Random,
    sample: &mut Sample,
) -> anyhow::Result<()> {
    let (mut readers, times) = open(fan, events, random)?;
    let before = pid.map(thread_time_ns).transpose()?;
    let deliveries = readers.run(&times)?;
    let after = pid.map(thread_time_ns).transpose()?;
    sample.received = deliveries.received;
    sample.strained.behind.add(&deliveries.lag);
    sample.figures.extend(deliveries.latency.percentile(0.99).map(|time| (LATENCY, ms(time))));
    let reach = deliveries.received as f64 / deliveries.expected as f64;
    sample.figures.push((REACH, reach * 100.0));
    if let (Some(before), Some(after)) = (before, after) {
        let ns = since(after, before) as f64;
        sample.figures.push((CPU, ns / 1e3 / deliveries.received.max(1) as f64));
    }
    sample.durations.add(&deliveries.latency);
    Ok(())
}

fn answer(report: &mut Report, bends: &[(Delivery, Bend)], steps: &[usize]) {
    let number = |readers: usize| count(readers as u64);
    let parts = bends.iter().filter_map(|(delivery, bend)| {
        let name = delivery.to_string();
        let held = report.series.iter().filter(|series| series.contender == name);
        let most = held.filter_map(|series| series.x).fold(0.0, f64::max) as usize;
        let latency = report.median(&case(most), &name, LATENCY.name)?;
        let why = match bend {
            Bend::None => "the most that were tried".to_owned(),
            Bend::Late(readers) => format!("{} are served late", number(*readers)),
            Bend::Generator(readers) => {
                format!("with {}, this client has no time left", number(*readers))
            }
            Bend::Fault(readers, words) => {
                format!("{} could not be tried: {words}", number(*readers))
            }
        };
        // The least number is measured also if it did not hold.
        let less = if bend.readers() == Some(most) { "fewer than " } else { "" };
        Some(format!("{name}: {less}{} (p99 {latency:.1} ms; {why})", number(most)))
    });
    let parts: Vec<_> = parts.collect();
    if !parts.is_empty() {
        report.answer = format!(
            "At four events a second, of at most {} readers that were tried, so many are served before the next event comes. {}.",
            number(steps.iter().copied().max().unwrap_or(0)),
            parts.join(". ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_served_if_all_events_came_before_the_next() {
        let mut deliveries = Deliveries { expected: 100, received: 100, ..Deliveries::default() };
        for _ in 0..100 {
            deliveries.latency.record(Duration::from_millis(249));
        }
        assert!(holds(&deliveries));
        assert!(!holds(&Deliveries { received: 99, ..deliveries.clone() }), "one is lost");
        for _ in 0..2 {
            deliveries.latency.record(Duration::from_millis(300));
        }
        assert!(!holds(&deliveries), "two of 102 are late");
        assert!(!holds(&Deliveries::default()), "nothing came");
    }
}
