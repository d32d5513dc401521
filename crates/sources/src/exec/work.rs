//! The work of one run: starts the program, writes its input, publishes its output, and ends it.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use anemone_hub::run::{RunContext, RunFailure, RunInput, RunOutcome, Stopped};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

use super::census::Census;
use super::error_log::ErrorLog;
use super::escapes::Escapes;
use super::group::{Group, GroupEvent, Launch, Pipes, ProgramInput};
use super::handover::Priority;
use super::pipes::{READ_BYTES, REST_BYTES_MAX, Read, Rest, readable, take};
use super::program::{Program, ProgramOptions};
use super::results::{Bars, Refused, Results};
use crate::lines::Lines;
use crate::status::{chain, earliest, sleep_until};

/// Runs the program once, on this thread.
pub(super) fn run(program: &Program, input: &RunInput, context: &RunContext) -> RunOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    match runtime {
        Ok(runtime) => runtime.block_on(start(program, input, context)),
        Err(error) => Err(not_started(program, &error)),
    }
}

async fn start(program: &Program, input: &RunInput, context: &RunContext) -> RunOutcome {
    let options = &program.options;
    let launch = Launch {
        command: &options.command,
        environment: &environment(options, input),
        directory: options.directory.as_deref(),
        grace: options.grace,
        // This thread keeps its own: it must not be interrupted for long while it holds what readers of the run wait for.
        priority: Priority::Low,
        input: if input.body.is_empty() { ProgramInput::Empty } else { ProgramInput::Pipe },
    };
    match Group::start(&launch) {
        Ok((group, pipes)) => Work::new(program, input, context).run(group, pipes).await,
        Err(error) => Err(not_started(program, &error)),
    }
}

fn not_started(program: &Program, error: &io::Error) -> RunFailure {
    let directory = program.options.directory.as_deref().filter(|directory| !directory.is_dir());
    let detail = match directory {
        Some(directory) => format!("there is no directory {}", directory.display()),
        None => format!("{} cannot be started: {}", program.name(), chain(error)),
    };
    program.log.warn(&detail);
    RunFailure::new(detail)
}

/// Returns the variables of the configuration and those about the request. The latter take precedence.
fn environment(options: &ProgramOptions, input: &RunInput) -> Vec<(OsString, OsString)> {
    let of_request = [
        ("ANEMONE_PATH", input.path.as_str()),
        ("ANEMONE_QUERY", input.query.as_deref().unwrap_or_default()),
        ("ANEMONE_CONTENT_TYPE", input.content_type.as_deref().unwrap_or_default()),
    ];
    let of_request = of_request.map(|(name, value)| (name.into(), value.into()));
    options.environment.iter().cloned().chain(of_request).collect()
}

/// The reason why the program is ended before it ends by itself.
#[derive(Debug)]
enum Cut {
    Stopped(Stopped),
    Overdue,
    OutputTooLong,
    LineTooLong,
    TooManyProcesses(usize),
}

impl From<Stopped> for Cut {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<Refused> for Cut {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::LineTooLong => Self::LineTooLong,
            Refused::Stopped(stopped) => Self::Stopped(stopped),
        }
    }
}

struct Work<'a> {
    program: &'a Program,
    context: &'a RunContext,
    /// The part of the input that is not written yet.
    input: &'a [u8],
    escapes: Escapes,
    lines: Lines,
    bars: Bars,
    results: Results<'a>,
    error_log: ErrorLog,
    output_bytes: u64,
    census: Census,
    overdue_at: Option<Instant>,
    cut: Option<Cut>,
}

impl<'a> Work<'a> {
    fn new(program: &'a Program, input: &'a RunInput, context: &'a RunContext) -> Self {
        let options = &program.options;
        Self {
            program,
            context,
            input: &input.body,
            escapes: Escapes::default(),
            lines: Lines::with_cr(options.line_bytes_max),
            bars: Bars::new(),
            results: Results::new(program, context),
            error_log: ErrorLog::new(program.log.clone()),
            output_bytes: 0,
            census: Census::new(),
            overdue_at: options.time_max.and_then(|time_max| Instant::now().checked_add(time_max)),
            cut: None,
        }
    }

    /// Runs the program. Returns when the program and its descendants have ended.
    async fn run(mut self, mut group: Group, pipes: Pipes) -> RunOutcome {
        let (mut stdin, mut stdout, mut stderr) =
            (pipes.stdin, Some(pipes.stdout), Some(pipes.stderr));
        let mut buffer = vec![0; READ_BYTES];
        let exit = loop {
            let look_at = if group.is_ending() { None } else { self.limits_due() };
            tokio::select! {
                () = readable(stdout.as_ref()) => {
                    let read = take(&mut stdout, &mut buffer);
                    self.take_output(read, &buffer);
                }
                () = readable(stderr.as_ref()) => {
                    let read = take(&mut stderr, &mut buffer);
                    self.take_error_output(read, &buffer);
                }
                () = writable(stdin.as_ref()) => self.write_input(&mut stdin),
                event = group.next() => match event {
                    GroupEvent::ProgramEnded => group.end(),
                    GroupEvent::Gone(exit) => break exit,
                },
                stopped = self.context.stopped(), if self.cut.is_none() => self.cut(stopped),
                () = sleep_until(earliest(look_at, self.error_log.due())) => {}
            }
            self.check_limits(&group);
            self.end_if_cut(&mut group);
            // A program that always has output would keep the timers from running.
            tokio::task::yield_now().await;
        };
        self.read_rest(stdout, stderr, &mut buffer);
        self.outcome(exit)
    }

