//! The retention of runs, and the limits on their memory.

use super::*;
use crate::{GapReason, PageLimit, Position};

fn big(bytes: usize) -> Data {
    Data::json(&"x".repeat(bytes)).unwrap()
}

/// Starts a run with a result of this size, and waits for its end.
fn done(runs: &Runs, bytes: usize) -> Arc<Run> {
    let others = runs.running();
    let run = start(runs, move |_| Ok(Some(big(bytes))));
    // Its bytes are counted a moment after its end.
    until(|| run.has_ended() && runs.running() <= others);
    run
}

fn is_kept(runs: &Runs, run: &Run) -> bool {
    runs.get(&run.key().to_string()).is_some()
}

#[test]
fn a_run_is_forgotten_after_its_time_and_its_readers_are_told() {
    let runs = runs(RunLimits { retention: Duration::from_millis(50), ..RunLimits::default() });
    let run = done(&runs, 10);
    assert!(runs.bytes() > 0);
    // Nobody asks: the thread that looks at the time does it.
    until(|| runs.bytes() == 0 && run.topic().bytes(UnixTime::now()) == 0);
    assert!(!is_kept(&runs, &run));
    assert_eq!(runs.list(&[], 9).runs.len(), 0);
    let end = run.topic().info(UnixTime::now()).head;
    let read = |offset| {
        run.topic().read(UnixTime::now(), Position { offset, ..end }, PageLimit::default())
    };
    assert_eq!(read(end.offset - 1), Err(ReadError::Deleted));
    assert_eq!(read(end.offset), Err(ReadError::Ended), "this reader has all of it");
}

#[test]
fn a_run_that_has_not_ended_is_kept_however_long_it_takes() {
    let runs = runs(RunLimits { retention: Duration::ZERO, ..RunLimits::default() });
    let (run, go) = start_blocked(&runs);
    let ended = done(&runs, 10);
    until(|| !is_kept(&runs, &ended));
    assert!(is_kept(&runs, &run));
    drop(go);
    until(|| !is_kept(&runs, &run));
}

#[test]
fn the_runs_that_ended_first_go_first_when_memory_is_short() {
    // A result takes its bytes twice: in the state and in the last event.
    let runs = runs(RunLimits { total_bytes_max: 100_000, ..RunLimits::default() });
    let kept: Vec<_> = (0..5).map(|_| done(&runs, 10_000)).collect();
    // A run is counted a moment after its end.
    until(|| !is_kept(&runs, &kept[0]));
    assert!(kept[1..].iter().all(|run| is_kept(&runs, run)) && runs.bytes() <= 100_000);
    let newest = done(&runs, 45_000);
    until(|| !kept.iter().any(|run| is_kept(&runs, run)));
    assert!(is_kept(&runs, &newest));
}

#[test]
fn a_run_that_grows_beyond_what_is_left_loses_its_oldest_events() {
    let runs = runs(RunLimits { running_max: 2, total_bytes_max: 200_000, ..RunLimits::default() });
    let other = start(&runs, |run| {
        run.partial(&big(50_000))?;
        Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into())
    });
    // An event is counted a moment after it is there.
    until(|| runs.bytes() > 50_000);
    let all = runs.clone();
    let run = start(&runs, move |run| {
        for _ in 0..100 {
            run.partial(&big(10_000))?;
            assert!(all.bytes() <= 200_000, "{}", all.bytes());
        }
        Ok(None)
    });
    until(|| run.has_ended());
    assert_eq!(state(&run), RunState::Done);
    let (topic, now) = (run.topic(), UnixTime::now());
    let begin = topic.info(now).head.at(0);
    let page = topic.read(now, begin, Default::default()).unwrap();
    let gap = page.gap.unwrap();
    assert_eq!(gap.reason, GapReason::Retention);
    assert!(gap.missed.unwrap() + page.events.len() as u64 == 102 && page.events.len() > 10);
    assert!(page.is_last);
    let page = other.topic().read(now, other.topic().info(now).head.at(0), Default::default());
    assert_eq!(page.unwrap().gap, None, "the other run keeps its events");
    other.cancel().unwrap();
}

