//! Events survive an end, polite or not.

use proptest::prelude::*;

use super::*;
use crate::{GapReason, IdempotencyKey, KeyWindow, Storage};

#[tokio::test]
async fn everything_survives_a_restart() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    let keys = KeyWindow { keys_max: 5, age_max: Duration::from_secs(7) };
    let options = TopicOptions { keys, retention: Retention::default(), storage: Storage::Data };
    let other = running.hub.create("Other.".parse().unwrap(), options).unwrap();
    let large = Retention { events_max: 70_000, ..Retention::default() };
    running.hub.ensure(wind(), large).unwrap();
    running.publish(1..=400).await.unwrap();
    running.publish_with_key("a", 401).await.unwrap();
    let (head, other_head) = (running.head(), other.info(at(1)).head);
    running.hub.close().unwrap();

    let hub = machine.open(LATER);
    let names: Vec<_> = hub.topics().iter().map(|topic| topic.name().to_string()).collect();
    assert_eq!(names, ["Other.", "wind"]);
    assert_eq!(hub.topic(&"Other.".parse().unwrap()).unwrap().info(at(1)).head, other_head);
    let running = Running { topic: hub.topic(&wind()).unwrap(), hub };
    assert_eq!(running.head(), head);
    assert_eq!(running.all(), (1..=401).collect::<Vec<_>>());
    let again = running.publish_with_key("a", 401).await.unwrap();
    assert_eq!((again.repeated, again.first), (true, head));
    assert_eq!(running.publish([402]).await, Ok(402));
    running.publish(403..=20_000).await.unwrap();
    assert_eq!(running.topic.info(at(1)).first, 1, "its retention is what it was");
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_acknowledged() {
    for fsync in [Fsync::Always, LATER.fsync, Fsync::Never] {
        let mut machine = Machine::new();
        let running = machine.start(options(fsync));
        for round in 0..10 {
            running.publish(round * 30 + 1..=round * 30 + 30).await.unwrap();
            running.publish_with_key(&format!("k{round}"), 0).await.unwrap();
            let mut after = machine.killed();
            let found = after.start(options(fsync));
            assert_eq!((found.head(), found.all()), (running.head(), running.all()), "{fsync:?}");
            let again = found.publish_with_key(&format!("k{round}"), 0).await.unwrap();
            assert!(again.repeated, "{fsync:?}");
        }
    }
}

#[tokio::test]
async fn a_crash_of_the_machine_loses_nothing_with_always() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    for number in 1..=300 {
        running.publish([number]).await.unwrap();
    }
    let head = running.head();
    drop(running);
    // The directory was closed; now it was not.
    let mut machine = machine.killed();
    let running = machine.start(ALWAYS);
    running.publish([301]).await.unwrap();
    let after = machine.killed();
    after.faults.set(|faults| faults.boots += 1);
    let mut after = after;
    let found = after.start(ALWAYS);
    assert_eq!(found.head(), Position { offset: 301, ..head });
    assert_eq!(found.all(), (1..=301).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_acknowledged_is_flushed_with_always_and_a_crash_leaves_just_that() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    for number in 1..=200 {
        running.publish([number]).await.unwrap();
    }
    let head = running.head();
    // No process writes any more, and acknowledged events are flushed.
    machine.faults.crash(&machine.topic_directory(), |_| 0);
    let mut after = machine.killed();
    let found = after.start(ALWAYS);
    assert_eq!((found.head(), found.all().len()), (head, 200));
}

#[tokio::test]
async fn after_a_crash_without_always_no_position_means_another_event() {
    for fsync in [LATER.fsync, Fsync::Never] {
        let mut machine = Machine::new();
        let running = machine.start(options(fsync));
        running.publish(1..=50).await.unwrap();
        let seen = running.head();
        machine.faults.crash(&machine.topic_directory(), |lost| lost / 2);
        let mut after = machine.killed();
        let found = after.start(options(fsync));
        assert_ne!(found.head().epoch, seen.epoch);
        let kept = found.head().offset;
        assert!(kept < 50);
        found.publish(1000..1100).await.unwrap();
        let page = found.topic.read(at(1), seen, PageLimit::default()).unwrap();
        let gap = page.gap.clone().unwrap();
        assert_eq!((gap.reason, gap.missed, gap.resume.offset), (GapReason::Epoch, None, 0));
        let expected: Vec<_> = (1..=kept).chain(1000..1100).collect();
        assert_eq!(numbers(&page), expected);
        // The new epoch survives, as the old one did.
        let epoch = found.head().epoch;
        found.hub.close().unwrap();
        assert_eq!(after.start(options(fsync)).head().epoch, epoch);
    }
}

