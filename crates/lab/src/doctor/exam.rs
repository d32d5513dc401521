//! The short examinations. Each returns a finding.

use std::time::{Duration, Instant};

use anemone_ws::{Connect, ConnectError, Refusal};
use tokio::time::timeout;

use super::finding::{Finding, Unreached};
use super::first_item::FirstItem;
use super::rules::{Examination, WayFault, limits, program, statuses};
use super::way::{AnswerHead, HttpConnection, Trouble, Way, is_silence, with_causes};

/// The status of a server that gets a request for a host other than its own (RFC 9110 section 15.5.20).
const MISDIRECTED: u16 = 421;
const HEALTH: &str = "/health";
/// The most paths above the URL's own path at which the server is looked for.
const ABOVE_MAX: usize = 8;
/// The path of the index of topics. Every server has it, and sends its readers the first item at once.
pub(super) const INDEX: &str = "/topics/$topics?after=latest";
/// The path of the multiplexed WebSocket.
const MULTIPLEXED: &str = "/ws";
const PROBLEM: &str = "application/problem+json";
const POSTED: &str = "/topics/$topics";
pub(super) const SSE: &str = "text/event-stream";
pub(super) const NDJSON: &str = "application/x-ndjson";
const SUBPROTOCOL: &str = "anemone.v1";
/// The subprotocol of a topic's WebSocket.
const EVENTS: &str = "anemone.events";
/// The field with the codings that browsers accept. A proxy that compresses may hold back its compressed bytes.
const CODINGS: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
/// The end of a problem's type. A server has this problem if a handshake is not that of RFC 6455.
const BAD_HANDSHAKE: &str = "bad-handshake";

/// The knowledge from the first examination, for the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The name of the program on the way, if its answers reveal it.
    pub(super) program: Option<&'static str>,
    pub(super) round_trip: Duration,
    /// The longest time until a stream begins, apart from some round trips. A stream that begins later counts as held
    /// back.
    pub(super) begin_max: Duration,
}

impl Known {
    pub(super) fn patience(self) -> Duration {
        self.begin_max + limits().held_round_trips * self.round_trip
    }

    /// Returns the least time after which a stream without a first item counts as held back, and not as refused. Bytes
    /// that arrive after this time are not part of a stream's beginning.
    pub(super) fn held_min(self) -> Duration {
        limits().held_min + limits().held_round_trips * self.round_trip
    }

    /// Returns the way with a short patience, which is used after a silence.
    pub(super) fn hasty(self, way: &Way) -> Way {
        way.clone().hasty(self.patience())
    }

    /// Makes the finding about a fault, with the settings that mend it. `values` fill the gaps in its sentence.
    pub(super) fn fault(
        self,
        name: Examination,
        fault: WayFault,
        values: &[(&str, &str)],
    ) -> Finding {
        Finding::fault(name, fault, fault.words(values), self.program)
    }
}

/// Asks the server for its health. Returns no knowledge if no server answers, since there is nothing to examine then.
pub(super) async fn reach(way: &Way, begin_max: Duration) -> (Finding, Option<Known>) {
    let unreached = |why, words| (Finding::unreached(why, words), None);
    let Health { answer, server, problem, round_trip } = match health(way).await {
        Ok(health) => health,
        Err(trouble) => {
            let is_untrusted =
                matches!(&trouble, Trouble::Connect(error) if error.is_about_certificate());
            let why = if is_untrusted { Unreached::Untrusted } else { Unreached::NoServer };
            return unreached(why, trouble.to_string());
        }
    };
    let behind = program(&answer.programs);
    if answer.status == MISDIRECTED {
        let fault = WayFault::Host;
        return (Finding::fault(Examination::Reach, fault, fault.words(&[]), behind), None);
    }
    let by = behind.map(|name| format!(", behind {name}")).unwrap_or_default();
    if server.is_none() {
        let status = answer.status;
        let said = problem.map(|said| format!(": {said}")).unwrap_or_default();
        if let Some(why) = refusal(status) {
            let words = format!("status {status}{by}: the way to the server is refused{said}{why}");
            return unreached(Unreached::Refused, words);
        }
        let came = format!("status {status} came instead of an Anemone server's health{by}{said}");
        if let Some(url) = server_above(way).await {
            let words = format!("{came}; there is a server at {url}: examine that");
            return unreached(Unreached::Below(url), words);
        }
        let why = match status {
            300..=399 if !answer.location.is_empty() => {
                &format!("; it leads to {}: examine that", answer.location)
            }
            502..=504 => {
                "; the proxy does not reach the server: does it run, at the port that the proxy asks?"
            }
            404 => "; is the server below another path?",
            _ => "",
        };
        return unreached(Unreached::NoServer, came + why);
    }
    let words = format!("an Anemone server answers after {} ms{by}", round_trip.as_millis());
    (
        Finding::good(Examination::Reach, words),
        Some(Known { program: behind, round_trip, begin_max }),
    )
}

