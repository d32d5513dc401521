//! The log on standard error, as text or JSON. A server's lines go through a `queue`.
//!
//! Values of fields may be foreign text, from a peer, a program or a file. They are made [`printable`] here, once for
//! all crates, so they cannot forge a log line or move a cursor.

mod queue;

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::{self, Debug};
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::Duration;

use anemone_server::{ACCESS_TARGET, AccessLog};
use anemone_sources::printable;
use anemone_sources::status::chain;
use clap::ValueEnum;
use queue::Queue;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{self as lines, FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogForm {
    /// Lines with time, level and message
    #[default]
    Text,
    /// One JSON object a line, with time, level and message
    Json,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogRequests {
    /// Log no requests
    #[default]
    Off,
    /// Log every request, but similar polls and refusals only once a minute, with their number
    Sampled,
    /// Log every request
    All,
}

impl From<LogRequests> for AccessLog {
    fn from(wanted: LogRequests) -> Self {
        match wanted {
            LogRequests::Off => Self::Off,
            LogRequests::Sampled => Self::Sampled,
            LogRequests::All => Self::All,
        }
    }
}

/// The options of the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Set on the command line, which takes precedence over `RUST_LOG`.
    pub(crate) verbose: bool,
    /// Set in the configuration, which does not.
    pub(crate) verbose_configured: bool,
    /// Nothing about connections, which is all that `anemone_client` logs.
    pub(crate) quiet: bool,
    /// The requests to log, unless `RUST_LOG` names their target.
    pub(crate) requests: LogRequests,
    pub(crate) form: LogForm,
    /// True to write lines from a thread of its own.
    pub(crate) is_queued: bool,
}

/// The lines for the writing thread.
static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Waits until all lines are written, for at most a second, before the process ends.
pub(crate) fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// The time for a slow reader of the log; it does not get later lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn start(wanted: Wanted) {
    let (targets, fault) = targets(wanted, std::env::var("RUST_LOG").ok().as_deref());
    let targets = without_frames(targets);
    let targets = match targets.iter().any(|(target, _)| target == ACCESS_TARGET) {
        false if wanted.requests != LogRequests::Off => {
            targets.with_target(ACCESS_TARGET, LevelFilter::INFO)
        }
        _ => targets,
    };
    let queue = if wanted.is_queued { Queue::start(io::stderr()) } else { None };
    let writer = match queue {
        Some(queue) => {
            let _ = QUEUE.set(queue.clone());
            BoxMakeWriter::new(move || queue.clone())
        }
        None => BoxMakeWriter::new(io::stderr),
    };
    let lines = lines::layer().fmt_fields(Fields).with_target(false).with_writer(writer);
    let lines = match wanted.form {
        LogForm::Text => {
            let no_color = std::env::var_os("NO_COLOR");
            lines.with_ansi(has_colors(io::stderr().is_terminal(), no_color.as_deref())).boxed()
        }
        LogForm::Json => lines.with_ansi(false).event_format(Json).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    if let Some(fault) = fault {
        tracing::warn!("{fault}");
    }
}

/// Returns the targets without what `h2` says, unless they name it. Its lines about HTTP/2 frames would be too many even
/// for a verbose log, and a client can cause as many of its warnings as it sends frames.
fn without_frames(targets: Targets) -> Targets {
    match targets.iter().any(|(target, _)| target == "h2") {
        true => targets,
        false => targets.with_target("h2", LevelFilter::ERROR),
    }
}

/// Returns the targets to log, and the error in their setting.
fn targets(wanted: Wanted, rust_log: Option<&str>) -> (Targets, Option<String>) {
    let level = |verbose| if verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let default = |verbose| Targets::new().with_default(level(verbose));
    if wanted.quiet {
        let quiet = Targets::new().with_default(LevelFilter::WARN);
        return (quiet.with_target("anemone_client", LevelFilter::ERROR), None);
    }
    let said = rust_log.filter(|text| !wanted.verbose && !text.is_empty());
    match said.map(|text| (text, text.parse::<Targets>())) {
        Some((_, Ok(targets))) => (targets, None),
        Some((text, Err(_))) => {
            let fault = format!(
                "ignoring RUST_LOG={text:?}: expected a level, such as debug, or a list, such as \
                 info,anemone_server=debug"
            );
            (default(wanted.verbose_configured), Some(fault))
        }
        None => (default(wanted.verbose || wanted.verbose_configured), None),
    }
}

/// Returns true if the log may have colours (no-color.org).
fn has_colors(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Formats a line of JSON: `{"time":…,"level":…,"message":…}`, and a member for each other field.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let level = event.metadata().level().as_str();
        let mut members = Members(vec![("time", time.into()), ("level", level.into())]);
        event.record(&mut members);
        writer.write_char('{')?;
        for (index, (name, value)) in members.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(writer, "{comma}{}:{value}", Value::from(*name))?;
        }
        writeln!(writer, "}}")
    }
}