#[tokio::test]
async fn an_epoch_that_begins_is_noted_down_before_its_reason_is_forgotten() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish(1..=50).await.unwrap();
    let seen = running.head();
    machine.faults.crash(&machine.topic_directory(), |_| 0);
    let mut after = machine.killed();
    let hub = after.open(LATER);
    let epoch = hub.topic(&wind()).unwrap().info(at(1)).head.epoch;
    assert_ne!(epoch, seen.epoch);
    // Killed before anything else happened.
    assert_eq!(after.killed().start(LATER).head().epoch, epoch);
}

#[tokio::test]
async fn what_a_crash_left_of_a_quiet_topic_is_no_damage_after_a_kill() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish(1..=5).await.unwrap();
    let mut crashed = machine.killed();
    let segment = &crashed.segments()[0];
    let whole = fs::read(segment).unwrap();
    // Blocks that were never written, and after them an event that was never announced.
    running.publish([6]).await.unwrap();
    let later = fs::read(&machine.segments()[0]).unwrap();
    let left = [&whole[..], &[0; 100], &later[whole.len()..]].concat();
    fs::write(segment, left).unwrap();
    crashed.faults.set(|faults| faults.boots += 1);
    let found = crashed.open(ALWAYS);
    assert_eq!(
        found.topic(&wind()).unwrap().info(at(1)).head,
        Position { offset: 5, ..running.head() }
    );
    // Killed before anything was published.
    let mut killed = crashed.killed();
    let found = killed.start(ALWAYS);
    assert_eq!(found.head(), Position { offset: 5, ..running.head() });
    assert_eq!((found.all(), found.topic.health().damaged_events), ((1..=5).collect(), 0));
    assert_eq!(found.publish([7]).await, Ok(6));
}

#[tokio::test]
async fn each_interval_what_was_written_is_flushed() {
    let mut machine = Machine::new();
    let running = machine.start(options(Fsync::Interval(Duration::from_millis(5))));
    running.publish([1]).await.unwrap();
    running.publish([2]).await.unwrap();
    let segment = &machine.segments()[0];
    let written = fs::read(segment).unwrap();
    while machine.faults.get(|faults| faults.flushed.get(segment) != Some(&written)) {
        tokio::task::yield_now().await;
    }
    let quiet = machine.faults.get(|faults| faults.flushes);
    running.hub.close().unwrap();
    let closed = machine.faults.get(|faults| faults.flushes);
    assert!(closed <= quiet + 2, "what is flushed is not flushed again but for the state");
}

#[tokio::test]
async fn an_unknown_past_begins_a_new_epoch() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish([1, 2]).await.unwrap();
    let seen = running.head();
    running.hub.close().unwrap();
    fs::remove_file(machine.directory.path().join("state.json")).unwrap();
    let running = machine.start(ALWAYS);
    assert_ne!(running.head().epoch, seen.epoch);
    assert_eq!(running.all(), [1, 2]);
    running.hub.close().unwrap();
    fs::write(machine.topic_directory().join("topic.json"), "{").unwrap();
    let again = machine.start(ALWAYS);
    assert_eq!(again.all(), [1, 2]);
    assert_ne!(again.head().epoch, running.head().epoch);
}

#[tokio::test]
async fn a_log_that_lost_its_end_while_it_was_closed_begins_a_new_epoch() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish([1]).await.unwrap();
    let len = fs::metadata(&machine.segments()[0]).unwrap().len();
    running.publish([2]).await.unwrap();
    let seen = running.head();
    running.hub.close().unwrap();
    let file = fs::OpenOptions::new().write(true).open(&machine.segments()[0]).unwrap();
    file.set_len(len).unwrap();
    let running = machine.start(ALWAYS);
    assert_ne!(running.head().epoch, seen.epoch);
    assert_eq!(running.all(), [1]);
}

