//! A disk that is full, read-only, slow, or does not flush.

use std::time::Instant;

use super::super::platform::{Platform as _, System};
use super::*;
use crate::error::Action;
use crate::{Data, ReadError, Start};

fn full(result: Result<impl std::fmt::Debug, PublishError>) -> bool {
    matches!(result.unwrap_err(), PublishError::StorageFull(_))
}

fn failed(result: Result<impl std::fmt::Debug, PublishError>) -> bool {
    matches!(result.unwrap_err(), PublishError::StorageFailed(_))
}

#[tokio::test]
async fn a_full_disk_refuses_what_it_cannot_keep_and_is_read_all_the_same() {
    for options in [ALWAYS, LATER] {
        let mut machine = Machine::new();
        let running = machine.start(options);
        running.publish([1, 2]).await.unwrap();
        assert_eq!(running.fault(), None);
        for room in [0, 1, 39, 40, 41, 60] {
            machine.faults.set(|faults| faults.room = Some(room));
            assert!(full(running.publish([3, 4, 5]).await), "{room} bytes left");
            assert_eq!(running.all(), [1, 2]);
            assert!(running.fault().unwrap().is_full());
            // Killed now, there is no trace of it either.
            assert_eq!(machine.killed().start(options).all(), [1, 2], "{room} bytes left");
        }
        machine.faults.set(|faults| faults.room = None);
        assert_eq!(running.publish([3]).await, Ok(3));
        assert_eq!((running.all(), running.fault()), (vec![1, 2, 3], None));
        assert_eq!(machine.killed().start(options).all(), [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_new_segment_that_does_not_fit_leaves_the_old_ones_as_they_are() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    let mut number = 0;
    while machine.segments().len() < 2 {
        number += 1;
        running.publish([number]).await.unwrap();
    }
    while machine.segments().len() < 4 {
        number += 1;
        machine.faults.set(|faults| faults.room = Some(20));
        assert!(full(running.publish([number]).await));
        assert_eq!(running.head().offset, number - 1);
        machine.faults.set(|faults| faults.room = None);
        assert_eq!(running.publish([number]).await, Ok(number));
    }
    assert_eq!(running.all(), (1..=number).collect::<Vec<_>>());
    assert_eq!(machine.killed().start(LATER).all(), running.all());
}

#[tokio::test]
async fn what_was_handed_over_behind_a_failed_batch_fails_too_and_comes_again_once() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish([1]).await.unwrap();
    machine.faults.set(|faults| faults.next_write_fails = true);
    let stall = machine.faults.stall();
    let topic = &running.topic;
    let with_key = batch(at(1), [2]).with_key("a".parse().unwrap());
    let first = topic.append(at(1), &with_key).unwrap();
    // The first is in the write that fails, the others wait behind it.
    stall.begun().await;
    let second = topic.append(at(1), &batch(at(1), [3])).unwrap();
    let repeated = topic.append(at(1), &with_key).unwrap();
    let third = topic.append(at(1), &batch(at(1), 4..9)).unwrap();
    drop(stall);
    for receipt in [first, second, repeated, third] {
        assert!(full(receipt.await));
    }
    let again = topic.publish_kept(at(1), &with_key).await.unwrap();
    assert_eq!((again.repeated, again.first.offset), (false, 2));
    assert_eq!(running.publish([3]).await, Ok(3));
    assert_eq!(running.all(), [1, 2, 3]);
    assert_eq!(machine.killed().start(LATER).all(), [1, 2, 3]);
}

#[tokio::test]
async fn a_read_only_disk_refuses_and_is_read() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish(1..=200).await.unwrap();
    machine.faults.set(|faults| faults.read_only = true);
    assert!(failed(running.publish([201]).await));
    let fault = running.fault().unwrap();
    assert_eq!((fault.kind(), fault.is_full()), (io::ErrorKind::ReadOnlyFilesystem, false));
    assert_eq!(running.all().len(), 200);
    let deleted = running.hub.delete(&wind());
    assert!(matches!(deleted, Err(crate::DeleteError::Storage { .. })), "{deleted:?}");
    assert_eq!(running.all().len(), 200, "what cannot be deleted stays");
    machine.faults.set(|faults| faults.read_only = false);
    assert_eq!(running.publish([201]).await, Ok(201));
    assert_eq!(running.fault(), None);
}

#[tokio::test]
async fn a_topic_whose_files_are_being_deleted_is_deleted_and_no_failure_of_the_disk() {
    // The deletion waits after the directory was moved away: before that is flushed, or before the files are removed.
    for stalls_after in [0, 1] {
        let mut machine = Machine::new();
        let Running { hub, topic } = machine.start(LATER);
        topic.publish_kept(at(1), &batch(at(1), 1..=200)).await.unwrap();
        let begin = topic.start(at(1), After::Earliest).unwrap();
        let read = || topic.read(at(1), begin, PageLimit::default());
        assert!(!read().unwrap().events.is_empty());
        machine.faults.set(|faults| faults.directory_stalls_after = Some(stalls_after));
        std::thread::scope(|scope| {
            let deletion = scope.spawn(|| hub.delete(&wind()));
            while !machine.faults.get(|faults| faults.is_directory_waiting) {
                std::thread::yield_now();
            }
            let found = (read(), topic.start(at(1), Start::Since(at(1))));
            let is_going_on = !deletion.is_finished();
            machine.faults.set(|faults| faults.directory_stalls_after = None);
            assert_eq!(found, (Err(ReadError::Deleted), Err(ReadError::Deleted)));
            assert!(is_going_on);
            assert_eq!(deletion.join().unwrap(), Ok(()));
        });
        let again = hub.create(wind(), Retention::default()).unwrap();
        assert_eq!(read(), Err(ReadError::Deleted), "the directory is another topic's");
        let begin = again.start(at(1), After::Earliest).unwrap();
        assert!(again.read(at(1), begin, PageLimit::default()).unwrap().events.is_empty());
    }
}

#[tokio::test]
async fn a_read_that_fails_is_told_as_such_and_so_is_one_after_a_deletion_that_failed() {
    let mut machine = Machine::new();
    let Running { hub, topic } = machine.start(LATER);
    topic.publish_kept(at(1), &batch(at(1), 1..=200)).await.unwrap();
    let begin = topic.start(at(1), After::Earliest).unwrap();
    let is_unread = || {
        let read = topic.read(at(1), begin, PageLimit::default());
        matches!(read, Err(ReadError::Storage(error)) if error.kind() == io::ErrorKind::NotFound)
    };
    fs::rename(machine.topic_directory(), machine.directory.path().join("elsewhere")).unwrap();
    assert!(is_unread());
    assert!(matches!(hub.delete(&wind()), Err(crate::DeleteError::Storage { .. })));
    assert!(is_unread());
    fs::rename(machine.directory.path().join("elsewhere"), machine.topic_directory()).unwrap();
    assert!(!is_unread());
}

#[tokio::test]
async fn a_read_only_disk_is_opened_and_read_and_written_to_once_it_can_be() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish(1..=200).await.unwrap();
    let seen = running.head();
    // Not closed, and the machine was started again: a new epoch begins, and cannot be noted down.
    let mut after = machine.killed();
    after.faults.set(|faults| {
        faults.boots += 1;
        faults.read_only = true;
    });
    let hub = after.open(LATER);
    let running = Running { topic: hub.topic(&wind()).unwrap(), hub };
    assert_eq!(running.all().len(), 200);
    let epoch = running.head().epoch;
    assert_ne!(epoch, seen.epoch);
    assert!(running.hub.data().unwrap().health().writing.is_some());
    assert!(failed(running.publish([201]).await));
    let created = running.hub.create("other".parse().unwrap(), Retention::default());
    assert!(matches!(created, Err(crate::CreateError::Storage { .. })), "{created:?}");
    after.faults.set(|faults| faults.read_only = false);
    assert_eq!(running.publish([201]).await, Ok(201));
    assert!(running.hub.data().unwrap().health().is_well());
    let found = after.killed().start(LATER);
    assert_eq!(found.head(), Position { epoch, offset: 201 });
}

