//! Topics that share the bytes of a directory, across ends of the process.

use super::*;

const KIB: u64 = 1 << 10;

fn sharing(bytes_max: u64) -> DataOptions {
    DataOptions { bytes_max, ..LATER }
}

fn topic(hub: &Hub, name: &str) -> Arc<Topic> {
    hub.ensure(name.parse().unwrap(), Retention::default()).unwrap()
}

async fn publish(topic: &Topic, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        // A hundred and some bytes on the disk.
        let number = 1_000_000_000_000_000 + number;
        topic.publish_kept(at(1), &batch(at(1), [number, number])).await.unwrap();
    }
}

/// Returns the number of events, all up to the head without a gap after the first.
fn kept(topic: &Topic) -> u64 {
    let (mut place, mut count) = (topic.start(at(1), After::Earliest).unwrap(), 0);
    loop {
        let page = topic.read(at(1), place, PageLimit::default()).unwrap();
        assert_eq!(page.gap, None);
        if page.events.is_empty() {
            assert_eq!(place, topic.info(at(1)).head);
            return count;
        }
        count += page.events.len() as u64;
        place = page.next;
    }
}

fn bytes_of_files(machine: &Machine) -> u64 {
    let files = faulty::files_below(&machine.directory.path().join("topics"));
    files.iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

#[tokio::test]
async fn the_files_of_all_topics_stay_within_what_they_share_and_an_eighth() {
    let mut machine = Machine::new();
    let hub = machine.open(sharing(400 * KIB));
    let quiet = topic(&hub, "quiet");
    publish(&quiet, 0..200).await;
    for name in ["a", "b", "c"] {
        publish(&topic(&hub, name), 0..3000).await;
        let files = bytes_of_files(&machine);
        assert!(files <= 400 * KIB * 9 / 8 + 8 * KIB, "{files}");
    }
    assert_eq!(kept(&quiet), 400);
}

#[tokio::test]
async fn after_a_kill_and_with_fewer_bytes_to_share_the_largest_evict_and_nobody_loses_its_end() {
    let mut machine = Machine::new();
    let hub = machine.open(sharing(400 * KIB));
    let all = ["small", "large", "huge"].map(|name| topic(&hub, name));
    for (topic, count) in all.iter().zip([100, 800, 1800]) {
        publish(topic, 0..count).await;
    }
    let before = all.each_ref().map(|topic| (topic.info(at(1)).head, kept(topic)));
    // Nothing removes files while they are copied.
    hub.close().unwrap();
    for bytes_max in [400 * KIB, 150 * KIB, 20 * KIB] {
        let mut after = machine.killed();
        let hub = after.open(sharing(bytes_max));
        let found = ["small", "large", "huge"].map(|name| topic(&hub, name));
        let heads = found.each_ref().map(|topic| topic.info(at(1)).head);
        assert_eq!(heads, before.map(|(head, _)| head));
        let counts = found.each_ref().map(|topic| kept(topic));
        let bytes: u64 = found.iter().map(|topic| topic.info(at(1)).bytes).sum();
        assert!(bytes <= bytes_max, "{bytes} of {bytes_max}");
        let files = bytes_of_files(&after);
        assert!(files <= bytes_max * 9 / 8 + 16 * KIB, "{files} of {bytes_max}");
        match bytes_max / KIB {
            400 => assert_eq!(counts, before.map(|(_, count)| count)),
            150 => assert!(counts[0] == 200 && counts[1].abs_diff(counts[2]) <= 2, "{counts:?}"),
            _ => assert!(counts.iter().all(|count| *count >= 80), "{counts:?}"),
        }
        publish(&found[0], 0..10).await;
        assert!(kept(&found[0]) >= 20);
    }
}

#[tokio::test]
async fn a_topic_without_limits_still_has_none_after_a_restart() {
    let mut machine = Machine::new();
    let running = machine.start(LATER);
    running.publish(1..=1000).await.unwrap();
    running.hub.close().unwrap();
    let hub = machine.open(LATER);
    let found = hub.topic(&wind()).unwrap();
    let keeps = found.keeps().unwrap().to_string();
    assert_eq!(keeps, "what fits in 1 GiB shared by all topics");
    assert_eq!(kept(&found), 1000);
}