/// The answer to the request for the server's health.
pub(super) struct Health {
    answer: AnswerHead,
    /// The status in the answer; `None` if the answer is not that of an Anemone server.
    server: Option<String>,
    /// The text of the problem, if the answer is one.
    problem: Option<String>,
    pub(super) round_trip: Duration,
}

pub(super) async fn health(way: &Way) -> Result<Health, Trouble> {
    let asked = async {
        let mut connection = way.ask(HEALTH, "").await?;
        let begun = Instant::now();
        let answer = connection.answer(way.patience()).await?;
        let body = connection.body(&answer, way.patience()).await.unwrap_or_default();
        let health: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let server = health["status"].as_str().map(str::to_owned);
        let is_problem = answer.media_type.starts_with(PROBLEM);
        let words = |name| member(&health, name);
        let problem = is_problem.then(|| words("detail").or_else(|| words("title"))).flatten();
        Ok(Health { answer, server, problem, round_trip: begun.elapsed() })
    };
    let silent = Trouble::Silent(way.patience());
    timeout(way.patience(), asked).await.unwrap_or(Err(silent))
}

/// The current state of a server that has answered before.
pub(super) enum Presence {
    There,
    /// No connection can be opened, or a proxy says that there is no server.
    Gone,
    /// No answer came for this long.
    Silent(Duration),
}

/// Checks whether the server still answers.
pub(super) async fn presence(way: &Way, known: Known) -> Presence {
    let way = known.hasty(way);
    match health(&way).await {
        Ok(Health { answer, .. }) if statuses().gave_up.contains(&answer.status) => Presence::Gone,
        Ok(_) => Presence::There,
        Err(trouble) if trouble.is_silence() => Presence::Silent(way.patience()),
        Err(_) => Presence::Gone,
    }
}

/// Looks for the server above this way, since the URL may be that of a topic or a page. Returns the server's URL.
async fn server_above(way: &Way) -> Option<String> {
    let found = async {
        for above in way.above().take(ABOVE_MAX) {
            if health(&above).await.is_ok_and(|health| health.server.is_some()) {
                return Some(above.url());
            }
        }
        None
    };
    timeout(way.patience(), found).await.ok().flatten()
}

/// Returns advice on a status that refuses this client.
fn refusal(status: u16) -> Option<&'static str> {
    match status {
        401 | 407 => Some(
            "; give what it asks for with -H 'NAME: VALUE', such as -H 'Authorization: Bearer TOKEN'",
        ),
        403 => Some(
            "; it may ask for a field, which -H 'NAME: VALUE' gives, or not let this address pass",
        ),
        429 => Some(", since it was asked too often: try again later"),
        _ => None,
    }
}

/// Makes two requests on one connection.
pub(super) async fn keep_alive(way: &Way, known: Known) -> Finding {
    let twice = async {
        let mut connection = way.ask(HEALTH, "").await?;
        let answer = connection.answer(way.patience()).await?;
        connection.body(&answer, way.patience()).await?;
        if answer.is_last {
            return Ok(false);
        }
        connection.ask(way, HEALTH, "").await?;
        connection.answer(way.patience()).await.map(|_| true)
    };
    match twice.await {
        Ok(true) => Finding::good(Examination::KeepAlive, "requests share a connection".to_owned()),
        Ok(false) | Err(Trouble::Closed | Trouble::Broken(_)) => {
            known.fault(Examination::KeepAlive, WayFault::KeepAlive, &[])
        }
        Err(trouble) => Finding::trouble(Examination::KeepAlive, &trouble),
    }
}

/// The beginning of a stream, or the reason why it is missing.
pub(super) enum Begun {
    /// It began this long after the request.
    At(Duration, HttpConnection),
    /// No complete item came in this time.
    Held(Duration),
    Refused(u16),
    /// The answer has this type instead of that of a stream.
    Foreign(String),
    Trouble(Trouble),
}

