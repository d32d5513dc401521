//! The queue, its places and its limits, and starts that are repeated.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn one_at_once() -> Runs {
    runs(RunLimits { running_max: 1, ..RunLimits::default() })
}

fn places(runs: &[Arc<Run>]) -> Vec<Option<usize>> {
    runs.iter().map(|run| run.status(Instant::now()).place).collect()
}

fn owned(owner: u128) -> StartRun {
    let owner = Some(OwnerKey(owner));
    StartRun { owner, ..StartRun::new("/test", RunWork::new(|_| Ok(None))) }
}

fn input(body: &str) -> RunInput {
    RunInput { path: "/test".to_owned(), body: body.to_owned().into(), ..RunInput::default() }
}

fn keyed(key: &str, body: &str, work: RunWork) -> StartRun {
    let key = Some((key.parse().unwrap(), input(body).digest()));
    StartRun { key, ..StartRun::new("/test", work) }
}

#[test]
fn runs_wait_in_order_and_know_their_places() {
    let runs = one_at_once();
    let (first, go) = start_blocked(&runs);
    let queued: Vec<_> = (0..20).map(|_| start(&runs, |_| Ok(None))).collect();
    let all: Vec<_> = (0..20).map(Some).collect();
    assert_eq!(places(&queued), all);
    assert_eq!(events_so_far(&queued[12]), [r#"{"state":"queued","place":12}"#]);
    queued[3].cancel().unwrap();
    let after = places(&queued);
    assert_eq!((&after[..3], after[3], &after[4..]), (&all[..3], None, &all[3..19]));
    for run in &queued[4..9] {
        run.cancel().unwrap();
    }
    // Places from 10 on are in the state alone.
    let places = [12, 9, 8, 7, 6].map(|place| format!(r#"{{"state":"queued","place":{place}}}"#));
    assert_eq!(events_so_far(&queued[12]), [&places[..1], &places[1..]].concat());
    go.send(()).unwrap();
    until(|| queued.iter().all(|run| run.has_ended()));
    let started: Vec<_> =
        queued.iter().filter_map(|run| run.status(Instant::now()).started).collect();
    assert!(started.is_sorted() && started.len() == 14, "{started:?}");
    assert_eq!(state(&first), RunState::Done);
}

#[test]
fn a_long_queue_moves_without_a_look_at_those_who_are_not_next() {
    let limits = RunLimits {
        running_max: 1,
        queued_max: 2_000,
        queued_per_owner_max: 2_000,
        ..RunLimits::default()
    };
    for owners in [1, 7] {
        let runs = runs(limits);
        let (_first, go) = start_blocked(&runs);
        let queued: Vec<_> =
            (0..1_000).map(|number| runs.start(owned(number % owners)).unwrap().run).collect();
        let known = || -> Vec<_> {
            queued.iter().map(|run| run.known_place().map(|place| place.before)).collect()
        };
        let before = places(&queued);
        queued[0].cancel().unwrap();
        let changed = known().iter().zip(&before).filter(|(now, before)| now != before).count();
        assert!((1..=11).contains(&changed), "{changed} of 1,000 have learnt their places");
        // Whoever asks learns the right one if it is near, and else one that is right but for the last moves.
        let after: Vec<_> = places(&queued).into_iter().zip(before).collect();
        let mut near: Vec<_> =
            after.iter().filter_map(|(now, _)| now.filter(|now| *now < 100)).collect();
        near.sort_unstable();
        assert!(near.into_iter().eq(0..100));
        let moved = after.iter().filter_map(|(now, before)| Some(before.unwrap() - (*now)?));
        // One that was behind the one that left comes a turn of all owners earlier.
        assert!(moved.max().unwrap() <= owners as usize);
        // The next moves pay for a look at all.
        queued[1..20].iter().for_each(|run| run.cancel().unwrap());
        let mut told: Vec<_> = places(&queued).into_iter().flatten().collect();
        told.sort_unstable();
        assert!(told.into_iter().eq(0..980));
        assert_eq!(runs.stop(Duration::ZERO), 1);
        drop(go);
    }
}

fn events_so_far(run: &Run) -> Vec<String> {
    let (topic, now) = (run.topic(), UnixTime::now());
    let page = topic.read(now, topic.start(now, After::Earliest).unwrap(), Default::default());
    page.unwrap().events.iter().map(|event| event.data.as_str().to_owned()).collect()
}

#[test]
fn a_work_that_does_not_ask_keeps_its_slot_until_it_returns() {
    let runs = one_at_once();
    let (deaf, go) = start_blocked(&runs);
    let next = start(&runs, |_| Ok(None));
    deaf.cancel().unwrap();
    assert_eq!(state(&deaf), RunState::Cancelled);
    assert_eq!(next.status(Instant::now()).place, Some(0));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(state(&next), RunState::Queued);
    go.send(()).unwrap();
    until(|| next.has_ended());
    assert_eq!((state(&deaf), state(&next)), (RunState::Cancelled, RunState::Done));
}

#[test]
fn a_cancelled_run_in_the_queue_never_begins() {
    let runs = one_at_once();
    let (_first, go) = start_blocked(&runs);
    let held = Arc::new(());
    let of_work = Arc::clone(&held);
    let run = start(&runs, move |_| {
        drop(of_work);
        panic!("it begins");
    });
    run.cancel().unwrap();
    assert_eq!(Arc::strong_count(&held), 1, "the work is dropped at once");
    let last = start(&runs, |_| Ok(None));
    drop(go);
    until(|| last.has_ended());
    assert_eq!(events(&run), [r#"{"state":"queued","place":0}"#, r#"{"state":"cancelled"}"#]);
}

#[test]
fn the_queue_is_limited_for_all_and_for_each_owner() {
    let limits = RunLimits {
        running_max: 1,
        queued_max: 4,
        queued_per_owner_max: 2,
        ..RunLimits::default()
    };
    let runs = runs(limits);
    let (_first, go) = start_blocked(&runs);
    let mine: Vec<_> = (0..2).map(|_| runs.start(owned(1)).unwrap()).collect();
    assert!(matches!(runs.start(owned(1)), Err(StartError::OwnerQueueFull)));
    assert!(runs.start(StartRun { is_exempt: true, ..owned(1) }).is_ok());
    mine[0].run.cancel().unwrap();
    assert!(runs.start(owned(1)).is_ok());
    assert!(runs.start(owned(2)).is_ok());
    assert!(matches!(runs.start(owned(3)), Err(StartError::QueueFull)));
    assert_eq!(runs.list(&[], 100).runs.len(), 6, "a refused run is not listed");
    drop(go);
    until(|| runs.list(&[], 100).runs.iter().all(|run| run.has_ended()));
    assert!(runs.start(owned(3)).is_ok());
}

/// Starts a light work of this owner, which sleeps until its run has ended.
fn light(runs: &Runs, owner: u128) -> Result<Started, StartError> {
    let work = RunWork::new(|run| Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into()));
    runs.start(StartRun { work: work.light(), ..owned(owner) })
}

#[test]
fn light_works_and_those_that_compute_do_not_wait_for_each_other() {
    let runs = one_at_once();
    let asleep: Vec<_> = (0..RunWork::LIGHT_ONE_IN).map(|_| light(&runs, 1).unwrap().run).collect();
    assert!(asleep.iter().all(|run| state(run) == RunState::Running));
    let next = light(&runs, 1).unwrap().run;
    assert_eq!(
        next.status(Instant::now()).place,
        Some(0),
        "there are no more slots for light ones"
    );
    let done = start(&runs, |_| Ok(None));
    until(|| done.has_ended());
    let (first, go) = start_blocked(&runs);
    // The work that has ended its run returns its slot a moment later.
    until(|| state(&first) == RunState::Running);
    let waits = start(&runs, |_| Ok(None));
    assert_eq!(waits.status(Instant::now()).place, Some(0));
    asleep[0].cancel().unwrap();
    until(|| state(&next) == RunState::Running);
    assert_eq!(state(&waits), RunState::Queued, "the slot of a light work is for a light one");
    assert_eq!(runs.list(&[RunState::Running], 99).total, 17);
    drop(go);
    until(|| waits.has_ended());
    assert_eq!(runs.stop(Duration::from_secs(60)), 0);
    assert!(asleep.iter().all(|run| state(run) == RunState::Cancelled));
}

#[test]
fn light_works_that_wait_count_in_the_limits_of_the_queue() {
    let limits = RunLimits {
        running_max: 1,
        queued_max: 3,
        queued_per_owner_max: 2,
        ..RunLimits::default()
    };
    let runs = runs(limits);
    let (_first, _go) = start_blocked(&runs);
    for _ in 0..=RunWork::LIGHT_ONE_IN {
        light(&runs, 1).unwrap();
    }
    assert!(runs.start(owned(1)).is_ok());
    assert!(matches!(runs.start(owned(1)), Err(StartError::OwnerQueueFull)));
    assert!(matches!(light(&runs, 1), Err(StartError::OwnerQueueFull)));
    assert!(light(&runs, 2).is_ok());
    assert!(matches!(light(&runs, 3), Err(StartError::QueueFull)));
    assert!(matches!(runs.start(owned(3)), Err(StartError::QueueFull)));
}

#[test]
fn a_hundred_runs_of_one_owner_delay_the_first_of_another_by_one_at_most() {
    for running_max in [1, 2, 3] {
        let runs = runs(RunLimits { running_max, ..RunLimits::default() });
        let (begun, order) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let start = |owner| {
            let (begun, wait) = (begun.clone(), Arc::clone(&wait));
            let work = RunWork::new(move |_| {
                begun.send(owner).unwrap();
                let _ = wait.lock().unwrap().recv();
                Ok(None)
            });
            runs.start(StartRun { work, ..owned(owner) }).unwrap().run
        };
        let greedy: Vec<_> = (0..100 + running_max).map(|_| start(1)).collect();
        (0..running_max).for_each(|_| assert_eq!(order.recv(), Ok(1)));
        let first = start(2);
        assert_eq!(first.status(Instant::now()).place, Some(0));
        assert_eq!(greedy.last().unwrap().status(Instant::now()).place, Some(100));
        go.send(()).unwrap();
        assert_eq!(order.recv(), Ok(2), "the first slot that comes free is for the other owner");
        drop(go);
        until(|| greedy.iter().chain([&first]).all(|run| run.has_ended()));
    }
}

#[test]
fn a_repeated_start_gets_the_same_run_whoever_is_first() {
    for _ in 0..100 {
        let runs = runs(RunLimits::default());
        let (barrier, count) = (Arc::new(Barrier::new(8)), Arc::new(AtomicUsize::new(0)));
        let starts: Vec<_> = (0..8)
            .map(|_| {
                let (runs, barrier, count) =
                    (runs.clone(), Arc::clone(&barrier), Arc::clone(&count));
                std::thread::spawn(move || {
                    let work = RunWork::new(move |_| {
                        count.fetch_add(1, Ordering::Relaxed);
                        Ok(None)
                    });
                    barrier.wait();
                    runs.start(keyed("a", "1", work)).unwrap()
                })
            })
            .collect();
        let started: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
        assert_eq!(started.iter().filter(|started| !started.is_replayed).count(), 1);
        assert!(started.iter().all(|other| Arc::ptr_eq(&other.run, &started[0].run)));
        until(|| started[0].run.has_ended());
        assert_eq!(runs.stop(Duration::from_secs(60)), 0);
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_key_with_another_input_is_refused_and_another_service_has_its_own() {
    let runs = runs(RunLimits::default());
    let nothing = || RunWork::new(|_| Ok(None));
    let first = runs.start(keyed("a", "1", nothing())).unwrap().run;
    let other = runs.start(keyed("a", "2", nothing()));
    assert!(matches!(other, Err(StartError::KeyReused)));
    let elsewhere = StartRun { service: "/else".to_owned(), ..keyed("a", "2", nothing()) };
    assert!(!runs.start(elsewhere).unwrap().is_replayed);
    until(|| first.has_ended());
    let again = runs.start(keyed("a", "1", nothing())).unwrap();
    assert!(again.is_replayed && Arc::ptr_eq(&again.run, &first), "also after the end");
}

#[test]
fn the_key_of_another_owner_is_another_key() {
    let runs = runs(RunLimits::default());
    let start = |owner, is_exempt, body| {
        let nothing = RunWork::new(|_| Ok(None));
        let owner = Some(OwnerKey(owner));
        runs.start(StartRun { owner, is_exempt, ..keyed("a", body, nothing) }).unwrap()
    };
    let first = start(1, false, "1");
    assert!(!start(2, false, "1").is_replayed, "it would tell the key of another's run");
    assert!(!start(3, false, "2").is_replayed, "nor is it known that another used it");
    let local = start(1, true, "1");
    assert!(!local.is_replayed);
    assert!(Arc::ptr_eq(&start(4, true, "1").run, &local.run), "exempt clients are one owner");
    let again = start(1, false, "1");
    assert!(again.is_replayed && Arc::ptr_eq(&again.run, &first.run));
}

#[test]
fn an_input_is_told_apart_by_path_query_and_body() {
    let digest = |path: &str, query: Option<&str>, kind: Option<&str>, body: &'static str| {
        let [query, content_type] = [query, kind].map(|text| text.map(str::to_owned));
        RunInput { path: path.to_owned(), query, content_type, body: body.into() }.digest()
    };
    let own = digest("/a", Some("b"), None, "c");
    assert_eq!(own, digest("/a", Some("b"), Some("text/plain"), "c"));
    for other in [
        digest("/ab", None, None, "c"),
        digest("/a", None, None, "bc"),
        digest("/a", Some("bc"), None, ""),
        digest("/a", Some("b"), None, "d"),
    ] {
        assert_ne!(own, other);
    }
}
