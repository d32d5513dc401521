//! Measures the CPU time and the memory of a process, as Linux counts them. Chooses the cores on which programs run.
//!
//! CPU time is the sum over `/proc/PID/task/*/schedstat`: nanoseconds on a processor, in user and system mode. The
//! kernel updates the figure of a thread when the thread goes to sleep, so a reading waits until the process rests.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// A time longer than a tick of the scheduler. The figure of a running thread changes with each tick.
const LONGER_THAN_A_TICK: Duration = Duration::from_millis(12);
/// The longest wait until a server rests. The reading of a server that never rests is exact to a tick.
const REST_WAIT_MAX: Duration = Duration::from_millis(500);

/// The number of cores that this process could use before it moved to a single one.
pub(crate) static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// The core of the measured program, and the core of the load generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) generator: usize,
}

impl Cores {
    /// Moves this thread to the core of the generator, since it makes the load.
    pub(crate) fn go_to_the_generators(self) -> anyhow::Result<()> {
        pin(self.generator)
    }

    /// Runs `start` on the server's core, and then moves this thread back to the generator's core. A program that
    /// `start` runs stays on the server's core, with all its threads.
    pub(crate) fn on_the_servers<T>(
        self,
        start: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        pin(self.server)?;
        let started = start();
        self.go_to_the_generators()?;
        started
    }
}

fn pin(core: usize) -> anyhow::Result<()> {
    LazyLock::force(&PROCESSORS);
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).with_context(|| format!("moving to core {core}"))
}

/// The server's CPU time between two moments of rest, and how busy the machine was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) server_ns: u64,
    pub(crate) busy: Busy,
}

/// The shares of the time in which the server, the generator and other processes were busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Busy {
    /// The share of the server. It is less than 1 if the server had to wait for the generator.
    pub(crate) server: f64,
    pub(crate) generator: f64,
    /// The share of all other processes on all cores. It comes from `/proc/stat`, and is exact to a few per cent.
    pub(crate) others: f64,
}

/// The greatest share of one core that other processes may use during a sample. With more, the sample is disturbed: the
/// other processes fill the caches, and make the server wait.
pub(crate) const OTHERS_MAX: f64 = 0.10;

impl Busy {
    pub(crate) fn is_disturbed(self) -> bool {
        self.others > OTHERS_MAX
    }
}

/// Returns the CPU time between two readings. Threads that end leave the sum, so the later reading may be less; the
/// time is then 0.
pub(crate) fn since(now_ns: u64, before_ns: u64) -> u64 {
    now_ns.saturating_sub(before_ns)
}

/// A function that returns the CPU time of a process, in nanoseconds.
type Reading = fn(u32) -> anyhow::Result<u64>;

/// Measures the CPU time of a server between two moments of rest.
#[derive(Debug)]
pub(crate) struct Meter {
    server: u32,
    reading: Reading,
    started: Instant,
    before: Totals,
}

#[derive(Clone, Copy, Debug)]
struct Totals {
    server_ns: u64,
    generator_ns: u64,
    machine_ns: u64,
}

impl Totals {
    fn read(server: u32, reading: Reading) -> anyhow::Result<Self> {
        let server_ns = reading(server)?;
        let generator_ns = thread_time_ns(std::process::id())?;
        Ok(Self { server_ns, generator_ns, machine_ns: machine_ns()? })
    }
}

impl Meter {
    /// Waits until the server rests, and takes the first reading.
    pub(crate) fn start(server: u32) -> anyhow::Result<Self> {
        Self::with(server, at_rest_ns)
    }

    /// Starts a meter for a server whose threads may end. It counts the time of those threads, too, but only in ticks
    /// of the clock.
    pub(crate) fn of_process(server: u32) -> anyhow::Result<Self> {
        Self::with(server, |server| at_rest_ns(server).and_then(|_| stat_time_ns(server)))
    }

    fn with(server: u32, reading: Reading) -> anyhow::Result<Self> {
        let before = Totals::read(server, reading)?;
        Ok(Self { server, reading, started: Instant::now(), before })
    }

    /// Waits until the server rests again, and returns its CPU time and the shares. The shares do not include this
    /// wait.
    pub(crate) fn stop(self) -> anyhow::Result<Used> {
        let passed_ns = self.started.elapsed().as_nanos() as f64;
        let after = Totals::read(self.server, self.reading)?;
        let server_ns = since(after.server_ns, self.before.server_ns);
        let generator_ns = since(after.generator_ns, self.before.generator_ns);
        let machine_ns = since(after.machine_ns, self.before.machine_ns);
        let others_ns = machine_ns.saturating_sub(server_ns + generator_ns);
        let share = |ns: u64| ns as f64 / passed_ns;
        let busy = Busy {
            server: share(server_ns),
            generator: share(generator_ns),
            others: share(others_ns),
        };
        Ok(Used { server_ns, busy })
    }
}

