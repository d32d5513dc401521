//! The examinations, each of which ends with a finding.

use std::time::{Duration, Instant};

use anemone_ws::proto::Config;
use anemone_ws::{ConnectError, Incoming, Refusal};
use tokio::time::timeout;

use super::finding::{Finding, Name};
use super::remedy::{Defect, program, remedies};
use super::way::{Answer, Connection, Trouble, Way, with_causes};

/// The status for a host that is not the server's (RFC 9110 section 15.5.20).
const MISDIRECTED: u16 = 421;
const HEALTH: &str = "/health";
/// The index, which every server has and whose readers get a beginning at once.
const INDEX: &str = "/topics/$topics?after=latest";
/// A poll that waits for a second until the index changes.
const POLL: &str = "/topics/$topics?after=latest&wait=1";
/// Polls until one of them has waited, and the time after which it has.
const POLLS: usize = 5;
const WAITED_MIN: Duration = Duration::from_millis(900);
const JSON: &str = "application/json";
const POSTED: &str = "/topics/$topics";
const SSE: &str = "text/event-stream";
const NDJSON: &str = "application/x-ndjson";
/// A stream is not silent for longer: the server sends a heartbeat each 15 s, or as often as it is set to.
const HEARTBEAT_MAX: Duration = Duration::from_secs(20);
/// A stream that is cut after this time, and some round trips, without a byte was held back; one that is cut sooner was refused.
const HELD_MIN: Duration = Duration::from_millis(500);
const SUBPROTOCOL: &str = "anemone.v1";
/// The end of the type of a problem: a handshake that is not that of RFC 6455.
const BAD_HANDSHAKE: &str = "bad-handshake";
const ROUND_TRIPS: u32 = 4;
/// So many streams at once, which is more than a browser opens to a server over HTTP/1.1.
const STREAMS: usize = 8;

/// What the first examination tells the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The program on the way, if it says its name.
    pub(super) program: Option<&'static str>,
    pub(super) round_trip: Duration,
    /// A stream that has not begun after this time, and some round trips, is held back.
    pub(super) begin_max: Duration,
}

impl Known {
    fn patience(self) -> Duration {
        self.begin_max + ROUND_TRIPS * self.round_trip
    }
}

/// Asks for the server's health. `None` if there is nothing to examine.
pub(super) async fn reach(way: &Way, begin_max: Duration) -> (Finding, Option<Known>) {
    let fault = |words: String| (Finding::fault(Name::Reach, words, Vec::new()), None);
    let mut connection = match way.ask(HEALTH, "").await {
        Ok(connection) => connection,
        Err(trouble) => return fault(trouble.to_string()),
    };
    let begun = Instant::now();
    let health = async {
        let answer = connection.answer(way.patience()).await?;
        let body = connection.body(&answer, way.patience()).await.unwrap_or_default();
        Ok::<_, Trouble>((answer, body))
    };
    let (answer, body) = match health.await {
        Ok(health) => health,
        Err(trouble) => return fault(trouble.to_string()),
    };
    let health: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let behind = program(&answer.programs);
    if answer.status == MISDIRECTED {
        let words = "the server does not know the host that it is asked for: a proxy sets another Host than the browser, or the server \
                     is not told this one";
        return (
            Finding::fault(Name::Reach, words.to_owned(), remedies(Defect::Host, behind)),
            None,
        );
    }
    let by = behind.map(|name| format!(", behind {name}")).unwrap_or_default();
    if !health["status"].is_string() {
        let status = answer.status;
        if let Some(why) = refusal(status) {
            let words = format!("status {status}{by}: the way to the server is refused{why}");
            return (Finding::refused(words), None);
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
        return fault(format!(
            "status {status} came instead of an Anemone server's health{by}{why}"
        ));
    }
    let round_trip = begun.elapsed();
    let words = format!("an Anemone server answers after {} ms{by}", round_trip.as_millis());
    (Finding::good(Name::Reach, words), Some(Known { program: behind, round_trip, begin_max }))
}

/// Returns what to do about a status of who may not pass.
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
        Ok(true) => Finding::good(Name::KeepAlive, "requests share a connection".to_owned()),
        Ok(false) | Err(Trouble::Closed | Trouble::Broken(_)) => Finding::fault(
            Name::KeepAlive,
            "the connection is closed after each answer, so every poll and every call opens another one".to_owned(),
            remedies(Defect::KeepAlive, known.program),
        ),
        Err(trouble) => Finding::unknown(Name::KeepAlive, trouble.to_string()),
    }
}

