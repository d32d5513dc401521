//! Measures the strain on the generator: the delay of its timers, and its CPU time. If the generator cannot keep up, it
//! measures itself instead of the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::numbers::figure;
use super::theory::ms;
use crate::histogram::Histogram;

/// The time between two readings of the clock. It is short enough for several readings in each sample, and long enough
/// to cost nothing.
const TICK: Duration = Duration::from_millis(5);
/// The greatest delay of timers (99th percentile). With a greater one, latencies are those of this machine, and not of
/// the server.
const LAG_MAX: Duration = Duration::from_millis(10);
/// The greatest share of the time in which the load's thread may be busy. A busier thread may be slower than the
/// server.
const BUSY_MAX: f64 = 0.95;

/// The strain on the generator while a contender was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Strain {
    /// The 99th percentile of the delay of timers.
    pub(crate) lag_ms_p99: Option<f64>,
    /// The 99th percentile of the delay of sends behind their plan; `None` if there is no plan.
    #[serde(default)]
    pub(crate) behind_ms_p99: Option<f64>,
    /// The CPU seconds of this process in each second.
    pub(crate) cpu: f64,
    /// The CPU seconds in each second of the thread that makes the whole load; `None` if there is no such thread.
    pub(crate) busy: Option<f64>,
}

impl Strain {
    /// Returns the greater value of each figure.
    pub(crate) fn worse(self, other: Self) -> Self {
        let greater = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        Self {
            lag_ms_p99: greater(self.lag_ms_p99, other.lag_ms_p99),
            behind_ms_p99: greater(self.behind_ms_p99, other.behind_ms_p99),
            cpu: self.cpu.max(other.cpu),
            busy: greater(self.busy, other.busy),
        }
    }

    /// Returns the reason why the generator could not keep up; `None` if it could.
    pub(crate) fn excess(&self) -> Option<String> {
        let is_late = |lag: &f64| *lag > ms(LAG_MAX);
        if let Some(late) = self.late_ms_p99().filter(is_late) {
            // Which of both it was is not known if timers were on time.
            let why = match self.lag_ms_p99.is_some_and(|lag| is_late(&lag)) {
                true => "",
                false => {
                    " with its events, since the server takes so long for each or this machine was busy,"
                }
            };
            return Some(format!("the generator was late by {} ms (p99){why}", figure(late)));
        }
        let busy = self.busy.filter(|busy| *busy > BUSY_MAX)?;
        Some(format!("the generator was busy for {:.0} % of the time", busy * 100.0))
    }

    /// Returns the greater of two delays: that of timers, and that of sends.
    pub(crate) fn late_ms_p99(&self) -> Option<f64> {
        self.worse(Self { lag_ms_p99: self.behind_ms_p99, ..Self::default() }).lag_ms_p99
    }
}

/// The measurements of strain over some time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strained {
    /// The delays of timers.
    lag: Histogram,
    /// The delays of sends behind their plan. They have a histogram of their own, since timers have many more delays.
    pub(crate) behind: Histogram,
    time: Duration,
    cpu: Duration,
    thread: Duration,
}

impl Strained {
    pub(crate) fn add(&mut self, other: &Self) {
        self.lag.add(&other.lag);
        self.behind.add(&other.behind);
        self.time += other.time;
        self.cpu += other.cpu;
        self.thread += other.thread;
    }

    /// Returns the strain; `None` if no time has passed. `is_load` is true if the measured thread makes the whole load.
    pub(crate) fn strain(&self, is_load: bool) -> Option<Strain> {
        let share = |cpu: Duration| cpu.as_secs_f64() / self.time.as_secs_f64();
        let late = |of: &Histogram| of.percentile(0.99).map(ms);
        (!self.time.is_zero()).then(|| Strain {
            lag_ms_p99: late(&self.lag),
            behind_ms_p99: late(&self.behind),
            cpu: share(self.cpu),
            busy: is_load.then(|| share(self.thread)),
        })
    }
}

