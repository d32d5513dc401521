//! Damaged bytes.

use super::super::record::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use super::*;
use crate::testing::offsets;
use crate::{GapReason, ReadError};

/// A one-digit number's record.
const RECORD_BYTES: u64 = RECORD_HEADER_BYTES + 1;

/// Flips a bit in a file.
fn damage(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

/// The place of the record of this event, in a log of one-digit numbers in one segment.
fn record_at(offset: u64) -> u64 {
    SEGMENT_HEADER_BYTES + (offset - 1) * RECORD_BYTES
}

/// Reads all pages from the start. Returns the offsets, and the number of missing events before each gap's end.
fn read_all(running: &Running) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut seen, mut gaps) = (Vec::new(), Vec::new());
    let mut place = Position { offset: 0, ..running.head() };
    while place != running.head() {
        let page = running.topic.read(at(1), place, PageLimit::default()).unwrap();
        if let Some(gap) = &page.gap {
            assert_eq!(gap.reason, GapReason::Damaged);
            gaps.push((gap.missed.unwrap(), gap.resume.offset));
        }
        seen.extend(offsets(&page));
        place = page.next;
    }
    (seen, gaps)
}

#[tokio::test]
async fn a_damaged_record_is_a_gap_and_what_follows_is_there() {
    for closed in [true, false] {
        let mut machine = Machine::new();
        let running = machine.start(LATER);
        running.publish(vec![7; 9]).await.unwrap();
        let seen = running.head();
        if closed {
            running.hub.close().unwrap();
        }
        let mut after = machine.killed();
        damage(&after.segments()[0], record_at(4) + RECORD_HEADER_BYTES);
        damage(&after.segments()[0], record_at(5) + 10);
        let found = after.start(LATER);
        assert_eq!(found.head(), seen, "the epoch goes on: no position means another event");
        assert_eq!(read_all(&found), (vec![1, 2, 3, 6, 7, 8, 9], vec![(2, 5)]));
        assert_eq!(found.topic.health().damaged_events, 2);
        // It remains so, and new events come after it.
        assert_eq!(found.publish([8]).await, Ok(10));
        drop(found);
        let again = after.start(LATER);
        assert_eq!(read_all(&again), (vec![1, 2, 3, 6, 7, 8, 9, 10], vec![(2, 5)]));
    }
}

