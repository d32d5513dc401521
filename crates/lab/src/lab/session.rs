//! The session of the lab. It has the server, the link and the pace, which all experiments share.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;

use super::check::{Checked, check};
use super::link::Link;
use super::netem::{self, Netem};
use super::numbers::count;
use super::pace::Pace;
use super::probe::{PATIENCE, Place, Tls};
use super::rate::Rate;
use super::relay::Relay;
use super::report::{Quantity, REACH_MIN, Report, Series};
use super::rounds::SILENCES_MAX;
use super::target::Target;

/// The pause of the publication's client (B) after each answer.
pub(crate) const POLL_PAUSE: Duration = Duration::from_millis(150);
/// The default number of rounds. It is enough for useful intervals.
const ROUNDS: usize = 10;
const QUICK_ROUNDS: usize = 4;
/// The patience of a quick run. A server that is silent in ten cases then costs less than a minute.
const QUICK_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) rounds: Option<usize>,
    pub(crate) is_quick: bool,
    pub(crate) link: Link,
    /// True if the kernel emulates links.
    pub(crate) has_netem: bool,
    pub(crate) seed: u64,
    pub(crate) wish: Wish,
}

/// The user's stream. `advise` recommends a transport for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) rate: Rate,
    pub(crate) bytes: usize,
    pub(crate) readers: u64,
    /// The delay to a reader in one direction. Default: that of the run's link.
    pub(crate) distance: Option<Duration>,
    /// The pause of a poll after each answer.
    pub(crate) poll_every: Duration,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) target: Target,
    pub(crate) settings: Settings,
    pub(crate) pace: Pace,
    /// The kernel's emulation of links; `None` until it is needed. It is dropped before the relays.
    netem: Option<Netem>,
    relays: Vec<Relay>,
    checked: Vec<(Link, Checked)>,
    /// A reference server with TLS; `None` until an experiment needs it.
    secure: Option<Target>,
}

impl Session {
    /// Begins a run. `part` is the text before the bar: the name of the experiment, and its number if there are
    /// several.
    pub(crate) fn new(
        target: Target,
        settings: Settings,
        stop: Arc<AtomicBool>,
        part: String,
    ) -> Self {
        let default = if settings.is_quick { QUICK_ROUNDS } else { ROUNDS };
        let rounds = settings.rounds.unwrap_or(default);
        let mut pace = Pace::new(rounds, settings.seed, stop, part);
        pace.is_quick = settings.is_quick;
        let (relays, checked, secure, netem) = (Vec::new(), Vec::new(), None, None);
        Self { target, settings, pace, relays, checked, secure, netem }
    }

    /// Returns the place of the server's web port, behind the link of this run.
    pub(crate) fn web(&mut self) -> anyhow::Result<Place> {
        let link = self.settings.link.clone();
        self.web_behind(&link)
    }

    /// Returns the place of the server's web port, behind `link`.
    pub(crate) fn web_behind(&mut self, link: &Link) -> anyhow::Result<Place> {
        let behind = self.behind(self.target.web(), link)?;
        let Place { address, patience, .. } = behind;
        Ok(Place { address, patience, ..self.target.place() })
    }

    /// Returns the place of a reference server with TLS, behind the link of this run. Returns `None` if the lab has not
    /// started the measured server.
    pub(crate) fn secure_web(&mut self) -> anyhow::Result<Option<Place>> {
        if self.target.pid().is_none() {
            return Ok(None);
        }
        let target = match self.secure.take() {
            Some(target) => target,
            None => Target::start_reference_with(&["--tls-dev"], &[])?,
        };
        let (address, link) = (target.web(), self.settings.link.clone());
        self.secure = Some(target);
        let tls = Some(Box::new(Tls::with(address.ip().into())?));
        Ok(Some(Place { tls, ..self.behind(address, &link)? }))
    }

