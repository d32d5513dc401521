//! The arguments of the commands that call services and run them.

use std::num::NonZero;

use clap::ValueEnum;

use super::client::{CONNECTION, Patience, Reach, retries};
use super::url::url;

#[derive(Debug, clap::Args)]
pub(crate) struct Call {
    /// The method, such as GET or POST
    #[arg(value_parser = method)]
    pub(crate) method: String,

    /// The URL, such as http://127.0.0.1:8080/messages/testing, or unix:SOCKET:/messages/testing behind a Unix socket; with
    /// --via tcp, tcp://HOST:PORT/PATH
    #[arg(value_parser = url)]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) body: Body,

    /// The transport
    #[arg(long, value_enum, default_value_t = CallVia::Auto)]
    pub(crate) via: CallVia,

    /// The format of the output
    #[arg(long, short, value_enum, default_value_t = CallOutput::Body)]
    pub(crate) output: CallOutput,

    /// Carry the call out once, however often it must be sent: gives it a new idempotency key, which the service must know.
    /// Without it, only GET, HEAD, PUT and DELETE are sent again when no answer came
    #[arg(long, conflicts_with = "key")]
    pub(crate) once: bool,

    /// Idempotency key, 1 to 128 visible characters: repeating the command with the same key and body carries it out once
    #[arg(long)]
    pub(crate) key: Option<String>,

    #[command(flatten)]
    pub(crate) reach: Reach,

    #[command(flatten)]
    pub(crate) patience: Patience,
}

/// The body of a call.
#[derive(Debug, clap::Args)]
pub(crate) struct Body {
    /// The body: JSON if it is valid JSON, else text (text that looks like broken JSON is refused, unless with --type text);
    /// @FILE reads it from a file, - from standard input. Without it there is no body, even if standard input is a pipe
    #[arg(allow_negative_numbers = true)]
    pub(crate) data: Option<String>,

    /// The type of the body: json, ndjson, text, binary, or any media type, such as text/csv [default: json if it is valid
    /// JSON, else text or binary]
    #[arg(long = "type", value_name = "TYPE", value_parser = content_type, requires = "data")]
    pub(crate) content_type: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CallVia {
    /// tcp for a tcp:// URL, else http
    Auto,
    /// HTTP/1.1
    Http,
    /// The multiplexed WebSocket at /ws
    #[value(alias = "ws")]
    Mux,
    /// The multiplexed protocol over bare TCP
    Tcp,
}

impl From<CallVia> for Option<anemone_client::CallVia> {
    fn from(via: CallVia) -> Self {
        Some(match via {
            CallVia::Auto => return None,
            CallVia::Http => anemone_client::CallVia::Http,
            CallVia::Mux => anemone_client::CallVia::Mux,
            CallVia::Tcp => anemone_client::CallVia::Tcp,
        })
    }
}

/// The format of a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CallOutput {
    /// The body as it comes; each item of a stream on a line
    Body,
    /// An object: {"status":…,"fields":{…},"body":…}; before it, {"item":…} for each item of a stream
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The service, such as http://127.0.0.1:8080/primes, or unix:SOCKET:/primes behind a Unix socket; with --watch, the run;
    /// with --via tcp, tcp://HOST:PORT/PATH
    #[arg(value_parser = url)]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) body: Body,

    /// Print the URL of the run as soon as it is started, and do not wait for its end
    #[arg(long, conflicts_with_all = ["watch", "cancel_on_exit"])]
    pub(crate) detach: bool,

    /// Start nothing: watch the run at this URL, such as http://127.0.0.1:8080/runs/KEY
    #[arg(long, conflicts_with = "data")]
    pub(crate) watch: bool,

    /// Cancel the run when this command is interrupted; otherwise the run goes on
    #[arg(long)]
    pub(crate) cancel_on_exit: bool,

    /// The transport that starts the run; it is watched over the same, or with http and auto over any that works
    #[arg(long, value_enum, default_value_t = CallVia::Auto)]
    pub(crate) via: CallVia,

    /// The format of the output
    #[arg(long, short, value_enum, default_value_t = RunOutput::Data)]
    pub(crate) output: RunOutput,

    /// Idempotency key, 1 to 128 visible characters: repeating the command with the same key and body starts one run
    /// [default: a new key]
    #[arg(long, conflicts_with = "watch")]
    pub(crate) key: Option<String>,

    /// A name for the run, 1 to 100 characters, which lists and pages show
    #[arg(long, conflicts_with = "watch")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) reach: Reach,

    /// Give up after this many retries in a row; 0 tries once [default: 8 to start it, and never while it is watched]
    #[arg(long, value_name = "N", value_parser = retries, help_heading = CONNECTION)]
    pub(crate) retries: Option<u32>,
}

/// The format of the events of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum RunOutput {
    /// Each partial result, and then the result, as JSON on a line; a terminal shows the progress below
    Data,
    /// Each result on a line: text without quotes, unless it would then look like JSON; anything else as JSON
    Line,
    /// An object for each event and each notice, as `anemone sub` prints it: {"position":…,"time":…,"data":…}
    Json,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "anemone runs [OPTIONS] <URL>\n       anemone runs [OPTIONS] --cancel <RUN-URL>"
)]
pub(crate) struct Runs {
    /// The server, such as http://127.0.0.1:8080/, or unix:SOCKET behind a Unix socket; or one run, such as
    /// http://127.0.0.1:8080/runs/KEY
    #[arg(value_parser = url, required_unless_present = "cancel")]
    pub(crate) url: Option<String>,

    /// Cancel a run instead of listing the runs: its key, 4 digits or more with which only its key begins, or its URL; without
    /// it, the run at URL
    #[arg(long, value_name = "KEY", value_parser = run, num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "the flag may come without a key")]
    pub(crate) cancel: Option<Option<String>>,