pub(super) async fn begin(way: &Way, wanted: &str, known: Known, patience: Duration) -> Begun {
    let begun = Instant::now();
    let mut connection = match way.ask(INDEX, &format!("Accept: {wanted}\r\n{CODINGS}")).await {
        Ok(connection) => connection,
        Err(trouble) => return Begun::Trouble(trouble),
    };
    let asked = Instant::now();
    let opened = async {
        let AnswerHead { status, media_type, coding, .. } =
            connection.answer(way.patience()).await?;
        if status != 200 {
            return Ok(Err(Begun::Refused(status)));
        }
        if !media_type.starts_with(wanted) {
            return Ok(Err(Begun::Foreign(media_type)));
        }
        // An event of SSE has a blank line after it.
        let mut item = FirstItem::new(if wanted == SSE { 2 } else { 1 }, &coding);
        loop {
            let piece = connection.piece().await?;
            if piece.is_empty() || item.receive(&piece) {
                return Ok(Ok(!piece.is_empty()));
            }
        }
    };
    match timeout(patience, opened).await {
        Err(_) | Ok(Err(Trouble::Silent(_))) => Begun::Held(begun.elapsed()),
        Ok(Err(Trouble::Closed) | Ok(Ok(false))) if begun.elapsed() >= known.held_min() => {
            Begun::Held(begun.elapsed())
        }
        Ok(Err(trouble)) => Begun::Trouble(trouble),
        Ok(Ok(Err(other))) => other,
        Ok(Ok(Ok(false))) => Begun::Trouble(Trouble::Closed),
        Ok(Ok(Ok(true))) => Begun::At(asked.elapsed(), connection),
    }
}

/// Opens two WebSockets. The first has no origin, like that of a program; the second has one, like that of a page of
/// the server.
pub(super) async fn web_socket(way: &Way, known: Known) -> [Finding; 2] {
    let begun = Instant::now();
    let opened = multiplexed(way).connect().await;
    let upgrade = match &opened {
        Ok(_) => {
            let time = begun.elapsed().as_millis();
            Finding::good(Examination::Upgrade, format!("a WebSocket opens after {time} ms"))
        }
        Err(error) => closed(way, known, error).await.silent_if(is_silence(error)),
    };
    let origin = way.origin();
    if opened.is_err() {
        return [upgrade, origin_of_post(way, known, &origin).await];
    }
    let own = match multiplexed(way).header("Origin", &origin).connect().await {
        Ok(_) => Finding::good(Examination::Origin, format!("pages of {origin} may open one")),
        Err(ConnectError::Refused(refusal)) if refusal.status() == 403 => {
            refused_origin(known, &origin)
        }
        Err(error) => Finding::trouble(Examination::Origin, &error.into()),
    };
    [upgrade, own]
}

pub(super) fn multiplexed(way: &Way) -> Connect {
    way.socket(MULTIPLEXED).subprotocols([SUBPROTOCOL])
}

/// Finds out why no multiplexed WebSocket opens. Tries a topic's WebSocket, which needs no subprotocol. Then sends a
/// request without an upgrade: from the server's answer it follows that the path reaches the server.
async fn closed(way: &Way, known: Known, error: &ConnectError) -> Finding {
    if let ConnectError::Refused(refusal) = error
        && let Some(why) = own_refusal(refusal)
    {
        return Finding::wrong(
            Examination::Upgrade,
            format!("the server refuses a WebSocket: {why}"),
        );
    }
    if let Some(trouble) = Trouble::of_refusal(error) {
        return Finding::trouble(Examination::Upgrade, &trouble);
    }
    let hasty = known.hasty(way);
    let way = if is_silence(error) { &hasty } else { way };
    let why = with_causes(error);
    let fault = |fault, why: &str| known.fault(Examination::Upgrade, fault, &[("why", why)]);
    let told = async {
        if let Err(error) = way.socket(INDEX).connect().await {
            let busy = Trouble::of_refusal(&error);
            return busy.map_or_else(|| Ok(fault(WayFault::Upgrade, &why)), Err);
        }
        if !knows_multiplexed(way).await? {
            return Ok(fault(WayFault::Unforwarded, ""));
        }
        if !keeps_subprotocol(way).await? {
            return Ok(fault(WayFault::Subprotocol, ""));
        }
        let why = format!("one of a topic opens, but at {MULTIPLEXED} {why}");
        Ok(fault(WayFault::Upgrade, &why))
    };
    told.await.unwrap_or_else(|trouble| Finding::trouble(Examination::Upgrade, &trouble))
}