    /// Returns the place of the reference server's port for the multiplexed protocol over TCP, behind the link of this
    /// run.
    pub(crate) fn tcp(&mut self) -> anyhow::Result<Option<Place>> {
        let link = self.settings.link.clone();
        self.target.tcp().map(|address| self.behind(address, &link)).transpose()
    }

    /// Returns the place of the reference server's TCP echo, behind the link of this run.
    pub(crate) fn tcp_echo(&mut self) -> anyhow::Result<Option<Place>> {
        let link = self.settings.link.clone();
        self.target.tcp_echo().map(|address| self.behind(address, &link)).transpose()
    }

    fn behind(&mut self, address: SocketAddr, link: &Link) -> anyhow::Result<Place> {
        let patience = self.pace.full_or_quick(PATIENCE, QUICK_PATIENCE) + 8 * link.mean_delay();
        if link.is_direct() {
            return Ok(Place { patience, ..Place::new(address) });
        }
        if self.checked.iter().all(|(checked, _)| checked != link) {
            // Once, before it is used.
            let checked = check(link, |server| self.relay(link, server));
            self.checked.push((link.clone(), checked.context("checking the emulated link")?));
        }
        let relay = self.relay(link, address)?;
        let place = Place { patience, ..Place::new(relay.address()) };
        self.relays.push(relay);
        Ok(place)
    }

    /// Starts a relay that emulates the link. If the kernel emulates the link, the relay only listens at the link's
    /// address.
    fn relay(&mut self, link: &Link, server: SocketAddr) -> anyhow::Result<Relay> {
        let seed = self.pace.random.next();
        if !self.settings.has_netem {
            return Relay::start(link, server, seed).context("starting the emulated link");
        }
        if self.netem.is_none() {
            self.netem = Some(Netem::start()?);
        }
        let ip =
            self.netem.as_mut().map_or(Ok(Ipv4Addr::LOCALHOST), |netem| netem.address(link))?;
        let direct = Link::default();
        Relay::start_at(ip, &direct, server, seed).context("starting a relay behind the link")
    }

    /// Makes a report with the parts that are the same for all experiments.
    pub(crate) fn report(
        &self,
        experiment: &str,
        question: &str,
        quantity: Quantity,
        series: Vec<Series>,
    ) -> Report {
        let links = || self.checked.iter().map(|(_, checked)| checked);
        let invalid = links().find_map(Checked::fault).or_else(|| invalid(&series, quantity));
        let target = self.target.to_string();
        let mut report = self.pace.report(experiment, question, quantity, series, target);
        report.invalid = invalid;
        report.environment.link = self.settings.link.clone();
        report.environment.has_netem = self.netem.is_some();
        report.method.push(self.pace.rounds_run(&report.series));
        if self.netem.is_some() {
            report.method.push(netem::METHOD.to_owned());
        }
        report.method.extend(links().map(Checked::sentence));
        report.method.extend(not_asked(&report.series));
        report
    }
}

impl AsMut<Pace> for Session {
    fn as_mut(&mut self) -> &mut Pace {
        &mut self.pace
    }
}

/// Returns a sentence about the cells that were not asked; `None` if all were asked.
fn not_asked(series: &[Series]) -> Option<String> {
    let cells = |of: &mut dyn Iterator<Item = &Series>| {
        of.map(|series| (&series.case, &series.contender)).collect::<BTreeSet<_>>().len()
    };
    let not_asked = cells(&mut series.iter().filter(|series| !series.is_asked()));
    let all = cells(&mut series.iter());
    (not_asked > 0).then(|| {
        format!(
            "Not asked: {not_asked} of {all}, each a contender in a case, since the server was silent in the first {SILENCES_MAX}."
        )
    })
}

