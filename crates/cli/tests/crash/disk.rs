//! The data directory while no process has it open: its contents before the first start, and the effects of a power
//! cut.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anemone_hub::{DataDir, DataOptions, Epoch, Hub, NewEvent, Retention, UnixTime};

use crate::history::{Data, Id, LONG_AGO, Record, Role};
use crate::world::{Witness, World};

/// The time that `serve --demo` keeps an event, and that it writes to one segment.
const KEPT: Duration = Duration::from_secs(24 * 3600);
const SEGMENT: Duration = Duration::from_secs(3 * 3600);

/// Makes an `empty` topic, for readers come before the first event, and some whose segments become too old
/// while the experiment runs: `expiring` loses one every now and then, each of `rolling` goes on to a new one
/// once. How many events of `expiring` may be gone.
///
/// No option of the command makes segments small, so it is their age that is short.
pub(crate) fn prepare(
    world: &World,
    data: &Path,
    empty: &str,
    expiring: &str,
    rolling: &[String],
    span: Duration,
) -> u64 {
    const SEGMENTS: u32 = 80;
    const IN_A_SEGMENT: u64 = 8;
    let options = DataOptions { segment_bytes_max: 4096, ..DataOptions::default() };
    let directory = DataDir::open(data, options).unwrap();
    let hub = Hub::with_data(Epoch::from_bits(fastrand::u64(..)), directory).unwrap();
    let keep_all = Retention { age_max: Duration::MAX, bytes_max: 1 << 30, events_max: 100_000 };
    let now = SystemTime::now();
    hub.create(empty.parse().unwrap(), keep_all).unwrap();

    let mut witness = Witness::new(world, LONG_AGO, expiring, Role::Publisher);
    let topic = hub.create(expiring.parse().unwrap(), keep_all).unwrap();
    let mut number = 0;
    for segment in 1..=SEGMENTS {
        let time = UnixTime::from(now - KEPT + span * segment / SEGMENTS);
        // A segment is full with the last of these.
        for _ in 0..IN_A_SEGMENT {
            number += 1;
            let id = Id { publisher: LONG_AGO.to_owned(), number };
            let data = anemone_hub::Data::json(&Data::of(&id)).unwrap();
            drop(topic.append(time, &NewEvent { time, data }.into()).unwrap());
            witness.record(Record::Sent { first: number, last: number, keyed: false });
        }
    }
    for (index, name) in (1..).zip(rolling) {
        let count = u32::try_from(rolling.len()).unwrap();
        let time = UnixTime::from(now - SEGMENT + span * index / count);
        let id = Id { publisher: LONG_AGO.to_owned(), number: 1 };
        let topic = hub.create(name.parse().unwrap(), keep_all).unwrap();
        let data = anemone_hub::Data::json(&Data::of(&id)).unwrap();
        drop(topic.append(time, &NewEvent { time, data }.into()).unwrap());
        let mut witness = Witness::new(world, LONG_AGO, name, Role::Publisher);
        witness.record(Record::Sent { first: 1, last: 1, keyed: false });
    }
    hub.close().unwrap();
    number
}

/// The library that notes down how much of each file is flushed, and where it does.
pub(crate) struct Flushes {
    pub(crate) library: PathBuf,
    pub(crate) directory: PathBuf,
}

impl Flushes {
    /// Creates it, and takes its present contents as flushed.
    pub(crate) fn new(directory: &Path, data: &Path) -> Self {
        let library = directory.join("flushes.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/flushes.c");
        let mut cc = Command::new("cc");
        let cc = cc.args(["-shared", "-fPIC", "-Wall", "-O1", "-o"]).arg(&library).arg(source);
        assert!(cc.status().unwrap().success());
        let flushes = Self { library, directory: directory.join("flushes") };
        fs::create_dir(&flushes.directory).unwrap();
        for path in topics(data).iter().filter_map(|topic| last_segment(topic)) {
            let length = fs::metadata(&path).unwrap().len();
            fs::write(flushes.note(&path), length.to_ne_bytes()).unwrap();
        }
        flushes
    }

    /// The path of the note about a file.
    fn note(&self, path: &Path) -> PathBuf {
        let path = path.canonicalize().unwrap();
        self.directory.join(path.to_str().unwrap().replace('/', "%"))
    }

    /// The bytes of a file that are flushed. Nothing of one that is not known, not even its name.
    fn of(&self, path: &Path) -> Option<u64> {
        let bytes = fs::read(self.note(path)).ok()?;
        // One that was just made when the server was killed is empty.
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Has the directory look as after a power cut: the machine has started anew, and of what was not flushed a
    /// random part is missing or is something else. How many bytes were not flushed.
    pub(crate) fn cut_power(&self, data: &Path, chance: &mut fastrand::Rng) -> u64 {
        let state = data.join("state.json");
        let mut json: serde_json::Value =
            serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
        json["boot"] = format!("another {}", chance.u64(..)).into();
        fs::write(state, json.to_string()).unwrap();
        let mut unflushed = 0;
        for path in topics(data).iter().filter_map(|topic| last_segment(topic)) {
            let length = fs::metadata(&path).unwrap().len();
            let flushed = self.of(&path);
            let whole = flushed.unwrap_or(0).min(length);
            unflushed += length - whole;
            match flushed {
                None if chance.bool() => fs::remove_file(&path).unwrap(),
                _ => damage(&path, whole, length, chance),
            }
        }
        unflushed
    }
}

fn topics(data: &Path) -> Vec<PathBuf> {
    let topics = fs::read_dir(data.join("topics")).unwrap().map(|entry| entry.unwrap().path());
    let is_ours =
        |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("scratch-");
    topics.filter(is_ours).collect()
}

fn last_segment(directory: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "log")).max()
}

/// Leaves the flushed part, and a random part of the rest; sometimes with other bytes after it.
fn damage(path: &Path, flushed: u64, length: u64, chance: &mut fastrand::Rng) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.set_len(chance.u64(flushed..=length)).unwrap();
    // Blocks that were allotted to the file and never written, or their former contents.
    let tail = match chance.u8(..3) {
        0 => vec![0; chance.usize(1..5000)],
        1 => (0..chance.usize(1..300)).map(|_| chance.u8(..)).collect(),
        _ => Vec::new(),
    };
    file.write_all(&tail).unwrap();
}
