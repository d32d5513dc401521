//! Programs as the work of runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anemone_hub::run::{Run, RunInput, RunLimits, RunService, Runs, StartRun};
use anemone_hub::{PageLimit, UnixTime};
use anemone_sources::exec::{Command, ProgramOptions, ProgramService};
use anemone_testing::{values, wait_until};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::lifeline::Lifeline;
use crate::use_guard;

fn shell(line: &str) -> ProgramOptions {
    use_guard();
    ProgramOptions::new(Command::Shell(line.into()))
}

fn input(body: &str) -> RunInput {
    RunInput {
        path: "/work".to_owned(),
        query: None,
        content_type: None,
        body: body.to_owned().into(),
    }
}

/// Runs that go on until the tests end. They would be cancelled when this is dropped.
fn runs() -> &'static Runs {
    Box::leak(Box::new(Runs::new(RunLimits::default())))
}

/// Starts a run.
fn start(runs: &Runs, options: ProgramOptions, input: RunInput) -> Arc<Run> {
    let work = ProgramService::new("/work", options).prepare(input).unwrap();
    runs.start(StartRun::new("/work", work)).unwrap().run
}

fn state(run: &Run) -> Value {
    serde_json::to_value(run.status(Instant::now())).unwrap()
}

/// Waits for the end, and returns the state.
fn ended(run: &Run) -> Value {
    wait_until("the run does not end", || run.has_ended());
    state(run)
}

/// Waits until a run has this many partial results, and returns them.
fn partials(run: &Run, count: usize) -> Vec<Value> {
    let partials = || -> Vec<Value> {
        let all = values(run.topic()).into_iter();
        all.filter_map(|event| event.get("partial").cloned()).collect()
    };
    wait_until("there are too few results", || partials().len() >= count);
    partials()
}

/// The end of a run, with its partial results.
fn result(options: ProgramOptions, input: RunInput) -> (Vec<Value>, Value) {
    let run = start(runs(), options, input);
    let state = ended(&run);
    (partials(&run, 0), state)
}

#[track_caller]
fn assert_done(line: &str, body: &str, expected: &[Value]) {
    let (partials, state) = result(shell(line), input(body));
    assert_eq!((&state["state"], &state["result"]), (&json!("done"), &Value::Null), "{state}");
    assert_eq!(partials, expected);
}

#[track_caller]
fn assert_failed(options: ProgramOptions, detail: &str) -> Value {
    let (_, state) = result(options, input(""));
    assert_eq!(state["state"], "failed", "{state}");
    let problem = &state["problem"];
    assert_eq!(problem["type"], "/problems/run-failed", "{state}");
    let said = problem["detail"].as_str().unwrap();
    let (start, end) = detail.split_once('…').unwrap_or((detail, ""));
    assert!(said.starts_with(start) && said.ends_with(end), "{said}");
    state
}

#[test]
fn the_body_is_its_input_and_its_lines_are_partial_results() {
    assert_done(
        "cat",
        "{\"a\": 1.50}\n7\n\ntwo words",
        &[json!({"a": 1.5}), json!(7), json!("two words")],
    );
    assert_done("wc -c", "", &[json!(0)]);
    assert_done("exit 0", "unread", &[]);
}