/// The head of the topic of a data directory on this machine, after so many events more.
async fn head_of(path: &Path, adopt: bool, epoch: u64, publish: u64) -> Position {
    let data = DataDir::open(path, DataOptions { adopt, ..LATER }).unwrap();
    let hub = Hub::with_data(Epoch::from_bits(epoch), data).unwrap();
    let running = Running { topic: hub.ensure(wind(), Retention::default()).unwrap(), hub };
    if publish > 0 {
        running.publish(0..publish).await.unwrap();
    }
    let head = running.head();
    running.hub.close().unwrap();
    head
}

#[cfg(unix)]
#[tokio::test]
async fn a_copy_begins_new_epochs_unless_it_is_adopted() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let copied = |from: &str, to: &str| {
        fs::create_dir_all(at(to)).unwrap();
        copy(&at(from), &at(to));
    };
    let epoch = Epoch::from_bits(1);
    assert_eq!(head_of(&at("data"), false, 1, 60).await, Position { epoch, offset: 60 });
    copied("data", "backup");
    fs::rename(at("data"), at("renamed")).unwrap();
    assert_eq!(head_of(&at("renamed"), false, 2, 40).await, Position { epoch, offset: 100 });
    // Put back as another directory, and over the one that was there.
    copied("backup", "restored");
    assert_eq!(head_of(&at("restored"), false, 3, 0).await.epoch, Epoch::from_bits(3));
    copied("renamed", "later");
    copied("backup", "renamed");
    assert_eq!(head_of(&at("renamed"), false, 4, 0).await.epoch, Epoch::from_bits(4));
    // Moved on purpose.
    assert_eq!(head_of(&at("later"), true, 5, 0).await, Position { epoch, offset: 100 });
    assert_eq!(head_of(&at("later"), false, 6, 0).await, Position { epoch, offset: 100 });
    let files = fs::read_dir(at("later")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: std::collections::BTreeSet<_> =
        files.map(|name| name.into_string().unwrap()).collect();
    let expected = ["lock", "marks.4", "state.json", "topics", "witness.4"];
    assert_eq!(names, expected.map(str::to_owned).into());
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_kept_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("new/data");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    head_of(&path, false, 1, 300).await;
    let files = faulty::files_below(&path);
    assert!(files.len() >= 6, "{files:?}");
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        for above in file.ancestors().skip(1).take_while(|above| *above != directory.path()) {
            assert_eq!(mode(above), 0o700, "{}", above.display());
        }
    }
    // A directory that was made by hand remains, except for our files in it.
    let topics = path.join("topics");
    for open in [&path, &topics] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(head_of(&path, false, 2, 0).await.epoch, Epoch::from_bits(1));
    assert_eq!((mode(&path), mode(&topics)), (0o755, 0o700));
}

#[tokio::test]
async fn a_directory_is_open_once() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    let second = open(&machine.faults, machine.directory.path(), ALWAYS, 9).unwrap_err();
    assert!(matches!(second, OpenError::InUse(_)), "{second:?}");
    let data = running.hub.data().unwrap().clone();
    let second = Hub::with_data(Epoch::from_bits(9), data.clone()).unwrap_err();
    assert!(matches!(second, OpenError::InUse(_)), "{second:?}");
    drop(running);
    let third = open(&machine.faults, machine.directory.path(), ALWAYS, 9).unwrap_err();
    assert!(matches!(third, OpenError::InUse(_)), "one who has it keeps it open");
    drop(data);
    machine.start(ALWAYS);
}

#[tokio::test]
async fn a_closed_directory_is_read_and_not_written() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish([1]).await.unwrap();
    running.hub.close().unwrap();
    running.hub.close().unwrap();
    assert_eq!(running.all(), [1]);
    assert_eq!(running.publish([2]).await, Err(PublishError::Closed));
    let created = running.hub.create("other".parse().unwrap(), Retention::default());
    assert_eq!(created.unwrap_err(), crate::CreateError::Closed);
}