/// The beginning of a stream, or the reason why there is none.
enum Begun {
    At(Duration, Connection),
    /// Nothing came for so long.
    Held(Duration),
    Refused(u16),
    /// Something else came, of this type.
    Foreign(String),
    Trouble(Trouble),
}

async fn begin(way: &Way, wanted: &str, known: Known, patience: Duration) -> Begun {
    let begun = Instant::now();
    let held_min = HELD_MIN + ROUND_TRIPS * known.round_trip;
    let mut connection = match way.ask(INDEX, &format!("Accept: {wanted}\r\n")).await {
        Ok(connection) => connection,
        Err(trouble) => return Begun::Trouble(trouble),
    };
    let opened = async {
        let Answer { status, media_type, .. } = connection.answer(way.patience()).await?;
        if status != 200 {
            return Ok(Err(Begun::Refused(status)));
        }
        if !media_type.starts_with(wanted) {
            return Ok(Err(Begun::Foreign(media_type)));
        }
        Ok(Ok(connection.begins().await?))
    };
    match timeout(patience, opened).await {
        Err(_) | Ok(Err(Trouble::Silent(_))) => Begun::Held(begun.elapsed()),
        Ok(Err(Trouble::Closed) | Ok(Ok(false))) if begun.elapsed() >= held_min => {
            Begun::Held(begun.elapsed())
        }
        Ok(Err(trouble)) => Begun::Trouble(trouble),
        Ok(Ok(Err(other))) => other,
        Ok(Ok(Ok(false))) => Begun::Trouble(Trouble::Closed),
        Ok(Ok(Ok(true))) => Begun::At(begun.elapsed(), connection),
    }
}

/// Opens a stream, and waits for the beginning that every stream of the server has.
pub(super) async fn stream(way: &Way, known: Known, name: Name) -> Finding {
    let wanted = if name == Name::Sse { SSE } else { NDJSON };
    match begin(way, wanted, known, known.patience()).await {
        Begun::At(time, _) => {
            Finding::good(name, format!("a stream begins after {} ms", time.as_millis()))
        }
        Begun::Held(time) => Finding::fault(
            name,
            format!(
                "no byte of a stream came within {:.1} s, although the server sends its beginning at once: something on the way holds it back",
                time.as_secs_f64()
            ),
            remedies(Defect::Buffered, known.program),
        ),
        Begun::Refused(status) => {
            Finding::unknown(name, format!("the index of topics is refused with status {status}"))
        }
        Begun::Foreign(found) => Finding::fault(
            name,
            format!(
                "no stream came but an answer of the type {found:?}: something on the way takes Accept: {wanted} away, changes Content-Type, or answers itself"
            ),
            Vec::new(),
        ),
        Begun::Trouble(trouble) => Finding::unknown(name, trouble.to_string()),
    }
}

/// Opens a WebSocket as a program does, without an origin, and as a page of the server does.
pub(super) async fn web_socket(way: &Way, known: Known) -> [Finding; 2] {
    let begun = Instant::now();
    let opened = way.socket("/ws").subprotocols([SUBPROTOCOL]).connect().await;
    let upgrade = match &opened {
        Ok(_) => {
            let time = begun.elapsed().as_millis();
            Finding::good(Name::Upgrade, format!("a WebSocket opens after {time} ms"))
        }
        Err(ConnectError::Refused(refusal)) if let Some(why) = own_refusal(refusal) => {
            Finding::fault(Name::Upgrade, format!("the server refuses a WebSocket: {why}"), Vec::new())
        }
        // A WebSocket of one topic needs no subprotocol.
        Err(error) if may_lack_subprotocol(error) && way.socket(INDEX).connect().await.is_ok() => {
            Finding::fault(
                Name::Upgrade,
                "a WebSocket opens, but none with a subprotocol: something on the way takes Sec-WebSocket-Protocol away".to_owned(),
                remedies(Defect::Subprotocol, known.program),
            )
        }
        Err(error) => Finding::fault(
            Name::Upgrade,
            format!("no WebSocket is let through: {}", with_causes(error)),
            remedies(Defect::Upgrade, known.program),
        ),
    };
    let origin = way.origin();
    if opened.is_err() {
        return [upgrade, origin_of_post(way, known, &origin).await];
    }
    let own = way.socket("/ws").subprotocols([SUBPROTOCOL]).header("Origin", &origin);
    let own = match own.connect().await {
        Ok(_) => Finding::good(Name::Origin, format!("pages of {origin} may open one")),
        Err(ConnectError::Refused(refusal)) if refusal.status() == 403 => {
            refused_origin(known, &origin)
        }
        Err(error) => Finding::unknown(Name::Origin, with_causes(&error)),
    };
    [upgrade, own]
}