/// Returns true if a topic's WebSocket has the subprotocol that the client offered.
async fn keeps_subprotocol(way: &Way) -> Result<bool, Trouble> {
    match way.socket(INDEX).subprotocols([EVENTS]).connect().await {
        Ok(socket) => Ok(socket.subprotocol() == Some(EVENTS)),
        Err(error) => Trouble::of_refusal(&error).map_or(Ok(false), Err),
    }
}

/// Returns true if a request to the path of the multiplexed WebSocket reaches the server. The request is no handshake.
async fn knows_multiplexed(way: &Way) -> Result<bool, Trouble> {
    let mut connection = way.ask(MULTIPLEXED, "").await?;
    let answer = connection.answer(way.patience()).await?;
    if let Some(busy) = Trouble::of_status(answer.status) {
        return Err(busy);
    }
    // A body that is too long, or none, is not the server's.
    let body = connection.body(&answer, way.patience()).await.unwrap_or_default();
    Ok(problem(&body).is_some_and(|[kind, _]| kind.ends_with(BAD_HANDSHAKE)))
}

/// Returns the server's own reason for a refusal. Returns `None` if the server only reports a damaged handshake, since
/// something on the way has damaged it.
fn own_refusal(refusal: &Refusal) -> Option<String> {
    let [kind, detail] = problem(refusal.body().as_bytes())?;
    (!kind.ends_with(BAD_HANDSHAKE)).then(|| format!("status {}, {detail}", refusal.status()))
}

/// Returns the type and the detail of a problem (RFC 9457).
fn problem(body: &[u8]) -> Option<[String; 2]> {
    let problem = serde_json::from_slice(body).ok()?;
    Some([member(&problem, "type")?, member(&problem, "detail")?])
}

/// The most characters of a problem's text that a finding shows.
const CHARS_TOLD: usize = 400;

/// Returns a member of a problem as a line of text.
fn member(problem: &serde_json::Value, name: &str) -> Option<String> {
    let text = problem.get(name)?.as_str()?;
    Some(text.chars().filter(|char| !char.is_control()).take(CHARS_TOLD).collect())
}

/// Sends a request with the origin of the server's own pages. Every server refuses this request. If the server does not
/// accept the origin, that is the reason it gives.
async fn origin_of_post(way: &Way, known: Known, origin: &str) -> Finding {
    let fields = format!("Origin: {origin}\r\nContent-Type: application/json\r\n");
    let asked = async {
        let mut connection = way.post(POSTED, &fields, b"null").await?;
        let answer = connection.answer(way.patience()).await?;
        if let Some(busy) = Trouble::of_status(answer.status) {
            return Err(busy);
        }
        connection.body(&answer, way.patience()).await
    };
    match asked.await {
        Ok(body) => {
            let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let kind = problem["type"].as_str().unwrap_or_default();
            match kind.ends_with("origin-refused") {
                true => refused_origin(known, origin),
                false => {
                    Finding::good(Examination::Origin, format!("pages of {origin} are its own"))
                }
            }
        }
        Err(trouble) => Finding::trouble(Examination::Origin, &trouble),
    }
}

fn refused_origin(known: Known, origin: &str) -> Finding {
    known.fault(Examination::Origin, WayFault::Origin, &[("origin", origin)])
}