#[tokio::test]
async fn closing_vouches_for_topics_that_nobody_has_any_more() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish([1, 2]).await.unwrap();
    let seen = running.head();
    let data = running.hub.data().unwrap().clone();
    drop(running);
    data.close().unwrap();
    machine.faults.crash(&machine.topic_directory(), |_| 0);
    let found = machine.start(LATER);
    assert_eq!((found.head(), found.all()), (seen, vec![1, 2]));
    drop(data);
}

#[tokio::test]
async fn another_format_is_not_touched() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish([1]).await.unwrap();
    running.hub.close().unwrap();
    for file in ["state.json", "topics/wind/topic.json"] {
        let path = machine.directory.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        for other in [1, 3] {
            let others = text.replace("\"format\": 2", &format!("\"format\": {other}"));
            assert_ne!(text, others);
            fs::write(&path, others).unwrap();
            let error = open(&machine.faults, machine.directory.path(), ALWAYS, 9).unwrap_err();
            assert!(matches!(error, OpenError::Format { known: 2, .. }), "{error:?}");
            assert!(error.to_string().contains("use the version that wrote it"), "{error}");
        }
        fs::write(&path, text).unwrap();
    }
    assert_eq!(machine.start(ALWAYS).all(), [1]);
}

#[tokio::test]
async fn a_note_is_kept_with_its_batch_and_outlives_it() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    let retention = Retention { age_max: Duration::from_secs(60), ..Retention::default() };
    let running = Running { topic: hub.create(wind(), retention).unwrap(), hub };
    let note = |running: &Running| running.topic.note().map(|note| note.as_str().to_owned());
    assert_eq!(note(&running), None);
    let mut lengths = Vec::new();
    for text in ["one", "two", "three"] {
        let batch = batch(at(1), [1, 2]).with_note(text.parse().unwrap());
        running.topic.publish_kept(at(1), &batch).await.unwrap();
        assert_eq!(note(&running).as_deref(), Some(text));
        running.publish([3]).await.unwrap();
        lengths.push(fs::metadata(&machine.segments()[0]).unwrap().len());
    }
    machine.faults.set(|faults| faults.next_write_fails = true);
    let refused = batch(at(1), [1]).with_note("four".parse().unwrap());
    running.topic.publish_kept(at(1), &refused).await.unwrap_err();
    assert_eq!(note(&running).as_deref(), Some("three"));
    // A write that was cut short: neither the batch nor its note.
    for (cut, expected) in [(0, "three"), (1, "three"), (40 + 1 + 1, "two")] {
        let mut after = machine.killed();
        let file = fs::OpenOptions::new().write(true).open(&after.segments()[0]).unwrap();
        file.set_len(lengths[2] - cut).unwrap();
        after.unmark(Position { offset: 0, ..running.head() });
        assert_eq!(note(&after.start(LATER)).as_deref(), Some(expected), "{cut} bytes");
    }
    // All events too old, and their segments gone, once after the other.
    running.publish(vec![4; 300]).await.unwrap();
    assert!(machine.segments().len() > 1);
    running.hub.data().unwrap().sweep(at(62));
    assert_eq!((running.all(), machine.segments().len()), (vec![], 1));
    assert_eq!(note(&running).as_deref(), Some("three"));
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("three"));
    assert_eq!(running.publish([5]).await, Ok(310));
    assert_eq!(machine.killed().start(LATER).all(), [5]);
}

#[tokio::test]
async fn a_note_without_a_batch_counts_until_a_batch_has_one() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    let note = |running: &Running| running.topic.note().map(|note| note.as_str().to_owned());
    let set = |text: &str| running.topic.set_note(text.parse().unwrap());
    set("begun").unwrap();
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("begun"));
    running.publish([1]).await.unwrap();
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("begun"));
    let batch = batch(at(1), [2]).with_note("two".parse().unwrap());
    running.topic.publish_kept(at(1), &batch).await.unwrap();
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("two"));
    set("elsewhere").unwrap();
    running.publish(vec![3; 300]).await.unwrap();
    assert_eq!(note(&running).as_deref(), Some("elsewhere"));
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("elsewhere"));
    machine.faults.set(|faults| faults.next_write_fails = true);
    set("kept later").unwrap_err();
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("elsewhere"));
    running.publish([4]).await.unwrap();
    assert_eq!(note(&machine.killed().start(LATER)).as_deref(), Some("kept later"));
}