/// Returns why the server itself says no, unless that is what it says of a handshake that has lost something on its way.
fn own_refusal(refusal: &Refusal) -> Option<String> {
    let [kind, detail] = problem(refusal)?;
    (!kind.ends_with(BAD_HANDSHAKE)).then(|| format!("status {}, {detail}", refusal.status()))
}

/// Returns true if the server got a handshake that it does not understand, or its answer is not understood.
fn may_lack_subprotocol(error: &ConnectError) -> bool {
    let ConnectError::Refused(refusal) = error else { return true };
    problem(refusal).is_some_and(|[kind, _]| kind.ends_with(BAD_HANDSHAKE))
}

/// Returns the type and the detail of a problem (RFC 9457).
fn problem(refusal: &Refusal) -> Option<[String; 2]> {
    let problem: serde_json::Value = serde_json::from_str(refusal.body()).ok()?;
    let member = |name| {
        let text = problem.get(name)?.as_str()?;
        Some(text.chars().filter(|char| !char.is_control()).collect())
    };
    Some([member("type")?, member("detail")?])
}

/// Asks with the origin of the server's own pages for something that no server does: without a right to that origin, it says so.
async fn origin_of_post(way: &Way, known: Known, origin: &str) -> Finding {
    let fields = format!("Origin: {origin}\r\nContent-Type: application/json\r\n");
    let asked = async {
        let mut connection = way.post(POSTED, &fields, b"null").await?;
        let answer = connection.answer(way.patience()).await?;
        connection.body(&answer, way.patience()).await
    };
    match asked.await {
        Ok(body) => {
            let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let kind = problem["type"].as_str().unwrap_or_default();
            match kind.ends_with("origin-refused") {
                true => refused_origin(known, origin),
                false => Finding::good(Name::Origin, format!("pages of {origin} are its own")),
            }
        }
        Err(trouble) => Finding::unknown(Name::Origin, trouble.to_string()),
    }
}

fn refused_origin(known: Known, origin: &str) -> Finding {
    let words = format!(
        "the server refuses pages of {origin}, its own: another host or scheme reaches it than the browser asked for"
    );
    Finding::fault(Name::Origin, words, remedies(Defect::Origin, known.program))
}

