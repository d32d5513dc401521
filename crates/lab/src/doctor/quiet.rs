//! Examines quiet connections. A program on the way may cut them after a time.

use std::time::{Duration, Instant};

use anemone_ws::proto::Config;
use anemone_ws::{Error, Incoming};
use tokio::time::timeout;

use super::exam::{Begun, INDEX, Known, SSE, begin, multiplexed};
use super::finding::Finding;
use super::rules::{Examination, Unknown, WayFault, limits, statuses};
use super::way::{AnswerHead, Trouble, Way};

/// The time for which a WebSocket stays open after the client has reported a violation of the protocol.
const CLOSE_MAX: Duration = Duration::from_millis(200);
const HEARTBEATS: &str = "at least every 15 s";

/// Keeps quiet connections open, and finds out which of them the way cuts.
pub(super) async fn idle(way: &Way, known: Known, wait: Duration) -> Finding {
    let (sse, poll, socket) = tokio::join!(
        quiet_stream(way, known, wait),
        quiet_poll(way, wait),
        quiet_socket(way, wait)
    );
    let named = [("a stream (SSE)", &sse), ("a long poll", &poll), ("a WebSocket", &socket)];
    if let Some(fault) = fault(&named, known) {
        return fault;
    }
    if let QuietOutcome::Unasked(found) = &socket {
        let values = [("what", "a WebSocket"), ("found", found)];
        return known.fault(Examination::Idle, WayFault::Unasked, &values);
    }
    let held =
        named.iter().filter(|(_, quiet)| **quiet == QuietOutcome::Held).map(|(what, _)| *what);
    let held: Vec<_> = held.collect();
    if socket == QuietOutcome::AtOnce {
        return Finding::unknown(
            Examination::Idle,
            Unknown::AtOnce.words(&[("what", "a WebSocket")]),
        );
    }
    match held.is_empty() {
        true => Finding::unknown(Examination::Idle, Unknown::NoneHeld.words(&[])),
        false => {
            let seconds = wait.as_secs_f64();
            let is_long = wait > limits().heartbeat_max && sse == QuietOutcome::Held;
            let heartbeats = if is_long { ", with the server's heartbeats" } else { "" };
            Finding::good(
                Examination::Idle,
                format!("open for {seconds} s{heartbeats}: {}", held.join(", ")),
            )
        }
    }
}

/// Makes the finding about connections that are cut, or about heartbeats that are held back. Returns `None` if there
/// are none.
fn fault(named: &[(&str, &QuietOutcome)], known: Known) -> Option<Finding> {
    let words = named.iter().filter_map(|(what, quiet)| {
        let how = match quiet {
            QuietOutcome::Cut(silence) => {
                format!("after {:.1} s of silence", silence.as_secs_f64())
            }
            QuietOutcome::Dropped { heard, silence } => format!(
                "without a word: it was last heard after {:.1} s, and then silent for {:.1} s",
                heard.as_secs_f64(),
                silence.as_secs_f64()
            ),
            QuietOutcome::Silent(silence) => {
                let what = format!("no heartbeat of {what}");
                let seconds = format!("{:.1}", silence.as_secs_f64());
                let values = [("what", &*what), ("seconds", &seconds), ("when", HEARTBEATS)];
                return Some(WayFault::Buffered.words(&values));
            }
            _ => return None,
        };
        Some(WayFault::Idle.words(&[("what", what), ("how", &how)]))
    });
    let words: Vec<_> = words.collect();
    let is_cut = named
        .iter()
        .any(|(_, quiet)| matches!(quiet, QuietOutcome::Cut(_) | QuietOutcome::Dropped { .. }));
    let fault = if is_cut { WayFault::Idle } else { WayFault::Buffered };
    (!words.is_empty())
        .then(|| Finding::fault(Examination::Idle, fault, words.join(", "), known.program))
}

