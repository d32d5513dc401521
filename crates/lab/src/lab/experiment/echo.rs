//! `echo`: measures the time of an echo over a WebSocket and over bare TCP, by size (A2).

use std::time::{Duration, Instant};

use anemone_ws::proto::Opcode;

use crate::lab::numbers::{fixed, signed};
use crate::lab::probe::{Fault, Place, Stream, WebSocket};
use crate::lab::report::{Judgement, Published, Quantity, Report, TOO_FEW_ROUNDS, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::statistics::Random;

pub(super) const ROUND_TRIP: Quantity = Quantity::less("round trip", "ms");
pub(super) const TCP: &str = "TCP";
pub(super) const WEB_SOCKET: &str = "WebSocket";
/// The longest message for an Anemone server that the lab has not started. The limits of such a server are unknown.
const LARGE: usize = 1 << 20;
const SIZES: [usize; 10] = [1, 16, 125, 126, 1024, 16_384, 65_535, 65_536, 1 << 20, 16 << 20];
/// The result in the publication for the smallest messages; below, the result for the largest.
const PUBLISHED_SMALL: &str = "150 to 250 %";
const PUBLISHED_LARGE: &str = "60 to 70 %";
/// The least number of echoes in a sample, even if each takes long.
const ECHOES_MIN: u32 = 3;
const ECHOES_MAX: u32 = 10_000;

#[derive(Clone, Debug)]
struct EchoWork {
    place: Place,
    /// The path of the WebSocket; `None` for bare TCP.
    web_socket: Option<String>,
    payload_bytes: usize,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let web = session.web()?;
    let tcp = session.tcp_echo()?;
    let path = session.target.echo_socket()?;
    let mut cells = Vec::new();
    let sizes = SIZES.into_iter().filter(|bytes| {
        *bytes <= LARGE || session.target.offer().is_some() || session.target.is_own()
    });
    for payload_bytes in sizes {
        let cell = |contender: &str, place: &Place| Cell {
            case: size(payload_bytes),
            x: Some(payload_bytes as f64),
            contender: contender.to_owned(),
            key: EchoWork {
                place: place.clone(),
                web_socket: (contender == WEB_SOCKET).then(|| path.clone()),
                payload_bytes,
            },
        };
        if let Some(tcp) = &tcp {
            cells.extend([cell(TCP, tcp), cell("TCP again", tcp)]);
        }
        cells.push(cell(WEB_SOCKET, &web));
    }
    let time = session.pace.full_or_quick(Duration::from_millis(300), Duration::from_millis(30));
    let series = interleaved(session, ROUND_TRIP, &cells, |session, cell| {
        let seed = session.pace.random.next();
        let mut sample = Sample::default();
        if let Err(fault) = measure(&cell.key, time, seed, &mut sample) {
            sample.fault(&fault);
        }
        sample.figures.extend(sample.durations.percentile(0.5).map(|time| (ROUND_TRIP, ms(time))));
        sample
    });
    let question = "What does WebSocket cost over bare TCP, once the connection is open?";
    let mut report = session.report("echo", question, ROUND_TRIP, series);
    report.compare_with(TCP);
    judge(&mut report);
    report.method.push(
        "One connection, one message in flight, each echo compared with what was sent; frames are masked before the clock \
         starts; O_T = (WebSocket − TCP) / TCP."
            .to_owned(),
    );
    Ok(report)
}

fn judge(report: &mut Report) {
    // The ratio of the rounds, whose interval stands in the table.
    let tax = |bytes: usize| {
        let of = size(bytes);
        let mut all = report.comparisons.iter();
        let found = all.find(|one| one.case == of && one.of == WEB_SOCKET)?;
        let percent = (found.ratio?.value - 1.0) * 100.0;
        let more = signed(percent, 0);
        let words = match found.judgement() {
            Judgement::Distinguishable => longer(percent),
            Judgement::NotDistinguishable => {
                format!("as long, as far as can be told ({more} %),")
            }
            Judgement::TooFewRounds => format!("{} (of {TOO_FEW_ROUNDS})", longer(percent)),
        };
        Some((percent, words))
    };
    let (Some((small, of_small)), Some((large, of_large))) =
        (tax(SIZES[0]), tax(SIZES[SIZES.len() - 1]))
    else {
        return;
    };
    report.answer = format!(
        "Beside bare TCP, an echo over WebSocket takes {of_small} for 1 byte, and {of_large} for 16 MiB."
    );
    let because = "their server and client were Java, with threads and buffers of their own for WebSocket; here both ends work \
                   on the bytes where they are";
    for (figure, published, measured, range) in [
        ("O_T of small messages (A2)", PUBLISHED_SMALL, small, 150.0..=250.0),
        ("O_T of large messages (A2)", PUBLISHED_LARGE, large, 60.0..=70.0),
    ] {
        report.published.push(Published {
            figure: figure.to_owned(),
            published: published.to_owned(),
            measured: format!("{} %", fixed(measured, 1)),
            verdict: Verdict::of(range.contains(&measured)),
            because: because.to_owned(),
        });
    }
}

/// Returns the words for a difference in per cent: longer or shorter.
fn longer(percent: f64) -> String {
    let than = if percent < 0.0 { "less time" } else { "longer" };
    format!("{} % {than}", fixed(percent.abs(), 0))
}

/// Makes echoes for this time, on a new connection.
fn measure(echo: &EchoWork, time: Duration, seed: u64, sample: &mut Sample) -> Result<(), Fault> {
    let mut random = Random::new(seed);
    let payload = random.bytes(echo.payload_bytes);
    let mut line = Line::open(echo, seed)?;
    let message = line.message(&payload);
    // The first echo warms up both ends.
    line.echo(&message, &payload)?;
    let begun = Instant::now();
    let mut count = 0;
    while count < ECHOES_MIN || (begun.elapsed() < time && count < ECHOES_MAX) {
        sample.expected += 1;
        let sent = Instant::now();
        line.echo(&message, &payload)?;
        sample.durations.record(sent.elapsed());
        sample.received += 1;
        count += 1;
    }
    Ok(())
}

enum Line {
    Tcp(Stream),
    WebSocket(Box<WebSocket>),
}

impl Line {
    fn open(echo: &EchoWork, seed: u64) -> Result<Self, Fault> {
        if let Some(path) = &echo.web_socket {
            let socket = WebSocket::connect(&echo.place, path, &[], seed)?;
            return Ok(Self::WebSocket(Box::new(socket)));
        }
        Stream::connect(&echo.place).map(Self::Tcp)
    }

    fn message(&mut self, payload: &[u8]) -> Vec<u8> {
        match self {
            Self::Tcp(_) => payload.to_vec(),
            Self::WebSocket(socket) => socket.frame(Opcode::Binary, payload),
        }
    }

    fn echo(&mut self, message: &[u8], payload: &[u8]) -> Result<(), Fault> {
        let echoed = match self {
            Self::Tcp(stream) => {
                stream.exchange(message, payload.len())?;
                stream.take(payload.len())
            }
            Self::WebSocket(socket) => socket.exchange(message)?,
        };
        if echoed == payload { Ok(()) } else { Err(Fault::wrong("another echo came", &echoed)) }
    }
}

/// Formats a number of bytes for people.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) && bytes != 65_536 => {
            format!("{} KiB", bytes >> 10)
        }
        _ => format!("{bytes} B"),
    }
}
