//! Positions of topics that are awaited, across ends of all kinds.

use super::*;
use crate::{GapReason, Storage, TopicOptions};

fn later() -> TopicName {
    "later".parse().unwrap()
}

/// Returns the position that a reader gets before the topic exists.
fn begin(hub: &Hub, storage: Storage) -> Position {
    let topic = hub.await_topic(&later(), storage, || Ok::<_, ()>(())).unwrap();
    topic.start(at(1), After::Latest).unwrap()
}

/// The page after that position, once the topic has an event.
async fn first_page(hub: &Hub, position: Position, storage: Storage) -> Page {
    let options = TopicOptions { storage, ..TopicOptions::default() };
    let topic = hub.create(later(), options).unwrap();
    topic.publish_kept(at(1), &batch(at(1), [1])).await.unwrap();
    topic.read(at(1), position, PageLimit::default()).unwrap()
}

#[tokio::test]
async fn a_position_of_a_topic_to_come_outlives_a_restart_and_a_kill() {
    for is_killed in [false, true] {
        let mut machine = Machine::new();
        let running = machine.start(LATER);
        running.publish([1]).await.unwrap();
        let files = |machine: &Machine| faulty::files_below(machine.directory.path());
        let before = files(&machine);
        let position = begin(&running.hub, Storage::Data);
        assert_eq!(files(&machine), before, "nothing is kept of it");
        let mut after = if is_killed { machine.killed() } else { machine };
        running.hub.close().unwrap();
        for _ in 0..3 {
            let hub = after.open(LATER);
            assert_eq!(begin(&hub, Storage::Data), position, "killed: {is_killed}");
            hub.close().unwrap();
        }
        let page = first_page(&after.open(LATER), position, Storage::Data).await;
        assert_eq!((page.gap.clone(), numbers(&page)), (None, vec![1]), "killed: {is_killed}");
    }
}

#[tokio::test]
async fn a_position_of_a_topic_in_memory_is_of_one_start_alone() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    let position = begin(&running.hub, Storage::Memory);
    let on_disk = running.hub.topic_or_none_yet(&"other".parse().unwrap(), Storage::Data);
    let on_disk = on_disk.start(at(1), After::Latest).unwrap();
    assert_ne!(position.epoch, on_disk.epoch, "one that is kept would seem to go on");
    running.hub.close().unwrap();
    let page = first_page(&machine.open(LATER), position, Storage::Memory).await;
    assert_eq!(page.gap.clone().unwrap().reason, GapReason::Epoch);
}

/// An end after which a topic that had events is not there, or is another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Deleted,
    /// Its directory was removed.
    Lost,
    /// Its directory was removed, and the machine crashed.
    Crashed,
    Copied,
}

#[tokio::test]
async fn a_topic_that_came_and_is_gone_never_has_its_epoch_again() {
    for end in [End::Deleted, End::Lost, End::Crashed, End::Copied] {
        for is_killed in [false, true] {
            let mut machine = Machine::new();
            let running = machine.start(LATER);
            let position = begin(&running.hub, Storage::Data);
            first_page(&running.hub, position, Storage::Data).await;
            if end == End::Deleted {
                running.hub.delete(&later()).unwrap();
            }
            let mut after = if is_killed { machine.killed() } else { machine };
            running.hub.close().unwrap();
            match end {
                End::Deleted => {}
                End::Lost | End::Crashed => {
                    fs::remove_dir_all(after.directory.path().join("topics/later")).unwrap();
                }
                End::Copied => after.faults.set(|faults| faults.copy += 1),
            }
            if end == End::Crashed {
                after.faults.set(|faults| faults.boots += 1);
            }
            let hub = after.open(LATER);
            let seen = Position { offset: 1, ..position };
            let page = match hub.topic(&later()) {
                Some(copy) => copy.read(at(1), seen, PageLimit::default()).unwrap(),
                None => first_page(&hub, seen, Storage::Data).await,
            };
            let reason = page.gap.clone().map(|gap| gap.reason);
            assert_eq!(reason, Some(GapReason::Epoch), "{end:?}, killed: {is_killed}");
        }
    }
}