    /// List only runs in this state, or in one of several with commas between, such as running,queued
    #[arg(
        long,
        value_name = "STATE",
        value_enum,
        value_delimiter = ',',
        conflicts_with = "cancel"
    )]
    pub(crate) state: Vec<RunState>,

    /// List only runs of the service at this path, such as /primes
    #[arg(long, value_name = "PATH", value_parser = service, conflicts_with = "cancel")]
    pub(crate) service: Option<String>,

    /// List at most this many runs, 1 to 1000: those that have not ended first, each newest first
    #[arg(long, value_name = "N", default_value = "1000", value_parser = runs, conflicts_with = "cancel")]
    pub(crate) limit: NonZero<u32>,

    /// The format of the output
    #[arg(long, short, value_enum, default_value_t = RunListing::Line)]
    pub(crate) output: RunListing,

    #[command(flatten)]
    pub(crate) reach: Reach,

    #[command(flatten)]
    pub(crate) patience: Patience,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum RunState {
    /// Waiting for other runs to end
    Queued,
    /// Working
    Running,
    /// Ended by its work
    Done,
    /// Failed, or took too long
    Failed,
    /// Cancelled
    Cancelled,
}

impl From<RunState> for anemone_client::RunState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Queued => Self::Queued,
            RunState::Running => Self::Running,
            RunState::Done => Self::Done,
            RunState::Failed => Self::Failed,
            RunState::Cancelled => Self::Cancelled,
        }
    }
}

/// The format of a list of runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum RunListing {
    /// The URL, the state, the path of the service, and the latest words about the progress
    Line,
    /// The state of the run, an object
    Json,
}

fn method(text: &str) -> Result<String, String> {
    let method = text.to_ascii_uppercase();
    match (1..=16).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        true => Ok(method),
        false if text.contains("://") || text.starts_with("unix:") => {
            Err(format!("the method comes first, as in \"anemone call GET {text}\""))
        }
        false => Err("expected a method, such as GET, POST, PUT, PATCH or DELETE".to_owned()),
    }
}

fn content_type(text: &str) -> Result<String, String> {
    Ok(match text {
        "json" => "application/json".to_owned(),
        "ndjson" => "application/x-ndjson".to_owned(),
        "text" => "text/plain; charset=utf-8".to_owned(),
        "binary" => "application/octet-stream".to_owned(),
        media if media.split_once('/').is_some_and(|(kind, _)| !kind.is_empty()) => {
            media.to_owned()
        }
        _ => {
            return Err(
                "expected json, ndjson, text, binary, or a media type, such as text/csv".to_owned()
            );
        }
    })
}

/// The fewest digits that name a run. Fewer are hardly meant as a key: a variable that is not set gives none.
const KEY_DIGITS_MIN: usize = 4;

/// Parses the key or the URL of a run.
fn run(text: &str) -> Result<String, String> {
    if text.contains('/') {
        return url(text).map_err(|never| match never {});
    }
    match text.len() >= KEY_DIGITS_MIN {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("expected at least {KEY_DIGITS_MIN} digits of a key, or a URL")),
    }
}

/// Parses the path of a service, as its runs have it.
fn service(text: &str) -> Result<String, String> {
    match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("expected a path, such as /primes".to_owned()),
    }
}

fn runs(text: &str) -> Result<NonZero<u32>, String> {
    match text.parse::<NonZero<u32>>() {
        Ok(limit) if limit.get() <= 1000 => Ok(limit),
        _ => Err("expected 1 to 1000 runs".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn methods_and_types_have_short_forms() {
        assert_eq!(method("get").as_deref(), Ok("GET"));
        assert!(method("").is_err() && method("GET /").is_err());
        assert!(method("http://a/b").is_err_and(|said| said.ends_with("call GET http://a/b\"")));
        assert_eq!(content_type("json").as_deref(), Ok("application/json"));
        assert_eq!(content_type("text/csv").as_deref(), Ok("text/csv"));
        assert!(content_type("jsn").is_err() && content_type("/x").is_err());
    }

    #[test]
    fn a_body_may_be_a_negative_number_or_a_dash_and_flags_stay_flags() {
        for (line, data) in [
            ("call post a -7", Some("-7")),
            ("call post a - --via mux", Some("-")),
            ("call get a --via ws", None),
            ("call post a @file --type text", Some("@file")),
        ] {
            let args = Args::try_parse_from(format!("anemone {line}").split(' ')).unwrap();
            let Command::Call(call) = args.command else { panic!("{line}") };
            assert_eq!(call.body.data.as_deref(), data, "{line}");
        }
        for line in [
            "call",
            "call get",
            "call get a --type text",
            "call post a 1 --once --key k",
            "run a --detach --cancel-on-exit",
            "run a 1 --watch",
            "runs a --limit 0",
            "runs a --limit 1001",
            "runs a --state odd",
            "runs a --state=",
            "runs a --state done --cancel 3f2a",
            "runs a --service primes",
            "runs a --service /primes --cancel 3f2a",
            "runs a --cancel ",
            "runs a --cancel 3f2",
        ] {
            assert!(Args::try_parse_from(format!("anemone {line}").split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn the_digits_of_a_key_are_lower_case_and_a_url_stays_as_it_is() {
        for (text, expected) in [
            ("3F2A", "3f2a"),
            ("0123456789ABCDEF0123456789ABCDEF", "0123456789abcdef0123456789abcdef"),
            ("http://a/X/runs/3f", "http://a/X/runs/3f"),
        ] {
            assert_eq!(run(text).as_deref(), Ok(expected));
        }
    }
}