#[derive(Clone, Debug, PartialEq)]
enum QuietOutcome {
    Held,
    Cut(Duration),
    /// The connection is still open, but heartbeats have stopped.
    Dropped {
        /// The time from the beginning of the stream until its last byte.
        heard: Duration,
        silence: Duration,
    },
    /// The connection is still open, but no heartbeat came in this time.
    Silent(Duration),
    /// Something came, although the client had sent no request. The text describes it.
    Unasked(String),
    /// The connection was closed at once, so nothing is known about its silence.
    AtOnce,
    Unknown,
}

/// Judges a stream that is still open. `heard` is the time from its beginning until its last byte. `silence` is the
/// time since then.
fn of_silence(heard: Duration, silence: Duration, known: Known) -> QuietOutcome {
    if silence <= limits().heartbeat_max {
        return QuietOutcome::Held;
    }
    // What comes sooner is the rest of the beginning, and no heartbeat.
    if heard > known.held_min() {
        return QuietOutcome::Dropped { heard, silence };
    }
    QuietOutcome::Silent(silence)
}

async fn quiet_stream(way: &Way, known: Known, wait: Duration) -> QuietOutcome {
    let Begun::At(_, mut connection) = begin(way, SSE, known, known.patience()).await else {
        return QuietOutcome::Unknown;
    };
    let begun = Instant::now();
    let mut newest = begun;
    while let Some(left) = wait.checked_sub(begun.elapsed()) {
        match timeout(left, connection.piece()).await {
            Err(_) => break,
            Ok(Ok(piece)) if !piece.is_empty() => newest = Instant::now(),
            Ok(_) => return QuietOutcome::Cut(newest.elapsed()),
        }
    }
    of_silence(newest - begun, newest.elapsed(), known)
}

async fn quiet_poll(way: &Way, wait: Duration) -> QuietOutcome {
    let begun = Instant::now();
    for _ in 0..limits().polls_max {
        let Some(left) = wait.checked_sub(begun.elapsed()) else { return QuietOutcome::Held };
        let prefer = format!("Prefer: wait={}\r\n", left.as_secs().max(1));
        let Ok(mut connection) = way.ask(INDEX, &prefer).await else {
            return QuietOutcome::Unknown;
        };
        let asked = Instant::now();
        match connection.answer(left).await {
            Err(Trouble::Silent(_)) => return QuietOutcome::Held,
            // The server has waited as long as it does, or a topic is new: the next poll goes on.
            Ok(AnswerHead { status: 200, .. }) => {}
            // A proxy says so when it gives up.
            Ok(AnswerHead { status, .. }) if statuses().gave_up.contains(&status) => {
                return QuietOutcome::Cut(asked.elapsed());
            }
            Err(Trouble::Closed | Trouble::Broken(_)) => return QuietOutcome::Cut(asked.elapsed()),
            _ => return QuietOutcome::Unknown,
        }
    }
    QuietOutcome::Unknown
}

async fn quiet_socket(way: &Way, wait: Duration) -> QuietOutcome {
    // This end stays silent.
    let silent = wait + wait + Duration::from_secs(1);
    let config = Config {
        ping_interval: silent,
        idle_timeout: 2 * silent,
        close_timeout: CLOSE_MAX,
        ..Config::default()
    };
    let connect = multiplexed(way).config(config);
    let Ok(mut socket) = connect.connect().await else { return QuietOutcome::Unknown };
    let (begun, most) = (Instant::now(), limits().unasked_max);
    for _ in 0..most {
        let Some(left) = wait.checked_sub(begun.elapsed()) else { return QuietOutcome::Held };
        match timeout(left, socket.recv()).await {
            // It could not say yet what it has found.
            Err(_) if socket.sender().is_closing() => {
                return QuietOutcome::Unasked("what came is no WebSocket".to_owned());
            }
            Err(_) => return QuietOutcome::Held,
            Ok(Ok(Some(Incoming::Text(_) | Incoming::Binary(_)))) => {}
            Ok(Err(Error::Protocol(error))) => return QuietOutcome::Unasked(error.to_string()),
            Ok(_) => return of_end(begun.elapsed()),
        }
    }
    QuietOutcome::Unasked(format!("{most} messages came"))
}

