//! Programs.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anemone_hub::Retention;
use anemone_sources::exec::{Command, ExecOptions, Restart, Stderr, run};
use anemone_testing::process::status_bytes;
use anemone_testing::{Background, Log, Topics, resident_bytes, values, within};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::sync::oneshot;

use crate::alone::{Alone, is_alone};
use crate::lifeline::Lifeline;
use crate::{fifo, use_guard};

/// Run once; if again, at once.
fn once(command: Command) -> ExecOptions {
    use_guard();
    ExecOptions {
        restart: Restart::Never,
        retry_min: Duration::from_millis(1),
        retry_max: Duration::from_millis(1),
        ..ExecOptions::new(command)
    }
}

fn shell(line: impl AsRef<str>) -> ExecOptions {
    once(Command::Shell(line.as_ref().into()))
}

async fn to_its_end(options: ExecOptions) -> Topics {
    let topics = Topics::new("lines");
    let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
    within(run(options, events, status, pending())).await;
    topics
}

async fn events_of(line: &str) -> Vec<Value> {
    to_its_end(shell(line)).await.all()
}

/// The last word of a source.
async fn ended(topics: &Topics) -> Value {
    topics.status(|status| status["state"] == "ended").await
}

/// A source in the background.
struct Running {
    topics: Topics,
    stop: oneshot::Sender<()>,
    task: Background<()>,
}

impl Running {
    fn start(options: ExecOptions) -> Self {
        let topics = Topics::new("lines");
        let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        let (stop, asked) = oneshot::channel();
        let asked = async { drop(asked.await) };
        let task = Background(tokio::spawn(run(options, events, status, asked)));
        Self { topics, stop, task }
    }

    /// Asks it to end, and waits until it has.
    async fn stop(mut self) -> Topics {
        self.stop.send(()).unwrap();
        within(&mut self.task.0).await.unwrap();
        self.topics
    }
}

fn pid(event: &Value) -> Pid {
    Pid::from_raw(event.as_i64().unwrap().try_into().unwrap()).unwrap()
}