/// Opens more streams at once than a browser does.
pub(super) async fn connections(way: &Way, known: Known) -> Finding {
    let streams = (0..STREAMS).map(|_| {
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
        STREAMS => {
            Finding::good(Name::Connections, format!("{STREAMS} streams at once get through"))
        }
        0 => Finding::unknown(Name::Connections, "no stream begins".to_owned()),
        open => Finding::fault(
            Name::Connections,
            format!("only {open} of {STREAMS} streams at once get through"),
            remedies(Defect::Connections, known.program),
        ),
    }
}

/// Makes a poll that waits for a second, and the same again: what comes at once, and is the same, comes from a cache.
pub(super) async fn cache(way: &Way, known: Known) -> Finding {
    let unknown = |words: String| Finding::unknown(Name::Cache, words);
    let mut before = None;
    for _ in 0..POLLS {
        let asked = async {
            let mut connection = way.ask(POLL, "").await?;
            let asked = Instant::now();
            let answer = connection.answer(way.patience()).await?;
            let body = connection.body(&answer, way.patience()).await?;
            Ok::<_, Trouble>((answer, body, asked.elapsed()))
        };
        let (answer, body, time) = match asked.await {
            Ok(answered) => answered,
            Err(trouble) => return unknown(trouble.to_string()),
        };
        if answer.status != 200 || !answer.media_type.starts_with(JSON) {
            let Answer { status, media_type, .. } = answer;
            return unknown(format!("a poll is answered with status {status}, {media_type:?}"));
        }
        if before.is_some() && time >= WAITED_MIN {
            return Finding::good(Name::Cache, "each poll is answered anew".to_owned());
        }
        if before.as_ref() == Some(&body) {
            return Finding::fault(
                Name::Cache,
                format!(
                    "a poll that waits for a second was answered after {} ms with the answer of the one before: something on the way keeps answers",
                    time.as_millis()
                ),
                remedies(Defect::Cached, known.program),
            );
        }
        before = Some(body);
    }
    unknown("topics are created or deleted all the time".to_owned())
}

/// Keeps quiet connections open, and tells which of them is cut.
pub(super) async fn idle(way: &Way, known: Known, wait: Duration) -> Finding {
    let (sse, poll, socket) = tokio::join!(
        quiet_stream(way, known, wait),
        quiet_poll(way, wait),
        quiet_socket(way, wait)
    );
    let named = [("a stream (SSE)", sse), ("a long poll", poll), ("a WebSocket", socket)];
    let cuts = named.iter().filter_map(|(what, quiet)| match quiet {
        Quiet::Cut(after) => Some(format!(
            "{what} is cut, or lets nothing through, after {:.1} s of silence",
            after.as_secs_f64()
        )),
        _ => None,
    });
    let cuts: Vec<_> = cuts.collect();
    if !cuts.is_empty() {
        let remedies = remedies(Defect::Idle, known.program);
        return Finding::fault(Name::Idle, cuts.join(", "), remedies);
    }
    let held = named.iter().filter(|(_, quiet)| *quiet == Quiet::Held).map(|(what, _)| *what);
    let held: Vec<_> = held.collect();
    match held.is_empty() {
        true => Finding::unknown(Name::Idle, "nothing can be held open".to_owned()),
        false => {
            let seconds = wait.as_secs_f64();
            let is_long = wait > HEARTBEAT_MAX && sse == Quiet::Held;
            let heartbeats = if is_long { ", with the server's heartbeats" } else { "" };
            Finding::good(
                Name::Idle,
                format!("open for {seconds} s{heartbeats}: {}", held.join(", ")),
            )
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quiet {
    Held,
    Cut(Duration),
    Unknown,
}

async fn quiet_stream(way: &Way, known: Known, wait: Duration) -> Quiet {
    let Begun::At(_, mut connection) = begin(way, SSE, known, known.patience()).await else {
        return Quiet::Unknown;
    };
    let (begun, mut newest) = (Instant::now(), Instant::now());
    while let Some(left) = wait.checked_sub(begun.elapsed()) {
        match timeout(left, connection.next()).await {
            Err(_) => break,
            Ok(Ok(0) | Err(_)) => return Quiet::Cut(newest.elapsed()),
            Ok(Ok(_)) => newest = Instant::now(),
        }
    }
    // What drops a connection without a word lets no heartbeat through either.
    if newest.elapsed() > HEARTBEAT_MAX { Quiet::Cut(newest.elapsed()) } else { Quiet::Held }
}

async fn quiet_poll(way: &Way, wait: Duration) -> Quiet {
    /// A server that answers more polls in a time has not waited.
    const ANSWERS_MAX: usize = 100;
    let begun = Instant::now();
    for _ in 0..ANSWERS_MAX {
        let Some(left) = wait.checked_sub(begun.elapsed()) else { return Quiet::Held };
        let prefer = format!("Prefer: wait={}\r\n", left.as_secs().max(1));
        let Ok(mut connection) = way.ask(INDEX, &prefer).await else { return Quiet::Unknown };
        let asked = Instant::now();
        match connection.answer(left).await {
            Err(Trouble::Silent(_)) => return Quiet::Held,
            // The server has waited as long as it does, or a topic is new: the next poll goes on.
            Ok(Answer { status: 200, .. }) => {}
            // What a proxy says when it gives up.
            Ok(Answer { status: 408 | 502 | 504, .. })
            | Err(Trouble::Closed | Trouble::Broken(_)) => return Quiet::Cut(asked.elapsed()),
            _ => return Quiet::Unknown,
        }
    }
    Quiet::Unknown
}

async fn quiet_socket(way: &Way, wait: Duration) -> Quiet {
    // This end stays silent.
    let silent = wait + wait + Duration::from_secs(1);
    let config = Config { ping_interval: silent, idle_timeout: 2 * silent, ..Config::default() };
    let connect = way.socket("/ws").subprotocols([SUBPROTOCOL]).config(config);
    let Ok(mut socket) = connect.connect().await else { return Quiet::Unknown };
    let begun = Instant::now();
    loop {
        let Some(left) = wait.checked_sub(begun.elapsed()) else { return Quiet::Held };
        match timeout(left, socket.recv()).await {
            Err(_) => return Quiet::Held,
            Ok(Ok(Some(Incoming::Text(_) | Incoming::Binary(_)))) => {}
            Ok(_) => return Quiet::Cut(begun.elapsed()),
        }
    }
}