/// Waits until a process rests, and returns its CPU time.
pub(crate) fn at_rest_ns(pid: u32) -> anyhow::Result<u64> {
    let deadline = Instant::now() + REST_WAIT_MAX;
    let mut before = thread_time_ns(pid)?;
    loop {
        thread::sleep(LONGER_THAN_A_TICK);
        let now = thread_time_ns(pid)?;
        if now == before || Instant::now() > deadline {
            return Ok(now);
        }
        before = now;
    }
}

/// Returns the CPU time of all threads of a process, in user and system mode.
pub(crate) fn thread_time_ns(pid: u32) -> anyhow::Result<u64> {
    let folder = format!("/proc/{pid}/task");
    let mut sum = 0;
    for thread in fs::read_dir(&folder).with_context(|| format!("reading {folder}"))? {
        match fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => sum += first_number(&text).context("schedstat holds no number")?,
            // The thread has ended since.
            Err(error) if error.kind() == ErrorKind::NotFound || is_gone(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sum)
}

/// Returns true if a thread has ended after the file with its figure was opened.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Returns the CPU time of a process from `/proc/PID/stat`, in ticks of the clock. It includes threads that have ended.
pub(crate) fn stat_time_ns(pid: u32) -> anyhow::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = user_and_system_ticks(&text).context("stat is not as expected")?;
    Ok(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// Returns the anonymous memory of a process: heap and stacks, but no mapped files.
pub(crate) fn anonymous_bytes(pid: u32) -> anyhow::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    Ok(line.and_then(first_number).context("status has no RssAnon")? * 1024)
}

/// The growth of a server's memory from one moment of rest to another.
#[derive(Debug)]
pub(crate) struct Growth {
    server: u32,
    before: u64,
}

impl Growth {
    /// Waits until the server rests, and takes the first reading.
    pub(crate) fn start(server: u32) -> anyhow::Result<Self> {
        at_rest_ns(server)?;
        Ok(Self { server, before: anonymous_bytes(server)? })
    }

    /// Waits until the server rests again. Returns the growth in bytes, divided by the number of connections.
    pub(crate) fn each(&self, connections: usize) -> anyhow::Result<f64> {
        at_rest_ns(self.server)?;
        let grown = anonymous_bytes(self.server)? as f64 - self.before as f64;
        Ok(grown / connections as f64)
    }
}

/// Returns the CPU time of all processes on all cores.
pub(crate) fn machine_ns() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/stat")?;
    Ok(busy_ticks(&text) * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the sum of fields 14 and 15. Counts the fields after the last parenthesis, since the name in field 2 may
/// contain anything.
fn user_and_system_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Returns the busy ticks in a line `cpu user nice system idle iowait irq softirq steal guest guest_nice`. Guest time
/// is already part of user time.
fn busy_ticks(stat: &str) -> u64 {
    let line = stat.lines().next().unwrap_or_default();
    let ticks = line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0));
    ticks
        .enumerate()
        .filter(|(field, _)| matches!(field, 0..=2 | 5..=7))
        .map(|(_, n)| n)
        .sum::<u64>()
}

pub(crate) fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_fields_of_proc_are_found() {
        let stat = "71 (a ) b) S 1 71 71 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 8 9";
        assert_eq!(user_and_system_ticks(stat), Some(300));
        assert_eq!(user_and_system_ticks("71 (a) S 1"), None);
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 1 2\ncpu0 9"), 63);
        assert_eq!(first_number("  1234 kB\n"), Some(1234));
    }

    const WORK_NS: u64 = 100_000_000;

    /// The program that the next test runs. It starts a thread for each byte of its input; the thread works and ends.
    #[test]
    #[ignore = "a process of another test"]
    fn threads_that_end() {
        let works = || {
            let own = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            first_number(&own).unwrap() < WORK_NS
        };
        for byte in io::stdin().lock().bytes() {
            thread::spawn(move || while works() {}).join().unwrap();
            io::stderr().write_all(&[byte.unwrap()]).unwrap();
        }
    }

    #[test]
    fn the_time_of_a_thread_that_has_ended_counts_for_the_process() {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cpu::tests::threads_that_end", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = process.id();
        let mut work = || {
            process.stdin.as_mut().unwrap().write_all(b"1").unwrap();
            process.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        };
        // It has begun.
        work();
        let meter = Meter::of_process(pid).unwrap();
        work();
        let used = meter.stop().unwrap().server_ns;
        assert!(process.wait().unwrap().success());
        assert!(used >= WORK_NS / 2, "{used}");
        assert_eq!(since(1, 2), 0);
    }

    #[test]
    fn this_process_has_used_time_and_memory() {
        let pid = std::process::id();
        let deadline = Instant::now() + Duration::from_millis(30);
        while Instant::now() < deadline {}
        assert!(thread_time_ns(pid).unwrap() > 0);
        assert!(stat_time_ns(pid).unwrap() < 3_600_000_000_000);
        assert!(anonymous_bytes(pid).unwrap() > 10_000);
    }
}