/// Waits until there is no such process, not even a zombie.
async fn gone(pid: Pid) {
    within(async {
        while test_kill_process(pid).is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waits until no process has the lifeline, while sources go on.
async fn cut(lifeline: Lifeline) {
    tokio::task::spawn_blocking(|| lifeline.cut()).await.unwrap();
}

/// Lets a program continue that reads from this FIFO.
async fn write(fifo: &Path, text: &'static str) {
    let fifo = fifo.to_owned();
    within(tokio::task::spawn_blocking(move || std::fs::write(fifo, text))).await.unwrap().unwrap();
}

#[tokio::test]
async fn json_lines_stay_json_and_others_become_strings() {
    let events = events_of(
        r#"printf '%s\n' '{"a": 1.5}' 5 '' 'up 3 days' ' 1 0 0'; printf 'a\r\n"b"\r\nlast'"#,
    );
    let expected =
        [json!({"a": 1.5}), json!(5), json!("up 3 days"), json!(" 1 0 0"), json!("a"), json!("b")];
    let events = events.await;
    assert_eq!(events[..6], expected);
    assert_eq!(events[6..], [json!("last")]);
}

#[tokio::test]
async fn a_program_is_run_without_a_shell() {
    let command = Command::program("printf", ["%s\\n", "$HOME; `id`", "*"]);
    assert_eq!(to_its_end(once(command)).await.all(), ["$HOME; `id`", "*"]);
}

#[tokio::test]
async fn it_runs_where_and_with_what_it_was_told_to_and_its_input_is_empty() {
    let directory = tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let options = ExecOptions {
        environment: vec![("GREETING".into(), "hello".into())],
        directory: Some(path.clone()),
        ..shell("cat; echo \"$GREETING\"; pwd; [ \"$PATH\" ] && echo path$PYTHONUNBUFFERED")
    };
    let expected = ["hello", path.to_str().unwrap(), "path1"];
    assert_eq!(to_its_end(options).await.all(), expected);
}

#[tokio::test]
async fn how_it_ended_is_told() {
    for (line, how) in [
        ("echo 1; exit 0", "exit status: 0"),
        ("echo 1; exit 3", "exit status: 3"),
        ("echo 1; kill -9 $$", "signal: 9 (SIGKILL)"),
    ] {
        let topics = to_its_end(shell(line)).await;
        let status = ended(&topics).await;
        let detail = format!("the shell command echo has ended, {how}; it will not be restarted");
        assert_eq!(status["detail"], detail);
        assert_eq!((&status["events"], &status["bad_lines"]), (&json!(1), &json!(0)));
        let live = topics.status(|status| status["state"] == "live").await;
        assert_eq!(live["detail"], "receiving from the shell command echo");
    }
}

#[tokio::test]
async fn the_status_of_a_program_that_failed_says_where_its_words_are_and_not_what_they_are() {
    for (line, how) in [
        ("echo secret >&2; exit 3", "exit status: 3 (see the server's log)"),
        ("echo secret >&2; exit 0", "exit status: 0"),
        ("exit 3", "exit status: 3"),
    ] {
        let status = ended(&to_its_end(shell(line)).await).await;
        let detail = status["detail"].as_str().unwrap();
        assert!(
            detail.ends_with(&format!(" has ended, {how}; it will not be restarted")),
            "{detail}"
        );
    }
}

#[tokio::test]
async fn what_an_earlier_run_has_logged_is_not_what_the_last_one_said() {
    let directory = tempdir().unwrap();
    let options = ExecOptions {
        restart: Restart::Always,
        directory: Some(directory.path().to_owned()),
        ..shell("[ -e again ] || echo secret >&2; : > again; exit 3")
    };
    let running = Running::start(options);
    let lost = |hint: bool| {
        move |status: &Value| {
            let detail = status["detail"].as_str().unwrap();
            status["state"] == "lost" && detail.contains("server's log") == hint
        }
    };
    running.topics.status(lost(true)).await;
    running.topics.status(lost(false)).await;
    running.stop().await;
}

#[tokio::test]
async fn on_failure_it_is_started_until_it_succeeds() {
    let directory = tempdir().unwrap();
    let options = ExecOptions {
        restart: Restart::OnFailure,
        directory: Some(directory.path().to_owned()),
        ..shell("echo run >> runs; wc -l < runs; [ $(wc -l < runs) -ge 3 ]")
    };
    let topics = to_its_end(options).await;
    assert_eq!(topics.all(), [1, 2, 3]);
    let lost = topics.status(|status| status["state"] == "lost").await;
    let detail = lost["detail"].as_str().unwrap();
    assert!(detail.starts_with("the shell command echo has ended, exit status: 1; restarting in"));
}

#[tokio::test]
async fn always_it_is_started_again_until_it_is_stopped() {
    let running = Running::start(ExecOptions { restart: Restart::Always, ..shell("echo $$") });
    let pids = running.topics.events(4).await;
    let topics = running.stop().await;
    let status = ended(&topics).await;
    assert!(status["detail"].as_str().unwrap().starts_with("the shell command "), "{status}");
    for event in pids {
        gone(pid(&event)).await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_tried_again() {
    let directory = tempdir().unwrap();
    let program = directory.path().join("program");
    let options =
        ExecOptions { restart: Restart::OnFailure, ..once(Command::program(&program, [""; 0])) };
    let running = Running::start(options);
    let lost = running.topics.status(|status| status["state"] == "lost").await;
    assert!(lost["detail"].as_str().unwrap().starts_with("program cannot be started: "), "{lost}");
    let new = directory.path().join("new");
    std::fs::write(&new, "#!/bin/sh\necho here\n").unwrap();
    rustix::fs::chmod(&new, rustix::fs::Mode::RWXU).unwrap();
    std::fs::rename(new, program).unwrap();
    assert_eq!(running.topics.events(1).await, ["here"]);
    ended(&running.topics).await;
}

/// Returns the delays that a source reports, in milliseconds, until it is stopped.
async fn waits(options: ExecOptions, for_secs: u64) -> Vec<f64> {
    let options = ExecOptions { report_interval: Duration::from_millis(1), ..options };
    let topics = Topics::new("lines");
    let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
    run(options, events, status, tokio::time::sleep(Duration::from_secs(for_secs))).await;
    let statuses = values(&topics.status);
    let wait = |status: &Value| {
        let detail = status["detail"].as_str().unwrap().to_owned();
        let (number, unit) = detail.split_once("restarting in ")?.1.split_once(' ')?;
        Some(number.parse::<f64>().unwrap() * if unit == "s" { 1000.0 } else { 1.0 })
    };
    statuses.iter().filter_map(wait).collect()
}

#[tokio::test(start_paused = true)]
async fn waits_grow_from_run_to_run_and_not_after_a_good_one() {
    use_guard();
    let options = || ExecOptions::new(Command::program("/no/such/program", [""; 0]));
    let growing = waits(options(), 100).await;
    let steps = [250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0, 16_000.0, 30_000.0];
    assert!(growing.len() >= steps.len(), "{growing:?}");
    for (wait, step) in growing.iter().zip(steps) {
        // They are reported with one decimal.
        assert!((step * 0.7..=step).contains(wait), "{growing:?}");
    }
    let good = ExecOptions { good_run_min: Duration::ZERO, ..options() };
    let equal = waits(good, 3).await;
    assert!(equal.len() >= 12 && equal.iter().all(|wait| *wait <= 250.0), "{equal:?}");
}

#[tokio::test]
async fn a_program_that_closes_its_output_and_lives_is_silent() {
    let directory = tempdir().unwrap();
    let go = directory.path().join("go");
    fifo(&go);
    let line = format!("echo one; exec >&- 2>&-; read line < {}; exit 7", go.display());
    let running = Running::start(shell(line));
    let silent = running.topics.status(|status| status["state"] == "silent").await;
    assert_eq!(silent["detail"], "the shell command echo closed its output and is still running");
    write(&go, "go\n").await;
    let status = ended(&running.topics).await;
    assert!(status["detail"].as_str().unwrap().contains("exit status: 7"), "{status}");
    assert_eq!(running.topics.all(), ["one"]);
}

#[tokio::test]
async fn a_program_that_ends_is_never_said_to_run_with_its_output_closed() {
    let directory = tempdir().unwrap();
    let go = directory.path().join("go");
    fifo(&go);
    let line = format!("exec >&- 2>&-; read line < {}; exit 127", go.display());
    let log = Log::keep();
    let options = ExecOptions { closed_wait: Duration::from_secs(3600), ..shell(line) };
    let running = Running::start(options);
    write(&go, "go\n").await;
    ended(&running.topics).await;
    assert_eq!(log.lines().iter().find(|line| line.contains("closed its output")), None);
}

#[tokio::test]
async fn a_program_without_a_line_may_hold_its_output_back_which_is_told_once() {
    let directory = tempdir().unwrap();
    let go = directory.path().join("go");
    fifo(&go);
    let options = ExecOptions {
        first_line_wait: Duration::from_millis(20),
        report_interval: Duration::from_millis(20),
        restart: Restart::OnFailure,
        directory: Some(directory.path().to_owned()),
        ..shell("cat go; [ -e again ] && echo now || { touch again; exit 1; }")
    };
    let log = Log::keep();
    let running = Running::start(options);
    let words = "no line from the shell command cat in 20 ms: if it should have written one, it may be \
                 buffering its output (python3 -u, stdbuf -oL, grep --line-buffered)";
    running.topics.status(|status| status["detail"] == words).await;
    for _ in 0..2 {
        write(&go, "").await;
        running.topics.status(|status| status["state"] == "lost").await;
    }
    assert_eq!(running.topics.events(1).await, ["now"]);
    ended(&running.topics).await;
    let told: Vec<String> =
        log.lines().into_iter().filter(|line| line.starts_with("WARN no line")).collect();
    assert_eq!(told, [format!("WARN {words} topic=lines")]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_flood_of_100_mb_takes_no_memory() {
    // Not a guard against slowness: a busy machine takes its time for this much.
    const TIME_MAX: Duration = Duration::from_secs(300);
    if !is_alone() {
        let (mut process, _input) = Alone::start("exec::a_flood_of_100_mb_takes_no_memory");
        let status = process.ended(TIME_MAX).await;
        assert!(status.success(), "{status}");
        return;
    }
    let before = resident_bytes();
    for (line, events, bad_lines) in [
        // Lines of 2,000 bytes, and one line without end.
        ("yes $(printf %01999d 0) | head -c 100000000", 50_000, 0),
        ("head -c 100000000 /dev/zero", 0, 1),
    ] {
        let retention = Retention { bytes_max: 1 << 20, ..Retention::default() };
        let topics = Topics::keeping("lines", retention);
        let (to, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        let run = run(shell(line), to, status, pending());
        tokio::time::timeout(TIME_MAX, run).await.unwrap();
        let status = ended(&topics).await;
        assert_eq!((&status["events"], &status["bad_lines"]), (&json!(events), &json!(bad_lines)));
    }
    let most = status_bytes("self", "VmHWM");
    assert!(most < before + (16 << 20), "{before} {most}");
}

#[tokio::test]
async fn lines_over_the_limit_are_skipped_and_counted() {
    let line = r#"printf '%s\n' 12345678 123456789 '"ok"'; printf 'a line that never ends'"#;
    let topics = to_its_end(ExecOptions { line_bytes_max: 8, ..shell(line) }).await;
    assert_eq!(topics.all(), [json!(12_345_678), json!("ok")]);
    assert_eq!(ended(&topics).await["bad_lines"], 2);
}

#[tokio::test]
async fn binary_output_is_published_with_replacements_and_counted() {
    let log = Log::keep();
    let topics = to_its_end(shell(r"printf 'gr\374n\n\000\033ok\n\377\376\n'")).await;
    assert_eq!(topics.all(), ["gr\u{fffd}n", "\0\u{1b}ok", "\u{fffd}\u{fffd}"]);
    let status = topics.status(|status| status["bad_lines"] == 2).await;
    assert_eq!(status["events"], 3);
    let told = "WARN bad lines; the newest: not UTF-8, published with U+FFFD: \"\u{fffd}\u{fffd}\"";
    assert!(log.lines().iter().any(|line| line.starts_with(told)), "{:?}", log.lines());
}

#[tokio::test]
async fn all_that_was_written_before_the_end_is_published() {
    let topics = to_its_end(shell("seq 1 8000")).await;
    assert_eq!(topics.all(), (1..=8000).collect::<Vec<_>>());
}

#[tokio::test]
async fn when_stopped_its_last_words_are_published() {
    let line = "trap 'echo bye; exit 0' TERM; sh -c 'echo ready; exec sleep 1000' & wait";
    let running = Running::start(shell(line));
    running.topics.events(1).await;
    let topics = running.stop().await;
    assert_eq!(topics.all(), ["ready", "bye"]);
    let expected = "the shell command trap has ended, exit status: 0, as requested";
    assert_eq!(ended(&topics).await["detail"], expected);
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_after_the_grace() {
    let directory = tempdir().unwrap();
    fifo(&directory.path().join("never"));
    let options = ExecOptions {
        grace: Duration::from_millis(50),
        directory: Some(directory.path().to_owned()),
        ..shell("trap '' TERM; echo $$; read line < never")
    };
    let running = Running::start(options);
    let pid = pid(&running.topics.events(1).await[0]);
    let topics = running.stop().await;
    assert!(test_kill_process(pid).is_err(), "not reaped");
    let expected = "the shell command trap has ended, signal: 9 (SIGKILL), as requested";
    assert_eq!(ended(&topics).await["detail"], expected);
}

/// A program with a grandchild that ignores SIGTERM; all of them hold the lifeline.
fn family(directory: &TempDir) -> (Lifeline, ExecOptions) {
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    fifo(&directory.path().join("never"));
    let options = ExecOptions {
        grace: Duration::from_millis(50),
        directory: Some(directory.path().to_owned()),
        ..shell("exec 3> lifeline; (trap '' TERM; sh -c 'echo ready; read line < never') & wait")
    };
    (lifeline, options)
}

#[tokio::test]
async fn when_stopped_grandchildren_are_killed_too() {
    let directory = tempdir().unwrap();
    let (lifeline, options) = family(&directory);
    let running = Running::start(options);
    running.topics.events(1).await;
    running.stop().await;
    cut(lifeline).await;
}

#[tokio::test]
async fn when_dropped_grandchildren_are_killed_too() {
    let directory = tempdir().unwrap();
    let (lifeline, options) = family(&directory);
    let running = Running::start(options);
    running.topics.events(1).await;
    drop(running);
    cut(lifeline).await;
}

#[tokio::test]
async fn when_dropped_no_zombie_is_left() {
    let running = Running::start(shell("echo $$; exec sleep 1000"));
    let pid = pid(&running.topics.events(1).await[0]);
    drop(running);
    gone(pid).await;
}

#[tokio::test]
async fn what_a_program_left_running_is_ended_with_it() {
    let directory = tempdir().unwrap();
    let lifeline = Lifeline::open(&directory.path().join("lifeline"));
    let options = ExecOptions {
        directory: Some(directory.path().to_owned()),
        ..shell("exec 3> lifeline; sleep 1000 & echo ready; exit 4")
    };
    let topics = to_its_end(options).await;
    cut(lifeline).await;
    assert!(ended(&topics).await["detail"].as_str().unwrap().contains("exit status: 4"));
}

#[tokio::test]
async fn standard_error_can_be_a_topic() {
    let errors = Topics::new("lines.stderr");
    let options = ExecOptions {
        stderr: Stderr::Topic(Arc::clone(&errors.events)),
        ..shell(r#"echo out; printf '{"level":"warn"}\nlast' >&2"#)
    };
    assert_eq!(to_its_end(options).await.all(), ["out"]);
    assert_eq!(errors.all(), [json!({"level": "warn"}), json!("last")]);
}

#[tokio::test]
async fn standard_error_goes_to_the_log_in_moderation() {
    let log = Log::keep();
    let options = ExecOptions {
        log_lines_max: 3,
        report_interval: Duration::from_millis(1),
        ..shell(r"printf 'a\033[31m\r\nb\n' >&2; echo out; head -c 5000 /dev/zero | tr '\0' x >&2")
    };
    to_its_end(options).await;
    let long = format!("INFO standard error: {}…… topic=lines", "x".repeat(1000));
    let expected = [
        "INFO standard error: a\\u001b[31m topic=lines",
        "INFO standard error: b topic=lines",
        &long,
    ];
    let said = log.lines().into_iter().filter(|line| line.contains("standard error"));
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_flood_of_errors_is_logged_as_a_number() {
    let log = Log::keep();
    let directory = tempdir().unwrap();
    fifo(&directory.path().join("go"));
    let options = ExecOptions {
        log_lines_max: 3,
        report_interval: Duration::from_millis(50),
        directory: Some(directory.path().to_owned()),
        ..shell("seq 1 1000 >&2; echo done; read line < go")
    };
    let running = Running::start(options);
    within(async {
        while !log.lines().iter().any(|line| line.contains("not logged")) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    write(&directory.path().join("go"), "go\n").await;
    ended(&running.topics).await;
    let count = log.lines().iter().filter(|line| line.contains("standard error: ")).count();
    assert!(count < 500, "{count} lines");
}