/// Measures this process until it is dropped. It measures the delay of timers only if it was made with
/// [`StrainMeter::start`].
#[derive(Debug, Default)]
pub(crate) struct StrainMeter {
    is_over: Arc<AtomicBool>,
    lag: Arc<Mutex<Histogram>>,
}

/// A moment, as a time on each of the clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    time: Instant,
    cpu: Duration,
    thread: Duration,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { time: Instant::now(), cpu: time_of(ClockId::ProcessCPUTime), thread: thread_time() }
    }
}

impl StrainMeter {
    pub(crate) fn start() -> Self {
        let meter = Self::default();
        let (is_over, lag) = (Arc::clone(&meter.is_over), Arc::clone(&meter.lag));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let late = late(TICK);
                lag.lock().unwrap_or_else(PoisonError::into_inner).record(late);
            }
        });
        meter
    }

    /// Returns the measurements since `begun`. Those of a thread are about the calling thread.
    pub(crate) fn since(&self, begun: Moment) -> Strained {
        let now = Moment::now();
        let mut lag = self.lag.lock().unwrap_or_else(PoisonError::into_inner);
        Strained {
            lag: std::mem::take(&mut lag),
            behind: Histogram::default(),
            time: now.time - begun.time,
            cpu: now.cpu.saturating_sub(begun.cpu),
            thread: now.thread.saturating_sub(begun.thread),
        }
    }
}

impl Drop for StrainMeter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Sleeps for this time. Returns the additional time that the sleep took.
pub(crate) fn late(time: Duration) -> Duration {
    let begun = Instant::now();
    thread::sleep(time);
    begun.elapsed().saturating_sub(time)
}

pub(crate) fn thread_time() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_the_watched_thread_counts_and_its_sleep_does_not() {
        let meter = StrainMeter::start();
        let begun = Moment::now();
        let end = thread_time() + Duration::from_millis(20);
        while thread_time() < end {}
        let worked = meter.since(begun);
        assert!(worked.thread >= Duration::from_millis(20), "{worked:?}");
        assert!(worked.cpu >= worked.thread && worked.time >= Duration::from_millis(20));
        let [strain, of_load] = [false, true].map(|is_load| worked.strain(is_load).unwrap());
        assert!(strain.busy.is_none() && of_load.busy.is_some());
        assert!(Strained::default().strain(true).is_none(), "no time, no strain");
    }

    #[test]
    fn few_late_sends_are_seen_beside_many_timers() {
        let mut strained = Strained { time: Duration::from_secs(300), ..Strained::default() };
        (0..60_000).for_each(|_| strained.lag.record(Duration::from_micros(60)));
        (0..1_200).for_each(|_| strained.behind.record(Duration::from_millis(40)));
        let strain = strained.strain(false).unwrap();
        assert!(strain.excess().unwrap().contains("with its events, since the server"));
        assert!(strain.late_ms_p99().unwrap() > 30.0);
        // The figure is that of the table, also if timers were late, too.
        let both = Strain { lag_ms_p99: Some(11.52), behind_ms_p99: Some(57.43), ..strain };
        assert_eq!(both.excess().unwrap(), "the generator was late by 57.4 ms (p99)");
    }

    #[test]
    fn the_greater_of_each_figure_stays() {
        let strain = |lag, busy| Strain { lag_ms_p99: lag, behind_ms_p99: None, cpu: 1.0, busy };
        let worse = strain(Some(1.0), None).worse(strain(Some(2.0), Some(0.5)));
        assert_eq!(worse, strain(Some(2.0), Some(0.5)));
    }

    #[test]
    fn a_late_or_busy_generator_is_told() {
        let strain = |lag, busy| Strain { lag_ms_p99: lag, behind_ms_p99: None, cpu: 1.0, busy };
        assert_eq!(strain(Some(10.0), Some(0.95)).excess(), None);
        assert_eq!(strain(None, None).excess(), None);
        let late = strain(Some(10.1), None).excess();
        assert_eq!(late.as_deref(), Some("the generator was late by 10.1 ms (p99)"));
        let busy = strain(None, Some(0.96)).excess();
        assert_eq!(busy.as_deref(), Some("the generator was busy for 96 % of the time"));
    }
}
