//! The descendants of a program end with it, whatever they do to outlive it.
#![cfg(target_os = "linux")]

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anemone_hub::run::{Run, RunInput, RunLimits, RunService as _, Runs, StartRun};
use anemone_sources::exec::{Command, ExecOptions, ProgramOptions, ProgramService, Restart, run};
use anemone_testing::{Background, Topics, values, wait_until, within};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::tempdir;

use crate::lifeline::Lifeline;
use crate::use_guard;

/// Lines for a shell with the lifeline open: each starts a process that says that it is up, and lives for long, in a way in which it
/// outlives its process group, its session or its parents.
const WAYS: [&str; 9] = [
    "timeout 600 sh -c 'echo up; exec sleep 600'",
    "setsid -w sh -c 'echo up; exec sleep 600'",
    "set -m; sh -c 'echo up; exec sleep 600' & wait",
    "nohup sh -c 'echo up; exec sleep 600' & wait",
    "(setsid sh -c 'sh -c \"echo up; exec sleep 600\" & exit' &); sleep 600",
    "exec python3 -c 'import subprocess as s; s.run([\"sh\", \"-c\", \"echo up; exec sleep 600\"], start_new_session=True)'",
    "timeout 600 setsid -w timeout 600 sh -c 'set -m; (echo up; sleep 600) & wait'",
    "(trap '' HUP TERM; setsid sh -c 'trap \"\" TERM; echo up; while :; do sleep 600; done' &); sleep 600",
    "trap '' TERM; timeout 600 sh -c 'trap \"\" TERM; echo up; while :; do sleep 600; done'",
];

/// Lines whose program ends by itself, and leaves such a process.
const LEAVING: [&str; 3] = [
    "setsid sh -c 'echo up; exec sleep 600' & read line < go",
    "(set -m; sh -c 'trap \"\" TERM; echo up; while :; do sleep 600; done' &); read line < go",
    "(setsid nohup sh -c 'sh -c \"echo up; exec sleep 600\" & exit' &); read line < go; exit 3",
];

/// Short, for those that ignore SIGTERM.
const GRACE: Duration = Duration::from_millis(200);

/// A program in a folder of its own.
struct Family {
    folder: tempfile::TempDir,
    lifeline: Lifeline,
    command: Command,
}

impl Family {
    fn of(line: &str) -> Self {
        use_guard();
        let folder = tempdir().unwrap();
        let lifeline = Lifeline::open(&folder.path().join("lifeline"));
        crate::fifo(&folder.path().join("go"));
        let command = Command::Shell(format!("exec 3> lifeline; {line}").into());
        Self { folder, lifeline, command }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self, time_max: Option<Duration>) -> Arc<Run> {
        let options = ProgramOptions {
            directory: Some(self.path().to_owned()),
            grace: GRACE,
            time_max,
            ..ProgramOptions::new(self.command.clone())
        };
        let work = ProgramService::new("/work", options).prepare(RunInput::default()).unwrap();
        // Dropping all runs would cancel them.
        let runs = Box::leak(Box::new(Runs::new(RunLimits::default())));
        let run = runs.start(StartRun::new("/work", work)).unwrap().run;
        wait_until("it is not up", || {
            values(run.topic()).iter().any(|event| event["partial"] == "up")
        });
        run
    }

    fn source(&self) -> ExecOptions {
        ExecOptions {
            directory: Some(self.path().to_owned()),
            grace: GRACE,
            restart: Restart::Never,
            ..ExecOptions::new(self.command.clone())
        }
    }
}

#[test]
fn a_cancelled_run_leaves_nobody() {
    for line in WAYS {
        let family = Family::of(line);
        let run = family.start(None);
        run.cancel().unwrap();
        assert_eq!(run.status(Instant::now()).state.as_str(), "cancelled", "at once");
        family.lifeline.cut_after(line);
    }
}

#[test]
fn a_run_that_takes_too_long_leaves_nobody() {
    for line in WAYS {
        let family = Family::of(line);
        family.start(Some(Duration::from_secs(1)));
        family.lifeline.cut_after(line);
    }
}

#[test]
fn a_program_that_ends_by_itself_leaves_nobody() {
    for line in LEAVING {
        let family = Family::of(line);
        let run = family.start(None);
        std::fs::write(family.path().join("go"), "\n").unwrap();
        wait_until("the run does not end", || run.has_ended());
        family.lifeline.cut_after(line);
    }
}

#[tokio::test]
async fn a_source_that_is_stopped_or_dropped_leaves_nobody() {
    for (line, is_dropped) in WAYS.into_iter().zip([true, false].into_iter().cycle()) {
        let family = Family::of(line);
        let topics = Topics::new("lines");
        let (stop, asked) = tokio::sync::oneshot::channel::<()>();
        let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
        let asked = async { drop(asked.await) };
        let mut source = Background(tokio::spawn(run(family.source(), events, status, asked)));
        topics.events(1).await;
        if is_dropped {
            drop(source);
        } else {
            stop.send(()).unwrap();
            within(&mut source.0).await.unwrap();
        }
        let lifeline = family.lifeline;
        tokio::task::spawn_blocking(move || lifeline.cut_after(line)).await.unwrap();
    }
}

#[tokio::test]
async fn a_source_whose_guard_is_killed_ends_its_program() {
    let family = Family::of("echo $PPID; exec sleep 600");
    let topics = Topics::new("lines");
    let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
    let mut source = Background(tokio::spawn(run(family.source(), events, status, pending())));
    let guard = topics.events(1).await[0].as_i64().unwrap();
    let guard = Pid::from_raw(guard.try_into().unwrap()).unwrap();
    kill_process(guard, Signal::KILL).unwrap();
    within(&mut source.0).await.unwrap();
    let lifeline = family.lifeline;
    tokio::task::spawn_blocking(move || lifeline.cut()).await.unwrap();
}

#[tokio::test]
async fn orphans_do_not_stay_zombies_while_their_program_goes_on() {
    let family = Family::of("(sh -c 'echo $$' &); read line < go");
    let topics = Topics::new("lines");
    let (events, status) = (Arc::clone(&topics.events), Arc::clone(&topics.status));
    let _source = Background(tokio::spawn(run(family.source(), events, status, pending())));
    let orphan = topics.events(1).await[0].as_i64().unwrap();
    let orphan = Pid::from_raw(orphan.try_into().unwrap()).unwrap();
    within(async {
        while test_kill_process(orphan).is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[test]
fn a_process_that_goes_on_in_ever_new_sessions_is_caught() {
    // Each starts the next one and ends, so that none lives for long and all are orphans.
    let line = "echo 'setsid sh next &' > next; echo up; sh next; read line < go";
    let family = Family::of(line);
    let run = family.start(None);
    run.cancel().unwrap();
    family.lifeline.cut();
}
