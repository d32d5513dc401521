//! The rules of the examinations: their limits, and the words and settings for each fault. The doctor of the Lab page
//! reads the same file, so its words are the same.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

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
    /// A stream, or a later part of it, is held back until enough bytes have come.
    Buffered,
    /// A stream, and each later part of it, is delayed for a moment.
    Delayed,
    /// The answer to a request for a stream is something else.
    Foreign,
    /// A quiet connection is cut.
    Idle,
    /// Data comes on a WebSocket although the client has sent no request.
    Unasked,
    /// No WebSocket opens.
    Upgrade,
    /// The path of the multiplexed WebSocket does not reach the server.
    Unforwarded,
    /// A WebSocket loses its subprotocol.
    Subprotocol,
    /// A cache repeats old answers.
    Cached,
    /// HTTP/2 allows only few concurrent streams.
    Streams,
    /// A connection carries only one request.
    KeepAlive,
    /// The server gets requests for a host that is not its own.
    Host,
    /// The server does not accept the origin of its own pages.
    Origin,
    /// Only few connections are allowed at once.
    Connections,
}

/// A reason why an examination has no result.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Unknown {
    /// The server got too many requests, or a part of it is not available now.
    Refused,
    /// A connection was closed at once.
    AtOnce,
    /// No connection could be kept open.
    NoneHeld,
    /// A stream ended before its first item.
    Unbegun,
}

/// A reason to stop the examinations early.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EarlyEnd {
    /// Two examinations got no answer.
    Silent,
    /// The server answered at first, but does not any more.
    Gone,
    /// The examinations took too long.
    Late,
}

/// The statuses that have a meaning for the examinations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Statuses {
    /// The statuses of a temporary refusal, such as a limit on requests (RFC 6585 section 4, RFC 9110 section 15.6.4).
    pub(super) busy: Vec<u16>,
    /// The statuses of a proxy that no longer waits for the server.
    pub(super) gave_up: Vec<u16>,
}

/// A setting that mends a fault, of a program on the way.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Remedy {
    pub(super) program: String,
    pub(super) setting: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// The longest wait for a connection, and for an answer.
    #[serde(rename = "answer_ms_max", deserialize_with = "milliseconds")]
    pub(super) answer_max: Duration,
    /// The number of late answers for which the time limit of the short examinations has room.
    pub(super) late_answers: u32,
    /// The number of late beginnings of a stream for which the time limit of the short examinations has room.
    pub(super) late_begins: u32,
    /// The longest time until a stream begins, apart from some round trips. A later beginning was held back, since the
    /// server sends it at once.
    #[serde(rename = "begin_ms_max", deserialize_with = "milliseconds")]
    pub(super) begin_max: Duration,
    /// The least time, apart from some round trips, after which a stream that was cut without a first item counts as
    /// held back. If it was cut sooner, it counts as refused.
    #[serde(rename = "held_ms_min", deserialize_with = "milliseconds")]
    pub(super) held_min: Duration,
    /// The number of round trips that are added to a time limit.
    pub(super) held_round_trips: u32,
    /// The least difference by which a stream begins later than another answer, if it counts as delayed. Linux keeps
    /// corked data for 200 ms.
    #[serde(rename = "delayed_ms_min", deserialize_with = "milliseconds")]
    pub(super) delayed_min: Duration,
    /// The least delay with which a stream counts as held back.
    #[serde(rename = "delayed_ms_max", deserialize_with = "milliseconds")]
    pub(super) delayed_max: Duration,
    /// The number of looks in a row that must find a delay. A single delay may come from a busy machine.
    pub(super) delayed_looks: usize,
    /// The least sum of the delays of two or more looks that is also enough.
    #[serde(rename = "delays_ms_enough", deserialize_with = "milliseconds")]
    pub(super) delays_enough: Duration,
    /// The most bytes of a first item. A longer item counts as complete.
    pub(super) item_bytes_max: usize,
    /// The number of streams to open at once. A browser opens fewer to a server over HTTP/1.1.
    pub(super) streams: usize,
    /// The most connections that a browser opens to a server over HTTP/1.1.
    pub(super) browser_connections: usize,
    /// The most pairs of polls to look for a cache.
    pub(super) poll_pairs: usize,
    /// The number of pairs whose second answer must come too early. If there is only one, its first answer may have
    /// been late by chance.
    pub(super) early_pairs: usize,
    /// The shortest time of a poll that counts as having waited.
    #[serde(rename = "waited_ms_min", deserialize_with = "milliseconds")]
    pub(super) waited_min: Duration,
    /// The most polls that the server may answer during the wait. With more, the server does not wait.
    pub(super) polls_max: usize,
    /// The longest silence of a stream. The server sends a heartbeat at least every 15 s.
    #[serde(rename = "heartbeat_ms_max", deserialize_with = "milliseconds")]
    pub(super) heartbeat_max: Duration,
    /// The number of messages on a WebSocket that must come without a request, to prove that they are not from the
    /// server.
    pub(super) unasked_max: usize,
}

/// A program that may be on the way to a server, such as a proxy.
#[derive(Debug, Deserialize)]
struct ProxyProgram {
    name: String,
    /// The text by which the program is recognized in the fields `Server` or `Via`. Empty if there is none.
    mark: String,
}

/// The words and the settings for a fault.
#[derive(Debug, Deserialize)]
struct FaultRule {
    /// A sentence with gaps for values. A gap is a name in braces.
    words: String,
    settings: Vec<Remedy>,
}

/// The content of the file of rules.
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
    pub(super) fn words(self) -> &'static str {
        RULES.examinations.get(&self).map_or("", String::as_str)
    }
}

impl WayFault {
    /// Returns a sentence about the fault. `values` fill its gaps: each is the name of a gap, and its text.
    pub(super) fn words(self, values: &[(&str, &str)]) -> String {
        filled(RULES.faults.get(&self).map_or("", |rule| &rule.words), values)
    }

    /// Returns the settings that mend the fault. If the program on the way is known, these are its settings and those
    /// of the server; otherwise, they are those of all programs.
    pub(super) fn remedies(self, program: Option<&str>) -> Vec<Remedy> {
        let all = RULES.faults.get(&self).into_iter().flat_map(|rule| &rule.settings);
        let is_asked = |name: &str| program.is_none_or(|program| [program, SERVER].contains(&name));
        all.filter(|one| is_asked(&one.program)).cloned().collect()
    }
}

impl Unknown {
    /// Returns a sentence about the reason. `values` fill its gaps.
    pub(super) fn words(self, values: &[(&str, &str)]) -> String {
        filled(RULES.unknowns.get(&self).map_or("", String::as_str), values)
    }
}

impl EarlyEnd {
    /// Returns a sentence about the reason. `values` fill its gaps.
    pub(super) fn words(self, values: &[(&str, &str)]) -> String {
        filled(RULES.ends.get(&self).map_or("", String::as_str), values)
    }
}

fn filled(words: &str, values: &[(&str, &str)]) -> String {
    let fill =
        |words: String, (name, value): &(&str, &str)| words.replace(&format!("{{{name}}}"), value);
    values.iter().fold(words.to_owned(), fill)
}

pub(super) fn limits() -> &'static Limits {
    &RULES.limits
}

pub(super) fn statuses() -> &'static Statuses {
    &RULES.statuses
}

/// Returns the name of the program whose answers have these fields, if it is known.
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
