//! The log: lines on standard error.
//!
//! Whatever a field holds was maybe said by somebody else, a peer, a program, a file, so each value is made
//! [`printable`] here, once for all crates: nobody begins a line of the log, or moves a cursor, but the log.

use std::error::Error;
use std::fmt::{self, Debug};
use std::io::{self, IsTerminal};

use anemone_sources::printable;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{self as lines, FormatFields};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

pub(crate) fn start(verbose: bool) {
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    // Every frame would be too much even for those who want to know what happens.
    let targets = Targets::new().with_default(level).with_target("h2", LevelFilter::WARN);
    let lines = lines::layer()
        .fmt_fields(Fields)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}

/// The message, and `name=value` for everything else.
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
        let (mut text, mut cause) = (value.to_string(), value.source());
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        self.put(field, &text);
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
}
