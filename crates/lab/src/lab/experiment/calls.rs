//! `calls`: measures one call, fifty calls at once, and the number of calls in a given time, over REST and over a
//! socket (E).

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::numbers::fixed;
use crate::lab::probe::{Fault, Http, Multiplexed, Place};
use crate::lab::report::{Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::load::{CalledService, Http2Calls};
use crate::tcp_info::Traffic;

pub(super) const SERVICE: &str = "/messages/testing";
pub(super) const BODY: &str = r#"{"id":"testing"}"#;
pub(super) const HTTP: &str = "HTTP/1.1";
pub(super) const MULTIPLEXED: &str = "multiplexed";
const SIX: &str = "HTTP/1.1, 6 connections";
const TIME: Quantity = Quantity::less("time", "ms");
const RATE: Quantity = Quantity::more("calls a second", "");
const PAYLOAD: Quantity = Quantity::less("a call and its reply", "B");
const WIRE: Quantity = Quantity::less("a call and its reply on the wire", "B");
const OPENING: Quantity = Quantity::less("the opening", "B");
const ONE: &str = "one after the other";
const AT_ONCE: usize = 50;
/// The number of connections that a browser opens to a server.
const BROWSER: usize = 6;
/// The least number of calls in a sample, even if each takes long.
const CALLS_MIN: u64 = 3;
/// The greatest factor between a measured ratio and the published one that it replicates; below, the same for bytes.
const ALIKE: f64 = 1.25;
const BYTES_ALIKE: f64 = 1.1;

#[derive(Clone, Debug)]
enum Caller {
    Http {
        place: Place,
        connections: usize,
    },
    /// HTTP/1.1 with a new connection for each call.
    Anew(Place),
    Http2(Place),
    Multiplexed(Place),
    Tcp(Place),
}

#[derive(Clone, Debug)]
struct Calling {
    caller: Caller,
    is_at_once: bool,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let cells = cells(session)?;
    let time = session.pace.full_or_quick(Duration::from_secs(1), Duration::from_millis(100));
    let repeats = session.pace.full_or_quick(20, 3);
    let series = interleaved(session, TIME, &cells, |session, cell| {
        let seed = session.pace.random.next();
        let mut sample = Sample::default();
        let measured = if cell.key.is_at_once {
            at_once(&cell.key.caller, repeats, seed, &mut sample)
        } else {
            one_by_one(&cell.key.caller, time, seed, &mut sample)
        };
        if let Err(fault) = measured {
            sample.fault(&fault);
        }
        sample
    });
    let question = "What does a call cost over REST, and over a socket?";
    let mut report = session.report("calls", question, TIME, series);
    report.compare_with(MULTIPLEXED);
    judge(&mut report);
    report.method.push(format!(
        "GET {SERVICE}, each reply compared with {BODY}. {ONE}: for {} ms on one connection, or with a new one for each call. \
         {AT_ONCE} at once: the time until the last reply has come, {repeats} times in each round, on open connections; \
         percentiles are those of single calls, from the common beginning. Bytes are those of the connection: heads and frames \
         included, for HTTP/2 also those of TLS, which it alone uses here, as in browsers.",
        time.as_millis()
    ));
    Ok(report)
}

fn cells(session: &mut Session) -> anyhow::Result<Vec<Cell<Calling>>> {
    let (web, tcp, secure) = (session.web()?, session.tcp()?, session.secure_web()?);
    let http = |connections| Caller::Http { place: web.clone(), connections };
    let mut sockets = vec![(MULTIPLEXED, Caller::Multiplexed(web.clone()))];
    sockets.extend(tcp.map(|place| ("TCP", Caller::Tcp(place))));
    sockets.extend(secure.map(|place| ("HTTP/2", Caller::Http2(place))));
    let anew = ("HTTP/1.1, a new connection", Caller::Anew(web.clone()));
    let one = [(HTTP, http(1)), anew].into_iter().chain(sockets.clone());
    let all = [(HTTP, http(1)), (SIX, http(BROWSER))].into_iter().chain(sockets);
    let cell = |case: String, is_at_once| {
        move |(contender, caller): (&str, Caller)| {
            Cell::new(&case, contender, Calling { caller, is_at_once })
        }
    };
    Ok(one.map(cell(ONE.to_owned(), false)).chain(all.map(cell(fifty(), true))).collect())
}

fn fifty() -> String {
    format!("{AT_ONCE} at once")
}

enum CallerConnection {
    Http(Box<Http>),
    Multiplexed(Multiplexed, u64),
    Http2(Box<Http2Calls>),
}

impl CallerConnection {
    fn open(caller: &Caller, seed: u64) -> Result<Self, Fault> {
        Ok(match caller {
            Caller::Http { place, .. } | Caller::Anew(place) => {
                Self::Http(Box::new(Http::connect(place)?))
            }
            Caller::Multiplexed(place) => {
                Self::Multiplexed(Multiplexed::web_socket(place, seed)?, 0)
            }
            Caller::Tcp(place) => Self::Multiplexed(Multiplexed::tcp(place)?, 0),
            Caller::Http2(place) => {
                let (path, body) = (SERVICE.to_owned(), BODY.to_owned());
                let service = CalledService { address: place.address, path, body };
                Self::Http2(Box::new(service.http2(1, 1).map_err(Fault::of_load)?))
            }
        })
    }

    fn traffic(&self) -> Result<Traffic, Fault> {
        match self {
            Self::Http(http) => http.traffic(),
            Self::Multiplexed(requests, _) => requests.traffic(),
            Self::Http2(calls) => calls.traffic().map_err(Fault::Broken),
        }
    }

    /// Makes `count` calls, all at once if the connection supports that. Returns for each reply the time until it came.
    fn call(&mut self, count: usize) -> Result<Vec<Duration>, Fault> {
        let begun = Instant::now();
        match self {
            Self::Http(http) => (0..count)
                .map(|_| {
                    check(&http.call("GET", SERVICE, "", b"")?.expect(200)?)?;
                    Ok(begun.elapsed())
                })
                .collect(),
            Self::Multiplexed(requests, next) => {
                let first = *next;
                for _ in 0..count {
                    requests.ask(&format!("GET {next:x} {SERVICE}"), b"")?;
                    *next += 1;
                }
                let mut waiting: Vec<_> = (first..*next).map(|id| format!("{id:x}")).collect();
                (0..count)
                    .map(|_| {
                        let answer = requests.answer()?;
                        let known = waiting.iter().position(|id| *id == answer.id);
                        match known {
                            Some(at) if answer.status == 200 => waiting.swap_remove(at),
                            _ => return Err(Fault::wrong("another answer came", &answer.payload)),
                        };
                        check(&answer.payload)?;
                        Ok(begun.elapsed())
                    })
                    .collect()
            }
            Self::Http2(calls) => calls.exchange(count).map_err(Fault::of_load),
        }
    }
}

fn check(body: &[u8]) -> Result<(), Fault> {
    if body == BODY.as_bytes() { Ok(()) } else { Err(Fault::wrong("another reply came", body)) }
}

/// Makes one call after the other for this time. Adds the figures to the sample.
fn one_by_one(
    caller: &Caller,
    time: Duration,
    seed: u64,
    sample: &mut Sample,
) -> Result<(), Fault> {
    let is_anew = matches!(caller, Caller::Anew(_));
    let mut connection = CallerConnection::open(caller, seed)?;
    let opening = connection.traffic()?;
    connection.call(1)?;
    let (mut before, mut carried) = (connection.traffic()?, Traffic::default());
    let begun = Instant::now();
    while sample.received < CALLS_MIN || begun.elapsed() < time {
        sample.expected += 1;
        let called = Instant::now();
        if is_anew {
            connection = CallerConnection::open(caller, seed)?;
            before = Traffic::default();
        }
        connection.call(1)?;
        sample.durations.record(called.elapsed());
        sample.received += 1;
        if is_anew {
            carried += connection.traffic()?;
        }
    }
    let passed = begun.elapsed();
    if !is_anew {
        carried = connection.traffic()?;
    }
    let each = |all: u64, before: u64| all.saturating_sub(before) as f64 / sample.received as f64;
    sample.figures.extend(sample.durations.percentile(0.5).map(|time| (TIME, ms(time))));
    sample.figures.extend([
        (RATE, sample.received as f64 / passed.as_secs_f64()),
        (PAYLOAD, each(carried.payload_bytes(), before.payload_bytes())),
        (WIRE, each(carried.wire_bytes(), before.wire_bytes())),
        (OPENING, opening.payload_bytes() as f64),
    ]);
    sample.add_traffic(carried);
    Ok(())
}

/// Makes [`AT_ONCE`] calls at once, several times.
fn at_once(caller: &Caller, repeats: usize, seed: u64, sample: &mut Sample) -> Result<(), Fault> {
    let count = if let Caller::Http { connections, .. } = caller { *connections } else { 1 };
    let connections = (0..count).map(|_| CallerConnection::open(caller, seed));
    let mut connections = connections.collect::<Result<Vec<_>, _>>()?;
    let mut totals = Vec::new();
    for repeat in 0..=repeats {
        let times = share(&mut connections)?;
        // The first time warms up.
        if repeat > 0 {
            sample.expected += AT_ONCE as u64;
            sample.received += times.len() as u64;
            times.iter().for_each(|time| sample.durations.record(*time));
            totals.extend(times.into_iter().max().map(ms));
        }
    }
    sample.figures.extend(crate::statistics::median(&totals).map(|time| (TIME, time)));
    Ok(())
}

/// Divides [`AT_ONCE`] calls among the connections. If there are several, each has a thread.
fn share(connections: &mut [CallerConnection]) -> Result<Vec<Duration>, Fault> {
    if let [connection] = connections {
        return connection.call(AT_ONCE);
    }
    let (barrier, count) = (Barrier::new(connections.len()), connections.len());
    let barrier = &barrier;
    let times = thread::scope(|scope| {
        let callers: Vec<_> = connections
            .iter_mut()
            .enumerate()
            .map(|(number, connection)| {
                let own = (AT_ONCE + count - 1 - number) / count;
                scope.spawn(move || {
                    barrier.wait();
                    connection.call(own)
                })
            })
            .collect();
        let join = |caller: thread::ScopedJoinHandle<'_, _>| {
            caller.join().unwrap_or_else(|_| Err(Fault::Wrong("a caller has panicked".to_owned())))
        };
        callers.into_iter().map(join).collect::<Result<Vec<Vec<_>>, _>>()
    })?;
    Ok(times.concat())
}