#[test]
fn lines_that_come_together_are_published_together() {
    let line = "printf 'a\\nb\\nprogress 0.5\\nc\\nd\\n'";
    let run = start(runs(), shell(line), input(""));
    ended(&run);
    let now = UnixTime::now();
    let begin = run.topic().info(now).head.at(0);
    let page = run.topic().read(now, begin, PageLimit::default()).unwrap();
    let events = page.events.iter().map(|event| (event.data.as_str(), event.time));
    let events: Vec<_> = events.filter(|(data, _)| !data.contains("state")).collect();
    let partial = |text: &str| format!("{{\"partial\":\"{text}\"}}");
    let data: Vec<_> = events.iter().map(|(data, _)| *data).collect();
    assert_eq!((data[0], data[1], data.len()), (&*partial("a"), &*partial("b"), 5));
    assert!(data[2].starts_with("{\"progress\":0.5"), "{data:?}");
    // A batch has one time.
    assert_eq!((events[0].1, events[3].1), (events[1].1, events[4].1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_has_the_low_priority_of_runs() {
    let own = rustix::process::nice(0).unwrap();
    assert_done("nice", "", &[json!((own + 10).min(19))]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_thread_that_passes_output_on_has_the_priority_of_the_others() {
    let own = rustix::process::nice(0).unwrap();
    let run = start(runs(), shell("echo 1; sleep 600"), input(""));
    let name = format!("run {}", run.key().short());
    let niceness = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .find_map(|stat| {
                let (begin, rest) = stat.rsplit_once(") ")?;
                // The niceness is the 19th field of proc_pid_stat(5), and the first after the name is the third.
                begin.ends_with(&name).then(|| rest.split(' ').nth(16)?.parse::<i32>().ok())?
            })
    };
    wait_until("the thread has its name", || niceness().is_some());
    assert_eq!(niceness(), Some(own));
    run.cancel().unwrap();
}

#[test]
fn input_and_output_flow_at_once() {
    // Neither fits into a pipe, and the second program reads nothing before it has written it all.
    let line = format!("\"{}\"\n", "x".repeat(998));
    for (command, count) in [("cat", 4000), ("yes 1 | head -n 100000; cat | wc -l", 100_001)] {
        let (partials, state) = result(shell(command), input(&line.repeat(4000)));
        assert_eq!(state["state"], "done", "{state}");
        // The topic of a run keeps its newest events.
        assert!(partials.len() >= count.min(99_990), "{}", partials.len());
    }
}

#[test]
fn a_program_may_close_its_input_or_never_read_it() {
    let body = "x".repeat(1 << 20);
    for line in ["exec <&-; echo closed", "echo unread"] {
        let (partials, state) = result(shell(line), input(&body));
        assert_eq!((partials.len(), &state["state"]), (1, &json!("done")), "{state}");
    }
}

#[test]
fn both_forms_of_progress_are_progress() {
    let line = r#"echo progress 0.25 a quarter; echo progress 50%; echo progress 3/4; echo '{"progress":1}'; echo progress nan; echo progress 10"#;
    let run = start(runs(), shell(line), input(""));
    let state = ended(&run);
    assert_eq!((&state["progress"], &state["text"]), (&json!(1.0), &json!("a quarter")), "{state}");
    assert_eq!(partials(&run, 0), ["progress nan", "progress 10"]);
    let first = values(run.topic()).into_iter().find(|event| event.get("progress").is_some());
    assert_eq!(first.unwrap()["progress"], 0.25);
}

/// The progress of a run in its events, and its partial results.
fn told(line: &str) -> (Vec<f64>, Vec<Value>) {
    let run = start(runs(), shell(line), input(""));
    assert_eq!(ended(&run)["state"], "done", "{line}");
    let events = values(run.topic());
    let progress = events.iter().filter_map(|event| event["progress"].as_f64()).collect();
    (progress, partials(&run, 0))
}

#[test]
fn progress_is_found_within_sequences_for_a_terminal() {
    for line in [
        r"printf '\033[?25l\r'; printf '\rprogress 50%%\033[K\n\033[?25h42\n'",
        r"printf '\033[2K\033[1Gprogress 1/2\033[0K\033[1G\033[2K42'",
        r"printf '\033[1;32mprogress 0,5\033[0m\n42\n'",
        r"printf '\033]0;title\007progress 2 / 4\n\033[1A\033[2K42\n'",
        r"printf '50%%|#####     | 1/2 [00:01<00:01,  1.00it/s]\r\033[K42\n'",
    ] {
        let (progress, results) = told(line);
        assert_eq!((progress.last(), results), (Some(&0.5), vec![json!(42)]), "{line}");
    }
    let (progress, results) =
        told(r"printf '\033[31mred\033[0m\n10%% of it\n5 of 7 dwarfs\n2 / 4\n'");
    assert!(progress.is_empty(), "{progress:?}");
    assert_eq!(results, ["\u{1b}[31mred\u{1b}[0m", "10% of it", "5 of 7 dwarfs", "2 / 4"]);
}

#[test]
fn a_bar_on_standard_error_is_progress_unless_the_program_tells_its_own() {
    let bar = r"printf '\r  0%%|          | 0/4 [00:00<?, ?it/s]\r 75%%|###  | 3/4 [00:01<00:01,  1.00it/s]\n' >&2";
    let (progress, results) = told(&format!("{bar}; echo 42"));
    assert_eq!((progress.last(), results), (Some(&0.75), vec![json!(42)]));
    let (progress, _) = told(&format!("echo progress 0.1; {bar}; echo 42; sleep 0.2; {bar}"));
    assert_eq!(progress.last(), Some(&0.1));
    let (progress, _) = told("echo 'it is 45% | done' >&2");
    assert!(progress.is_empty(), "{progress:?}");
}

#[test]
fn the_last_line_may_be_the_result_of_a_program_that_succeeds() {
    for (line, expected, results) in [
        (r#"echo 1; echo '{"result": {"n": 1.50}}'"#, json!({"n": 1.5}), vec![json!(1)]),
        (r#"echo '{"result":null}'; echo; printf '  \r\n'"#, Value::Null, vec![]),
        (r#"printf '{"result":"no line end"}'"#, json!("no line end"), vec![]),
        // Something follows.
        (r#"echo '{"result":1}'; echo 2"#, Value::Null, vec![json!({"result": 1}), json!(2)]),
        (r#"echo '{"result":1}'; echo progress 1"#, Value::Null, vec![json!({"result": 1})]),
        (r#"echo '{"result":1}'; echo '{"result":2}'"#, json!(2), vec![json!({"result": 1})]),
        (r#"echo '{"result":1,"n":2}'"#, Value::Null, vec![json!({"result": 1, "n": 2})]),
        ("echo 42", Value::Null, vec![json!(42)]),
    ] {
        let run = start(runs(), shell(line), input(""));
        let state = ended(&run);
        assert_eq!((&state["state"], &state["result"]), (&json!("done"), &expected), "{line}");
        assert_eq!(partials(&run, 0), results, "{line}");
        let last = values(run.topic()).pop().unwrap();
        let has_result = !expected.is_null() || line.contains("null");
        assert_eq!(last.get("result").is_some(), has_result, "{line}: {last}");
    }
    let (partials, state) = result(shell(r#"echo '{"result":1}'; exit 3"#), input(""));
    assert_eq!((&state["state"], &state["result"]), (&json!("failed"), &Value::Null));
    assert_eq!(partials, [json!({"result": 1})]);
}

#[test]
fn progress_that_is_drawn_over_itself_is_progress() {
    // tqdm begins each line with a CR, ends the bar with an LF, and erases a line with blanks.
    let line = r"printf '\rprogress 0/4 work\rprogress 1/4 \r              \r7\n\rprogress 2/4\n'";
    let run = start(runs(), shell(line), input(""));
    assert_eq!(ended(&run)["state"], "done");
    assert_eq!(partials(&run, 0), [json!(7)]);
    let events = values(run.topic());
    let progress: Vec<_> = events.iter().filter_map(|event| event.get("progress")).collect();
    assert_eq!(progress.last(), Some(&&json!(0.5)), "{events:?}");
    // Lines that together are longer than one may be.
    let line = r"for n in 1 2 3 4; do printf '\rprogress 0.%02000d' $n; done";
    let run = start(runs(), ProgramOptions { line_bytes_max: 2100, ..shell(line) }, input(""));
    assert_eq!(ended(&run)["state"], "done");
}

#[test]
fn its_environment_says_what_was_requested_and_no_shell_reads_it() {
    let directory = tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let options = ProgramOptions {
        environment: vec![("GREETING".into(), "hi".into()), ("ANEMONE_PATH".into(), "no".into())],
        directory: Some(path.clone()),
        ..shell(
            "pwd; echo $GREETING; env | grep '^ANEMONE_[CPQ]' | sort; cat; [ -e no ] || echo none",
        )
    };
    let input = RunInput {
        path: "/job/a".to_owned(),
        query: Some("n=$(touch no);`touch no`".to_owned()),
        content_type: Some("text/plain".to_owned()),
        body: "$(touch no)\n".into(),
    };
    let expected = [
        path.to_str().unwrap(),
        "hi",
        "ANEMONE_CONTENT_TYPE=text/plain",
        "ANEMONE_PATH=/job/a",
        "ANEMONE_QUERY=n=$(touch no);`touch no`",
        "$(touch no)",
        "none",
    ];
    assert_eq!(result(options, input).0, expected);
}

#[test]
fn a_python_program_writes_each_line_at_once() {
    let (partials, _) = result(shell("echo $PYTHONUNBUFFERED"), input(""));
    assert_eq!(partials, [1]);
    let own = vec![("PYTHONUNBUFFERED".into(), "no".into())];
    let options = ProgramOptions { environment: own, ..shell("echo $PYTHONUNBUFFERED") };
    assert_eq!(result(options, input("")).0, ["no"]);
}

#[test]
fn its_exit_status_decides_and_standard_error_is_kept() {
    let state = assert_failed(
        shell("echo 1; echo oops >&2; exit 3"),
        "the shell command echo has ended, exit status: 3: oops",
    );
    assert_eq!(state["stderr"], "oops\n");
    let line = r"printf 'first\n\033[1mlast\r\n\n  \n' >&2; exit 1";
    assert_failed(
        shell(line),
        r"the shell command printf has ended, exit status: 1: \u001b[1mlast",
    );
    let long = format!("the shell command printf has ended, exit status: 1: {}1…", "0".repeat(199));
    assert_failed(shell("printf %0200d99 1 >&2; exit 1"), &long);
    let killed = "the shell command kill has ended, signal: 9 (SIGKILL)";
    assert_failed(shell("kill -9 $$"), killed);
    let (_, state) = result(shell("seq 1 100000 >&2"), input(""));
    let kept = state["stderr"].as_str().unwrap();
    assert!(kept.len() <= 16 << 10 && kept.ends_with("99999\n100000\n"), "{} {state}", kept.len());
    assert_eq!(state["state"], "done");
}

#[test]
fn a_program_that_cannot_be_started_is_a_failed_run_with_words() {
    let runs = runs();
    use_guard();
    let options = ProgramOptions::new(Command::program("/no/such/program", [""; 0]));
    let run = start(runs, options, input("x"));
    let state = ended(&run);
    let said = state["problem"]["detail"].as_str().unwrap();
    assert!(said.starts_with("program cannot be started: No such file"), "{state}");
    let next = start(runs, shell("echo next"), input(""));
    assert_eq!(ended(&next)["state"], "done");
}

#[test]
fn output_up_to_the_limit_is_fine_and_more_is_a_failure() {
    let limited = |line| ProgramOptions { output_bytes_max: 1000, ..shell(line) };
    let line = "printf %0499d 1; echo; printf %0500d 1 >&2";
    assert_eq!(result(limited(line), input("")).1["state"], "done");
    for line in ["printf %01001d 1", "printf %0500d 1; printf %0501d 1 >&2", "yes", "yes >&2"] {
        assert_failed(
            limited(line),
            "the shell command … wrote more than 1000 bytes, and was killed",
        );
    }
}

#[test]
fn a_line_up_to_the_limit_is_fine_and_a_longer_one_is_a_failure() {
    let limited = |line| ProgramOptions { line_bytes_max: 1000, ..shell(line) };
    let (partials, state) = result(limited("echo 1; printf %01000d 1"), input(""));
    assert_eq!((partials.len(), &state["state"]), (2, &json!("done")), "{state}");
    let told = "the shell command … wrote a line of more than 1000 bytes, and was killed";
    for line in ["printf %01001d 1", "cat /dev/zero"] {
        assert_failed(limited(line), told);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn more_processes_than_allowed_are_all_killed() {
    let directory = tempdir().unwrap();
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    let limited = |line: &str| ProgramOptions {
        processes_max: 20,
        directory: Some(directory.path().to_owned()),
        ..shell(line)
    };
    // A shell, and 19 or 50 others that ignore SIGTERM.
    let bomb = |count| {
        format!(
            "exec 3> lifeline; trap '' TERM; for i in $(seq {count}); do sleep 1000 & done; wait"
        )
    };
    assert_failed(
        limited(&bomb(50)),
        "the shell command exec had … processes, more than 20, and was killed",
    );
    lifeline.cut();
    let (_, state) = result(limited("for i in $(seq 19); do sleep 0.5 & done; wait"), input(""));
    assert_eq!(state["state"], "done", "{state}");
}

/// A program with a grandchild, both of which ignore SIGTERM and hold the lifeline.
fn family(directory: &Path) -> ProgramOptions {
    ProgramOptions {
        directory: Some(directory.to_owned()),
        grace: Duration::from_millis(50),
        ..shell("exec 3> lifeline; trap '' TERM; sh -c 'echo ready; exec sleep 1000' & wait")
    }
}

#[test]
fn a_cancelled_program_that_ignores_sigterm_is_killed_with_its_children() {
    let directory = tempdir().unwrap();
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    let run = start(runs(), family(directory.path()), input(""));
    assert_eq!(partials(&run, 1), ["ready"]);
    let cancelled_at = Instant::now();
    run.cancel().unwrap();
    assert_eq!(state(&run)["state"], "cancelled");
    lifeline.cut();
    // Usually 51 to 53 ms.
    assert!(cancelled_at.elapsed() < Duration::from_secs(10));
    assert!(run.cancel().is_err());
}

#[test]
fn a_program_gets_sigterm_first() {
    let directory = tempdir().unwrap();
    let options = ProgramOptions {
        directory: Some(directory.path().to_owned()),
        grace: Duration::from_secs(30),
        ..shell("trap 'date +%s%N > told; mv told at; exit 0' TERM; echo ready; sleep 1000 & wait")
    };
    let run = start(runs(), options, input(""));
    partials(&run, 1);
    let cancelled_at = UNIX_EPOCH.elapsed().unwrap();
    run.cancel().unwrap();
    let at = directory.path().join("at");
    wait_until("it did not get SIGTERM", || at.exists());
    let at: u64 = std::fs::read_to_string(at).unwrap().trim().parse().unwrap();
    let after = Duration::from_nanos(at) - cancelled_at;
    // Usually 1 to 5 ms; a busy machine takes its time.
    assert!(after < Duration::from_secs(10), "{after:?}");
}

#[test]
fn a_program_that_takes_too_long_fails_with_its_children() {
    let directory = tempdir().unwrap();
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    let time_max = Some(Duration::from_millis(300));
    let (_, state) = result(ProgramOptions { time_max, ..family(directory.path()) }, input(""));
    assert_eq!(state["problem"]["type"], "/problems/run-timeout", "{state}");
    lifeline.cut();
}

#[test]
fn children_that_it_leaves_behind_end_with_it() {
    let directory = tempdir().unwrap();
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    let options = ProgramOptions {
        directory: Some(directory.path().to_owned()),
        grace: Duration::from_millis(50),
        ..shell("exec 3> lifeline; (trap '' TERM; sleep 1000) & echo done")
    };
    let (partials, state) = result(options, input(""));
    assert_eq!((partials, &state["state"]), (vec![json!("done")], &json!("done")));
    lifeline.cut();
}

#[test]
fn a_program_that_closes_its_outputs_goes_on() {
    let directory = tempdir().unwrap();
    let options = ProgramOptions {
        directory: Some(directory.path().to_owned()),
        ..shell("echo one; exec >&- 2>&-; sleep 0.2; touch went-on; exit 7")
    };
    assert_failed(options, "the shell command echo has ended, exit status: 7");
    assert!(directory.path().join("went-on").exists());
}

#[test]
fn a_hundred_runs_wait_in_the_queue_and_all_are_done() {
    let runs = &Runs::new(RunLimits { running_max: 2, ..RunLimits::default() });
    let started: Vec<_> =
        (0..100).map(|n| start(runs, shell("cat"), input(&n.to_string()))).collect();
    for (n, run) in started.iter().enumerate() {
        assert_eq!(ended(run)["state"], "done", "{n}");
        assert_eq!(partials(run, 1), [json!(n)]);
    }
}

#[test]
fn when_all_runs_are_stopped_no_process_is_left() {
    let directory = tempdir().unwrap();
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    let runs = runs();
    let run = start(runs, family(directory.path()), input(""));
    partials(&run, 1);
    assert_eq!(runs.stop(Duration::from_secs(30)), 0);
    lifeline.cut();
}
