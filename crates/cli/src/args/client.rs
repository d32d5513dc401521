//! The arguments of the commands that talk to a server.

use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anemone_client::{After, AfterError, Subscribe, Token};
use clap::ValueEnum;

use super::url::{shell_word, split, url};

pub(super) const CONNECTION: &str = "Connection";

/// The options of a connection to a server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = CONNECTION)]
pub(crate) struct Reach {
    /// Also send this header field, such as "Authorization: Bearer TOKEN"; may be repeated
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) fields: Vec<Field>,

    /// Trust only the certificates in this PEM file; for https:// and wss:// only. `serve --tls-dev --tls-dev-cert FILE`
    /// writes such a file
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,

    /// Trust any certificate; for https:// and wss:// only. Anyone between client and server can then read and change
    /// everything
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Give up an attempt to connect or to get an answer after this time, such as 5s [default: 20s, for calls 55s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,

    /// Do not log connections; log only lost events and why the command ends
    #[arg(long, short, conflicts_with = "verbose", help_heading = super::LOG)]
    pub(crate) quiet: bool,
}

impl Reach {
    /// Returns the flags that another command needs for the same connection, each after a space, for a shell. A value of
    /// a field may be secret, and is left out.
    pub(crate) fn flags(&self) -> String {
        let ca =
            self.ca.iter().map(|path| format!(" --ca {}", shell_word(&path.to_string_lossy())));
        let insecure = self.insecure.then(|| " --insecure".to_owned());
        let fields = self
            .fields
            .iter()
            .map(|field| format!(" -H {}", shell_word(&format!("{}: …", field.name))));
        ca.chain(insecure).chain(fields).collect()
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Field {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected NAME: VALUE, such as \"Authorization: Bearer TOKEN\"";
        let (name, value) = text.split_once(':').ok_or(expected)?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(expected);
        }
        Ok(Self { name: name.to_owned(), value: value.trim().to_owned() })
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// The server as browsers reach it, such as https://wind.example, also below a path; or unix:SOCKET
    #[arg(value_parser = url)]
    pub(crate) url: String,

    /// Keep quiet connections for this time, to see what is cut: the longest silence is that of a long poll behind a proxy, 50 s
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) wait: Duration,

    /// Say that a stream is held back if it has not begun after this time, and some round trips
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = time)]
    pub(crate) begin_max: Duration,

    /// Print one line of JSON instead of lines for people
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sub {
    /// The topic, such as http://127.0.0.1:8080/topics/wind, or unix:SOCKET:/topics/wind behind a Unix socket; with --via tcp,
    /// tcp://HOST:PORT/topics/NAME. With NAME, the server, such as unix:SOCKET
    #[arg(value_parser = url)]
    pub(crate) url: String,

    /// The name of the topic, or with PREFIX* all topics whose names begin so, if the URL is that of the server
    pub(crate) name: Option<String>,

    /// Also read the topic with this name, or with PREFIX* all topics whose names begin so, on the same stream; may be
    /// repeated. The URL may then be that of the server
    #[arg(long = "topic", value_name = "NAME")]
    pub(crate) topics: Vec<String>,

    /// The transport; auto tries ws, then sse, then long-poll, and for several topics ndjson, sse, long-poll
    #[arg(long, value_enum, default_value_t = Via::Auto)]
    pub(crate) via: Via,

    /// Begin after this position, such as 4zq81x-42; earliest: with the oldest event; latest: with new events only; -10: with
    /// the last 10 events; for several topics also their positions, such as cpu:4zq81x-7,wind:4zq81x-42 [default: latest]
    #[arg(long, value_name = "POSITION", allow_negative_numbers = true)]
    pub(crate) after: Option<PlaceArg>,

    /// Begin with the last N events that are retained
    #[arg(long, value_name = "N", value_parser = last, conflicts_with_all = ["after", "since"])]
    pub(crate) last: Option<After>,

    /// Begin with the events since this time: 10m for ten minutes ago (ms, s, m, h, d), or a time, such as
    /// 2026-11-22T10:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    pub(crate) since: Option<String>,

    /// Events to get when behind: all, or only the latest [default: all]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Behind>,

    /// End after this many events, at least 1
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) count: Option<NonZero<u64>>,

    /// The format of the output
    #[arg(long, short, value_enum, default_value_t = Output::Json)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) reach: Reach,

    /// Give up after this many retries in a row; 0 tries once [default: never]
    #[arg(long, value_name = "N", value_parser = retries, help_heading = CONNECTION)]
    pub(crate) retries: Option<u32>,
}