#[tokio::test]
async fn damage_that_is_met_while_reading_is_a_gap_too() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish(vec![7; 9]).await.unwrap();
    assert_eq!(read_all(&running).1, []);
    damage(&machine.segments()[0], record_at(4) + RECORD_HEADER_BYTES);
    assert_eq!(read_all(&running), (vec![1, 2, 3, 5, 6, 7, 8, 9], vec![(1, 4)]));
    assert_eq!(running.topic.health().damaged_events, 1);
    assert_eq!(running.publish([8]).await, Ok(10));
    assert_eq!(read_all(&running).0, [1, 2, 3, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn a_damaged_end_begins_a_new_epoch() {
    for closed in [true, false] {
        let mut machine = Machine::new();
        let running = machine.start(LATER);
        running.publish(vec![7; 9]).await.unwrap();
        let seen = running.head();
        if closed {
            running.hub.close().unwrap();
        }
        let mut after = machine.killed();
        damage(&after.segments()[0], record_at(9) + RECORD_HEADER_BYTES);
        let before = fs::read(&after.segments()[0]).unwrap();
        let found = after.start(LATER);
        assert_ne!(found.head().epoch, seen.epoch, "a reader may have seen event 9");
        assert_eq!(found.publish([8]).await, Ok(9));
        let page = found.topic.read(at(1), seen, PageLimit::default()).unwrap();
        assert_eq!(page.gap.clone().unwrap().reason, GapReason::Epoch);
        assert_eq!(numbers(&page), [7, 7, 7, 7, 7, 7, 7, 7, 8]);
        assert_eq!(fs::read(&after.segments()[0]).unwrap(), before, "the damaged file is kept");
        let epoch = found.head().epoch;
        drop(found);
        let again = after.start(LATER);
        assert_eq!((again.head().epoch, again.all().len()), (epoch, 9));
    }
}

#[tokio::test]
async fn after_a_crash_a_hole_in_what_was_not_flushed_ends_the_log() {
    for fsync in [Fsync::Always, LATER.fsync] {
        let mut machine = Machine::new();
        let running = machine.start(options(fsync));
        // Under way when the machine went: one write, nothing of it acknowledged, its parts on the disk
        // in any order.
        running.publish(vec![7; 9]).await.unwrap();
        let mut after = machine.killed();
        after.faults.set(|faults| faults.boots += 1);
        after.unmark(Position { offset: 0, ..running.head() });
        damage(&after.segments()[0], record_at(5) + RECORD_HEADER_BYTES);
        let found = after.start(options(fsync));
        // Five of nine of one batch are no batch.
        assert_eq!(found.head().offset, 0, "{fsync:?}");
        assert_eq!(found.publish([1, 2]).await, Ok(2));
        assert_eq!(found.all(), [1, 2]);
    }
}

#[tokio::test]
async fn after_a_crash_damage_in_what_was_flushed_does_not_end_the_log() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    for _ in 0..9 {
        running.publish([7]).await.unwrap();
    }
    let seen = running.head();
    let mut after = machine.killed();
    after.faults.set(|faults| faults.boots += 1);
    damage(&after.segments()[0], record_at(5) + RECORD_HEADER_BYTES);
    let found = after.start(ALWAYS);
    assert_eq!(found.head(), seen);
    assert_eq!(read_all(&found), (vec![1, 2, 3, 4, 6, 7, 8, 9], vec![(1, 5)]));
}

#[tokio::test]
async fn a_missing_segment_is_a_gap() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish(vec![7; 40]).await.unwrap();
    while machine.segments().len() < 3 {
        running.publish(vec![7; 40]).await.unwrap();
    }
    let head = running.head();
    running.hub.close().unwrap();
    fs::remove_file(&machine.segments()[1]).unwrap();
    let error = {
        let (mut place, limit) = (Position { offset: 0, ..head }, PageLimit::default());
        loop {
            match running.topic.read(at(1), place, limit) {
                Ok(page) if page.next != place => place = page.next,
                other => break other,
            }
        }
    };
    assert!(matches!(error, Err(ReadError::Storage(_))), "{error:?}");
    let found = machine.start(LATER);
    assert_eq!(found.head(), head);
    let (seen, gaps) = read_all(&found);
    assert_eq!(gaps.len(), 1);
    assert_eq!(seen.len() as u64 + gaps[0].0, head.offset);
}

/// Publishes in batches of this many until there are so many segments.
async fn fill(machine: &Machine, running: &Running, batch: usize, segments: usize) {
    while machine.segments().len() < segments {
        running.publish(vec![7; batch]).await.unwrap();
    }
}