/// The fields in their order. Their text is printable, since a terminal may show the line.
struct Members(Vec<(&'static str, Value)>);

impl Members {
    fn put(&mut self, field: &Field, text: &str) {
        self.0.push((field.name(), printable(text).into()));
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.push((field.name(), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.push((field.name(), value.into()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, &chain(value));
    }
}

/// Formats the message, and other fields as `name=value`.
struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut written = Written { writer, is_first: true, done: Ok(()) };
        fields.record(&mut written);
        written.done
    }
}

struct Written<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    done: fmt::Result,
}

impl Written<'_> {
    fn put(&mut self, field: &Field, value: &str) {
        let space = if std::mem::take(&mut self.is_first) { "" } else { " " };
        let value = printable(value);
        self.done = self.done.and_then(|()| match field.name() {
            "message" => write!(self.writer, "{space}{value}"),
            name => write!(self.writer, "{space}{name}={value}"),
        });
    }
}

impl Visit for Written<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, &format!("{value:?}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, &chain(value));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_others_say_stays_on_its_line_and_cannot_turn_it_round() {
        let (mut said, writer) = pipe().unwrap();
        let layer = lines::layer().fmt_fields(Fields).with_ansi(false).without_time();
        let layer = layer.with_target(false).with_writer(Arc::new(writer));
        let error = anemone_client::Error::from(io::Error::other("gone\u{2028}"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let evil = "a\u{202e}b\x1b[2J\u{9b}2J\nERROR c";
            tracing::info!(topic = %evil, text = evil, "said: {evil}");
            tracing::warn!(error = &error as &dyn Error, "lost");
        });
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        let shown = r"a\u202eb\u001b[2J\u009b2J\nERROR c";
        let quoted = r#""a\u{202e}b\u{1b}[2J\u{9b}2J\nERROR c""#;
        let lines = [
            format!(" INFO said: {shown} topic={shown} text={quoted}"),
            r" WARN lost error=connection failed: gone\u2028".to_owned(),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_line_of_json_has_a_member_for_each_field_and_nothing_that_moves_a_cursor() {
        let (mut said, writer) = pipe().unwrap();
        let layer = lines::layer().fmt_fields(Fields).event_format(Json);
        let layer = layer.with_writer(Arc::new(writer)).boxed();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let evil = "a\u{202e}b\x1b[2J\u{9b}2J\nERROR \"c\"";
            tracing::warn!(topic = %evil, count = 7, ok = true, share = 0.5, "said {evil}");
        });
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        let (line, rest) = text.split_once('\n').unwrap();
        assert!(
            rest.is_empty() && line.bytes().all(|byte| (0x20..0x7f).contains(&byte)),
            "{text:?}"
        );
        let object: Value = serde_json::from_str(line).unwrap();
        let shown = "a\\u202eb\\u001b[2J\\u009b2J\\nERROR \"c\"";
        assert_eq!(object["message"], format!("said {shown}"));
        assert_eq!((&object["topic"], &object["level"]), (&shown.into(), &"WARN".into()));
        assert_eq!((&object["count"], &object["ok"]), (&7.into(), &true.into()));
        assert_eq!(object["share"], 0.5);
        assert!(object["time"].as_str().unwrap().ends_with('Z'), "{object}");
    }

    #[test]
    fn the_command_line_counts_more_than_rust_log_and_that_more_than_a_file() {
        let wanted = |verbose, verbose_configured| Wanted {
            verbose,
            verbose_configured,
            ..Wanted::default()
        };
        let level = |wanted, rust_log: Option<&str>| {
            let (targets, fault) = targets(wanted, rust_log);
            assert_eq!(fault, None);
            let is_logged = |level| targets.would_enable("anemone_server", level);
            (is_logged(&tracing::Level::DEBUG), is_logged(&tracing::Level::INFO))
        };
        for (wanted, rust_log, expected) in [
            (wanted(false, false), None, (false, true)),
            (wanted(false, false), Some(""), (false, true)),
            (wanted(true, false), None, (true, true)),
            (wanted(false, true), None, (true, true)),
            (wanted(false, false), Some("debug"), (true, true)),
            (wanted(false, true), Some("warn"), (false, false)),
            (wanted(true, false), Some("warn"), (true, true)),
            (wanted(false, false), Some("warn,anemone_server=debug"), (true, true)),
        ] {
            assert_eq!(level(wanted, rust_log), expected, "{wanted:?} {rust_log:?}");
        }
        let (_, fault) = targets(Wanted::default(), Some("anemone=loud"));
        assert_eq!(
            fault.unwrap(),
            "ignoring RUST_LOG=\"anemone=loud\": expected a level, such as debug, or a list, such as \
             info,anemone_server=debug"
        );
    }

    #[test]
    fn a_client_cannot_fill_the_log_with_warnings_about_its_frames() {
        for (rust_log, expected) in
            [(None, false), (Some("debug"), false), (Some("warn,h2=warn"), true)]
        {
            let targets = without_frames(targets(Wanted::default(), rust_log).0);
            let warns = targets.would_enable("h2::proto::streams::recv", &tracing::Level::WARN);
            assert_eq!(warns, expected, "{rust_log:?}");
            assert!(targets.would_enable("h2", &tracing::Level::ERROR));
        }
    }

    #[test]
    fn colours_are_for_terminals_whose_people_want_them() {
        let no_color = |text: &'static str| Some(OsStr::new(text));
        for (is_terminal, said, expected) in [
            (true, None, true),
            (true, no_color(""), true),
            (true, no_color("1"), false),
            (false, None, false),
        ] {
            assert_eq!(has_colors(is_terminal, said), expected, "{is_terminal} {said:?}");
        }
    }
}
