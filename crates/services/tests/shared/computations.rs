//! Computations as runs: the documents under `examples/`, cancels, and the end of a client to whom a run belongs.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_hub::run::{
    Attachment, Run, RunInput, RunLimits, RunService as _, RunState, Runs, StartRun, Started,
};
use anemone_hub::{After, PageLimit, UnixTime};
use anemone_services::Computations;
use anemone_testing::wait_until;
use bytes::Bytes;
use serde_json::{Value, json};

fn example(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/computations");
    fs::read(folder.join(name)).unwrap()
}

/// A computation of 200,000,000 steps.
fn long() -> Vec<u8> {
    let list = json!({"id": "list", "do": "list", "size": 20_000});
    let sort = json!({"id": "sort", "do": "sort", "after": "list", "algorithm": "selection"});
    json!({ "actions": [list, sort] }).to_string().into_bytes()
}

/// A computation with four sorts at the same time; at a slow pace, it goes on for ever.
fn wide() -> Vec<u8> {
    let sort = |name: &str| json!({"id": name, "do": "sort", "after": "list", "algorithm": name});
    let list = json!({"id": "list", "do": "list", "size": 500});
    let actions = [list, sort("bubble"), sort("merge"), sort("radix"), sort("quick")];
    json!({ "actions": actions }).to_string().into_bytes()
}

fn start(runs: &Runs, query: &str, body: Vec<u8>) -> Arc<Run> {
    start_as(runs, query, body, false).0
}

fn start_as(
    runs: &Runs,
    query: &str,
    body: Vec<u8>,
    is_attached: bool,
) -> (Arc<Run>, Option<Attachment>) {
    let query = (!query.is_empty()).then(|| query.to_owned());
    let input = RunInput { query, body: Bytes::from(body), ..RunInput::default() };
    let work = Computations.prepare(input).unwrap();
    let start = StartRun { is_attached, ..StartRun::new("/computations", work) };
    let Started { run, attachment, .. } = runs.start(start).unwrap();
    (run, attachment)
}

/// All events of a run that has ended or will end soon.
fn events(run: &Run) -> Vec<Value> {
    wait_until("the run does not end", || run.has_ended());
    let mut position = run.topic().start(UnixTime::now(), After::Earliest).unwrap();
    let mut events = Vec::new();
    loop {
        let page = run.topic().read(UnixTime::now(), position, PageLimit::default()).unwrap();
        events.extend(
            page.events.iter().map(|event| serde_json::from_str(event.data.as_str()).unwrap()),
        );
        if page.is_last {
            return events;
        }
        position = page.next;
    }
}

fn partials(events: &[Value]) -> impl Iterator<Item = &Value> {
    events.iter().filter_map(|event| event.get("partial"))
}

fn states(events: &[Value]) -> usize {
    partials(events).filter_map(|partial| partial["changes"].as_array()).map(Vec::len).sum()
}

#[test]
fn the_smallest_computation_has_two_updates() {
    let runs = Runs::new(RunLimits::default());
    let events = events(&start(&runs, "", example("smallest.json")));
    assert_eq!(states(&events), 2);
    let last = partials(&events).last().unwrap();
    assert_eq!(last["changes"], json!([["s", 0, 3], ["s", 1, 2]]));
    let end = events.last().unwrap();
    assert_eq!((&end["state"], &end["result"]["states"]), (&json!("done"), &json!(2)));
}

#[test]
fn the_published_computation_has_22479_intermediate_states() {
    let runs = Runs::new(RunLimits::default());
    for query in ["", "batch=1"] {
        let events = events(&start(&runs, query, example("22479-states.json")));
        assert_eq!(states(&events), 22_479, "{query}");
        let end = events.last().unwrap();
        assert_eq!(end["result"]["states"], 22_479);
        assert_eq!(end["result"]["sorts"][0]["changes"], 22_479);
        let with_changes = partials(&events).filter(|partial| partial["changes"] != json!([]));
        let with_changes = with_changes.filter(|partial| partial["changes"].is_array()).count();
        assert_eq!(with_changes == 22_479, query == "batch=1", "{with_changes}");
    }
}

#[test]
fn the_tree_of_the_examples_ends_with_every_action_done() {
    let runs = Runs::new(RunLimits::default());
    let run = start(&runs, "states=rate:30", example("tree.json"));
    let events = events(&run);
    let done: Vec<u64> = partials(&events)
        .filter(|partial| partial["done"] == true)
        .filter_map(|partial| partial["action"].as_u64())
        .collect();
    assert!((0..7).all(|action| done.contains(&action)), "{done:?}");
    let status = run.status(Instant::now());
    assert_eq!(status.state, RunState::Done);
    let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(texts.last(), Some(&"7 of 7 actions done, progress estimated"));
}