fn set_aside(machine: &Machine) -> Vec<(String, Vec<u8>)> {
    let mut files = faulty::files_below(&machine.topic_directory());
    files.retain(|path| path.to_str().unwrap().contains(".damaged"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn a_damaged_first_segment_is_counted_from_its_base_told_and_set_aside() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    fill(&machine, &running, 20, 4).await;
    let head = running.head();
    let second = paths::segment_base(
        machine.segments()[1].file_name().and_then(|name| name.to_str()).unwrap(),
    );
    let lost = second.unwrap() - 1;
    running.hub.close().unwrap();
    let zeroed = vec![0; 4000];
    fs::write(&machine.segments()[0], &zeroed).unwrap();
    for start in 0..3 {
        let found = machine.start(LATER);
        assert_eq!(found.topic.health().damaged_events, lost, "start {start}");
        assert_eq!((found.head().epoch, found.topic.info(at(1)).first), (head.epoch, 1));
        assert_eq!(read_all(&found).1, [(lost, lost)]);
        found.publish([8]).await.unwrap();
        let name = format!("00000000000000000001-{lost:020}.damaged");
        assert_eq!(set_aside(&machine), [(name, zeroed.clone())]);
    }
    // It remains after retention has passed it, and is not reported again.
    let found = machine.start(LATER);
    let retention = Retention { events_max: 1, ..Retention::default() };
    let topic = found.hub.ensure(wind(), retention).unwrap();
    while topic.info(at(1)).first == 1 {
        found.publish([9]).await.unwrap();
    }
    assert_eq!(topic.health().damaged_events, 0);
    let position = Position { offset: 0, ..head };
    let gap = topic.read(at(1), position, PageLimit::default()).unwrap().gap.unwrap();
    assert_eq!(gap.reason, GapReason::Retention);
    // Files go with the next event.
    found.publish([9]).await.unwrap();
    drop((found, topic));
    assert_eq!(machine.start(LATER).topic.health().damaged_events, 0);
    assert_eq!(set_aside(&machine).len(), 1);
}

#[tokio::test]
async fn a_segment_with_damage_is_set_aside_when_retention_is_past_it() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    fill(&machine, &running, 20, 3).await;
    running.hub.close().unwrap();
    damage(&machine.segments()[0], record_at(4) + RECORD_HEADER_BYTES);
    let bytes = fs::read(&machine.segments()[0]).unwrap();
    let aside = ("00000000000000000001.damaged".to_owned(), bytes);
    for _ in 0..2 {
        let found = machine.start(LATER);
        assert_eq!((found.topic.health().damaged_events, set_aside(&machine).len()), (1, 0));
    }
    let found = machine.start(LATER);
    let retention = Retention { events_max: 1, ..Retention::default() };
    found.hub.ensure(wind(), retention).unwrap();
    found.publish([8]).await.unwrap();
    found.publish([9]).await.unwrap();
    drop(found);
    assert_eq!(set_aside(&machine), [aside]);
    assert_eq!(machine.start(LATER).topic.health().damaged_events, 0);
    // A name that is taken is left alone.
    let path = machine.topic_directory().join("00000000000000000001.damaged");
    assert_eq!(paths::free_path(&path), path.with_extension("damaged.2"));
}

#[tokio::test]
async fn two_segments_swapped_are_found_out() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    fill(&machine, &running, 20, 4).await;
    let head = running.head();
    running.hub.close().unwrap();
    let files = machine.segments();
    let third = paths::segment_base(files[2].file_name().unwrap().to_str().unwrap()).unwrap();
    let swap = machine.directory.path().join("swap");
    for (from, to) in [(&files[0], &swap), (&files[1], &files[0]), (&swap, &files[1])] {
        fs::rename(from, to).unwrap();
    }
    for _ in 0..2 {
        let found = machine.start(LATER);
        assert_eq!(found.head(), head);
        assert_eq!(read_all(&found).1, [(third - 1, third - 1)]);
        assert_eq!(found.topic.health().damaged_events, third - 1);
    }
    assert_eq!(set_aside(&machine).len(), 2);
}

#[tokio::test]
async fn two_segments_swapped_between_topics_are_found_out() {
    for closed in [true, false] {
        let mut machine = Machine::new();
        let running = machine.start(LATER);
        let rain = running.hub.ensure("rain".parse().unwrap(), Retention::default()).unwrap();
        running.publish(vec![7; 20]).await.unwrap();
        rain.publish_kept(at(1), &batch(at(1), vec![6; 20])).await.unwrap();
        let seen = running.head();
        if closed {
            running.hub.close().unwrap();
        }
        let mut after = machine.killed();
        let other = after.directory.path().join("topics/rain/00000000000000000001.log");
        let (one, two) = (fs::read(&other).unwrap(), fs::read(&after.segments()[0]).unwrap());
        fs::write(&other, &two).unwrap();
        fs::write(&after.segments()[0], &one).unwrap();
        let found = after.start(LATER);
        // It is the last segment, whose length is unknown.
        assert_ne!(found.head().epoch, seen.epoch);
        assert!(found.all().is_empty());
        assert_eq!(found.publish([8]).await, Ok(1));
        assert_eq!(set_aside(&after), [("00000000000000000001.damaged".to_owned(), one)]);
        assert_eq!(after.killed().start(LATER).all(), [8]);
    }
}