#[tokio::test]
async fn what_a_failed_write_left_is_cut_off_before_the_next() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish([1]).await.unwrap();
    machine.faults.set(|faults| {
        faults.room = Some(20);
        faults.cut_fails = true;
    });
    assert!(full(running.publish([2]).await));
    machine.faults.set(|faults| faults.room = None);
    assert!(failed(running.publish([3]).await), "nothing is written behind what does not count");
    assert_eq!(machine.killed().start(LATER).all(), [1]);
    machine.faults.set(|faults| faults.cut_fails = false);
    assert_eq!(running.publish([4]).await, Ok(2));
    assert_eq!(machine.killed().start(LATER).all(), [1, 4]);
}

#[tokio::test]
async fn what_cannot_be_flushed_is_not_acknowledged_with_always() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    running.publish([1]).await.unwrap();
    machine.faults.set(|faults| faults.flush_fails = true);
    assert!(failed(running.publish([2]).await));
    assert_eq!(running.all(), [1]);
    assert_eq!(machine.killed().start(LATER).all(), [1]);
    machine.faults.set(|faults| faults.flush_fails = false);
    assert_eq!(running.publish([3]).await, Ok(2));
    assert_eq!((running.all(), running.fault()), (vec![1, 3], None));
    // A failed flush may have lost data, so the mark does not vouch for it.
    let epoch = running.head().epoch;
    running.hub.close().unwrap();
    machine.faults.set(|faults| faults.boots += 1);
    assert_eq!(machine.start(LATER).head().epoch, epoch, "with always nothing was");
}