#[test]
fn a_run_that_belongs_to_its_client_ends_with_it_and_another_goes_on() {
    let runs = Runs::new(RunLimits { running_max: 2, ..RunLimits::default() });
    let (attached, attachment) = start_as(&runs, "pace=1", wide(), true);
    let kept = start(&runs, "pace=1", wide());
    drop(attachment.unwrap());
    assert_eq!(attached.status(Instant::now()).state, RunState::Cancelled);
    assert!(!kept.has_ended());
    kept.cancel().unwrap();
    assert_eq!(runs.stop(anemone_testing::PATIENCE), 0);
}

#[test]
fn computations_at_a_pace_do_not_keep_others_waiting() {
    let runs = Runs::new(RunLimits { running_max: 2, ..RunLimits::default() });
    let paced: Vec<_> = (0..4).map(|_| start(&runs, "pace=1", wide())).collect();
    let others = ["", "states=rate:1"].map(|query| start(&runs, query, example("smallest.json")));
    wait_until("the others do not end", || others.iter().all(|run| run.has_ended()));
    let states = paced.iter().map(|run| run.status(Instant::now()).state);
    assert!(
        states.clone().all(|state| state == RunState::Running),
        "{:?}",
        states.collect::<Vec<_>>()
    );
    paced.iter().for_each(|run| run.cancel().unwrap());
    assert_eq!(runs.stop(anemone_testing::PATIENCE), 0);
}

/// The time of a processor that the thread of a run has taken, in hundredths of a second.
#[cfg(target_os = "linux")]
fn processor_time(run: &Run) -> u64 {
    let name = format!("(run {})", run.key().short());
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let own = stats.filter(|stat| stat.contains(&name));
    // Fields 14 and 15 (proc_pid_stat(5)); the name before them is field 2.
    let times = own.flat_map(|stat| {
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
        fields.take(2).filter_map(|time| time.parse::<u64>().ok()).collect::<Vec<_>>()
    });
    times.sum()
}

#[cfg(target_os = "linux")]
#[test]
fn a_computation_at_a_pace_takes_a_sixteenth_of_a_processor_at_most() {
    let runs = Runs::new(RunLimits::default());
    // Ten thousand comparisons for each change: as fast as the processor, without its share.
    let run = start(&runs, "states=rate:1&pace=1000000", long());
    // What it does before its first partial result is slept for after that.
    let begin = run.topic().start(UnixTime::now(), After::Earliest).unwrap();
    wait_until("it does not begin", || {
        let page = run.topic().read(UnixTime::now(), begin, PageLimit::default()).unwrap();
        page.events.iter().any(|event| event.data.as_str().contains("\"partial\""))
    });
    let (begun, before) = (Instant::now(), processor_time(&run));
    wait_until("it does nothing", || processor_time(&run) >= before + 20);
    let took = begun.elapsed();
    // 16 times 190 ms, without the sleep of the last half second, which may be to come: 2.5 s. A turn that has just ended has not slept
    // at all; on a slow processor, it may take some milliseconds.
    assert!(took.as_millis() > 1_500, "a fifth of a second of work in {took:?}");
    run.cancel().unwrap();
}

/// The threads of this process whose names begin so.
#[cfg(target_os = "linux")]
fn threads(prefix: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(prefix)).count()
}

#[test]
fn fifty_runs_are_cancelled_at_any_moment_and_leave_nothing_behind() {
    let limits = RunLimits { running_max: 50, ..RunLimits::default() };
    let runs = Runs::new(limits);
    let mut random = fastrand::Rng::with_seed(anemone_testing::seed());
    let kinds = [("", long()), ("pace=10", wide()), ("states=rate:5", long()), ("pace=1", wide())];
    let kinds = kinds.iter().cycle().take(50);
    let mut waiting: Vec<Arc<Run>> =
        kinds.map(|(query, document)| start(&runs, query, document.clone())).collect();
    random.shuffle(&mut waiting);
    for run in waiting {
        std::thread::sleep(Duration::from_micros(random.u64(..2_000)));
        // On a fast machine, a long one may have ended before.
        let state = if run.cancel().is_ok() { RunState::Cancelled } else { RunState::Done };
        assert_eq!(run.status(Instant::now()).state, state);
    }
    assert_eq!(runs.stop(anemone_testing::PATIENCE), 0, "each work has returned");
    #[cfg(target_os = "linux")]
    wait_until("a thread is left", || threads("run ") == 0);
}
