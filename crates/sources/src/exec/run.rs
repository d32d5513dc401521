//! The source itself: start, read, end, start again.

use std::io;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::sync::Arc;

use anemone_hub::Topic;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

use super::allowance::Allowance;
use super::group::{Group, LOOK_EVERY, Outputs};
use super::{Options, Stderr};
use crate::backoff::Backoff;
use crate::feed::{Feed, Patience, patiently};
use crate::first_line::FirstLine;
use crate::lines::{self, Line, Lines};
use crate::printable::printable_start;
use crate::status::{State, Status, chain, earliest, seconds, sleep_until, wall_clock};

/// One read's worth; a pipe holds 64 KiB as a rule.
const READ_BYTES: usize = 16 << 10;

/// The bytes that are still read once all who could write are gone: all that a pipe can hold. One who has
/// left the group may hold it open and go on writing.
const REST_BYTES_MAX: usize = 1 << 20;

/// Longest line of standard error that goes to the log.
const LOG_LINE_BYTES_MAX: usize = 4000;
const LOG_LINE_CHARS_MAX: usize = 1000;

/// Runs the program and publishes the lines of its output to `topic` and how it is doing to `status`
/// (by convention the topic `NAME.status`).
///
/// Returns once the program has ended and is not to be started again ([`Restart`](super::Restart)),
/// or once `stop` has completed and the whole process group is gone: at most
/// [`Options::grace`] and a second later. What the program says until then is still published; lines that
/// wait for their topic's disk do so for the grace and no longer, before all that. With
/// [`std::future::pending`] it is never stopped.
///
/// Runs on the calling task, in a tokio runtime with its IO and time drivers on. Standard error to
/// the log is logged with the name of `topic`.
///
/// # Cancel safety
/// Dropping the future sends SIGTERM to the group at once and leaves the rest, SIGKILL after the
/// grace and reaping, to a thread, which this process has to outlive: one that is about to end
/// should use `stop` and wait. Nothing half is published.
pub async fn run(
    options: Options,
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
        let detail = format!("{} {}", source.options.command, end.sentence());
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

/// The end of a run.
struct End {
    exit: io::Result<Option<ExitStatus>>,
    /// It was asked to.
    stopped: bool,
}

impl End {
    fn sentence(&self) -> String {
        match &self.exit {
            Err(error) => format!("cannot be started: {}", chain(error)),
            // "exit status: 3", "signal: 9 (SIGKILL)"
            Ok(Some(status)) => format!("has ended, {status}"),
            Ok(None) => "has ended, with an unknown status".to_owned(),
        }
    }

    fn is_failure(&self) -> bool {
        !matches!(&self.exit, Ok(Some(status)) if status.success())
    }
}

struct ExecSource {
    options: Options,
    status: Status,
    output: Feed,
    error_output: ErrorOutput,
    backoff: Backoff,
    first_line: FirstLine,
    /// The time at which it is told that the output is closed, unless the program has ended by then.
    closed_due: Option<Instant>,
    /// Says when lines have waited long enough for their topic.
    patience_over: watch::Sender<bool>,
}

impl ExecSource {
    fn new(options: Options, topic: Arc<Topic>, status: Arc<Topic>) -> Self {
        let detail = format!("starting {}", options.command);
        let name = topic.name().to_string();
        let (patience_over, patience) = watch::channel(false);
        let feed = |topic| {
            let patience = Patience::until(patience.clone());
            Feed::new(topic, options.line_bytes_max).with_patience(patience)
        };
        let error_output = match &options.stderr {
            Stderr::Log => ErrorOutput::Log(ErrorLog::new(&options, name.clone())),
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

    /// From one start to the end of the whole group.
    async fn run_once(&mut self, mut stop: Pin<&mut impl Future<Output = ()>>) -> End {
        let mut stopped = false;
        let patience = (self.patience_over.clone(), self.options.grace);
        let children = signal(SignalKind::child());
        let started = children.and_then(|children| Ok((children, Group::start(&self.options)?)));
        let (mut children, (mut group, Outputs { stdout, stderr })) = match started {
            Ok(started) => started,
            Err(error) => return End { exit: Err(error), stopped },
        };
        let command = &self.options.command;
        self.status
            .set(State::Opening, format!("{command} is running, waiting for its first line"));
        self.first_line.expect();
        self.closed_due = None;
        let (mut stdout, mut stderr) = (Some(stdout), Some(stderr));
        let mut buffer = vec![0; READ_BYTES];
        let exit = loop {
            if group.is_ending()
                && let Some(exit) = group.has_ended()
            {
                break exit;
            }
            let look_at = group.is_ending().then(|| Instant::now() + LOOK_EVERY);
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
                () = group.program_ended(&mut children), if !group.is_ending() => group.end(),
                () = stop.as_mut(), if !stopped => stopped = true,
                () = sleep_until(earliest(look_at, due)) => {}
            }
            if stopped && !group.is_ending() {
                group.end();
            }
            self.tell_due(group.is_ending());
        };
        self.first_line.give_up();
        let rest = self.read_rest(stdout, stderr, &mut buffer);
        patiently(rest, stop, &mut stopped, &patience).await;
        End { exit: Ok(exit), stopped }
    }

    async fn take_output(&mut self, read: Read, ending: bool, buffer: &[u8]) {
        match read {
            Read::Nothing => {}
            Read::Bytes(len) => {
                let events =
                    self.output.receive(&mut self.status, wall_clock(), &buffer[..len]).await;
                self.heard(events);
            }
            Read::End => {
                let events = self.output.finish(&mut self.status, wall_clock()).await;
                self.heard(events);
                if !ending {
                    self.first_line.give_up();
                    self.closed_due = Some(Instant::now() + self.options.closed_wait);
                }
            }
        }
    }

    fn tell_due(&mut self, ending: bool) {
        if ending {
            // What is not there yet can only come of its end.
            self.first_line.give_up();
            self.closed_due = None;
        }
        let command = &self.options.command;
        if self.closed_due.take_if(|at| *at <= Instant::now()).is_some() {
            self.status
                .set(State::Silent, format!("{command} closed its output and is still running"));
        }
        if self.first_line.due().is_some() {
            self.first_line.tell_due(&mut self.status, &command.to_string());
        }
        self.status.tell_due();
        self.error_output.tell_due();
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

    /// Reads the rest that the group has left in the pipes.
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

    fn heard(&mut self, events: usize) {
        if events > 0 && self.status.state() != State::Live {
            self.status.set(State::Live, format!("receiving from {}", self.options.command));
        }
    }
}

enum Read {
    Nothing,
    Bytes(usize),
    End,
}

/// Never, for one that has ended.
async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // An error shows again when it is read.
        Some(pipe) => drop(pipe.readable().await),
        None => std::future::pending().await,
    }
}

fn take(pipe: &mut Option<Receiver>, buffer: &mut [u8]) -> Read {
    let Some(open) = pipe else { return Read::Nothing };
    match open.try_read(buffer) {
        Ok(len) if len > 0 => Read::Bytes(len),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Read::Nothing,
        Ok(_) | Err(_) => {
            *pipe = None;
            Read::End
        }
    }
}

/// The bytes that may still be read.
struct Rest(usize);

impl Rest {
    /// Asks the pipe itself: the runtime may not know yet that there is something in it.
    fn read(&mut self, pipe: &Receiver, buffer: &mut [u8]) -> Option<usize> {
        let buffer_bytes = buffer.len().min(self.0);
        let read = rustix::io::retry_on_intr(|| {
            rustix::io::read(pipe.as_fd(), &mut buffer[..buffer_bytes])
        });
        let len = read.ok().filter(|len| *len > 0)?;
        self.0 -= len;
        Some(len)
    }
}

enum ErrorOutput {
    Log(ErrorLog),
    Topic(Feed),
}

impl ErrorOutput {
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Log(log) => Some(log.started + log.allowance.due()?),
            Self::Topic(_) => None,
        }
    }

    fn tell_due(&mut self) {
        if let Self::Log(log) = self {
            log.tell_refused();
        }
    }
}