/// A place in each topic, or one for all.
#[derive(Clone, Debug)]
pub(crate) enum PlaceArg {
    All(After),
    Each(Token),
}

impl FromStr for PlaceArg {
    type Err = AfterError;

    fn from_str(text: &str) -> Result<Self, AfterError> {
        match text.parse() {
            Ok(token) => Ok(Self::Each(token)),
            Err(_) => text.parse().map(Self::All),
        }
    }
}

impl Sub {
    /// Returns true if the arguments and the URL mean future events.
    pub(crate) fn is_from_now(&self) -> bool {
        let query = split(&self.url).1.split_once('?').map_or("", |(_, query)| query);
        let says_where = |parameter: &str| {
            parameter.starts_with("since=")
                || parameter.starts_with("after=") && parameter != "after=latest"
        };
        match self.after() {
            Some(PlaceArg::All(after)) => after == After::Latest,
            Some(PlaceArg::Each(_)) => false,
            None => self.since.is_none() && !query.split('&').any(says_where),
        }
    }

    /// Returns the names and patterns of topics besides that in the URL.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.name.iter().filter(|name| name.contains('*')).chain(&self.topics)
    }

    fn after(&self) -> Option<PlaceArg> {
        self.after.clone().or(self.last.map(PlaceArg::All))
    }

    /// Sets the topics and the requested beginning.
    pub(crate) fn begin(&self, subscribe: Subscribe) -> Subscribe {
        let subscribe = self.names().fold(subscribe, |subscribe, name| subscribe.topic(name));
        match (self.after(), &self.since) {
            (Some(PlaceArg::All(after)), _) => subscribe.after(after),
            (Some(PlaceArg::Each(token)), _) => subscribe.resume(token),
            (None, Some(time)) => subscribe.since(time),
            (None, None) => subscribe,
        }
    }
}

/// A transport for reading a topic.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Via {
    /// The first that works: ws, sse, long-poll
    Auto,
    /// A WebSocket at the topic's URL
    Ws,
    /// The multiplexed WebSocket at /ws
    Mux,
    /// Server-sent events
    Sse,
    /// A stream with one JSON object a line
    Ndjson,
    /// Requests that wait for an event
    LongPoll,
    /// One request a second
    Poll,
    /// The multiplexed protocol over bare TCP
    Tcp,
}

impl From<Via> for Option<anemone_client::Via> {
    fn from(via: Via) -> Self {
        Some(match via {
            Via::Auto => return None,
            Via::Ws => anemone_client::Via::WebSocket,
            Via::Mux => anemone_client::Via::Mux,
            Via::Sse => anemone_client::Via::Sse,
            Via::Ndjson => anemone_client::Via::Ndjson,
            Via::LongPoll => anemone_client::Via::LongPoll,
            Via::Poll => anemone_client::Via::Poll,
            Via::Tcp => anemone_client::Via::Tcp,
        })
    }
}

