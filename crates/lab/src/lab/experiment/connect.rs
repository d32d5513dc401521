//! `connect`: measures the cost of opening a connection, up to its first use (A1).

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::calls::{BODY, SERVICE};
use crate::lab::probe::{Fault, FaultKind, Http, Place, Stream, WebSocket};
use crate::lab::report::{Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::lab::target::missing;
use crate::load::CalledService;

const OPENING: Quantity = Quantity::less("opening", "ms");
const CASE: &str = "until an answer is there";
const TCP: &str = "TCP";
const HTTP: &str = "HTTP";
const HTTP_OVER_TLS: &str = "HTTP over TLS";
const WEB_SOCKET: &str = "WebSocket";
const WEB_SOCKET_OVER_TLS: &str = "WebSocket over TLS";
const HEALTH: &str = "/health";
/// The time of a TCP connection in the publication, on gigabit Ethernet.
const PUBLISHED_TCP_MS: f64 = 0.965;
const PUBLISHED_WEB_SOCKET_MS: f64 = 3.533;
/// The greatest factor between a measured ratio and the published one that it replicates.
const ALIKE: f64 = 1.25;

#[derive(Clone, Debug)]
enum ConnectWork {
    Tcp(Place),
    Http(Place, String),
    WebSocket(Place, String),
    /// HTTP/2 over TLS.
    Http2(Place),
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let web = session.web()?;
    let (tcp, secure) = (session.tcp_echo()?, session.secure_web()?);
    let cell = |contender: &str, key| Cell::new(CASE, contender, key);
    let mut cells = Vec::new();
    if let Some(place) = tcp {
        cells.push(cell(TCP, ConnectWork::Tcp(place.clone())));
        cells.push(cell("TCP again", ConnectWork::Tcp(place)));
    }
    let get = session.target.offer().map_or(Some(HEALTH), |offer| offer.get.as_deref());
    let (http, web_socket) = match session.target.is_secure() {
        true => (HTTP_OVER_TLS, WEB_SOCKET_OVER_TLS),
        false => (HTTP, WEB_SOCKET),
    };
    cells.extend(get.map(|path| cell(http, ConnectWork::Http(web.clone(), path.to_owned()))));
    if let Ok(path) = session.target.echo_socket() {
        cells.push(cell(web_socket, ConnectWork::WebSocket(web, path.clone())));
        let secure = secure.clone();
        cells.extend(
            secure.map(|place| cell(WEB_SOCKET_OVER_TLS, ConnectWork::WebSocket(place, path))),
        );
    }
    ensure!(!cells.is_empty(), missing("get, and no websocket in [echo]"));
    if let Some(place) = secure {
        cells.push(cell(HTTP_OVER_TLS, ConnectWork::Http(place.clone(), HEALTH.to_owned())));
        cells.push(cell("HTTP/2 over TLS", ConnectWork::Http2(place)));
    }
    let count = session.pace.full_or_quick(50, 10);
    let series = interleaved(session, OPENING, &cells, |session, cell| {
        let seed = session.pace.random.next();
        measure(&cell.key, count, seed)
    });
    let question = "What does opening a connection cost, until it can be used?";
    let mut report = session.report("connect", question, OPENING, series);
    report.compare_with(TCP);
    judge(&mut report);
    report.method.push(format!(
        "{count} connections in each round, one after the other; TCP is open when its first byte is back, HTTP when all of a small \
         answer is there, a WebSocket after its handshake. TLS is the newest version that both ends know, 1.3 with our server, and no session is resumed; a client of HTTP/2 also makes its settings anew."
    ));
    Ok(report)
}

fn judge(report: &mut Report) {
    let median = |contender: &str| report.median(CASE, contender, OPENING.name);
    let (Some(tcp), Some(web_socket)) = (median(TCP), median(WEB_SOCKET)) else {
        // Another server has no bare TCP.
        let of = [HTTP, WEB_SOCKET, HTTP_OVER_TLS, WEB_SOCKET_OVER_TLS];
        let of = of.into_iter().filter_map(|of| Some(format!("{of} {:.3} ms", median(of)?)));
        let of: Vec<_> = of.collect();
        if !of.is_empty() {
            report.answer = format!("From nothing to an answer: {}.", of.join(", "));
        }
        return;
    };
    let ratio = web_socket / tcp;
    let published = PUBLISHED_WEB_SOCKET_MS / PUBLISHED_TCP_MS;
    report.answer = format!(
        "A WebSocket is open after {web_socket:.3} ms: {ratio:.1} times the {tcp:.3} ms until the first echo over TCP."
    );
    report.published.push(Published {
        figure: "set-up of a WebSocket, times that of TCP (A1)".to_owned(),
        published: format!("{published:.2}"),
        measured: format!("{ratio:.2}"),
        verdict: Verdict::of((published / ALIKE..=published * ALIKE).contains(&ratio)),
        because: "theirs was Java on two hosts, and TCP's was connect() alone; ours is until an answer is there, \
                  which is when the kernel of the server has also woken its program"
            .to_owned(),
    });
}

fn measure(work: &ConnectWork, count: u64, seed: u64) -> Sample {
    let mut sample = Sample { expected: count, ..Sample::default() };
    for number in 0..count {
        match open(work, seed ^ number) {
            Ok(time) => {
                sample.durations.record(time);
                sample.received += 1;
            }
            Err(fault) => {
                sample.fault(&fault);
                if fault.kind() == FaultKind::Stalled {
                    break;
                }
            }
        }
    }
    sample.figures.extend(sample.durations.percentile(0.5).map(|time| (OPENING, ms(time))));
    sample
}

fn open(work: &ConnectWork, seed: u64) -> Result<Duration, Fault> {
    let begun = Instant::now();
    match work {
        ConnectWork::Tcp(place) => {
            let mut stream = Stream::connect(place)?;
            stream.send(b"a")?;
            stream.fill()?;
        }
        ConnectWork::Http(place, path) => {
            Http::connect(place)?.call("GET", path, "", b"")?.expect(200)?;
        }
        ConnectWork::WebSocket(place, path) => {
            WebSocket::connect(place, path, &[], seed)?;
        }
        ConnectWork::Http2(place) => {
            let (path, body) = (SERVICE.to_owned(), BODY.to_owned());
            let service = CalledService { address: place.address, path, body };
            service.http2(1, 1).map_err(Fault::of_load)?;
        }
    }
    Ok(begun.elapsed())
}