    fn limits_due(&self) -> Option<Instant> {
        earliest(Some(self.census.due()), self.overdue_at)
    }

    fn check_limits(&mut self, group: &Group) {
        self.error_log.report_refused();
        if group.is_ending() {
            return;
        }
        if self.overdue_at.is_some_and(|at| at <= Instant::now()) {
            self.cut(Cut::Overdue);
        }
        let options = &self.program.options;
        if let Some(count) = self.census.take(group).filter(|count| *count > options.processes_max)
        {
            self.cut(Cut::TooManyProcesses(count));
        }
    }

    /// Notes the reason to end the program, unless there is one already.
    fn cut(&mut self, cut: impl Into<Cut>) {
        self.cut.get_or_insert(cut.into());
    }

    fn end_if_cut(&mut self, group: &mut Group) {
        match &self.cut {
            None => {}
            Some(Cut::Stopped(_) | Cut::Overdue) => group.end(),
            Some(Cut::OutputTooLong | Cut::LineTooLong | Cut::TooManyProcesses(_)) => group.kill(),
        }
    }

    fn write_input(&mut self, stdin: &mut Option<Sender>) {
        let Some(pipe) = stdin else { return };
        match pipe.try_write(self.input) {
            Ok(len) => self.input = &self.input[len..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The program does not want the rest.
            Err(_) => self.input = &[],
        }
        if self.input.is_empty() {
            *stdin = None;
        }
    }

    fn take_output(&mut self, read: Read, buffer: &[u8]) {
        match read {
            Read::Nothing => {}
            Read::Bytes(len) => self.receive(&buffer[..len]),
            Read::End => {
                if let (None, Some(line)) = (&self.cut, self.lines.finish()) {
                    let passed = self.results.pass_on(line);
                    self.publish_after(passed);
                }
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        let mut bytes = self.escapes.remove(bytes);
        let mut passed = Ok(());
        while let (None, Ok(()), Some(line)) = (&self.cut, &passed, self.lines.next(&mut bytes)) {
            passed = self.results.pass_on(line);
        }
        self.publish_after(passed);
    }

    /// Publishes the partial results of a read. Notes the reason to end the program if publishing fails, or if a line
    /// was refused.
    fn publish_after(&mut self, passed: Result<(), Refused>) {
        if let Err(cut) = self.results.publish().map_err(Refused::from).and(passed) {
            self.cut(cut);
        }
    }

    fn take_error_output(&mut self, read: Read, buffer: &[u8]) {
        match read {
            Read::Nothing => {}
            Read::Bytes(len) => {
                self.count(len);
                self.context.keep_stderr(&buffer[..len]);
                self.error_log.receive(&buffer[..len]);
                let shown = self.results.show_bars(&mut self.bars, &buffer[..len]);
                if let Err(stopped) = shown {
                    self.cut(stopped);
                }
            }
            Read::End => self.error_log.finish(),
        }
    }

    fn count(&mut self, bytes: usize) {
        self.output_bytes += bytes as u64;
        if self.output_bytes > self.program.options.output_bytes_max {
            self.cut(Cut::OutputTooLong);
        }
    }

    /// Reads the bytes that the group has left in the pipes.
    fn read_rest(&mut self, stdout: Option<Receiver>, stderr: Option<Receiver>, buffer: &mut [u8]) {
        if let Some(pipe) = stdout {
            let mut rest = Rest(REST_BYTES_MAX);
            while let Some(len) = rest.read(&pipe, buffer) {
                self.take_output(Read::Bytes(len), buffer);
            }
            self.take_output(Read::End, buffer);
        }
        if let Some(pipe) = stderr {
            let mut rest = Rest(REST_BYTES_MAX);
            while let Some(len) = rest.read(&pipe, buffer) {
                self.take_error_output(Read::Bytes(len), buffer);
            }
            self.take_error_output(Read::End, buffer);
        }
    }

    /// Adds the last line of standard error, since most programs explain there why they fail.
    fn said(&self, end: String) -> String {
        match self.error_log.last() {
            Some(last) => format!("{end}: {last}"),
            None => end,
        }
    }

    fn outcome(mut self, exit: Option<ExitStatus>) -> RunOutcome {
        let options = &self.program.options;
        if self.cut.is_none() && exit.is_some_and(|status| status.success()) {
            return Ok(self.results.take_result());
        }
        // A failure has no result.
        self.results.give_up_result()?;
        let why = match &self.cut {
            None => match exit {
                // "exit status: 3", "signal: 9 (SIGKILL)"
                Some(status) => self.said(format!("has ended, {status}")),
                None => self.said("has ended, with an unknown status".to_owned()),
            },
            Some(Cut::Stopped(stopped)) => return Err((*stopped).into()),
            Some(Cut::Overdue) => {
                return Err(RunFailure::timed_out(options.time_max.unwrap_or_default()));
            }
            Some(Cut::OutputTooLong) => {
                format!("wrote more than {} bytes, and was killed", options.output_bytes_max)
            }
            Some(Cut::LineTooLong) => {
                let bytes_max = options.line_bytes_max;
                format!("wrote a line of more than {bytes_max} bytes, and was killed")
            }
            Some(Cut::TooManyProcesses(count)) => {
                let processes_max = options.processes_max;
                format!("had {count} processes, more than {processes_max}, and was killed")
            }
        };
        Err(RunFailure::new(format!("{} {why}", self.program.name())))
    }
}

/// Waits until the pipe is writable. Waits forever if there is no pipe.
async fn writable(pipe: Option<&Sender>) {
    match pipe {
        // The write will return the error.
        Some(pipe) => drop(pipe.writable().await),
        None => std::future::pending().await,
    }
}