#[tokio::test]
async fn a_flush_that_fails_later_stops_publishing_until_one_succeeds() {
    let mut machine = Machine::new();
    let running = machine.start(options(Fsync::Interval(Duration::ZERO)));
    machine.faults.set(|faults| faults.flush_fails = true);
    running.publish([1]).await.unwrap();
    while running.topic.health().is_well() {
        tokio::task::yield_now().await;
    }
    assert!(failed(running.publish([2]).await));
    assert_eq!(running.all(), [1]);
    machine.faults.set(|faults| faults.flush_fails = false);
    assert_eq!(running.publish([3]).await, Ok(2));
    let seen = running.head();
    running.hub.close().unwrap();
    machine.faults.set(|faults| faults.boots += 1);
    assert_ne!(machine.start(LATER).head().epoch, seen.epoch, "what it wrote may be gone");
}

#[tokio::test]
async fn a_directory_that_goes_under_a_log_is_noticed_by_the_next_write() {
    for options in [ALWAYS, LATER] {
        for below in ["topics/wind", "topics"] {
            let mut machine = Machine::new();
            let running = machine.start(options);
            running.publish([1, 2]).await.unwrap();
            let (path, away) =
                (machine.directory.path().join(below), machine.directory.path().join("away"));
            fs::rename(&path, &away).unwrap();
            for _ in 0..2 {
                assert!(failed(running.publish([3]).await), "{below}");
                assert_eq!(
                    running.fault().map(|fault| fault.kind()),
                    Some(io::ErrorKind::NotFound)
                );
            }
            // As of a disk that was unmounted and is mounted again.
            fs::rename(&away, &path).unwrap();
            assert_eq!(running.publish([3]).await, Ok(3));
            assert_eq!((running.fault(), running.all()), (None, vec![1, 2, 3]));
            assert_eq!(machine.killed().start(options).all(), [1, 2, 3]);
            fs::remove_dir_all(&path).unwrap();
            assert!(failed(running.publish([4]).await), "{below}");
            // One of the same name with other files in it is not the one that was.
            fs::create_dir_all(machine.topic_directory()).unwrap();
            assert!(failed(running.publish([4]).await), "{below}");
        }
    }
}

#[tokio::test]
async fn files_that_cannot_be_removed_are_removed_later() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    let retention = Retention { events_max: 64, ..Retention::default() };
    let topic = hub.create(wind(), retention).unwrap();
    let running = Running { hub, topic };
    machine.faults.set(|faults| faults.remove_fails = true);
    for number in 0..640 {
        running.publish([number]).await.unwrap();
    }
    assert!(machine.segments().len() >= 9);
    machine.faults.set(|faults| faults.remove_fails = false);
    running.publish([640]).await.unwrap();
    running.hub.close().unwrap();
    assert!(machine.segments().len() <= 3);
}

