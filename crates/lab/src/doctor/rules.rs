//! The rules that both doctors have, this one and that of the Lab page: the examinations, their limits, and the words and settings for
//! each fault. They are one file, so that both say the same.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

/// An examination.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Examination {
    Reach,
    KeepAlive,
    Cache,
    Sse,
    Ndjson,
    Upgrade,
    Origin,
    Connections,
    Http2,
    Idle,
}

/// A fault on the way to a server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WayFault {
    /// A stream, or what comes of it later, is held back until there is enough of it.
    Buffered,
    /// A stream, and what comes of it later, is kept for a moment.
    Delayed,
    /// Something else comes in place of a stream.
    Foreign,
    /// A quiet connection is cut.
    Idle,
    /// Something comes on a WebSocket that was asked for nothing.
    Unasked,
    /// No WebSocket is let through.
    Upgrade,
    /// The path of the multiplexed WebSocket does not reach the server.
    Unforwarded,
    /// A WebSocket loses its subprotocol.
    Subprotocol,
    /// Answers are kept, and given again.
    Cached,
    /// HTTP/2 lets few streams through at once.
    Streams,
    /// Each request needs a connection of its own.
    KeepAlive,
    /// The server is asked for a host that is not its own.
    Host,
    /// The server does not take its own pages for its own.
    Origin,
    /// Few connections are let through at once.
    Connections,
}

/// A reason why something could not be told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unknown {
    /// Too much was asked for, or something is not there now.
    Refused,
    /// A connection was closed as soon as it was open.
    AtOnce,
    /// No connection could be kept.
    NoneHeld,
    /// A stream ended before it began.
    Unbegun,
}

/// A reason to leave the rest out.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EarlyEnd {
    /// Two examinations got no answer.
    Silent,
    /// It has answered, and does not any more.
    Gone,
    /// The examinations took too long.
    Late,
}

/// The statuses that say something about the way.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Statuses {
    /// Of a refusal that passes, as of a limit of requests (RFC 6585 section 4, RFC 9110 section 15.6.4).
    pub(super) busy: Vec<u16>,
    /// Of a proxy that waits no longer.
    pub(super) gave_up: Vec<u16>,
}

/// A setting of a program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Remedy {
    pub(super) program: String,
    pub(super) setting: String,
}

/// The limits of the examinations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// The longest wait for a connection, and for an answer.
    #[serde(rename = "answer_ms_max", deserialize_with = "milliseconds")]
    pub(super) answer_max: Duration,
    /// The waits for an answer in the time limit of all examinations but that of silence.
    pub(super) late_answers: u32,
    /// The waits for the beginning of a stream in the time limit of all examinations but that of silence.
    pub(super) late_begins: u32,
    /// A stream that has not begun after this time, and some round trips, is held back: the server sends its beginning at once.
    #[serde(rename = "begin_ms_max", deserialize_with = "milliseconds")]
    pub(super) begin_max: Duration,
    /// A stream that is cut after this time, and some round trips, before its first item was held back; one that is cut sooner was refused.
    #[serde(rename = "held_ms_min", deserialize_with = "milliseconds")]
    pub(super) held_min: Duration,
    /// The round trips that are added to limits of time.
    pub(super) held_round_trips: u32,
    /// A stream that begins so much later than another answer is delayed: Linux keeps for 200 ms what a program says it will add to.
    #[serde(rename = "delayed_ms_min", deserialize_with = "milliseconds")]
    pub(super) delayed_min: Duration,
    /// A stream that is delayed for so long is held back.
    #[serde(rename = "delayed_ms_max", deserialize_with = "milliseconds")]
    pub(super) delayed_max: Duration,
    /// So many looks in a row have to find it: a busy machine is late in some.
    pub(super) delayed_looks: usize,
    /// Delays of so long together, of two looks or more, are enough, too.
    #[serde(rename = "delays_ms_enough", deserialize_with = "milliseconds")]
    pub(super) delays_enough: Duration,
    /// A first item that is longer counts as whole.
    pub(super) item_bytes_max: usize,
    /// So many streams at once, which is more than a browser opens to a server over HTTP/1.1.
    pub(super) streams: usize,
    /// Browsers open so many connections to a server over HTTP/1.1.
    pub(super) browser_connections: usize,
    /// The most pairs of polls, of which the second may come from a cache.
    pub(super) poll_pairs: usize,
    /// In so many pairs the second poll has to come too early: once, the first may just have been late.
    pub(super) early_pairs: usize,
    /// A poll that takes less has not waited.
    #[serde(rename = "waited_ms_min", deserialize_with = "milliseconds")]
    pub(super) waited_min: Duration,
    /// A server that answers more polls in a time has not waited.
    pub(super) polls_max: usize,
    /// A stream is not silent for longer: the server sends a heartbeat each 15 s, or more often.
    #[serde(rename = "heartbeat_ms_max", deserialize_with = "milliseconds")]
    pub(super) heartbeat_max: Duration,
    /// So many messages on a WebSocket that was asked for nothing are not from the server.
    pub(super) unasked_max: usize,
}