fn judge(report: &mut Report) {
    let median =
        |case: &str, contender: &str, of: Quantity| report.median(case, contender, of.name);
    let one = |contender, of| median(ONE, contender, of);
    let fifty = fifty();
    let both = |of| Some((one(HTTP, of)?, one(MULTIPLEXED, of)?));
    let (Some(times), Some(bytes)) = (both(TIME), both(PAYLOAD)) else { return };
    let (six, all) = (median(&fifty, SIX, TIME), median(&fifty, MULTIPLEXED, TIME));
    let (Some(six), Some(all), Some(opening)) = (six, all, one(MULTIPLEXED, OPENING)) else {
        return;
    };
    report.answer = format!(
        "A call takes {:.2} ms over HTTP/1.1 and {:.2} ms multiplexed, {AT_ONCE} at once {} ms on 6 connections and {} ms \
         multiplexed on one, and {} bytes against {}.",
        times.0,
        times.1,
        fixed(six, 1),
        fixed(all, 1),
        fixed(bytes.0, 0),
        fixed(bytes.1, 0)
    );
    let network =
        "theirs was a browser with a server far away, where round trips decide; see --link";
    let mut row = |figure: &str, published: String, measured: String, is_so, because: &str| {
        report.published.push(Published {
            figure: format!("{figure} (E)"),
            published,
            measured,
            verdict: Verdict::of(is_so),
            because: because.to_owned(),
        });
    };
    let alike = |measured: f64, published: f64, factor: f64| {
        (published / factor..=published * factor).contains(&measured)
    };
    for (figure, theirs, ours) in [
        ("a single call, REST against the socket, ms", (107.0, 83.0), times),
        ("50 at once, REST against the socket, ms", (5000.0, 180.0), (six, all)),
    ] {
        let shown = |(rest, socket): (f64, f64)| {
            format!("{} / {} = {:.2}", fixed(rest, 3), fixed(socket, 3), rest / socket)
        };
        let is_so = alike(ours.0 / ours.1, theirs.0 / theirs.1, ALIKE);
        row(figure, shown(theirs), shown(ours), is_so, network);
    }
    let shorter = "a browser's requests have more fields than this client's";
    let socket = "Socket.IO's and ours are different words for the same call";
    let theirs = "their polling transport and its upgrade are no part of ours";
    for (figure, published, measured, because) in [
        ("bytes of a call over REST", 282.0, bytes.0, shorter),
        ("bytes of a call over the socket", 54.0, bytes.1, socket),
        ("bytes of the socket's set-up", 230.0 + 86.0, opening, theirs),
    ] {
        let is_so = alike(measured, published, BYTES_ALIKE);
        row(figure, fixed(published, 0), fixed(measured, 0), is_so, because);
    }
}
