//! The examinations, each of which ends with a finding.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anemone_ws::proto::Config;
use anemone_ws::{Connect, ConnectError, Incoming, Refusal};
use tokio::time::timeout;

use super::finding::Finding;
use super::rules::{Name, WayFault, limits, program};
use super::way::{Answer, Connection, Trouble, Way, with_causes};

/// The status for a host that is not the server's (RFC 9110 section 15.5.20).
const MISDIRECTED: u16 = 421;
const HEALTH: &str = "/health";
/// The index, which every server has and whose readers get a beginning at once.
const INDEX: &str = "/topics/$topics?after=latest";
/// The path of the multiplexed WebSocket.
const MULTIPLEXED: &str = "/ws";
const JSON: &str = "application/json";
const POSTED: &str = "/topics/$topics";
const SSE: &str = "text/event-stream";
const NDJSON: &str = "application/x-ndjson";
const SUBPROTOCOL: &str = "anemone.v1";
/// A subprotocol of a topic's WebSocket.
const EVENTS: &str = "anemone.events";
/// The end of the type of a problem: a handshake that is not that of RFC 6455.
const BAD_HANDSHAKE: &str = "bad-handshake";

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
        self.begin_max + limits().held_round_trips * self.round_trip
    }

    /// A fault, with the settings that mend it. `values` stand in its sentence.
    fn fault(self, name: Name, fault: WayFault, values: &[(&str, &str)]) -> Finding {
        Finding::fault(name, fault, fault.words(values), self.program)
    }
}