/// A program that may stand in front of a server.
#[derive(Debug, Deserialize)]
struct ProxyProgram {
    name: String,
    /// What its answers have in the fields `Server` or `Via`; empty if they have nothing there.
    mark: String,
}

/// What is said about a fault.
#[derive(Debug, Deserialize)]
struct FaultRule {
    /// A sentence, with names in braces for what was found.
    words: String,
    settings: Vec<Remedy>,
}

/// The file.
#[derive(Debug, Deserialize)]
struct Rules {
    limits: Limits,
    /// The words for each examination.
    examinations: BTreeMap<Examination, String>,
    programs: Vec<ProxyProgram>,
    statuses: Statuses,
    ends: BTreeMap<EarlyEnd, String>,
    unknowns: BTreeMap<Unknown, String>,
    faults: BTreeMap<WayFault, FaultRule>,
}

const SERVER: &str = "Anemone";

#[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
static RULES: LazyLock<Rules> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../web/page/lab/rules.json")).expect("the rules")
});

impl Examination {
    /// Returns the words for people.
    pub(super) fn words(self) -> &'static str {
        RULES.examinations.get(&self).map_or("", String::as_str)
    }
}

impl WayFault {
    /// Says what is wrong. `values` are what the names in the sentence stand for.
    pub(super) fn words(self, values: &[(&str, &str)]) -> String {
        filled(RULES.faults.get(&self).map_or("", |rule| &rule.words), values)
    }

    /// Returns the settings that mend it: those of the program on the way if it is known, or of all.
    pub(super) fn remedies(self, program: Option<&str>) -> Vec<Remedy> {
        let all = RULES.faults.get(&self).into_iter().flat_map(|rule| &rule.settings);
        let is_asked = |name: &str| program.is_none_or(|program| [program, SERVER].contains(&name));
        all.filter(|one| is_asked(&one.program)).cloned().collect()
    }
}

impl Unknown {
    /// Says why. `values` are what the names in the sentence stand for.
    pub(super) fn words(self, values: &[(&str, &str)]) -> String {
        filled(RULES.unknowns.get(&self).map_or("", String::as_str), values)
    }
}

impl EarlyEnd {
    /// Returns the sentence. `values` are what the names in the sentence stand for.
    pub(super) fn words(self, values: &[(&str, &str)]) -> String {
        filled(RULES.ends.get(&self).map_or("", String::as_str), values)
    }
}

fn filled(words: &str, values: &[(&str, &str)]) -> String {
    let fill =
        |words: String, (name, value): &(&str, &str)| words.replace(&format!("{{{name}}}"), value);
    values.iter().fold(words.to_owned(), fill)
}

/// Returns the limits of the examinations.
pub(super) fn limits() -> &'static Limits {
    &RULES.limits
}

/// Returns the statuses that say something about the way.
pub(super) fn statuses() -> &'static Statuses {
    &RULES.statuses
}

/// Returns the name of the program that gave an answer, if its fields say so.
pub(super) fn program(fields: &str) -> Option<&'static str> {
    let fields = fields.to_ascii_lowercase();
    let is_known = |one: &&ProxyProgram| !one.mark.is_empty() && fields.contains(&one.mark);
    RULES.programs.iter().find(is_known).map(|program| program.name.as_str())
}

fn milliseconds<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    u64::deserialize(value).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_examination_and_every_fault_has_its_words() {
        assert_eq!((RULES.examinations.len(), RULES.faults.len()), (10, 14));
        assert!(RULES.examinations.values().all(|words| !words.is_empty()));
        assert_eq!((RULES.unknowns.len(), RULES.ends.len()), (4, 3));
        for (fault, rule) in &RULES.faults {
            assert!(!rule.words.is_empty(), "{fault:?}");
            // There is no setting for something that answers in place of the server.
            let is_foreign = matches!(fault, WayFault::Foreign | WayFault::Unasked);
            assert_eq!(rule.settings.is_empty(), is_foreign, "{fault:?}");
        }
    }

    #[test]
    fn what_was_found_stands_in_the_sentence() {
        let words =
            WayFault::Idle.words(&[("what", "a WebSocket"), ("how", "after 1.0 s of silence")]);
        assert_eq!(words, "a WebSocket is cut after 1.0 s of silence");
    }

    #[test]
    fn a_known_program_has_its_own_setting_and_an_unknown_one_is_one_of_six() {
        assert_eq!(program("nginx/1.22.1 "), Some("nginx"));
        assert_eq!(program(" 1.1 Caddy"), Some("Caddy"));
        assert_eq!(program("Apache/2.4.62 (Debian) "), Some("Apache"));
        assert_eq!(
            (program("awselb/2.0"), program("cloudflare")),
            (Some("AWS ALB"), Some("Cloudflare"))
        );
        assert_eq!(program(" "), None);
        let named = WayFault::Idle.remedies(Some("nginx"));
        assert_eq!(
            named.iter().map(|one| one.program.as_str()).collect::<Vec<_>>(),
            ["nginx", "Anemone"]
        );
        assert_eq!(WayFault::Upgrade.remedies(None).len(), 6);
        assert_eq!(WayFault::Origin.remedies(None).len(), 7);
    }
}
