//! Measures publishing: the rate, the CPU time for each event, and the latency of its acknowledgement. Events are kept
//! in memory, or on disk with each flush policy.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::layout::{Column, Layout, OWN};
use super::session::{BenchSession, Measured};
use crate::cpu::Meter;
use crate::lab::numbers::figure;
use crate::lab::report::{Quantity, ms};
use crate::lab::rounds::{Cell, Sample, try_interleaved};
use crate::load::{Acknowledged, PublishWay, Publishers, Topic};
use crate::server::Server;
use crate::statistics::Random;

pub(crate) const ACKNOWLEDGED: Quantity = Quantity::less("time until acknowledged, p99", "ms");
pub(crate) const EVENTS: Quantity = Quantity::more("events a second", "");
/// The storage with which the others are compared.
const MEMORY: &str = "memory";
pub(crate) const EVENT: Quantity = Quantity::less("server CPU for each event", "µs");

const WAYS: [PublishWay; 4] = [
    PublishWay::Post { publishers: 1 },
    PublishWay::Post { publishers: 64 },
    PublishWay::Batches { events: 100 },
    PublishWay::Multiplexed { outstanding: 64 },
];
/// The number of flushed writes that measure the disk without a server.
const FLUSHES: usize = 32;
const FLUSHED_BYTES: usize = 128;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Storage {
    Memory,
    Never,
    Interval,
    Always,
}

impl Storage {
    pub(crate) const ALL: [Self; 4] = [Self::Memory, Self::Never, Self::Interval, Self::Always];

    fn args(self, folder: &str) -> Vec<&str> {
        let fsync = match self {
            Self::Memory => return Vec::new(),
            Self::Never => "never",
            Self::Interval => "interval",
            Self::Always => "always",
        };
        vec!["--data", folder, "--fsync", fsync]
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => MEMORY,
            Self::Never => "disk, never flushed",
            Self::Interval => "disk, every second",
            Self::Always => "disk, always",
        })
    }
}

/// Measures every way of publishing with every storage. Creates temporary data directories in `folder`.
pub(crate) fn run(session: &mut BenchSession, folder: &Path) -> anyhow::Result<Measured> {
    fs::create_dir_all(folder)?;
    let (file_system, flush) = (file_system(folder)?, flush(folder)?);
    let cells = |storage| WAYS.map(|way| Cell::new(way, storage, (storage, way)));
    let cells = Storage::ALL.map(cells).concat();
    let series = try_interleaved(session, ACKNOWLEDGED, &cells, |session, cell| {
        let (storage, way) = cell.key;
        let sample = sample(session, folder, storage, way);
        sample.with_context(|| format!("{}, {}", cell.case, cell.contender))
    })?;
    let question = "What does an event cost that is published, in memory and on disk?";
    let mut report = session.report(&session.server, question, ACKNOWLEDGED, series);
    report.compare_with(MEMORY);
    report.method.push(disk(&file_system, flush));
    Ok(Measured { report, goals: Vec::new(), layouts: vec![layout()] })
}

pub(crate) fn layout() -> Layout {
    let columns = vec![
        Column::Cost(EVENTS, OWN),
        Column::Ratio(EVENTS, OWN, MEMORY),
        Column::Cost(EVENT, OWN),
        Column::Ratio(EVENT, OWN, MEMORY),
        Column::Percentile(ACKNOWLEDGED, OWN, 0.5),
        Column::Percentile(ACKNOWLEDGED, OWN, 0.99),
        Column::Busy(&[OWN]),
    ];
    Layout::of_contenders("publishing events of 100 B, times in ms", ACKNOWLEDGED, columns)
}

fn disk(file_system: &str, flush: Duration) -> String {
    format!(
        "Events of 100 B. Times are those from a request until it is acknowledged, of all rounds. The disk is {file_system}; one write of \
         {FLUSHED_BYTES} B and its flush take {} ms there without a server{}.",
        figure(ms(flush)),
        if file_system == "tmpfs" { ", for it is memory" } else { "" },
    )
}