/// Returns the reason why the run is invalid; `None` if it is valid. A run is invalid if a contender got less than nine
/// tenths of its data, or has the report's figure in fewer than nine tenths of its rounds. It is also invalid if the
/// generator could not keep up.
fn invalid(series: &[Series], quantity: Quantity) -> Option<String> {
    let (asked, others): (Vec<_>, Vec<_>) = series.iter().partition(|series| series.is_asked());
    for of in asked.into_iter().chain(others) {
        let (values, rounds) = (of.values().len(), of.rounds.len());
        let is_short = of.reach() < REACH_MIN || values == 0;
        let has_few = of.quantity == quantity.name && (values as f64) < REACH_MIN * rounds as f64;
        if !is_short && !has_few {
            continue;
        }
        let came = match of.reach() < REACH_MIN {
            true => format!("{} of {} came", count(of.received), count(of.expected)),
            false => format!("{values} of {rounds} rounds gave a figure"),
        };
        let faults: Vec<_> = of.faults.iter().map(|(kind, count)| kind.counted(*count)).collect();
        let why =
            if faults.is_empty() { String::new() } else { format!(" ({})", faults.join(", ")) };
        return Some(format!("{} in case {}: {came}{why}", of.contender, of.case));
    }
    // Bytes and packets are the same, however late they are.
    let is_time = |series: &&Series, busy: bool| series.unit == "ms" || busy;
    series.iter().find_map(|series| {
        let strain = series.strain?;
        let excess = strain.excess().filter(|_| is_time(&series, strain.busy.is_some()))?;
        let (contender, case) = (&series.contender, &series.case);
        Some(format!(
            "{excess} while it measured {contender} in case {case}: close other programs, or ask for less, and run it again"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::probe::FaultKind;
    use crate::lab::report::tests::series;

    const OF: Quantity = Quantity::less("round trip", "ms");

    fn told(of: Series) -> Option<String> {
        invalid(&[of], OF)
    }

    fn whole(rounds: &[f64]) -> Series {
        Series { expected: 10, received: 10, ..series("TCP", rounds) }
    }

    #[test]
    fn cases_that_were_not_asked_are_counted_once_each() {
        let asked = whole(&[1.0]);
        let mut other = Series { case: "1 kB".to_owned(), ..whole(&[]) };
        other.faults = [(FaultKind::NotAsked, 1)].into();
        let bytes = Series { quantity: "bytes".to_owned(), ..other.clone() };
        assert_eq!(not_asked(std::slice::from_ref(&asked)), None);
        let mut silent = Series { rounds: vec![None], received: 0, ..asked.clone() };
        silent.faults = [(FaultKind::Stalled, 1)].into();
        let reason = invalid(&[other.clone(), silent], OF).unwrap();
        assert!(reason.ends_with("(nothing came in time: 1)"), "the one that was asked: {reason}");
        let said = not_asked(&[asked, other, bytes]).unwrap();
        assert!(said.starts_with("Not asked: 1 of 2, each a contender in a case, since"), "{said}");
    }

    #[test]
    fn a_verdict_needs_nine_tenths_of_what_was_expected_and_of_the_rounds() {
        assert_eq!(told(whole(&[1.0; 10])), None);
        let mut rounds = whole(&[1.0; 10]);
        rounds.rounds[3] = None;
        assert_eq!(told(rounds.clone()), None, "nine of ten");
        rounds.rounds[4] = None;
        let words = told(rounds).unwrap();
        assert_eq!(
            words,
            "TCP in case 20 B: 8 of 10 rounds gave a figure (nothing came in time: 1)"
        );
        let words = told(Series { received: 8, ..whole(&[1.0; 10]) }).unwrap();
        assert!(words.starts_with("TCP in case 20 B: 8 of 10 came"), "{words}");
        let mut refused = Series { expected: 0, received: 0, ..whole(&[]) };
        refused.rounds = vec![None; 10];
        refused.faults = [(FaultKind::Refused, 10)].into();
        let words = told(refused).unwrap();
        assert_eq!(words, "TCP in case 20 B: 0 of 10 rounds gave a figure (refused: 10)");
        let of_another = Series { quantity: "bytes".to_owned(), ..whole(&[1.0, 2.0]) };
        assert_eq!(told(of_another), None);
    }
}
