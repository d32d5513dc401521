//! Runs from the start to the end, with real threads.

mod keeping;
mod stress;
mod waiting;

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::*;
use crate::{After, Data, Page, ReadError, UnixTime};

fn runs(limits: RunLimits) -> Runs {
    Runs::new(limits)
}

fn start(runs: &Runs, work: impl FnOnce(&RunContext) -> RunOutcome + Send + 'static) -> Arc<Run> {
    runs.start(StartRun::new("/test", RunWork::new(work))).unwrap().run
}

/// Starts a work that goes on, whatever happens to its run, until the returned sender is dropped or used.
fn start_blocked(runs: &Runs) -> (Arc<Run>, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel();
    let run = start(runs, move |_| {
        let _ = wait.recv();
        Ok(None)
    });
    (run, go)
}

fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never holds");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn state(run: &Run) -> RunState {
    run.status(Instant::now()).state
}

fn events(run: &Run) -> Vec<String> {
    let (topic, now) = (run.topic(), UnixTime::now());
    let mut position = topic.start(now, After::Earliest).unwrap();
    let mut texts = Vec::new();
    loop {
        match topic.read(now, position, Default::default()) {
            Ok(Page { events, next, .. }) => {
                position = next;
                texts.extend(events.iter().map(|event| event.data.as_str().to_owned()));
            }
            Err(ReadError::Ended) => return texts,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_run_tells_what_it_does_and_ends_with_its_result() {
    let runs = runs(RunLimits::default());
    let run = start(&runs, |run| {
        run.partial(&Data::parse("[1, 2]").unwrap())?;
        run.progress(0.25, Some("a quarter"))?;
        run.progress(0.75, None)?;
        run.keep_stderr(b"careful");
        Ok(Some(Data::json("all").unwrap()))
    });
    until(|| run.has_ended());
    let told = events(&run);
    let begin = [r#"{"state":"running"}"#, r#"{"partial":[1, 2]}"#];
    assert_eq!(told[..2], begin);
    // The estimate of a run that takes microseconds may have run down.
    assert!(told[2].starts_with(r#"{"progress":0.25,"text":"a quarter""#), "{told:?}");
    assert!(told[3].starts_with(r#"{"progress":0.75"#), "{told:?}");
    assert_eq!(told[4..], [r#"{"state":"done","result":"all"}"#]);
    let status = serde_json::to_value(run.status(Instant::now())).unwrap();
    assert_eq!(status["state"], "done");
    assert_eq!(status["key"], run.key().to_string());
    assert_eq!((&status["progress"], &status["text"]), (&1.0.into(), &"a quarter".into()));
    assert_eq!((&status["left"], &status["place"]), (&().into(), &().into()));
    assert_eq!((&status["result"], &status["stderr"]), (&"all".into(), &"careful".into()));
    assert_eq!(status["next"], run.topic().info(UnixTime::now()).head.to_string());
    assert!(runs.get(&run.key().to_string()).is_some_and(|found| Arc::ptr_eq(&found, &run)));
    assert!(runs.get("nothing").is_none() && runs.get(&"0".repeat(32)).is_none());
    assert!(!format!("{runs:?}").contains(&run.key().to_string()), "Debug tells a key");
}

#[test]
fn a_panic_is_a_failed_run_with_its_message() {
    let runs = runs(RunLimits { running_max: 1, ..RunLimits::default() });
    let panicked = start(&runs, |_| panic!("seven of {}", 9));
    let next = start(&runs, |_| Ok(None));
    until(|| next.has_ended());
    assert_eq!((state(&panicked), state(&next)), (RunState::Failed, RunState::Done));
    let last = events(&panicked).pop().unwrap();
    assert!(last.starts_with(r#"{"state":"failed","problem":{"type":"/problems/run-failed""#));
    assert!(last.contains("the work panicked: seven of 9"), "{last}");
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        // A second panic would abort the process.
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

#[test]
fn work_that_panics_when_it_is_dropped_harms_nobody() {
    let runs = runs(RunLimits { running_max: 1, ..RunLimits::default() });
    let (_first, go) = start_blocked(&runs);
    let bomb =
        |bomb: Bomb| move |_: &RunContext| Ok(Some(Data::json(&size_of_val(&bomb)).unwrap()));
    let [cancelled, dropped] = [(); 2].map(|()| start(&runs, bomb(Bomb)));
    let payload = start(&runs, |_| std::panic::panic_any(Bomb));
    let next = start(&runs, |_| Ok(None));
    cancelled.cancel().unwrap();
    drop(go);
    until(|| next.has_ended());
    let states = [cancelled, dropped.clone(), payload, next].map(|run| state(&run));
    let (failed, done) = (RunState::Failed, RunState::Done);
    assert_eq!(states, [RunState::Cancelled, failed, failed, done]);
    assert!(
        dropped.status(Instant::now()).problem().unwrap().contains("the work panicked: dropped")
    );
    let refused = RunLimits { running_max: 1, queued_max: 0, ..RunLimits::default() };
    let runs = Runs::new(refused);
    let (_first, _go) = start_blocked(&runs);
    assert!(runs.start(StartRun::new("/test", RunWork::new(bomb(Bomb)))).is_err());
}

#[test]
fn a_cancelled_run_has_ended_at_once_and_its_work_is_told() {
    let runs = runs(RunLimits::default());
    let (told, reason) = mpsc::channel();
    let run = start(&runs, move |run| {
        let stopped = run.sleep(Duration::from_secs(3600)).unwrap_err();
        let later = [run.check(), run.partial(&Data::json(&1).unwrap()), run.progress(0.5, None)];
        told.send((stopped, later)).unwrap();
        Ok(Some(Data::json("too late").unwrap()))
    });
    run.cancel().unwrap();
    assert_eq!(state(&run), RunState::Cancelled);
    assert_eq!(run.cancel(), Err(RunEnded));
    let stopped = Stopped::Cancelled;
    assert_eq!(reason.recv().unwrap(), (stopped, [Err(stopped), Err(stopped), Err(stopped)]));
    assert_eq!(runs.stop(Duration::from_secs(60)), 0);
    assert_eq!(state(&run), RunState::Cancelled);
    assert_eq!(events(&run), [r#"{"state":"running"}"#, r#"{"state":"cancelled"}"#]);
}

#[test]
fn a_run_that_takes_too_long_has_failed_and_its_work_is_told() {
    let runs =
        runs(RunLimits { time_max: Some(Duration::from_millis(50)), ..RunLimits::default() });
    let (told, reason) = mpsc::channel();
    let run = start(&runs, move |run| {
        // On a slow machine its time is over already.
        let _ = run.progress(0.5, None);
        told.send(run.sleep(Duration::from_secs(3600))).unwrap();
        Ok(None)
    });
    assert_eq!(reason.recv().unwrap(), Err(Stopped::TimedOut));
    let status = run.status(Instant::now());
    assert_eq!(status.state, RunState::Failed);
    let problem = status.problem().unwrap();
    assert!(problem.contains("run-timeout") && problem.contains("0.05 s"), "{problem}");
    assert!(status.ended.unwrap().since(status.started.unwrap()) >= Duration::from_millis(50));
}

#[test]
fn a_timed_run_has_a_time_limit_by_default_and_others_have_one_only_if_it_is_set() {
    let unset = RunLimits::default();
    assert_eq!(unset.time_max_of(true), Some(Duration::from_secs(3600)));
    assert_eq!(unset.time_max_of(false), None);
    let set = RunLimits { time_max: Some(Duration::from_secs(7 * 86_400)), ..unset };
    assert_eq!([true, false].map(|is_timed| set.time_max_of(is_timed)), [set.time_max; 2]);
}

#[test]
fn a_failure_of_the_work_is_told_in_its_words() {
    let runs = runs(RunLimits::default());
    let problem = Data::parse(r#"{"type":"/problems/conflict","status":409}"#).unwrap();
    let run = start(&runs, move |_| Err(RunFailure::with_problem("taken", &problem)));
    until(|| run.has_ended());
    let last = r#"{"state":"failed","problem":{"type":"/problems/conflict","status":409}}"#;
    assert_eq!(events(&run), [r#"{"state":"running"}"#, last]);
}

#[test]
fn a_withheld_progress_is_told_while_the_work_goes_on() {
    let runs = runs(RunLimits::default());
    let run = start(&runs, |run| {
        for hundredth in 1..=40 {
            run.progress(f64::from(hundredth) / 100.0, None)?;
        }
        Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into())
    });
    until(|| run.status(Instant::now()).progress == Some(0.4));
    let read = || {
        run.topic().read(
            UnixTime::now(),
            run.topic().info(UnixTime::now()).head.at(0),
            Default::default(),
        )
    };
    until(|| {
        read().unwrap().events.last().unwrap().data.as_str().starts_with(r#"{"progress":0.4"#)
    });
    assert!(read().unwrap().events.len() < 30, "40 reports are fewer events");
    run.cancel().unwrap();
}

#[test]
fn a_withheld_progress_never_comes_after_later_output() {
    let runs = runs(RunLimits::default());
    let run = start(&runs, |run| {
        let data = |number: u64| Data::json(&number).unwrap();
        run.progress(0.1, None)?;
        run.progress(0.2, Some("two"))?;
        run.partial(&data(1))?;
        run.partials(&[])?;
        // The time in which it would be told.
        run.sleep(Duration::from_millis(150))?;
        run.partial(&data(2))?;
        Ok(None)
    });
    until(|| run.has_ended());
    let told = events(&run);
    let first = told.iter().position(|text| text == r#"{"partial":1}"#).unwrap();
    assert!(told[first + 1..].iter().all(|text| !text.contains("progress")), "{told:?}");
    let status = run.status(Instant::now());
    assert_eq!((status.progress, status.text.as_deref()), (Some(1.0), Some("two")));
}

#[test]
fn an_asynchronous_work_waits_for_the_end_of_its_run() {
    let runs = runs(RunLimits::default());
    let (told, reason) = mpsc::channel();
    let run = start(&runs, move |run| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        told.send(runtime.block_on(run.stopped())).unwrap();
        Ok(None)
    });
    run.cancel().unwrap();
    assert_eq!(reason.recv().unwrap(), Stopped::Cancelled);
}

#[test]
fn a_stop_cancels_all_runs_and_waits_for_works_that_return() {
    let runs = runs(RunLimits { running_max: 2, ..RunLimits::default() });
    let (deaf, go) = start_blocked(&runs);
    let waits = start(&runs, |run| Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into()));
    let queued = start(&runs, |_| Ok(None));
    assert_eq!(runs.stop(Duration::from_secs(2)), 1, "one work does not ask");
    for run in [&deaf, &waits, &queued] {
        assert_eq!(state(run), RunState::Cancelled);
    }
    let refused = runs.start(StartRun::new("/test", RunWork::new(|_| Ok(None))));
    assert!(matches!(refused, Err(StartError::Stopping)));
    drop(go);
    assert_eq!(runs.stop(Duration::from_secs(60)), 0);
    assert_eq!(state(&deaf), RunState::Cancelled);
}

#[test]
fn runs_that_nobody_has_any_more_are_cancelled() {
    let runs = runs(RunLimits::default());
    let run = start(&runs, |run| Err(run.sleep(Duration::from_secs(3600)).unwrap_err().into()));
    drop(runs.clone());
    assert_eq!(state(&run), RunState::Running);
    drop(runs);
    assert_eq!(state(&run), RunState::Cancelled);
    assert_eq!(run.cancel(), Err(RunEnded));
}

/// Starts its run again when it is dropped.
struct Repeated(Runs, mpsc::Sender<bool>);

impl Drop for Repeated {
    fn drop(&mut self) {
        let again = self.0.start(with_key(|_| Ok(None))).unwrap();
        let _ = self.1.send(again.is_replayed);
    }
}

fn with_key(work: impl FnOnce(&RunContext) -> RunOutcome + Send + 'static) -> StartRun {
    let key = Some(("k".parse().unwrap(), RunInput::default().digest()));
    StartRun { key, ..StartRun::new("/test", RunWork::new(work)) }
}

#[test]
fn a_start_that_is_repeated_while_its_run_is_abandoned_starts_another() {
    for is_abandoned in [true, false] {
        let runs = runs(RunLimits { running_max: 1, ..RunLimits::default() });
        let (_first, go) = start_blocked(&runs);
        let (told, is_replayed) = mpsc::channel();
        let repeated = Repeated(runs.clone(), told);
        let work = move |_: &RunContext| {
            drop(repeated);
            Ok(None)
        };
        let start = StartRun { is_attached: true, ..with_key(work) };
        let Started { run: queued, attachment, .. } = runs.start(start).unwrap();
        // Its work is dropped before this returns.
        if is_abandoned {
            drop(attachment)
        } else {
            queued.cancel().unwrap()
        }
        assert_eq!(is_replayed.recv().unwrap(), !is_abandoned);
        drop(go);
    }
}
