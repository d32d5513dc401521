//! Each way to damage a data directory, after each way to end, with each way to flush: whoever has a position gets
//! every event that was acknowledged after it, or is told of a gap, and never another event in its place.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::testing::batch;
use crate::{GapReason, ReadError};

/// The damage to the files of a topic while no process has them open.
type Damage = fn(&Copy<'_>);

/// The copy that can be damaged.
struct Copy<'a> {
    machine: &'a Machine,
    /// The whole directory, as it was when it was closed before.
    backup: &'a Path,
}

const DAMAGES: [(&str, Damage); 18] = [
    ("cut the last segment by a byte", |copy| copy.cut_last(|len| len - 1)),
    ("cut the last segment by half", |copy| copy.cut_last(|len| len / 2)),
    ("cut all of the last segment", |copy| copy.cut_last(|_| 0)),
    ("delete the last segment", |copy| fs::remove_file(copy.last()).unwrap()),
    ("delete the first segment", |copy| fs::remove_file(copy.segment(0)).unwrap()),
    ("delete a segment in the middle", |copy| fs::remove_file(copy.segment(1)).unwrap()),
    ("delete topic.json", |copy| fs::remove_file(copy.topic().join("topic.json")).unwrap()),
    ("delete state.json", |copy| fs::remove_file(copy.path().join("state.json")).unwrap()),
    ("delete the marks", |copy| fs::remove_file(copy.marks()).unwrap()),
    ("restore the directory", |copy| copy.restore()),
    ("restore the topic", |copy| {
        fs::remove_dir_all(copy.topic()).unwrap();
        fs::create_dir(copy.topic()).unwrap();
        super::copy(&copy.backup.join("topics/wind"), &copy.topic());
    }),
    ("restore a file", |copy| {
        let name = copy.last().file_name().unwrap().to_owned();
        fs::copy(copy.backup.join("topics/wind").join(name), copy.last()).unwrap();
    }),
    ("roll the marks back", |copy| {
        let mut files = faulty::files_below(copy.backup);
        files.retain(|path| path.to_str().unwrap().contains("marks."));
        fs::copy(&files[0], copy.marks()).unwrap();
    }),
    ("swap two segments", |copy| swap(&copy.segment(0), &copy.segment(1))),
    ("swap the last segments of two topics", |copy| {
        let name = copy.last().file_name().unwrap().to_owned();
        swap(&copy.last(), &copy.path().join("topics/rain").join(name));
    }),
    ("zero the last segment", |copy| {
        let len = fs::read(copy.last()).unwrap().len();
        fs::write(copy.last(), vec![0; len]).unwrap();
    }),
    ("have a segment twice", |copy| {
        let next = copy.topic().join("00000000000000000261.log");
        fs::copy(copy.segment(1), next).unwrap();
    }),
    ("flip a bit of the last event", |copy| {
        let mut bytes = fs::read(copy.last()).unwrap();
        *bytes.last_mut().unwrap() ^= 4;
        fs::write(copy.last(), bytes).unwrap();
    }),
];

impl Copy<'_> {
    fn path(&self) -> PathBuf {
        self.machine.directory.path().to_owned()
    }

    fn topic(&self) -> PathBuf {
        self.machine.topic_directory()
    }

    fn segment(&self, place: usize) -> PathBuf {
        self.machine.segments()[place].clone()
    }

    fn last(&self) -> PathBuf {
        self.machine.segments().pop().unwrap()
    }

    fn marks(&self) -> PathBuf {
        let mut files = faulty::files_below(&self.path());
        files.retain(|path| path.to_str().unwrap().contains("marks."));
        files.pop().unwrap()
    }

    fn cut_last(&self, left: impl Fn(u64) -> u64) {
        let file = fs::OpenOptions::new().write(true).open(self.last()).unwrap();
        file.set_len(left(file.metadata().unwrap().len())).unwrap();
    }

    fn restore(&self) {
        for entry in fs::read_dir(self.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        super::copy(self.backup, &self.path());
        self.machine.faults.set(|faults| faults.copy += 1);
    }
}

fn swap(one: &Path, other: &Path) {
    let (first, second) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    fs::write(one, second).unwrap();
    fs::write(other, first).unwrap();
}

/// The numbers that were acknowledged, by position.
type Acknowledged = HashMap<Position, u64>;

