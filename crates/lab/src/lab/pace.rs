//! The pace of a run: its rounds, random numbers, progress bar, and the user's request to stop.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::link::Link;
use super::numbers::count;
use super::report::{Environment, Quantity, Report, Series, VERSION};
use super::terminal::tell;
use crate::statistics::Random;

/// The time between two checks, during a wait, if the user has asked to stop.
const STOP_LOOK: Duration = Duration::from_millis(100);

/// The pace of a run of one experiment of the lab or the bench.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The number of rounds that count.
    pub(crate) rounds: usize,
    /// The number of rounds of the warm-up. They come first, and do not count.
    pub(crate) warm_up: usize,
    /// The number of the current round, from 0. The rounds of the warm-up are numbered, too.
    pub(crate) round: usize,
    /// The most times that a disturbed sample is taken again. The last one counts.
    pub(crate) retries: usize,
    /// True if a thread measures the delays of this process's timers.
    pub(crate) watches_timers: bool,
    pub(crate) is_quick: bool,
    pub(crate) random: Random,
    seed: u64,
    stop: Arc<AtomicBool>,
    /// True if a measurement was left out because the user asked to stop.
    was_cut: bool,
    begun: Instant,
    /// The text before the bar: the name of the experiment, and its number if there are several.
    part: String,
    bar: ProgressBar,
}

impl Pace {
    /// Begins a run with one round of warm-up. `part` is the text before the bar: the name of the experiment, and its
    /// number if there are several.
    pub(crate) fn new(rounds: usize, seed: u64, stop: Arc<AtomicBool>, part: String) -> Self {
        Self {
            rounds,
            warm_up: 1,
            round: 0,
            retries: 0,
            watches_timers: true,
            is_quick: false,
            random: Random::new(seed),
            seed,
            stop,
            was_cut: false,
            begun: Instant::now(),
            part,
            bar: ProgressBar::hidden(),
        }
    }

    /// Begins work of this many steps, in which nothing is measured.
    pub(crate) fn working(part: &str, steps: usize) -> Self {
        let mut pace = Self::new(1, 1, Arc::default(), part.to_owned());
        pace.begin(steps);
        pace
    }

    /// Returns the first value for a full run, and the second for a quick one.
    pub(crate) fn full_or_quick<T>(&self, full: T, quick: T) -> T {
        if self.is_quick { quick } else { full }
    }

    /// Returns the bar, for a caller that cannot borrow the pace.
    pub(crate) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Returns the flag that becomes true when the user asks to stop.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns true once the user has asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns true if the user has asked to stop. The caller must then measure nothing more. The report will name the
    /// run as interrupted.
    pub(crate) fn cut_if_stopped(&mut self) -> bool {
        if self.is_stopped() && !self.was_cut {
            self.was_cut = true;
            self.say("stopping; Ctrl-C again ends at once, without a report");
        }
        self.was_cut
    }

    /// Waits for this time. The bar shows the seconds. Returns false as soon as the user asks to stop.
    pub(crate) fn wait(&mut self, time: Duration) -> bool {
        self.begin(time.as_secs() as usize);
        let begun = Instant::now();
        while begun.elapsed() < time && !self.cut_if_stopped() {
            thread::sleep(STOP_LOOK.min(time.saturating_sub(begun.elapsed())));
            self.bar.set_position(begun.elapsed().as_secs());
        }
        self.end();
        !self.was_cut
    }

    /// Begins a part of the run with this many steps.
    pub(crate) fn begin(&mut self, steps: usize) {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        // The template is a constant that is valid.
        if let Ok(style) = ProgressStyle::with_template("{prefix}: {bar:30} {pos}/{len}{left}") {
            let left = |state: &ProgressState, line: &mut dyn fmt::Write| {
                let left = time_left(state.pos(), state.len().unwrap_or(0), state.elapsed());
                // A line that cannot be written is not seen either.
                let _ = left.map(|left| write!(line, ", {left} of this part left"));
            };
            bar.set_style(style.with_key("left", left));
        }
        bar.set_prefix(self.part.clone());
        bar.enable_steady_tick(Duration::from_secs(1));
        self.bar = bar;
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
        if self.bar.length() == Some(self.bar.position()) {
            self.end();
        }
    }