/// Opens more streams at once than a browser does.
pub(super) async fn connections(way: &Way, known: Known) -> Finding {
    let all = limits().streams;
    let streams = (0..all).map(|_| {
        let way = way.clone();
        tokio::task::spawn_local(async move { begin(&way, SSE, known, 2 * known.patience()).await })
    });
    let mut open = Vec::new();
    for stream in streams.collect::<Vec<_>>() {
        if let Ok(Begun::At(_, connection)) = stream.await {
            open.push(connection);
        }
    }
    match open.len() {
        0 => Finding::unknown(Examination::Connections, "no stream begins".to_owned()),
        open if open == all => {
            Finding::good(Examination::Connections, format!("{all} streams at once get through"))
        }
        open => {
            let values = [("open", &*open.to_string()), ("all", &*all.to_string())];
            known.fault(Examination::Connections, WayFault::Connections, &values)
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the finding about a server. Its answer to the request for its health has this status, type and body.
    async fn reached(status: u16, media_type: &str, body: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let fields = format!("Content-Type: {media_type}\r\nContent-Length: {}\r\n", body.len());
        let answer = format!("HTTP/1.1 {status} No\r\n{fields}\r\n{body}");
        let server = async {
            let mut stream = listener.accept().await.unwrap().0;
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let ((finding, known), ()) = tokio::join!(reach(&way, Duration::from_secs(1)), server);
        assert!(known.is_none());
        finding.lines().join("\n")
    }

    #[tokio::test]
    async fn the_words_of_a_problem_are_passed_on() {
        // RFC 9457 section 3.1
        let came = "status 400 came instead of an Anemone server's health";
        let told =
            reached(400, PROBLEM, r#"{"status":400,"title":"TLS","detail":"use https://"}"#).await;
        assert!(told.contains(&format!("{came}: use https://")), "{told}");
        let told = reached(400, PROBLEM, r#"{"title":"This port speaks TLS"}"#).await;
        assert!(told.contains(&format!("{came}: This port speaks TLS")), "{told}");
        let told = reached(403, PROBLEM, r#"{"detail":"not from there"}"#).await;
        assert!(told.contains("the way to the server is refused: not from there; "), "{told}");
        let long = format!(r#"{{"detail":"{}"}}"#, "a".repeat(60_000));
        let told = reached(403, PROBLEM, &long).await;
        let end = "a".repeat(CHARS_TOLD) + ";";
        assert!(told.contains(&format!("is refused: {end}")), "{told}");
        for (media_type, body) in
            [("text/html", r#"{"detail":"no"}"#), (PROBLEM, "[]"), (PROBLEM, "no")]
        {
            let told = reached(400, media_type, body).await;
            assert!(told.contains(came) && !told.contains(&format!("{came}:")), "{told}");
        }
    }

    /// Returns the findings about WebSockets if the requests get these statuses, in this order.
    async fn web_sockets(statuses: &[u16]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let known =
            Known { program: None, round_trip: Duration::ZERO, begin_max: Duration::from_secs(20) };
        let server = async {
            for status in statuses {
                let mut stream = listener.accept().await.unwrap().0;
                assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
                let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let (findings, ()) = tokio::join!(web_socket(&way, known), server);
        findings.map(|finding| finding.lines().join("\n")).join("\n")
    }

    #[tokio::test]
    async fn a_limit_of_requests_is_no_lost_upgrade() {
        for statuses in [[503, 503].as_slice(), &[429, 429], &[400, 503, 503]] {
            let told = web_sockets(statuses).await;
            assert!(!told.contains("FAULT"), "{told}");
            assert_eq!(told.matches("the way refuses it with status").count(), 2, "{told}");
        }
        let told = web_sockets(&[400, 400, 400]).await;
        assert!(told.contains("FAULT") && told.contains("no WebSocket is let through"), "{told}");
    }

    /// Returns true if a stream with these bytes counts as begun. If it should not, waits for a second.
    async fn has_begun(wanted: &str, coding: &str, bytes: &[u8], is_expected: bool) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let known =
            Known { program: None, round_trip: Duration::ZERO, begin_max: Duration::from_secs(20) };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {wanted}\r\n{coding}\r\n");
        let server = async {
            let mut stream = listener.accept().await.unwrap().0;
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(&[head.as_bytes(), bytes].concat()).await.unwrap();
            stream
        };
        let patience = Duration::from_secs(if is_expected { 60 } else { 1 });
        let (begun, _open) = tokio::join!(begin(&way, wanted, known, patience), server);
        matches!(begun, Begun::At(..))
    }

    #[tokio::test]
    async fn a_stream_begins_with_its_first_whole_item() {
        let identity = "Content-Encoding: identity\r\n";
        for (wanted, coding, bytes) in [
            (SSE, "", "retry: 1000\nid: a\n\n"),
            (SSE, identity, "retry: 1000\nid: a\n\n"),
            (NDJSON, "", "{\"position\":\"a\"}\n"),
        ] {
            let (all, last) = (bytes.as_bytes(), bytes.len() - 1);
            assert!(has_begun(wanted, coding, all, true).await, "{wanted}");
            assert!(!has_begun(wanted, coding, &all[..last], false).await, "{wanted}");
        }
    }

    #[tokio::test]
    async fn the_header_of_a_compressed_stream_is_no_beginning() {
        let brotli = "Content-Encoding: br\r\n";
        assert!(!has_begun(SSE, brotli, &[b':'; 10], false).await);
        assert!(has_begun(SSE, brotli, &[b':'; 11], true).await);
    }
}
