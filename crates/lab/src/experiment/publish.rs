//! Publishes events: the rate, the CPU time for each, and the latency until it is acknowledged; in memory, and on
//! disk with each flush policy.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::rounds::{RunPlan, progress, undisturbed};
use crate::cpu::{Busy, Meter};
use crate::histogram::Histogram;
use crate::load::{Acknowledged, Publishers, Topic, Way};
use crate::server::{Program, Server};
use crate::statistics::Random;

const WAYS: [Way; 4] = [
    Way::Post { publishers: 1 },
    Way::Post { publishers: 64 },
    Way::Batches { events: 100 },
    Way::Multiplexed { outstanding: 64 },
];
/// The number of flushed writes of one block, to measure the disk itself.
const FLUSHES: usize = 32;
const FLUSHED_BYTES: usize = 128;

/// The storage of events.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
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
            Self::Memory => "memory",
            Self::Never => "disk, never flushed",
            Self::Interval => "disk, every second",
            Self::Always => "disk, always",
        })
    }
}

/// The plan: what is measured, and how often.
#[derive(Clone, Debug)]
pub(crate) struct PublishPlan {
    pub(crate) run: RunPlan,
    pub(crate) server: Program,
    /// The directory in which temporary data directories are created.
    pub(crate) folder: PathBuf,
}

/// The results.
#[derive(Debug)]
pub(crate) struct PublishResults {
    pub(crate) cases: Vec<PublishCase>,
    /// The type of the file system, such as `ext4`; on a tmpfs flushing costs nothing.
    pub(crate) file_system: String,
    /// The time of one write and its flush, without a server.
    pub(crate) flush: Duration,
}

/// A way and a storage, with a sample for each round.
#[derive(Clone, Debug)]
pub(crate) struct PublishCase {
    pub(crate) storage: Storage,
    pub(crate) way: Way,
    pub(crate) samples: Vec<PublishSample>,
    /// The latencies of all samples.
    pub(crate) latency: Histogram,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishSample {
    pub(crate) events_per_second: f64,
    /// Server CPU for each event.
    pub(crate) cpu_us: f64,
    pub(crate) busy: Busy,
}

impl PublishPlan {
    pub(crate) fn run(&self) -> anyhow::Result<PublishResults> {
        fs::create_dir_all(&self.folder)?;
        let (file_system, flush) = (file_system(&self.folder)?, flush(&self.folder)?);
        let cases = Storage::ALL.into_iter().flat_map(|storage| {
            let case = move |way| {
                let (samples, latency) = (Vec::new(), Histogram::default());
                PublishCase { storage, way, samples, latency }
            };
            WAYS.map(case)
        });
        let mut cases: Vec<_> = cases.collect();
        let mut random = Random::new(self.run.seed);
        let mut order: Vec<_> = (0..cases.len()).collect();
        for round in 1..=self.run.rounds {
            progress(&format!("round {round} of {}: publishing", self.run.rounds));
            random.shuffle(&mut order);
            for &index in &order {
                let case = &mut cases[index];
                let take = || self.sample(case, &mut random);
                let is_disturbed = |taken: &(PublishSample, Histogram)| taken.0.busy.is_disturbed();
                let (sample, latency) = undisturbed(self.run.retries, take, is_disturbed)
                    .with_context(|| format!("{}, {}", case.storage, case.way))?;
                case.samples.push(sample);
                case.latency.add(&latency);
            }
        }
        Ok(PublishResults { cases, file_system, flush })
    }

    /// Takes a sample at a new server with a new directory.
    fn sample(
        &self,
        case: &PublishCase,
        random: &mut Random,
    ) -> anyhow::Result<(PublishSample, Histogram)> {
        let folder = Folder(self.folder.join(format!("bench-data-{}", std::process::id())));
        let path = folder.0.to_str().context("the folder's name is no text")?;
        let server = self.server.with(&case.storage.args(path)).start(self.run.cores)?;
        let topic = server.topic(&self.run.topic_path).context("no topic is served")?;
        ensure!(topic.create()?, "{} cannot be published to: is --demo missing?", topic.path);
        self.publish(&server, &topic, case.way, random)
    }

    fn publish(
        &self,
        server: &Server,
        topic: &Topic,
        way: Way,
        random: &mut Random,
    ) -> anyhow::Result<(PublishSample, Histogram)> {
        let before = topic.events()?;
        let mut publishers = Publishers::open(way, topic, random)?;
        let warm_up = publishers.run(self.run.times.warm_up)?;
        let meter = Meter::start(server.pid())?;
        let Acknowledged { events, latency, time } = publishers.run(self.run.times.sample)?;
        let used = meter.stop()?;
        let there = topic.events()? - before;
        let expected = warm_up.events + events;
        ensure!(there == expected, "{there} events are there of {expected} acknowledged");
        let sample = PublishSample {
            events_per_second: events as f64 / time.as_secs_f64(),
            cpu_us: used.server_ns as f64 / 1e3 / events as f64,
            busy: used.busy,
        };
        Ok((sample, latency))
    }
}

/// A directory that is removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It does not exist if everything is in memory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the median time of a flushed append.
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

/// Returns the type of the nearest mount point; a later one at the same place hides the earlier.
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
    fn a_flush_takes_time_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir();
        assert!(flush(&folder).unwrap() > Duration::ZERO);
        assert!(!folder.join(format!("bench-flush-{}", std::process::id())).exists());
    }
}
