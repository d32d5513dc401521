//! A program as a source of events: starts the program, reads its output, ends it, and starts it again.

use std::io;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::sync::Arc;

use anemone_hub::Topic;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::Instant;

use super::error_log::{ErrorLog, LogLimit, LoggedAs};
use super::group::{Group, GroupEvent, Launch, Pipes, ProgramInput};
use super::handover::Priority;
use super::pipes::{READ_BYTES, REST_BYTES_MAX, Read, Rest, readable, take};
use super::{ExecOptions, Stderr};
use crate::backoff::Backoff;
use crate::feed::{Feed, Patience, patiently};
use crate::first_line::{FirstLine, MAY_BUFFER};
use crate::status::{State, Status, chain, earliest, seconds, sleep_until, wall_clock};

/// Runs the program, publishes the lines of its output to `topic`, and reports its state to `status` (by convention
/// the topic `NAME.status`).
///
/// Returns when the program has ended and is not to be started again ([`Restart`](super::Restart)). Completing `stop`
/// ends the program with its descendants, within [`ExecOptions::grace`] and a second. The source then publishes the
/// last output and returns. Lines that wait for their topic's disk at that time wait for the grace period at most. With
/// [`std::future::pending`] as `stop`, the source is never stopped.
///
/// Runs on the calling task, in a tokio runtime with IO and time drivers. Lines of standard error that go to the log
/// carry the name of `topic`.
///
/// # Cancel safety
/// Dropping the future makes the guard send SIGTERM to all processes at once, and SIGKILL after the grace period. The
/// last output is lost; use `stop` to get it. No batch is published in part.
pub async fn run(
    options: ExecOptions,
    topic: Arc<Topic>,
    status: Arc<Topic>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut source = ExecSource::new(options, topic, status);
    loop {
        let started = Instant::now();
        let end = source.run_once(stop.as_mut()).await;
        if started.elapsed() >= source.options.good_run_min {
            source.backoff.reset();
        }
        let detail = format!("{} {}", source.options.command, source.sentence(&end));
        if end.stopped {
            return source.status.end(format!("{detail}, as requested"));
        }
        if !source.options.restart.is_due(end.is_failure()) {
            return source.status.end(format!("{detail}; it will not be restarted"));
        }
        let wait = source.backoff.next(fastrand::f64());
        let detail = format!("{detail}; restarting in {}", seconds(wait));
        source.status.set(State::Lost, detail);
        tokio::select! {
            () = source.status.pause(wait) => {}
            () = stop.as_mut() => {
                return source.status.end(format!("{} was stopped", source.options.command));
            }
        }
    }
}

struct ProgramEnd {
    exit: io::Result<Option<ExitStatus>>,
    /// True if `stop` ended the program.
    stopped: bool,
}

impl ProgramEnd {
    fn is_failure(&self) -> bool {
        !matches!(&self.exit, Ok(Some(status)) if status.success())
    }
}

struct ExecSource {
    options: ExecOptions,
    status: Status,
    output: Feed,
    error_output: ErrorOutput,
    backoff: Backoff,
    first_line: FirstLine,
    /// The time at which to report that the output is closed, unless the program has ended by then.
    closed_due: Option<Instant>,
    /// Sends true when lines have waited long enough for their topic's disk.
    patience_over: watch::Sender<bool>,
}

impl ExecSource {
    fn new(options: ExecOptions, topic: Arc<Topic>, status: Arc<Topic>) -> Self {
        let detail = format!("starting {}", options.command);
        let name = topic.name().to_string();
        let (patience_over, patience) = watch::channel(false);
        let feed = |topic| {
            let patience = Patience::until(patience.clone());
            Feed::new(topic, options.line_bytes_max).with_patience(patience)
        };
        let error_output = match &options.stderr {
            Stderr::Log => {
                let name = LoggedAs::Topic(name.clone());
                let limit = LogLimit::new(name, options.log_lines_max, options.report_interval);
                ErrorOutput::Log(ErrorLog::new(limit))
            }
            Stderr::Topic(topic) => ErrorOutput::Topic(feed(Arc::clone(topic))),
        };
        Self {
            status: Status::open(status, name, options.report_interval, detail),
            output: feed(topic),
            error_output,
            backoff: Backoff::new(options.retry_min, options.retry_max),
            first_line: FirstLine::new(options.first_line_wait),
            closed_due: None,
            patience_over,
            options,
        }
    }

    /// Says how the program has ended. What it printed to standard error may be secret, and the status is public:
    /// of that, the sentence says only where it is.
    fn sentence(&self, end: &ProgramEnd) -> String {
        let how = match &end.exit {
            Err(error) => return format!("cannot be started: {}", chain(error)),
            // "exit status: 3", "signal: 9 (SIGKILL)"
            Ok(Some(status)) => status.to_string(),
            Ok(None) => "with an unknown status".to_owned(),
        };
        let logged = if end.is_failure() && !end.stopped && self.error_output.has_logged() {
            " (see the server's log)"
        } else {
            ""
        };
        format!("has ended, {how}{logged}")
    }