/// Takes a sample at a new server with a new data directory.
fn sample(
    session: &mut BenchSession,
    folder: &Path,
    storage: Storage,
    way: PublishWay,
) -> anyhow::Result<Sample> {
    let folder = Folder(folder.join(format!("bench-data-{}", std::process::id())));
    let path = folder.0.to_str().context("the folder's name is no text")?;
    let server = session.server.with(&storage.args(path)).start(session.cores)?;
    let topic = server.topic(&session.topic_path).context("no topic is served")?;
    ensure!(topic.create()?, "{} cannot be published to: is --demo missing?", topic.path);
    publish(session, &server, &topic, way)
}

fn publish(
    session: &mut BenchSession,
    server: &Server,
    topic: &Topic,
    way: PublishWay,
) -> anyhow::Result<Sample> {
    let random = &mut Random::new(session.pace.random.next());
    let before = topic.events()?;
    let mut publishers = Publishers::open(way, topic, random)?;
    let warm_up = publishers.run(session.times.warm_up)?;
    let meter = Meter::start(server.pid())?;
    let Acknowledged { events, latency, time } = publishers.run(session.times.sample)?;
    let used = meter.stop()?;
    let there = topic.events()? - before;
    let expected = warm_up.events + events;
    ensure!(there == expected, "{there} events are there of {expected} acknowledged");
    let acknowledged = latency.percentile(0.99).map(|time| (ACKNOWLEDGED, ms(time)));
    let others = [
        (EVENTS, events as f64 / time.as_secs_f64()),
        (EVENT, used.server_ns as f64 / 1e3 / events as f64),
    ];
    Ok(Sample {
        figures: acknowledged.into_iter().chain(others).collect(),
        durations: latency,
        expected: events,
        received: events,
        busy: Some(used.busy),
        ..Sample::default()
    })
}

/// A directory that is removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It does not exist if everything is in memory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the median time of an append with its flush.
fn flush(folder: &Path) -> anyhow::Result<Duration> {
    let path = folder.join(format!("bench-flush-{}", std::process::id()));
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let begun = Instant::now();
        file.write_all(&[0x5a; FLUSHED_BYTES])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times[FLUSHES / 2])
}

/// Returns the type of a directory's file system.
fn file_system(folder: &Path) -> anyhow::Result<String> {
    let (folder, mounts) = (folder.canonicalize()?, fs::read_to_string("/proc/self/mounts")?);
    mounted(&mounts, &folder).map(str::to_owned).context("the folder is on no file system")
}

/// Returns the type of the file system at the nearest mount point. If there are several at the same place, the last one
/// counts.
fn mounted<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let around = mounts.filter(|(point, _)| folder.starts_with(point));
    around.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_says_what_a_folder_is_on() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /tmp/a overlay rw 0 0\n\
                      y /tmp/a xfs rw 0 0\n";
        let on = |folder| mounted(mounts, Path::new(folder));
        assert_eq!(on("/home"), Some("ext4"));
        assert_eq!(on("/tmpfs"), Some("ext4"));
        assert_eq!(on("/tmp/b"), Some("tmpfs"));
        assert_eq!(on("/tmp/a/b"), Some("xfs"));
        assert_eq!(mounted("", Path::new("/")), None);
    }

    #[test]
    fn a_disk_that_is_memory_is_told() {
        let told = |file_system| disk(file_system, Duration::from_micros(2));
        assert!(told("ext4").ends_with("take 0.002 ms there without a server."));
        assert!(told("tmpfs").ends_with("without a server, for it is memory."));
    }

    #[test]
    fn a_flush_takes_time_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir();
        assert!(flush(&folder).unwrap() > Duration::ZERO);
        assert!(!folder.join(format!("bench-flush-{}", std::process::id())).exists());
    }
}