/// Asks for the server's health. `None` if there is nothing to examine.
pub(super) async fn reach(way: &Way, begin_max: Duration) -> (Finding, Option<Known>) {
    let wrong = |words: String| (Finding::wrong(Name::Reach, words), None);
    let mut connection = match way.ask(HEALTH, "").await {
        Ok(connection) => connection,
        Err(trouble) => return wrong(trouble.to_string()),
    };
    let begun = Instant::now();
    let health = async {
        let answer = connection.answer(way.patience()).await?;
        let body = connection.body(&answer, way.patience()).await.unwrap_or_default();
        Ok::<_, Trouble>((answer, body))
    };
    let (answer, body) = match health.await {
        Ok(health) => health,
        Err(trouble) => return wrong(trouble.to_string()),
    };
    let health: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let behind = program(&answer.programs);
    if answer.status == MISDIRECTED {
        let fault = WayFault::Host;
        return (Finding::fault(Name::Reach, fault, fault.words(&[]), behind), None);
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
        return wrong(format!(
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
        Ok(false) | Err(Trouble::Closed | Trouble::Broken(_)) => {
            known.fault(Name::KeepAlive, WayFault::KeepAlive, &[])
        }
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
    let held_min = limits().held_min + limits().held_round_trips * known.round_trip;
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
        Begun::Held(time) => {
            let seconds = format!("{:.1}", time.as_secs_f64());
            known.fault(name, WayFault::Buffered, &[("seconds", &seconds)])
        }
        Begun::Refused(status) => {
            Finding::unknown(name, format!("the index of topics is refused with status {status}"))
        }
        Begun::Foreign(found) => {
            let found = found.escape_debug().to_string();
            known.fault(name, WayFault::Foreign, &[("found", &found), ("wanted", wanted)])
        }
        Begun::Trouble(trouble) => Finding::unknown(name, trouble.to_string()),
    }
}

/// Opens a WebSocket as a program does, without an origin, and as a page of the server does.
pub(super) async fn web_socket(way: &Way, known: Known) -> [Finding; 2] {
    let begun = Instant::now();
    let opened = multiplexed(way).connect().await;
    let upgrade = match &opened {
        Ok(_) => {
            let time = begun.elapsed().as_millis();
            Finding::good(Name::Upgrade, format!("a WebSocket opens after {time} ms"))
        }
        Err(error) => closed(way, known, error).await,
    };
    let origin = way.origin();
    if opened.is_err() {
        return [upgrade, origin_of_post(way, known, &origin).await];
    }
    let own = match multiplexed(way).header("Origin", &origin).connect().await {
        Ok(_) => Finding::good(Name::Origin, format!("pages of {origin} may open one")),
        Err(ConnectError::Refused(refusal)) if refusal.status() == 403 => {
            refused_origin(known, &origin)
        }
        Err(error) => Finding::unknown(Name::Origin, with_causes(&error)),
    };
    [upgrade, own]
}

fn multiplexed(way: &Way) -> Connect {
    way.socket(MULTIPLEXED).subprotocols([SUBPROTOCOL])
}

/// Finds out why no multiplexed WebSocket opens: a topic has one that needs no subprotocol, and the server says without an upgrade that
/// it knows the path.
async fn closed(way: &Way, known: Known, error: &ConnectError) -> Finding {
    if let ConnectError::Refused(refusal) = error
        && let Some(why) = own_refusal(refusal)
    {
        return Finding::wrong(Name::Upgrade, format!("the server refuses a WebSocket: {why}"));
    }
    let why = with_causes(error);
    let fault = |fault, why: &str| known.fault(Name::Upgrade, fault, &[("why", why)]);
    if way.socket(INDEX).connect().await.is_err() {
        return fault(WayFault::Upgrade, &why);
    }
    match knows_multiplexed(way).await {
        Err(trouble) => Finding::unknown(Name::Upgrade, trouble.to_string()),
        Ok(false) => fault(WayFault::Unforwarded, ""),
        Ok(true) if keeps_subprotocol(way).await => {
            fault(WayFault::Upgrade, &format!("one of a topic opens, but at {MULTIPLEXED} {why}"))
        }
        Ok(true) => fault(WayFault::Subprotocol, ""),
    }
}

/// Returns true if a topic's WebSocket gets the subprotocol that it offers.
async fn keeps_subprotocol(way: &Way) -> bool {
    let opened = way.socket(INDEX).subprotocols([EVENTS]).connect().await;
    opened.is_ok_and(|socket| socket.subprotocol() == Some(EVENTS))
}

/// Returns true if a request for the multiplexed WebSocket that is no handshake comes as far as the server.
async fn knows_multiplexed(way: &Way) -> Result<bool, Trouble> {
    let mut connection = way.ask(MULTIPLEXED, "").await?;
    let answer = connection.answer(way.patience()).await?;
    // A body that is too long, or none, is not the server's.
    let body = connection.body(&answer, way.patience()).await.unwrap_or_default();
    Ok(problem(&body).is_some_and(|[kind, _]| kind.ends_with(BAD_HANDSHAKE)))
}

/// Returns why the server itself says no, unless that is what it says of a handshake that has lost something on its way.
fn own_refusal(refusal: &Refusal) -> Option<String> {
    let [kind, detail] = problem(refusal.body().as_bytes())?;
    (!kind.ends_with(BAD_HANDSHAKE)).then(|| format!("status {}, {detail}", refusal.status()))
}

/// Returns the type and the detail of a problem (RFC 9457).
fn problem(body: &[u8]) -> Option<[String; 2]> {
    let problem: serde_json::Value = serde_json::from_slice(body).ok()?;
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
    known.fault(Name::Origin, WayFault::Origin, &[("origin", origin)])
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
        0 => Finding::unknown(Name::Connections, "no stream begins".to_owned()),
        open if open == all => {
            Finding::good(Name::Connections, format!("{all} streams at once get through"))
        }
        open => {
            let values = [("open", &*open.to_string()), ("all", &*all.to_string())];
            known.fault(Name::Connections, WayFault::Connections, &values)
        }
    }
}

/// An answer to a poll.
struct Polled {
    body: Vec<u8>,
    time: Duration,
    age: u64,
}

/// What two polls for the same say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Pair {
    /// The second has waited about as long as the first.
    Anew,
    /// The second came sooner, since the index has changed.
    Changed,
    /// The second came at once with the answer of the first, which had waited.
    Early,
    /// None has waited, as a server may be set to.
    AtOnce,
}

/// Makes polls that wait for a second, each twice: what comes much sooner than the first time, and is the same, comes from a cache.
pub(super) async fn cache(way: &Way, known: Known) -> Finding {
    let cached = |how: &str| known.fault(Name::Cache, WayFault::Cached, &[("how", how)]);
    let unknown = |words: String| Finding::unknown(Name::Cache, words);
    let (mut early, mut at_once) = (0, 0);
    for _ in 0..limits().poll_pairs {
        let path = fresh_poll();
        let polled = async { Ok((poll(way, &path).await?, poll(way, &path).await?)) };
        let (first, second) = match polled.await {
            Ok(polled) => polled,
            Err(words) => return unknown(words),
        };
        let age = first.age.max(second.age);
        if age > 0 {
            return cached(&format!("with Age: {age}"));
        }
        match judge_pair(&first, &second) {
            Pair::Anew => {
                return Finding::good(Name::Cache, "each poll is answered anew".to_owned());
            }
            Pair::Early => early += 1,
            Pair::AtOnce => at_once += 1,
            Pair::Changed => {}
        }
        if early == limits().early_pairs {
            let [first, second] = [first, second].map(|polled| polled.time.as_millis());
            return cached(&format!(
                "after {second} ms with the answer of the one before, which took {first} ms"
            ));
        }
    }
    unknown(match at_once {
        0 => "topics are created or deleted all the time".to_owned(),
        _ => "the server answers polls at once, so a cache cannot be told from it".to_owned(),
    })
}