    fn launch(&self) -> Launch<'_> {
        Launch {
            command: &self.options.command,
            environment: &self.options.environment,
            directory: self.options.directory.as_deref(),
            grace: self.options.grace,
            priority: Priority::Normal,
            input: ProgramInput::Empty,
        }
    }

    /// Runs the program once. Returns when the program and its descendants have ended.
    async fn run_once(&mut self, mut stop: Pin<&mut impl Future<Output = ()>>) -> ProgramEnd {
        let mut stopped = false;
        let patience = (self.patience_over.clone(), self.options.grace);
        let (mut group, Pipes { stdout, stderr, .. }) = match Group::start(&self.launch()) {
            Ok(started) => started,
            Err(error) => return ProgramEnd { exit: Err(error), stopped },
        };
        let command = &self.options.command;
        self.status
            .set(State::Opening, format!("{command} is running, waiting for its first line"));
        self.first_line.expect();
        self.error_output.begin();
        self.closed_due = None;
        let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
        let mut buffer = vec![0; READ_BYTES];
        let exit = loop {
            let due = earliest(self.status.due(), self.error_output.due());
            let due = earliest(due, earliest(self.first_line.due(), self.closed_due));
            tokio::select! {
                () = readable(stdout.as_ref()) => {
                    let read = take(&mut stdout, &mut buffer);
                    let work = self.take_output(read, group.is_ending(), &buffer);
                    patiently(work, stop.as_mut(), &mut stopped, &patience).await;
                }
                () = readable(stderr.as_ref()) => {
                    let read = take(&mut stderr, &mut buffer);
                    let work = self.take_error_output(read, &buffer);
                    patiently(work, stop.as_mut(), &mut stopped, &patience).await;
                }
                event = group.next() => match event {
                    GroupEvent::ProgramEnded => group.end(),
                    GroupEvent::Gone(exit) => break exit,
                },
                () = stop.as_mut(), if !stopped => stopped = true,
                () = sleep_until(due) => {}
            }
            if stopped && !group.is_ending() {
                group.end();
            }
            self.report_due(group.is_ending());
        };
        self.first_line.give_up();
        let rest = self.read_rest(stdout, stderr, &mut buffer);
        patiently(rest, stop, &mut stopped, &patience).await;
        ProgramEnd { exit: Ok(exit), stopped }
    }

    async fn take_output(&mut self, read: Read, ending: bool, buffer: &[u8]) {
        match read {
            Read::Nothing => {}
            Read::Bytes(len) => {
                let events =
                    self.output.receive(&mut self.status, wall_clock(), &buffer[..len]).await;
                self.on_events(events);
            }
            Read::End => {
                let events = self.output.finish(&mut self.status, wall_clock()).await;
                self.on_events(events);
                if !ending {
                    self.first_line.give_up();
                    self.closed_due = Some(Instant::now() + self.options.closed_wait);
                }
            }
        }
    }

    fn report_due(&mut self, ending: bool) {
        if ending {
            // No line can come any more, except the last ones.
            self.first_line.give_up();
            self.closed_due = None;
        }
        let command = &self.options.command;
        if self.closed_due.take_if(|at| *at <= Instant::now()).is_some() {
            self.status
                .set(State::Silent, format!("{command} closed its output and is still running"));
        }
        if self.first_line.due().is_some() {
            self.first_line.report_due(&mut self.status, &command.to_string(), MAY_BUFFER);
        }
        self.status.report_due();
        self.error_output.report_due();
    }

    async fn take_error_output(&mut self, read: Read, buffer: &[u8]) {
        match (read, &mut self.error_output) {
            (Read::Nothing, _) => {}
            (Read::Bytes(len), ErrorOutput::Topic(feed)) => {
                feed.receive(&mut self.status, wall_clock(), &buffer[..len]).await;
            }
            (Read::Bytes(len), ErrorOutput::Log(log)) => {
                log.receive(&buffer[..len]);
                tokio::task::yield_now().await;
            }
            (Read::End, ErrorOutput::Topic(feed)) => {
                feed.finish(&mut self.status, wall_clock()).await;
            }
            (Read::End, ErrorOutput::Log(log)) => log.finish(),
        }
    }

    /// Reads the bytes that the group has left in the pipes.
    async fn read_rest(
        &mut self,
        stdout: Option<Receiver>,
        stderr: Option<Receiver>,
        buffer: &mut [u8],
    ) {
        if let Some(pipe) = stdout {
            let mut rest = Rest(REST_BYTES_MAX);
            while let Some(len) = rest.read(&pipe, buffer) {
                self.take_output(Read::Bytes(len), true, buffer).await;
            }
            self.take_output(Read::End, true, buffer).await;
        }
        if let Some(pipe) = stderr {
            let mut rest = Rest(REST_BYTES_MAX);
            while let Some(len) = rest.read(&pipe, buffer) {
                self.take_error_output(Read::Bytes(len), buffer).await;
            }
            self.take_error_output(Read::End, buffer).await;
        }
    }

    fn on_events(&mut self, events: usize) {
        if events > 0 && self.status.state() != State::Live {
            self.status.set(State::Live, format!("receiving from {}", self.options.command));
        }
    }
}

enum ErrorOutput {
    Log(ErrorLog),
    Topic(Feed),
}

impl ErrorOutput {
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Log(log) => log.due(),
            Self::Topic(_) => None,
        }
    }

    fn begin(&mut self) {
        if let Self::Log(log) = self {
            log.begin();
        }
    }

    /// Returns true if this run of the program has printed lines that are in the log.
    fn has_logged(&self) -> bool {
        matches!(self, Self::Log(log) if log.has_logged())
    }

    fn report_due(&mut self) {
        if let Self::Log(log) = self {
            log.report_refused();
        }
    }
}
