//! The examinations, each of which ends with a finding.

use std::time::{Duration, Instant};

use anemone_ws::proto::Config;
use anemone_ws::{ConnectError, Incoming};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::finding::{Finding, Name};
use super::remedy::{Fault, program, remedies};
use super::way::{Answer, Line, Trouble, Way, with_causes};
use crate::load::client_config;

/// The status for a host that is not the server's (RFC 9110 section 15.5.20).
const MISDIRECTED: u16 = 421;
const HEALTH: &str = "/health";
/// The index, which every server has and whose readers get a beginning at once.
const INDEX: &str = "/topics/$topics?after=latest";
const POSTED: &str = "/topics/$topics";
const SSE: &str = "text/event-stream";
const NDJSON: &str = "application/x-ndjson";
/// A stream is not silent for longer: the server sends a heartbeat each 15 s, or as often as it is set to.
const HEARTBEAT_MAX: Duration = Duration::from_secs(20);
const SUBPROTOCOL: &str = "anemone.v1";
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
    let mut line = match way.ask(HEALTH, "").await {
        Ok(line) => line,
        Err(trouble) => return fault(trouble.to_string()),
    };
    let begun = Instant::now();
    let health = async {
        let answer = line.answer(way.patience()).await?;
        let body = line.body(&answer, way.patience()).await.unwrap_or_default();
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
            Finding::fault(Name::Reach, words.to_owned(), remedies(Fault::Host, behind)),
            None,
        );
    }
    let by = behind.map(|name| format!(", behind {name}")).unwrap_or_default();
    if !health["status"].is_string() {
        let status = answer.status;
        let why = match status {
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

/// Makes two requests on one connection.
pub(super) async fn keep_alive(way: &Way, known: Known) -> Finding {
    let twice = async {
        let mut line = way.ask(HEALTH, "").await?;
        let answer = line.answer(way.patience()).await?;
        line.body(&answer, way.patience()).await?;
        if answer.is_last {
            return Ok(false);
        }
        line.ask(way, HEALTH, "").await?;
        line.answer(way.patience()).await.map(|_| true)
    };
    match twice.await {
        Ok(true) => Finding::good(Name::KeepAlive, "requests share a connection".to_owned()),
        Ok(false) | Err(Trouble::Closed | Trouble::Broken(_)) => Finding::fault(
            Name::KeepAlive,
            "the connection is closed after each answer, so every poll and every call opens another one".to_owned(),
            remedies(Fault::KeepAlive, known.program),
        ),
        Err(trouble) => Finding::unknown(Name::KeepAlive, trouble.to_string()),
    }
}

/// The beginning of a stream, or the reason why there is none.
enum Begun {
    At(Duration, Line),
    Held,
    Refused(u16),
    /// Something else came, of this type.
    Foreign(String),
    Trouble(Trouble),
}

async fn begin(way: &Way, wanted: &str, patience: Duration) -> Begun {
    let begun = Instant::now();
    let mut line = match way.ask(INDEX, &format!("Accept: {wanted}\r\n")).await {
        Ok(line) => line,
        Err(trouble) => return Begun::Trouble(trouble),
    };
    let opened = async {
        let Answer { status, media_type, .. } = line.answer(way.patience()).await?;
        if status != 200 {
            return Ok(Err(Begun::Refused(status)));
        }
        if !media_type.starts_with(wanted) {
            return Ok(Err(Begun::Foreign(media_type)));
        }
        Ok(Ok(line.begins().await?))
    };
    match timeout(patience, opened).await {
        Err(_) | Ok(Err(Trouble::Silent(_))) => Begun::Held,
        Ok(Err(trouble)) => Begun::Trouble(trouble),
        Ok(Ok(Err(other))) => other,
        Ok(Ok(Ok(false))) => Begun::Trouble(Trouble::Closed),
        Ok(Ok(Ok(true))) => Begun::At(begun.elapsed(), line),
    }
}

/// Opens a stream, and waits for the beginning that every stream of the server has.
pub(super) async fn stream(way: &Way, known: Known, name: Name) -> Finding {
    let wanted = if name == Name::Sse { SSE } else { NDJSON };
    match begin(way, wanted, known.patience()).await {
        Begun::At(time, _) => {
            Finding::good(name, format!("a stream begins after {} ms", time.as_millis()))
        }
        Begun::Held => Finding::fault(
            name,
            format!(
                "no byte of a stream came within {:.1} s, although the server sends its beginning at once: something on the way holds it back",
                known.patience().as_secs_f64()
            ),
            remedies(Fault::Buffered, known.program),
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
        Err(error) => Finding::fault(
            Name::Upgrade,
            format!("no WebSocket is let through: {}", with_causes(error)),
            remedies(Fault::Upgrade, known.program),
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

/// Asks with the origin of the server's own pages for something that no server does: without a right to that origin, it says so.
async fn origin_of_post(way: &Way, known: Known, origin: &str) -> Finding {
    let fields = format!("Origin: {origin}\r\nContent-Type: application/json\r\n");
    let asked = async {
        let mut line = way.post(POSTED, &fields, b"null").await?;
        let answer = line.answer(way.patience()).await?;
        line.body(&answer, way.patience()).await
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
    Finding::fault(Name::Origin, words, remedies(Fault::Origin, known.program))
}

/// Opens more streams at once than a browser does.
pub(super) async fn connections(way: &Way, known: Known) -> Finding {
    let streams = (0..STREAMS).map(|_| {
        let way = way.clone();
        tokio::task::spawn_local(async move { begin(&way, SSE, 2 * known.patience()).await })
    });
    let mut open = Vec::new();
    for stream in streams.collect::<Vec<_>>() {
        if let Ok(Begun::At(_, line)) = stream.await {
            open.push(line);
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
            remedies(Fault::Connections, known.program),
        ),
    }
}

/// Tells whether browsers are bound to six connections.
pub(super) async fn protocol(way: &Way) -> Finding {
    const SIX: &str = "browsers open at most six connections to it, so six streams of a page block everything else; \
                       HTTP/2 has no such limit, and the pages and the client of Anemone share one connection";
    if !way.is_secure {
        return Finding::note(Name::Http2, format!("without TLS there is no HTTP/2: {SIX}"));
    }
    match timeout(way.patience(), chosen(way)).await {
        Ok(Ok(true)) => Finding::good(Name::Http2, "HTTP/2: streams share a connection".to_owned()),
        Ok(Ok(false)) => Finding::note(Name::Http2, format!("no HTTP/2: {SIX}")),
        Ok(Err(error)) => Finding::unknown(Name::Http2, error.to_string()),
        Err(_) => Finding::unknown(Name::Http2, "no answer came".to_owned()),
    }
}

/// Returns true if the server chooses HTTP/2 (ALPN, RFC 7301). Nothing is sent, so nobody needs to be trusted.
async fn chosen(way: &Way) -> anyhow::Result<bool> {
    let authority = &way.authority;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse()?),
        _ => (authority.as_str(), 443),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let socket = TcpStream::connect((host.as_str(), port)).await?;
    let connector = TlsConnector::from(std::sync::Arc::new(client_config(b"h2")?));
    match connector.connect(host.try_into()?, socket).await {
        Ok(stream) => Ok(stream.get_ref().1.alpn_protocol() == Some(b"h2")),
        // A server that knows other protocols only (RFC 7301 section 3.2).
        Err(error) if error.to_string().contains("NoApplicationProtocol") => Ok(false),
        Err(error) => Err(error.into()),
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
        Quiet::Cut(after) => Some(format!(
            "{what} is cut, or lets nothing through, after {:.1} s of silence",
            after.as_secs_f64()
        )),
        _ => None,
    });
    let cuts: Vec<_> = cuts.collect();
    if !cuts.is_empty() {
        let remedies = remedies(Fault::Idle, known.program);
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
    let Begun::At(_, mut line) = begin(way, SSE, known.patience()).await else {
        return Quiet::Unknown;
    };
    let (begun, mut newest) = (Instant::now(), Instant::now());
    while let Some(left) = wait.checked_sub(begun.elapsed()) {
        match timeout(left, line.next()).await {
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
        let Ok(mut line) = way.ask(INDEX, &prefer).await else { return Quiet::Unknown };
        let asked = Instant::now();
        match line.answer(left).await {
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
