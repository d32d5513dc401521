//! Captures the log of the server, as events of `tracing`, for all tests of a process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracing::Event;
use tracing::field::{Field, Visit};

use crate::documents::text;
use crate::log::Events;
use crate::wait_for;

/// The fields of an event, formatted, and its target.
type Fields = BTreeMap<&'static str, String>;

static LOGGED: Mutex<Vec<Fields>> = Mutex::new(Vec::new());
static KEPT: Once = Once::new();

/// Keeps everything that is logged from now on.
pub fn keep() {
    KEPT.call_once(|| tracing::subscriber::set_global_default(Events(push)).unwrap());
}

pub(super) fn is_kept() -> bool {
    KEPT.is_completed()
}

/// Waits for `count` logged requests of a client, and returns each as `METHOD PATH STATUS TRANSPORT TOPICS BYTES
/// POSITION END REPEATS`. The status, the topics and the last three may be missing.
pub fn requests(client: SocketAddr, count: usize) -> Vec<String> {
    let client = client.to_string();
    lines(count, |fields| fields.get("client") == Some(&client))
}

/// The same for all clients.
pub fn all_requests(count: usize) -> Vec<String> {
    lines(count, |_| true)
}

fn lines(count: usize, is_wanted: impl Fn(&Fields) -> bool) -> Vec<String> {
    let is_line = |fields: &&Fields| fields["target"] == "anemone::access" && is_wanted(fields);
    wait(|logged| {
        let lines: Vec<_> = logged.iter().filter(is_line).map(line).collect();
        (lines.len() >= count).then_some(lines)
    })
}

/// Returns the logged reason, which begins with this, for refusing a request of this machine, such as `GET /wind`.
/// All tests of a process share its log, so each must make a request of its own: two reasons would be a fault of the
/// tests.
pub fn refusal(asked: &str, reason: &str) -> String {
    let begin = format!("refused {asked} of 127.0.0.1, ");
    wait(|logged| {
        let messages = logged.iter().filter_map(|fields| fields.get("message"));
        let reasons: Vec<_> = messages
            .filter_map(|message| message.strip_prefix(&begin))
            .filter(|said| said.starts_with(reason))
            .collect();
        assert!(reasons.len() <= 1, "of which test is which? {reasons:?}");
        reasons.first().map(|&said| said.to_owned())
    })
}

fn wait<T>(find: impl Fn(&[Fields]) -> Option<T>) -> T {
    wait_for("it is not logged", || find(&logged()))
}

fn line(fields: &Fields) -> String {
    assert_eq!(fields["message"], "request");
    assert!(fields["duration_ms"].parse::<f64>().unwrap() >= 0.0, "{fields:?}");
    if let Some(end) = fields.get("end") {
        assert!(is_documented(end), "docs/OPERATE.md does not say that end may be {end:?}");
    }
    let words = ["method", "path", "status", "transport"];
    let words = words.iter().filter_map(|name| fields.get(name).map(String::as_str));
    let mut line = words.collect::<Vec<_>>().join(" ");
    for name in ["topics", "bytes", "position", "end", "repeats"] {
        if let Some(value) = fields.get(name) {
            line += &format!(" {name}={value}");
        }
    }
    line
}

/// Returns true if the documentation of the access log lists this end, alone or as `lost: …`; numbers may differ.
fn is_documented(end: &str) -> bool {
    let without_numbers = |text: &str| text.replace(|char: char| char.is_ascii_digit(), "");
    let row = text("docs/OPERATE.md").lines().find(|line| line.starts_with("| `end` |"));
    row.unwrap().split('`').skip(1).step_by(2).any(|said| match said.strip_suffix('…') {
        Some(begin) => without_numbers(end).starts_with(&without_numbers(begin)),
        None => without_numbers(end) == without_numbers(said),
    })
}

fn logged() -> MutexGuard<'static, Vec<Fields>> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn push(event: &Event<'_>) {
    let mut seen = Seen(Fields::from([("target", event.metadata().target().to_owned())]));
    event.record(&mut seen);
    logged().push(seen.0);
}

struct Seen(Fields);

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