#[tokio::test]
async fn a_segment_under_another_name_hides_nothing() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    fill(&machine, &running, 20, 3).await;
    let head = running.head();
    running.hub.close().unwrap();
    let path = machine.topic_directory().join("00000000000000000003.log");
    fs::copy(&machine.segments()[1], path).unwrap();
    let found = machine.start(LATER);
    assert_eq!((found.head(), read_all(&found).1), (head, vec![]));
    assert_eq!(set_aside(&machine).len(), 1);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(80))]

    /// A reader gets only events that were written, and a position never means another event, wherever any file is
    /// overwritten, and however the log was left.
    #[test]
    fn no_damage_gives_a_reader_what_was_not_written(
        batches in proptest::collection::vec(1_u64..30, 1..20),
        file in 0_usize..9, place in 0.0..1.0_f64,
        garbage in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..300),
        left in 0..3,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut machine = Machine::new();
        let running = machine.start(if left == 0 { ALWAYS } else { LATER });
        let mut head = 0;
        for events in batches {
            head = runtime.block_on(running.publish(head + 1..=head + events)).unwrap();
        }
        let seen = running.head();
        if left == 1 {
            running.hub.close().unwrap();
        }
        let mut after = machine.killed();
        after.faults.set(|faults| faults.boots += u32::from(left == 2));
        let files = faulty::files_below(&after.topic_directory());
        let path = &files[file % files.len()];
        let mut bytes = fs::read(path).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small file")]
        let place = (bytes.len() as f64 * place) as usize;
        for (byte, garbage) in bytes[place..].iter_mut().zip(&garbage) {
            *byte = *garbage;
        }
        fs::write(path, bytes).unwrap();

        let Ok(hub) = open(&after.faults, after.directory.path(), LATER, 77) else {
            // Unless the damage writes another format there.
            proptest::prop_assert!(path.ends_with("topic.json"));
            return Ok(());
        };
        let topic = hub.ensure(wind(), Retention::default()).unwrap();
        let found = Running { hub, topic };
        let kept = found.head().offset;
        proptest::prop_assert!(kept <= head);
        let next = runtime.block_on(found.publish([1_000_000])).unwrap();
        proptest::prop_assert_eq!(next, kept + 1);
        proptest::prop_assert!(kept == head || found.head().epoch != seen.epoch);
        let mut place = Position { offset: 0, ..found.head() };
        while place != found.head() {
            let page = found.topic.read(at(1), place, PageLimit::default()).unwrap();
            for (event, number) in page.events.iter().zip(numbers(&page)) {
                let expected = if event.offset > kept { 1_000_000 } else { event.offset };
                proptest::prop_assert_eq!(number, expected);
            }
            let told = page.gap.clone().map_or(0, |gap| gap.missed.unwrap());
            proptest::prop_assert_eq!(place.offset + told + page.events.len() as u64, page.next.offset);
            place = page.next;
        }
        drop(found);
        let again = after.start(LATER);
        proptest::prop_assert_eq!(again.head().offset, next);
    }
}

#[tokio::test]
async fn any_single_flipped_bit_costs_one_event_at_most() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    for _ in 0..4 {
        running.publish([7]).await.unwrap();
    }
    let len = fs::metadata(&machine.segments()[0]).unwrap().len();
    for place in 0..len {
        let mut after = machine.killed();
        damage(&after.segments()[0], place);
        let found = after.start(LATER);
        let (seen, gaps) = read_all(&found);
        let lost = 4 - seen.len();
        assert!(lost <= 1, "byte {place}: {seen:?}");
        assert!(place < SEGMENT_HEADER_BYTES || lost == 1);
        let told = gaps.iter().map(|gap| gap.0).sum::<u64>() > 0;
        // At the very end, a new epoch shows it.
        let is_last = place >= record_at(4);
        assert_eq!(told, lost == 1 && !is_last, "byte {place}");
        let same_epoch = found.head().epoch == running.head().epoch;
        assert_eq!(!is_last, same_epoch, "byte {place}");
    }
}
