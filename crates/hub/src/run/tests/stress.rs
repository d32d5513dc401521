//! Many runs, watchers, starts and cancels at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{scope, spawn};

use super::*;
use crate::PageLimit;

async fn watch(run: &Run) -> Vec<(u64, String)> {
    let (topic, mut head) = (run.topic(), run.topic().head());
    let mut position = topic.start(UnixTime::now(), After::Earliest).unwrap();
    let limit = PageLimit { events_max: 3, ..PageLimit::default() };
    let mut seen = Vec::new();
    loop {
        head.passed(position).await;
        match topic.read(UnixTime::now(), position, limit) {
            Ok(page) => {
                assert_eq!(page.gap, None);
                let events = page.events.iter();
                seen.extend(events.map(|event| (event.offset, event.data.as_str().to_owned())));
                position = page.next;
            }
            Err(ReadError::Ended) => return seen,
            Err(error) => panic!("{error}"),
        }
    }
}

/// 2,500 runs with 4 watchers each.
#[test]
fn watchers_see_every_event_and_then_the_end_ten_thousand_times() {
    let runs = runs(RunLimits::default());
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let (send, receive) = mpsc::channel::<(usize, Arc<Run>)>();
            let watcher = spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let mut count = 0;
                for (partials, run) in receive {
                    let seen = runtime.block_on(watch(&run));
                    assert!(seen.iter().map(|(offset, _)| *offset).eq(1..=seen.len() as u64));
                    let told = seen.iter().filter(|(_, text)| text.starts_with(r#"{"partial":"#));
                    let is_done = seen.last().unwrap().1 == r#"{"state":"done","result":7}"#;
                    let is_cancelled = seen.last().unwrap().1 == r#"{"state":"cancelled"}"#;
                    assert!((is_done && told.count() == partials) || is_cancelled, "{seen:?}");
                    count += 1;
                }
                count
            });
            (send, watcher)
        })
        .collect();
    for number in 0..2_500 {
        let partials = number % 9;
        let run = start(&runs, move |run| {
            (0..partials).try_for_each(|number| run.partial(&Data::json(&number).unwrap()))?;
            Ok(Some(Data::json(&7).unwrap()))
        });
        for (send, _) in &watchers {
            send.send((partials, Arc::clone(&run))).unwrap();
        }
        if number % 3 == 0 {
            let _ = run.cancel();
        }
        until(|| runs.list(&[], 1_000).runs.iter().filter(|run| !run.has_ended()).count() < 100);
    }
    let counts = watchers.into_iter().map(|(send, watcher)| {
        drop(send);
        watcher.join().unwrap()
    });
    assert_eq!(counts.sum::<usize>(), 10_000);
}

#[test]
fn no_event_follows_a_cancel_while_the_work_publishes_on() {
    let runs = runs(RunLimits::default());
    for number in 0..500_u64 {
        let run = start(&runs, |run| {
            loop {
                run.partial(&Data::json(&1).unwrap())?;
                run.progress(0.5, Some("on"))?;
            }
        });
        until(|| run.topic().info(UnixTime::now()).head.offset > number % 50);
        run.cancel().unwrap();
        let head = run.topic().info(UnixTime::now()).head;
        assert_eq!(events(&run).pop().unwrap(), r#"{"state":"cancelled"}"#);
        assert_eq!(runs.list(&[], 1).runs[0].topic().info(UnixTime::now()).head, head);
    }
    assert_eq!(runs.stop(Duration::from_secs(60)), 0);
}

/// The work of number N: it returns, panics, waits for the end, or does not ask for a moment. Every other one is light.
fn work(number: usize, begun: Arc<AtomicUsize>) -> RunWork {
    let work = RunWork::new(move |run| {
        begun.fetch_add(1, Ordering::Relaxed);
        match number % 5 {
            0 => Ok(None),
            1 => std::panic::resume_unwind(Box::new("no hook, no noise")),
            2 => Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into()),
            3 => {
                std::thread::sleep(Duration::from_micros(300));
                Ok(None)
            }
            _ => Err(RunFailure::new("no")),
        }
    });
    if number.is_multiple_of(2) { work } else { work.light() }
}

#[test]
fn no_run_and_no_slot_is_lost_among_starts_and_cancels_at_once() {
    let limits = RunLimits { running_max: 3, queued_max: 10_000, ..RunLimits::default() };
    let runs = runs(limits);
    let begun = Arc::new(AtomicUsize::new(0));
    let all = std::sync::Mutex::new(Vec::new());
    scope(|scope| {
        for thread in 0..4 {
            let (runs, begun, all) = (&runs, &begun, &all);
            scope.spawn(move || {
                for number in 0..500 {
                    let start = StartRun::new("/test", work(number + thread, Arc::clone(begun)));
                    let run = runs.start(start).unwrap().run;
                    // Those that wait for the end need somebody who cancels.
                    if (number + thread) % 5 == 2 || number % 7 == 0 {
                        let _ = run.cancel();
                    }
                    all.lock().unwrap().push(run);
                }
            });
        }
    });
    let all = all.into_inner().unwrap();
    until(|| all.iter().all(|run| run.has_ended()));
    assert_eq!(runs.list(&[], usize::MAX).runs.len(), 2_000);
    let never = all.iter().filter(|run| run.status(Instant::now()).started.is_none()).count();
    assert_eq!(runs.stop(Duration::from_secs(60)), 0);
    assert_eq!(begun.load(Ordering::Relaxed) + never, 2_000, "each work begins once or never");
    let last = |run: &Arc<Run>| events(run).pop().unwrap();
    assert!(all.iter().all(|run| last(run).contains(r#"{"state":"#)));
}

#[test]
fn the_bytes_of_all_runs_are_those_of_each_whatever_happens_at_once() {
    let limits = RunLimits { running_max: 4, total_bytes_max: 300_000, ..RunLimits::default() };
    let runs = runs(limits);
    let work = |run: &RunContext| {
        (0..20).try_for_each(|_| run.partial(&Data::json(&"x".repeat(1_000)).unwrap()))?;
        run.keep_stderr(&[b'e'; 500]);
        Ok(Some(Data::json(&"y".repeat(2_000)).unwrap()))
    };
    for round in 0..200 {
        // The queue may take all memory for a moment.
        until(|| match runs.start(StartRun::new("/test", RunWork::new(work))) {
            Ok(started) => round % 4 > 0 || started.run.cancel().is_ok() || started.run.has_ended(),
            Err(StartError::MemoryFull) => false,
            Err(error) => panic!("{error}"),
        });
        // Each work that is running may just have counted what it is about to drop.
        assert!(runs.bytes() < 300_000 + 4 * 30_000, "{}", runs.bytes());
    }
    until(|| runs.list(&[], usize::MAX).runs.iter().all(|run| run.has_ended()));
    assert_eq!(runs.stop(Duration::from_secs(60)), 0);
    let each = runs.list(&[], usize::MAX).runs.iter().map(|run| run.counted_bytes()).sum::<u64>();
    assert_eq!(runs.bytes(), each);
    assert!(runs.bytes() <= 300_000);
}