#[tokio::test]
async fn a_deleted_topic_is_gone_from_the_disk_and_its_name_is_free() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish([1, 2]).await.unwrap();
    let seen = running.head();
    running.hub.delete(&wind()).unwrap();
    assert!(!machine.topic_directory().exists());
    let topic = running.hub.create(wind(), Retention::default()).unwrap();
    let again = Running { hub: running.hub.clone(), topic };
    again.publish([3, 4, 5]).await.unwrap();
    assert_ne!(again.head().epoch, seen.epoch);
    again.hub.delete(&wind()).unwrap();
    drop((running, again));
    assert!(machine.open(ALWAYS).topics().is_empty());
    assert!(!machine.directory.path().join("deleted").exists());
}

#[tokio::test]
async fn a_creation_that_was_cut_short_is_no_topic() {
    let mut machine = Machine::new();
    drop(machine.open(ALWAYS));
    fs::create_dir(machine.topic_directory()).unwrap();
    fs::create_dir(machine.directory.path().join("topics/not=a=topic")).unwrap();
    let hub = machine.open(ALWAYS);
    assert!(hub.topics().is_empty());
    let topic = hub.create(wind(), Retention::default()).unwrap();
    assert_eq!(Running { hub, topic }.publish([1]).await, Ok(1));
}

#[tokio::test]
async fn topics_in_memory_leave_nothing_on_the_disk() {
    let mut machine = Machine::new();
    let hub = machine.open(ALWAYS);
    let options = TopicOptions { storage: Storage::Memory, ..TopicOptions::default() };
    let topic = hub.create(wind(), options).unwrap();
    let running = Running { hub, topic };
    running.publish([1]).await.unwrap();
    assert!(!machine.topic_directory().exists());
}

#[tokio::test]
async fn retention_removes_files_and_what_is_left_is_what_is_found_again() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    let retention = Retention { events_max: 100, bytes_max: 1 << 20, ..Retention::default() };
    let topic = hub.create(wind(), retention).unwrap();
    let running = Running { hub, topic };
    for number in 0..1000 {
        running.publish([number]).await.unwrap();
        assert!(machine.segments().len() <= 4, "100 events and a segment of 64, one in removal");
    }
    let (first, all) = (running.topic.info(at(1)).first, running.all());
    assert_eq!((first, all.len()), (901, 100));
    running.hub.close().unwrap();
    let hub = machine.open(LATER);
    let running = Running { topic: hub.topic(&wind()).unwrap(), hub };
    assert_eq!((running.topic.info(at(1)).first, running.all()), (first, all));
}

#[tokio::test]
async fn a_quiet_topic_is_emptied_on_the_disk_too_and_keeps_its_place() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    let retention = Retention { age_max: Duration::from_secs(60), ..Retention::default() };
    let topic = hub.create(wind(), retention).unwrap();
    let running = Running { hub, topic };
    running.publish(1..=500).await.unwrap();
    for _ in 0..2 {
        running.hub.data().unwrap().sweep(at(62));
    }
    let files = machine.segments();
    assert_eq!(files.len(), 1);
    assert_eq!(fs::metadata(&files[0]).unwrap().len(), record::SEGMENT_HEADER_BYTES);
    let head = running.head();
    let mut after = machine.killed();
    let found = after.start(LATER);
    assert_eq!((found.head(), found.all()), (head, vec![]));
    assert_eq!(found.publish([7]).await, Ok(501));
    assert_eq!(running.publish([7]).await, Ok(501));
}

/// A batch of so many events, with a key or without.
fn batches() -> impl Strategy<Value = Vec<(u64, bool)>> {
    prop::collection::vec((1_u64..6, any::<bool>()), 1..60)
}