/// Judges a WebSocket that was closed this long after its opening.
fn of_end(time: Duration) -> QuietOutcome {
    if time < limits().held_min { QuietOutcome::AtOnce } else { QuietOutcome::Cut(time) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::thread;

    use anemone_ws::Accept;
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the outcome for a WebSocket on which the server sends these bytes again and again.
    async fn found(bytes: &'static [u8]) -> QuietOutcome {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let server = async {
            let stream = listener.accept().await.unwrap().0.into_std().unwrap();
            let mut raw = stream.try_clone().unwrap();
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            let accept = Accept::default().subprotocols(["anemone.v1"]);
            let accepted = accept.accept(stream).await.unwrap();
            raw.set_nonblocking(false).unwrap();
            // It ends when the other end has gone.
            thread::spawn(move || while raw.write_all(bytes).is_ok() {});
            accepted
        };
        let (quiet, _accepted) = tokio::join!(quiet_socket(&way, Duration::from_secs(600)), server);
        quiet
    }

    #[test]
    fn heartbeats_that_do_not_come_on_an_open_stream_are_held_back() {
        let seconds = Duration::from_secs;
        let known =
            Known { program: Some("nginx"), round_trip: seconds(1), begin_max: seconds(20) };
        let of = |heard, silence| of_silence(Duration::from_millis(heard), seconds(silence), known);
        assert_eq!(of(15_000, 20), QuietOutcome::Held);
        assert_eq!(of(4500, 21), QuietOutcome::Silent(seconds(21)), "500 ms and four round trips");
        let dropped =
            QuietOutcome::Dropped { heard: Duration::from_millis(4501), silence: seconds(21) };
        assert_eq!(of(4501, 21), dropped);
        let told = |stream: QuietOutcome, poll: QuietOutcome| {
            let found = fault(&[("a stream (SSE)", &stream), ("a long poll", &poll)], known);
            found.map(|found| found.lines().join("\n")).unwrap_or_default()
        };
        assert_eq!(told(QuietOutcome::Held, QuietOutcome::Held), "");
        let held = told(QuietOutcome::Silent(seconds(21)), QuietOutcome::Held);
        let words = "no heartbeat of a stream (SSE) came within 21.0 s, although the server sends one at least every 15 s";
        assert!(held.contains(words) && held.contains("proxy_buffering off"), "{held}");
        assert!(!held.contains("proxy_read_timeout"), "{held}");
        let cut = told(QuietOutcome::Cut(seconds(21)), QuietOutcome::Held);
        assert!(cut.contains("a stream (SSE) is cut after 21.0 s of silence"), "{cut}");
        assert!(cut.contains("proxy_read_timeout"), "{cut}");
        let dropped = told(dropped, QuietOutcome::Held);
        let words = "a stream (SSE) is cut without a word: it was last heard after 4.5 s, and then silent for 21.0 s";
        assert!(dropped.contains(words) && dropped.contains("proxy_read_timeout"), "{dropped}");
        let both = told(QuietOutcome::Silent(seconds(21)), QuietOutcome::Cut(seconds(6)));
        assert!(
            both.contains("holds it back, a long poll is cut after 6.0 s of silence"),
            "{both}"
        );
        assert!(both.contains("proxy_read_timeout"), "{both}");
    }

    #[test]
    fn a_web_socket_that_is_closed_as_soon_as_it_is_open_was_not_silent() {
        let milliseconds = Duration::from_millis;
        assert_eq!(of_end(milliseconds(499)), QuietOutcome::AtOnce);
        assert_eq!(of_end(milliseconds(500)), QuietOutcome::Cut(milliseconds(500)));
    }

    #[tokio::test]
    async fn what_floods_a_quiet_web_socket_is_no_server() {
        assert_eq!(
            found(b"\x82\x01a").await,
            QuietOutcome::Unasked("100 messages came".to_owned())
        );
    }

    #[tokio::test]
    async fn a_frame_that_no_memory_holds_is_no_quiet_web_socket() {
        let QuietOutcome::Unasked(words) = found(b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff").await
        else {
            panic!("it is held")
        };
        assert!(words.starts_with("frame payload is 9223372036854775807 bytes"), "{words}");
    }
}