/// The events for a reader that is behind.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Behind {
    /// Every event, in order
    All,
    /// The newest event, and how many were skipped
    Latest,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Output {
    /// An object for each event and each notice: {"position":…,"time":…,"data":…}
    Json,
    /// The data of each event, as JSON on a line; notices go to standard error, as they do with line and raw
    Data,
    /// The line from which `anemone pub` makes this event: text without quotes, unless it would then look like JSON
    Line,
    /// The data exactly as it was published: text with all its lines, bytes as bytes
    Raw,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Topics {
    /// The server, such as http://127.0.0.1:8080/, or unix:SOCKET behind a Unix socket; or one of its topics
    #[arg(value_parser = url)]
    pub(crate) url: String,

    /// The format of the output
    #[arg(long, short, value_enum, default_value_t = Listing::Line)]
    pub(crate) output: Listing,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// The format of a list of topics.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Listing {
    /// The URL, the number of events, and their bytes
    Line,
    /// An object: {"name":…,"url":…,"first":…,"next":…,"bytes":…}
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pub {
    /// The topic, such as http://127.0.0.1:8080/topics/scratch-a, or unix:SOCKET:/topics/scratch-a behind a Unix socket
    #[arg(value_parser = url)]
    pub(crate) url: String,

    /// The event: JSON if it is valid JSON, else a string (text that looks like broken JSON is refused, unless with --text);
    /// - reads events from standard input, one a line
    #[arg(default_value = "-", allow_hyphen_values = true)]
    pub(crate) data: String,

    /// The type of DATA, or of all of standard input: one event, or with ndjson one a line
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    pub(crate) content: Option<ContentArg>,

    /// Publish DATA, or all of standard input, as one string, even if it looks like JSON; the same as --type text
    #[arg(long, conflicts_with = "content")]
    pub(crate) text: bool,

    /// Idempotency key, 1 to 128 visible characters: repeating the command with the same key and data publishes nothing twice
    /// [default: a new key]
    #[arg(long)]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) reach: Reach,

    #[command(flatten)]
    pub(crate) patience: Patience,
}

/// The number of times that a request is tried.
#[derive(Debug, clap::Args)]
pub(crate) struct Patience {
    /// Give up after this many retries, with longer and longer waits between them; 0 tries once [default: 8, which takes a
    /// minute]
    #[arg(long, value_name = "N", value_parser = retries, help_heading = CONNECTION)]
    pub(crate) retries: Option<u32>,
}

/// The content type of an event.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ContentArg {
    /// One event, a JSON value
    Json,
    /// One event, a string
    Text,
    /// One event, any bytes
    Binary,
    /// Events, a JSON value a line
    Ndjson,
}

fn count(text: &str) -> Result<NonZero<u64>, String> {
    text.parse().map_err(|_| "expected a number of events to wait for, at least 1".to_owned())
}

pub(super) fn retries(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected a number of retries, such as 8; 0 tries once".to_owned())
}

/// Parses a number, up to a server's limit; 0 means future events.
fn last(text: &str) -> Result<After, String> {
    match text.parse::<u64>() {
        Ok(count) if count <= After::LAST_MAX => {
            Ok(NonZero::new(count).map_or(After::Latest, After::Last))
        }
        _ => Err("expected a number of events to begin with, such as 10".to_owned()),
    }
}

/// Parses a duration with its unit, as in `--since`.
fn time(text: &str) -> Result<Duration, String> {
    let expected = "expected a time with a unit, ms, s, m or h, such as 500ms or 5s";
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = units.iter().find(|(name, _)| *name == unit).map(|(_, millis)| *millis);
    let millis = number.parse::<u64>().ok().zip(unit).and_then(|(n, unit)| n.checked_mul(unit));
    millis.filter(|millis| *millis > 0).map(Duration::from_millis).ok_or(expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_none_are_what_comes_from_now_on() {
        assert_eq!(last("0"), Ok(After::Latest));
        assert_eq!(last("10"), "-10".parse().map_err(|_| String::new()));
        assert!(last("-1").is_err() && last("1000000000000000000").is_err());
    }

    #[test]
    fn a_time_has_a_unit_and_is_not_nothing() {
        for (text, millis) in [("500ms", 500), ("5s", 5000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)));
        }
        for text in [
            "",
            "5",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "1d",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_has_a_name_and_a_value() {
        let field = |text: &str| text.parse::<Field>().map(|field| (field.name, field.value));
        assert_eq!(field("A: b: c "), Ok(("A".to_owned(), "b: c".to_owned())));
        assert_eq!(field("A:"), Ok(("A".to_owned(), String::new())));
        assert!(field("A").is_err() && field(": b").is_err() && field("A b: c").is_err());
    }
}