    /// Removes the bar, even if it is not full.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, words: &str) {
        self.bar.suspend(|| tell(words));
    }

    /// Makes the report of this run. Its method is still empty.
    pub(crate) fn report(
        &self,
        experiment: &str,
        question: &str,
        quantity: Quantity,
        series: Vec<Series>,
        target: String,
    ) -> Report {
        Report {
            file: PathBuf::new(),
            version: VERSION,
            experiment: experiment.to_owned(),
            question: question.to_owned(),
            answer: String::new(),
            invalid: None,
            newest_invalid: None,
            is_interrupted: self.was_cut,
            environment: self.environment(target),
            quantity: quantity.name.to_owned(),
            series,
            comparisons: Vec::new(),
            published: Vec::new(),
            models: Vec::new(),
            method: Vec::new(),
        }
    }

    /// Returns a sentence with the number of rounds. For an interrupted run, it has the number of complete rounds.
    pub(crate) fn rounds_run(&self, series: &[Series]) -> String {
        let mut rounds = count(self.rounds as u64);
        if self.was_cut {
            let whole = series.iter().map(|series| series.rounds.len()).min().unwrap_or(0);
            rounds = format!("{} of {rounds}, since it was interrupted", count(whole as u64));
        }
        let dropped = if self.warm_up > 0 { ", after one that is dropped" } else { "" };
        format!(
            "Rounds: {rounds}{dropped}; in each, every contender of every case once, in random order."
        )
    }

    fn environment(&self, target: String) -> Environment {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Environment {
            program: format!("anemone {}", env!("CARGO_PKG_VERSION")),
            time: time.as_millis() as u64,
            duration_ms: self.begun.elapsed().as_millis() as u64,
            runs: None,
            processor: crate::cpu::processor().unwrap_or_else(|| "unknown".to_owned()),
            cores: *crate::cpu::PROCESSORS,
            system: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            target,
            link: Link::default(),
            has_netem: false,
            rounds: self.rounds,
            seed: self.seed,
            is_quick: self.is_quick,
        }
    }
}

/// Returns the time left, in words, as if each step took as long as those before. Returns `None` at the end, and as
/// long as there are too few steps.
fn time_left(done: u64, all: u64, elapsed: Duration) -> Option<String> {
    const TOLD_FROM: Duration = Duration::from_secs(2);
    if done == 0 || done >= all || elapsed < TOLD_FROM {
        return None;
    }
    let seconds = elapsed.as_secs_f64() / done as f64 * (all - done) as f64;
    let (seconds, minutes) = (seconds.ceil(), (seconds / 60.0).ceil());
    Some(match seconds {
        _ if seconds <= 90.0 => format!("{seconds} s"),
        _ if minutes <= 90.0 => format!("{minutes} min"),
        _ => format!("{} h {} min", (minutes / 60.0).floor(), minutes % 60.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_once_it_is_known() {
        let left = |done, elapsed| time_left(done, 100, Duration::from_secs(elapsed));
        assert_eq!([left(0, 9), left(1, 1), left(100, 9)], [None, None, None]);
        let told = [left(50, 10), left(99, 10), left(1, 2), left(2, 200), left(1, 86)];
        assert_eq!(told.map(Option::unwrap), ["10 s", "1 s", "4 min", "2 h 44 min", "2 h 22 min"]);
    }

    #[test]
    fn the_method_says_how_many_rounds_were_run() {
        use crate::lab::report::tests::series;
        let stop = Arc::new(AtomicBool::new(false));
        let mut pace = Pace::new(200, 1, Arc::clone(&stop), "echo".to_owned());
        let all = [series("a", &[1.0; 5]), series("b", &[1.0; 4])];
        assert!(pace.rounds_run(&all).starts_with("Rounds: 200, after one that is dropped; in"));
        pace.warm_up = 0;
        assert!(pace.rounds_run(&all).starts_with("Rounds: 200; in each"));
        stop.store(true, Ordering::Relaxed);
        assert!(pace.rounds_run(&all).starts_with("Rounds: 200; in each"), "nothing was left out");
        assert!(pace.cut_if_stopped());
        let words = pace.rounds_run(&all);
        assert!(words.starts_with("Rounds: 4 of 200, since it was interrupted; in"), "{words}");
    }

    #[test]
    fn a_wait_ends_when_the_user_asks_to_stop() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut pace = Pace::new(1, 1, Arc::clone(&stop), String::new());
        assert!(pace.wait(Duration::from_millis(1)), "it was whole");
        let user = thread::spawn(move || stop.store(true, Ordering::Relaxed));
        assert!(!pace.wait(Duration::from_secs(3600)), "it was cut");
        user.join().unwrap();
    }
}