#[test]
fn a_run_keeps_as_many_events_as_it_may_with_its_last_one() {
    let runs = runs(RunLimits { events_max: 10, ..RunLimits::default() });
    let run = start(&runs, |run| {
        (0..100).try_for_each(|number| run.partial(&Data::json(&number).unwrap()))?;
        Ok(None)
    });
    until(|| run.has_ended());
    let kept = events(&run);
    assert_eq!((kept.len(), kept[0].as_str()), (10, r#"{"partial":91}"#));
}

#[test]
fn partial_results_that_come_together_are_kept_like_those_that_come_one_by_one() {
    let limits = RunLimits { events_max: 1_000, bytes_max: 10_000, ..RunLimits::default() };
    let of = |together: usize| {
        let runs = runs(limits);
        let run = start(&runs, move |run| {
            let values: Vec<_> =
                (0..30).map(|n| Data::json(&(n, "x".repeat(300))).unwrap()).collect();
            assert_eq!(run.partials(&[]), Ok(()));
            values.chunks(together).try_for_each(|values| run.partials(values))?;
            Ok(None)
        });
        until(|| run.has_ended());
        events(&run)
    };
    // All thirty are more than the run keeps, and seven are not.
    let alone = of(1);
    assert!(alone[0].starts_with("{\"partial\":[") && alone.len() < 30, "{alone:?}");
    assert_eq!((of(7), of(30)), (alone.clone(), alone));
}

#[test]
fn what_is_larger_than_a_run_may_keep_is_a_failure_in_words() {
    let runs = runs(RunLimits { bytes_max: 10_000, ..RunLimits::default() });
    let partial = start(&runs, |run| {
        assert_eq!(run.partial(&big(10_000)), Err(Stopped::Ended));
        Ok(None)
    });
    let result = done(&runs, 10_000);
    until(|| partial.has_ended());
    for (run, words) in
        [(partial, "a partial result needs 10"), (result, "the result has 10002 bytes")]
    {
        let last = events(&run).pop().unwrap();
        assert!(last.contains("run-failed") && last.contains(words), "{last}");
    }
}

#[test]
fn a_result_pushes_out_none_of_the_events_before_it_by_its_bytes() {
    let runs = runs(RunLimits { bytes_max: 10_000, ..RunLimits::default() });
    let run = start(&runs, |run| {
        run.partial(&Data::json("the beginning").unwrap())?;
        run.partial(&big(9_000))?;
        Ok(Some(big(9_000)))
    });
    until(|| run.has_ended());
    assert_eq!(events(&run)[1], r#"{"partial":"the beginning"}"#);
    // What the state and the last event have, and what came before.
    until(|| runs.bytes() > 27_000);
}

#[test]
fn no_run_starts_when_those_that_go_on_take_all_memory() {
    let runs = runs(RunLimits { running_max: 1, total_bytes_max: 100_000, ..RunLimits::default() });
    let ended = done(&runs, 10_000);
    let (_first, go) = start_blocked(&runs);
    let held = |held_bytes| {
        runs.start(StartRun { held_bytes, ..StartRun::new("/test", RunWork::new(|_| Ok(None))) })
    };
    let queued = held(80_000).unwrap().run;
    assert!(!is_kept(&runs, &ended), "an ended run makes room");
    let before = runs.bytes();
    assert!(matches!(held(80_000), Err(StartError::MemoryFull)));
    assert_eq!(runs.bytes(), before, "a refused run leaves nothing");
    queued.cancel().unwrap();
    assert!(runs.bytes() < 20_000, "the input of a cancelled run is dropped");
    let queued = held(80_000).unwrap().run;
    drop(go);
    // Its input is dropped once it is done.
    until(|| queued.has_ended() && runs.bytes() < 20_000);
}

/// Starts a run of this owner with a result of this size, and waits for its end.
fn done_of(runs: &Runs, owner: u128, bytes: usize) -> Arc<Run> {
    let work = RunWork::new(move |_| Ok(Some(big(bytes))));
    let run = runs.start(StartRun { owner: Some(OwnerKey(owner)), ..StartRun::new("/test", work) });
    let run = run.unwrap().run;
    until(|| run.has_ended() && runs.running() == 0);
    run
}

#[test]
fn the_results_of_one_owner_do_not_push_out_those_of_another() {
    let runs = runs(RunLimits { total_bytes_max: 200_000, ..RunLimits::default() });
    let modest = done_of(&runs, 1, 10_000);
    let greedy: Vec<_> = (0..300).map(|_| done_of(&runs, 2, 2_000)).collect();
    assert!(is_kept(&runs, &modest) && runs.bytes() <= 200_000);
    let kept = greedy.iter().position(|run| is_kept(&runs, run)).unwrap();
    assert!(kept > 250 && kept < 290, "{kept}");
    assert!(greedy[kept..].iter().all(|run| is_kept(&runs, run)), "its oldest go first");
}

#[test]
fn a_run_that_grows_loses_its_own_events_before_another_owner_loses_a_result() {
    let runs = runs(RunLimits { total_bytes_max: 200_000, ..RunLimits::default() });
    let modest = done_of(&runs, 1, 10_000);
    let work = RunWork::new(|run| {
        (0..100).try_for_each(|_| run.partial(&big(10_000)))?;
        Ok(None)
    });
    let greedy = runs.start(StartRun { owner: Some(OwnerKey(2)), ..StartRun::new("/test", work) });
    let greedy = greedy.unwrap().run;
    until(|| greedy.has_ended() && runs.running() == 0);
    assert_eq!(state(&greedy), RunState::Done);
    assert!(is_kept(&runs, &modest) && runs.bytes() <= 200_000);
    let (topic, now) = (greedy.topic(), UnixTime::now());
    let page = topic.read(now, topic.info(now).head.at(0), Default::default()).unwrap();
    assert!(page.events.len() > 10 && page.gap.is_some());
}

#[test]
fn of_two_owners_the_one_with_a_byte_more_makes_room() {
    for (first, second, kept) in [(10_000, 10_001, [true, false]), (10_001, 10_000, [false, true])]
    {
        let runs = runs(RunLimits { total_bytes_max: 60_000, ..RunLimits::default() });
        let ended = [done_of(&runs, 1, first), done_of(&runs, 2, second)];
        assert!(ended.iter().all(|run| is_kept(&runs, run)), "{}", runs.bytes());
        let newest = done_of(&runs, 3, 8_000);
        assert_eq!(ended.each_ref().map(|run| is_kept(&runs, run)), kept);
        assert!(is_kept(&runs, &newest));
    }
}

fn grown_of(runs: &Runs, owner: u128, bytes: usize) -> Arc<Run> {
    let (told, grown) = mpsc::channel();
    let work = RunWork::new(move |run| {
        (0..bytes / 5_000).try_for_each(|_| run.partial(&big(5_000)))?;
        told.send(()).unwrap();
        Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into())
    });
    let run = runs.start(StartRun { owner: Some(OwnerKey(owner)), ..StartRun::new("/test", work) });
    grown.recv().unwrap();
    run.unwrap().run
}

#[test]
fn an_owner_whose_runs_all_grow_makes_room_before_those_who_have_less() {
    let limits = RunLimits { running_max: 4, total_bytes_max: 300_000, ..RunLimits::default() };
    let runs = runs(limits);
    let modest = done_of(&runs, 1, 10_000);
    let greedy = [100_000, 400_000].map(|bytes| grown_of(&runs, 2, bytes));
    let first = |run: &Run| run.topic().info(UnixTime::now()).first;
    let before = greedy.iter().map(|run| first(run)).sum::<u64>();
    for owner in 3..9 {
        let work = RunWork::new(|_| Ok(Some(big(8_000))));
        let start = StartRun { owner: Some(OwnerKey(owner)), ..StartRun::new("/test", work) };
        let run = runs.start(start).unwrap().run;
        until(|| run.has_ended() && runs.running() == 2);
        assert!(is_kept(&runs, &modest) && is_kept(&runs, &run), "{owner}");
    }
    assert!(runs.bytes() <= 300_000, "{}", runs.bytes());
    assert!(greedy.iter().map(|run| first(run)).sum::<u64>() >= before + 15);
    greedy.iter().for_each(|run| run.cancel().unwrap());
}

#[test]
fn the_inputs_of_one_owner_leave_most_of_the_memory_to_the_others() {
    let runs = runs(RunLimits { running_max: 1, total_bytes_max: 410_000, ..RunLimits::default() });
    let modest = done_of(&runs, 1, 10_000);
    let (_first, go) = start_blocked(&runs);
    let held = |owner, held_bytes| {
        let start = StartRun::new("/test", RunWork::new(|_| Ok(None)));
        runs.start(StartRun { owner: Some(OwnerKey(owner)), held_bytes, ..start })
    };
    let admitted = |owner| (0..40).filter(|_| held(owner, 10_000).is_ok()).count();
    assert_eq!([2, 3, 4].map(admitted), [10, 7, 5], "a quarter of what the others leave");
    assert!(matches!(held(2, 10_000), Err(StartError::OwnerMemoryFull)));
    assert!(held(2, 0).is_ok() && held(5, 50_000).is_ok(), "one input of any size");
    assert!(is_kept(&runs, &modest), "nobody else has lost a result");
    let exempt =
        StartRun { held_bytes: 60_000, ..StartRun::new("/test", RunWork::new(|_| Ok(None))) };
    assert!(runs.start(exempt).is_ok());
    drop(go);
    until(|| runs.list(&[], 99).runs.iter().all(|run| run.has_ended()) && runs.running() == 0);
    assert!(held(2, 10_000).is_ok());
}