/// Standard error on its way to the log.
struct ErrorLog {
    /// The name of the topic that events go to.
    source: String,
    lines: Lines,
    allowance: Allowance,
    started: Instant,
}

impl ErrorLog {
    fn new(options: &Options, source: String) -> Self {
        let allowance = Allowance::new(options.log_lines_max, options.report_interval);
        Self { source, lines: Lines::new(LOG_LINE_BYTES_MAX), allowance, started: Instant::now() }
    }

    fn receive(&mut self, mut bytes: &[u8]) {
        while let Some(line) = self.lines.next(&mut bytes) {
            log(&self.source, &mut self.allowance, self.started, line);
        }
    }

    fn finish(&mut self) {
        if let Some(line) = self.lines.finish() {
            log(&self.source, &mut self.allowance, self.started, line);
        }
    }

    fn tell_refused(&mut self) {
        tell_refused(&self.source, &mut self.allowance, self.started);
    }
}

fn log(source: &str, allowance: &mut Allowance, started: Instant, line: Line<'_>) {
    tell_refused(source, allowance, started);
    if !allowance.take(started.elapsed()) {
        return;
    }
    let text = match line {
        Line::Whole(line) => printable_start(&lines::text(line), LOG_LINE_CHARS_MAX),
        Line::TooLong(start) => printable_start(&lines::text(start), LOG_LINE_CHARS_MAX) + "…",
    };
    tracing::info!(topic = %source, "standard error: {text}");
}

fn tell_refused(source: &str, allowance: &mut Allowance, started: Instant) {
    if let Some(count) = allowance.take_refused(started.elapsed()) {
        tracing::warn!(topic = %source, count, "more lines of standard error, not logged");
    }
}