fn key(number: usize) -> IdempotencyKey {
    format!("key-{number}").parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A write that `kill -9` cuts short ends at any byte.
    #[test]
    fn a_cut_anywhere_in_the_last_segment_leaves_whole_batches_from_the_first_on(
        batches in batches(), cut in 0.0..=1.0_f64, junk in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut machine = Machine::new();
        let running = machine.start(LATER);
        // The end of each batch: its file, the length of the file, and the offset.
        let mut ends = vec![(0, 0, 0)];
        for (number, (events, with_key)) in batches.iter().enumerate() {
            let head = running.head().offset;
            let mut batch = batch(at(1), head + 1..=head + events);
            batch.key = with_key.then(|| key(number));
            runtime.block_on(running.topic.publish_kept(at(1), &batch)).unwrap();
            let files = machine.segments();
            let len = fs::metadata(files.last().unwrap()).unwrap().len();
            ends.push((files.len(), len, head + events));
        }
        let mut after = machine.killed();
        let files = after.segments();
        let len = fs::metadata(files.last().unwrap()).unwrap().len();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small file")]
        let cut = (len as f64 * cut) as u64;
        let file = fs::OpenOptions::new().write(true).open(files.last().unwrap()).unwrap();
        file.set_len(cut).unwrap();
        let whole = ends.iter().rev().find(|(file, len, _)| *file < files.len() || *len <= cut);
        let expected = whole.unwrap().2;
        after.unmark(Position { offset: expected, ..running.head() });

        let found = after.start(LATER);
        prop_assert_eq!(found.head(), Position { offset: expected, ..running.head() });
        prop_assert_eq!(found.all(), (1..=expected).collect::<Vec<_>>());
        // Publishing everything again keeps each batch once.
        for (number, (events, with_key)) in batches.iter().enumerate().filter(|(_, (_, key))| *key) {
            let was_kept = ends[number + 1].2 <= expected;
            let before = if was_kept { ends[number].2 } else { found.head().offset };
            let batch = batch(at(1), before + 1..=before + events).with_key(key(number));
            let published = runtime.block_on(found.topic.publish_kept(at(1), &batch)).unwrap();
            prop_assert_eq!(published.repeated, was_kept, "batch {} {}", number, with_key);
        }
        let all = found.all();
        prop_assert!(all.iter().copied().eq(1..=found.head().offset));
        drop(found);
        let again = after.start(if junk { ALWAYS } else { LATER });
        prop_assert_eq!(again.all(), all);
    }

    /// The log survives every partial loss of unflushed data in a crash of the machine.
    #[test]
    fn after_a_crash_the_log_is_a_prefix_and_with_always_it_is_whole(
        batches in batches(), always: bool, share in 0_u64..=10,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut machine = Machine::new();
        let options = if always { ALWAYS } else { LATER };
        let running = machine.start(options);
        for (events, _) in &batches {
            let head = running.head().offset;
            runtime.block_on(running.publish(head + 1..=head + events)).unwrap();
        }
        let seen = running.head();
        machine.faults.crash(&machine.topic_directory(), |lost| lost * share / 10);
        let mut after = machine.killed();
        let found = after.start(options);
        let all = found.all();
        prop_assert!(all.iter().copied().eq(1..=found.head().offset));
        prop_assert_eq!(found.head().epoch == seen.epoch, always);
        prop_assert!(!always || found.head() == seen);
    }
}

#[tokio::test]
async fn a_sweep_while_a_directory_is_opened_ends_no_epoch() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    for name in ["rain", "wind"] {
        let topic = hub.create(name.parse().unwrap(), Retention::default()).unwrap();
        topic.publish_kept(at(1), &batch(at(1), [1])).await.unwrap();
    }
    let heads = |hub: &Hub| hub.topics().iter().map(|it| it.info(at(1)).head).collect::<Vec<_>>();
    let before = heads(&hub);

    let killed = machine.killed();
    let faults = &killed.faults;
    // The first topic is found, and the second is not.
    faults.set(|faults| faults.flush_stalls_after = Some(1));
    let platform = Arc::new(faults.clone());
    let data = DataDir::open_on(platform, killed.directory.path().to_owned(), LATER).unwrap();
    let hub = std::thread::scope(|scope| {
        let opening = scope.spawn(|| Hub::with_data(Epoch::from_bits(77), data.clone()).unwrap());
        while !faults.get(|faults| faults.is_flush_waiting) {
            std::thread::yield_now();
        }
        data.sweep(at(10_000));
        faults.set(|faults| faults.flush_stalls_after = None);
        opening.join().unwrap()
    });
    assert_eq!(heads(&hub), before);
    assert_eq!(heads(&killed.killed().open(LATER)), before, "after a kill");
}