/// Publishes batches of 10 to a topic, with numbers that were never published before.
async fn publish(topic: &Topic, batches: u64, numbers: &mut u64, acked: &mut Acknowledged) {
    for _ in 0..batches {
        let first = *numbers + 1;
        *numbers += 10;
        let batch = batch(at(1), first..=*numbers);
        let published = topic.publish_kept(at(1), &batch).await.unwrap();
        let offsets = published.first.offset..=published.last.offset;
        let positions = offsets.map(|offset| Position { offset, ..published.first });
        for (position, number) in positions.zip(first..=*numbers) {
            // An earlier position keeps its meaning.
            acked.entry(position).or_insert(number);
        }
    }
}

/// Returns the fault in the next page of a reader that has seen everything up to this position. All positions at
/// which such a page ends are read from, too.
fn wrong(topic: &Topic, seen: Position, acked: &Acknowledged) -> Option<String> {
    let limit = PageLimit { events_max: 3, ..PageLimit::default() };
    let page = match topic.read(at(1), seen, limit) {
        Ok(page) => page,
        Err(ReadError::Ahead { .. }) => return Some("it was never handed out".to_owned()),
        Err(error) => return Some(format!("{error:?}")),
    };
    if page.gap.clone().is_some_and(|gap| gap.reason == GapReason::Epoch) {
        return None;
    }
    let told = page.gap.clone().map_or(0, |gap| gap.missed.unwrap());
    let mut offset = seen.offset + told;
    for (event, number) in page.events.iter().zip(numbers(&page)) {
        offset += 1;
        let expected = acked.get(&Position { offset, ..seen });
        if event.offset != offset || expected.is_some_and(|expected| *expected != number) {
            return Some(format!("{number} at {}, not {expected:?} at {offset}", event.offset));
        }
    }
    let next = Position { offset: offset + 1, ..seen };
    let is_silent = page.next.offset == seen.offset && acked.contains_key(&next);
    (page.next.offset != offset || is_silent).then(|| format!("it ends at {}", page.next))
}

async fn silent_losses(fsync: Fsync, killed: bool, crashed: bool, damage: Damage) -> Vec<String> {
    let mut machine = Machine::new();
    let (mut numbers, mut acked) = (0, [Acknowledged::new(), Acknowledged::new()]);
    let rain = || "rain".parse::<TopicName>().unwrap();
    let backup = TempDir::new().unwrap();
    // Two segments of 90 events, and the beginning of a third one.
    for (is_first, batches) in [(true, 20), (false, 6)] {
        let running = machine.start(options(fsync));
        let other = running.hub.ensure(rain(), Retention::default()).unwrap();
        publish(&running.topic, batches, &mut numbers, &mut acked[0]).await;
        publish(&other, batches, &mut numbers, &mut acked[1]).await;
        if is_first {
            running.hub.close().unwrap();
            copy(machine.directory.path(), backup.path());
        } else {
            if !killed {
                running.hub.close().unwrap();
            }
            if crashed {
                machine.faults.crash_to_what_is_flushed(machine.directory.path());
            }
            // Later work of the process applies to the directory that it had.
            machine = machine.killed();
        }
    }
    if !machine.segments().is_empty() {
        damage(&Copy { machine: &machine, backup: backup.path() });
    }
    let running = machine.start(options(fsync));
    let other = running.hub.ensure(rain(), Retention::default()).unwrap();
    let mut wrongs = Vec::new();
    for (topic, acked) in [&running.topic, &other].into_iter().zip(&mut acked) {
        let mut places: HashSet<_> = acked.keys().copied().collect();
        publish(topic, 8, &mut numbers, acked).await;
        let head = topic.info(at(1)).head;
        places.extend((0..=head.offset).map(|offset| Position { offset, ..head }));
        places.insert(Position { epoch: Epoch::from_bits(1), offset: 0 });
        for seen in places {
            let wrong = wrong(topic, seen, acked);
            wrongs.extend(wrong.map(|wrong| format!("{} after {seen}: {wrong}", topic.name())));
        }
    }
    wrongs
}

#[test]
fn no_damage_of_a_closed_directory_is_silent() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut combinations, mut silent) = (0, Vec::new());
    for (what, damage) in DAMAGES {
        for fsync in [Fsync::Always, LATER.fsync, Fsync::Never] {
            for (killed, crashed) in [(true, false), (true, true), (false, false), (false, true)] {
                combinations += 1;
                let wrongs = runtime.block_on(silent_losses(fsync, killed, crashed, damage));
                if let Some(wrong) = wrongs.first() {
                    let end = if killed { "killed" } else { "stopped" };
                    let boot = if crashed { "after a crash of the machine" } else { "same boot" };
                    let times = wrongs.len();
                    silent.push(format!("{what}, {fsync:?}, {end}, {boot}: {times}, {wrong}"));
                }
            }
        }
    }
    assert!(silent.is_empty(), "{} of {combinations}:\n{}", silent.len(), silent.join("\n"));
}