/// Returns the path of a poll that waits for a second until the index changes, and that no cache has an answer for.
fn fresh_poll() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = since.subsec_micros().wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    // Parts of a millisecond, which make no difference to the server.
    format!("{INDEX}&wait=1.000{:06}", number % 1_000_000)
}

async fn poll(way: &Way, path: &str) -> Result<Polled, String> {
    let asked = async {
        let mut connection = way.ask(path, "").await?;
        let asked = Instant::now();
        let answer = connection.answer(way.patience()).await?;
        let body = connection.body(&answer, way.patience()).await?;
        Ok::<_, Trouble>((answer, body, asked.elapsed()))
    };
    let (answer, body, time) = asked.await.map_err(|trouble| trouble.to_string())?;
    let Answer { status, media_type, age, .. } = answer;
    if status != 200 || !media_type.starts_with(JSON) {
        return Err(format!("a poll is answered with status {status}, {media_type:?}"));
    }
    Ok(Polled { body, time, age })
}

fn judge_pair(first: &Polled, second: &Polled) -> Pair {
    let waited_min = limits().waited_min;
    // A server may be set to wait for less than it is asked to.
    if second.time >= waited_min && 2 * second.time >= first.time {
        return Pair::Anew;
    }
    match first.body == second.body {
        false => Pair::Changed,
        true if first.time >= waited_min => Pair::Early,
        true => Pair::AtOnce,
    }
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
        Quiet::Cut(after) => {
            let seconds = format!("{:.1}", after.as_secs_f64());
            Some(WayFault::Idle.words(&[("what", what), ("seconds", &seconds)]))
        }
        _ => None,
    });
    let cuts: Vec<_> = cuts.collect();
    if !cuts.is_empty() {
        return Finding::fault(Name::Idle, WayFault::Idle, cuts.join(", "), known.program);
    }
    let held = named.iter().filter(|(_, quiet)| *quiet == Quiet::Held).map(|(what, _)| *what);
    let held: Vec<_> = held.collect();
    match held.is_empty() {
        true => Finding::unknown(Name::Idle, "nothing can be held open".to_owned()),
        false => {
            let seconds = wait.as_secs_f64();
            let is_long = wait > limits().heartbeat_max && sse == Quiet::Held;
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
    if newest.elapsed() > limits().heartbeat_max {
        Quiet::Cut(newest.elapsed())
    } else {
        Quiet::Held
    }
}

async fn quiet_poll(way: &Way, wait: Duration) -> Quiet {
    let begun = Instant::now();
    for _ in 0..limits().polls_max {
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
    let connect = multiplexed(way).config(config);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(first: (&str, u64), second: (&str, u64)) -> Pair {
        let [first, second] = [first, second].map(|(body, ms)| Polled {
            body: body.into(),
            time: Duration::from_millis(ms),
            age: 0,
        });
        judge_pair(&first, &second)
    }

    #[test]
    fn a_server_that_limits_waits_is_no_cache() {
        assert_eq!(pair(("a", 1002), ("a", 1001)), Pair::Anew);
        assert_eq!(pair(("a", 502), ("a", 501)), Pair::Anew, "[limits] wait_proxied = \"500ms\"");
        assert_eq!(pair(("a", 3), ("a", 2)), Pair::AtOnce, "wait_proxied = \"0s\"");
        assert_eq!(
            pair(("a", 3), ("a", 1001)),
            Pair::Anew,
            "the index had changed before the first"
        );
    }

    #[test]
    fn what_comes_at_once_and_is_the_same_as_what_was_waited_for_is_of_a_cache() {
        assert_eq!(pair(("a", 1002), ("a", 2)), Pair::Early);
        assert_eq!(pair(("a", 502), ("a", 2)), Pair::Early);
        assert_eq!(pair(("a", 1002), ("b", 2)), Pair::Changed);
    }

    #[test]
    fn each_pair_of_polls_is_for_something_that_no_cache_has() {
        assert_ne!(fresh_poll(), fresh_poll());
    }
}
