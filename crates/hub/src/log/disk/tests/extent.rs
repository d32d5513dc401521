//! The extent of a topic is known without the disk.

use super::*;
use crate::Start;

/// One event a second, so many that several files have them.
async fn publish_each_second(running: &Running, count: u64) {
    for number in 1..=count {
        running.topic.publish_kept(at(number), &batch(at(number), [number])).await.unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_disk_that_does_not_answer_holds_up_nobody_who_asks_what_a_topic_holds() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    let age_max = Duration::from_secs(3600);
    let topic = hub.create(wind(), Retention { age_max, ..Retention::default() }).unwrap();
    let running = Running { hub, topic };
    publish_each_second(&running, 600).await;
    let head = running.head();
    // Opening a pipe for reading waits until it is opened for writing.
    let (second, away) = (machine.segments()[1].clone(), machine.directory.path().join("away"));
    fs::rename(&second, &away).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&second).status().unwrap();
    assert!(made.success());

    // So late that all of the first file is too old, and some of the second: how much of it is to be read there.
    let later = at(3600 + 150);
    let topic = Arc::clone(&running.topic);
    let (told, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let starts = [After::Latest.into(), Start::Newest, After::Position(head).into()]
            .map(|after| topic.start(later, after).unwrap().offset);
        told.send((topic.info(later), starts, topic.lag(later, head))).unwrap();
    });
    let (info, starts, lag) = answer.recv_timeout(Duration::from_secs(90)).expect("an answer");
    assert_eq!((info.head, starts, lag), (head, [600, 599, 600], crate::Lag::default()));
    assert!((2..=150).contains(&info.first), "as far as it is known: {}", info.first);

    fs::remove_file(&second).unwrap();
    fs::rename(&away, &second).unwrap();
    let start = running.topic.start(later, After::Earliest).unwrap();
    assert_eq!(start.offset, 149, "reading goes on from here, so it is exact");
    let page = running.topic.read(later, start, PageLimit::default()).unwrap();
    assert_eq!((page.gap.clone(), page.first, running.topic.info(later).first), (None, 150, 150));
}

#[tokio::test]
async fn what_a_topic_holds_is_exact_once_it_is_opened_and_once_its_options_change() {
    let mut machine = Machine::new();
    let hub = machine.open(LATER);
    let options = |events_max| Retention { events_max, ..Retention::default() };
    let topic = hub.create(wind(), options(600)).unwrap();
    let running = Running { hub, topic };
    publish_each_second(&running, 900).await;
    assert_eq!(running.topic.info(at(900)).first, 301);
    running.hub.ensure(wind(), options(250)).unwrap();
    assert_eq!(running.topic.info(at(900)).first, 651);
    // The files are copied only once nothing removes any of them.
    running.hub.data().unwrap().sweep(at(900));
    let found = machine.killed().open(LATER).topic(&wind()).unwrap();
    assert_eq!(found.info(at(900)).first, 651);
}