#[tokio::test]
async fn a_stalled_disk_blocks_nobody_for_ever_and_room_is_waited_for() {
    let mut machine = Machine::new();
    let running = machine.start(DataOptions { queue_bytes_max: 200, ..LATER });
    running.publish([1]).await.unwrap();
    let stall = machine.faults.stall();
    let one = batch(at(1), [2]);
    let mut receipts = vec![running.topic.append(at(1), &one).unwrap()];
    stall.begun().await;
    let busy = loop {
        match running.topic.append(at(1), &one) {
            Ok(receipt) => receipts.push(receipt),
            Err(error) => break error,
        }
    };
    assert!(matches!(busy, PublishError::Busy { bytes: 164, bytes_max: 200 }));
    assert_eq!(receipts.len(), 1 + 200 / 41, "one in the write, and as many as fit");
    assert_eq!(running.all(), [1]);

    // On the only thread of this runtime, too.
    let begun = Instant::now();
    let refused = running.topic.publish(at(1), Data::json(&3).unwrap());
    assert!(matches!(refused, Err(PublishError::Busy { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(30));

    let waiting = running.topic.publish_kept(at(1), &one);
    let (kept, ()) = tokio::join!(waiting, async { drop(stall) });
    assert_eq!(kept.unwrap().last.offset, receipts.len() as u64 + 2);
    for receipt in receipts {
        receipt.await.unwrap();
    }
}

#[tokio::test]
async fn a_publisher_that_waits_for_room_on_its_thread_goes_on_when_there_is() {
    let mut machine = Machine::new();
    let running = machine.start(DataOptions { queue_bytes_max: 100, ..LATER });
    for number in 1..=2000_u64 {
        running.topic.publish(at(1), Data::json(&number).unwrap()).unwrap();
    }
    running.hub.close().unwrap();
    assert_eq!(running.all().len(), 1000);
    assert_eq!(running.head().offset, 2000);
}

#[tokio::test]
async fn what_gathers_while_the_disk_is_busy_is_one_write_and_one_flush() {
    let mut machine = Machine::new();
    let running = machine.start(DataOptions { segment_bytes_max: 1 << 20, ..ALWAYS });
    running.publish([1]).await.unwrap();
    let stall = machine.faults.stall();
    let writes = || machine.faults.get(|faults| (faults.writes, faults.flushes));
    let (writes_before, flushes_before) = writes();
    let append = |number| running.topic.append(at(1), &batch(at(1), [number])).unwrap();
    let receipts: Vec<_> = (2..=101).map(append).collect();
    drop(stall);
    for receipt in receipts {
        receipt.await.unwrap();
    }
    let (writes_after, flushes_after) = writes();
    // Each is one of the segment and one of the mark.
    assert!(writes_after - writes_before <= 4, "{} writes", writes_after - writes_before);
    assert!(flushes_after - flushes_before <= 4);
}

#[tokio::test]
async fn closing_keeps_what_was_handed_over() {
    let mut machine = Machine::new();
    let running = machine.start(ALWAYS);
    let stall = machine.faults.stall();
    let append = |number| running.topic.append(at(1), &batch(at(1), [number])).unwrap();
    let receipts: Vec<_> = (1..=50).map(append).collect();
    drop(stall);
    running.hub.close().unwrap();
    for receipt in receipts {
        receipt.await.unwrap();
    }
    assert_eq!(machine.start(ALWAYS).all().len(), 50);
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_says_that_a_disk_is_full_as_we_expect_it() {
    let path = Path::new("/dev/full");
    let error = System.open(path).unwrap().write(&[0; 100], 0).unwrap_err();
    let error = PublishError::from(StorageError::new(Action::Write, path, error));
    assert!(matches!(error, PublishError::StorageFull(_)), "{error:?}");
}

/// A file system of less than 16 MiB, mounted for the test at the directory that this variable names.
const SMALL_DISK: &str = "ANEMONE_TEST_SMALL_DISK";

#[tokio::test]
async fn a_disk_that_is_really_full_loses_nothing_that_was_acknowledged() {
    let Some(directory) = std::env::var_os(SMALL_DISK).map(PathBuf::from) else { return };
    let path = directory.join("data");
    let open = |epoch| {
        let data = DataDir::open(&path, DataOptions { fsync: Fsync::Always, ..LATER }).unwrap();
        let hub = Hub::with_data(Epoch::from_bits(epoch), data).unwrap();
        let retention =
            Retention { events_max: u64::MAX, bytes_max: 1 << 40, ..Retention::default() };
        let topic = hub.ensure(wind(), retention).unwrap();
        Running { hub, topic }
    };
    let running = open(1);
    let mut kept = 0;
    let error = loop {
        match running.publish(kept + 1..=kept + 100).await {
            Ok(last) => kept = last,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PublishError::StorageFull(_)), "{error:?}");
    assert!(running.fault().unwrap().is_full());
    assert_eq!(running.head().offset, kept);
    assert_eq!(numbers(&running.read(kept - 5)).len(), 5);
    drop(running);
    let running = open(2);
    assert_eq!(running.head(), Position { epoch: Epoch::from_bits(1), offset: kept });
    fs::remove_file(super::super::paths::segment_path(&path.join("topics/wind"), 1)).unwrap();
    assert_eq!(running.publish([0]).await, Ok(kept + 1));
    drop(running);
    fs::remove_dir_all(path).unwrap();
}
