//! `overhead`: measures the bytes and packets of a message by its size, and those of the handshake (A3).

use anemone_ws::proto::Opcode;

use super::echo::{TCP, WEB_SOCKET, size};
use crate::lab::probe::{Fault, Place, Stream, WebSocket};
use crate::lab::report::{Model, Published, Quantity, Report, Verdict};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::tcp_info::Traffic;

const UP: Quantity = Quantity::less("a message to the server", "B");
const DOWN: Quantity = Quantity::less("a message from the server", "B");
const PACKETS: Quantity = Quantity::less("packets with payload, each echo", "");
const WIRE: Quantity = Quantity::less("an echo on the wire", "B");
const OPENING_BYTES: Quantity = Quantity::less("the opening", "B");
/// The number of echoes that come first and do not count, since the kernel acknowledges them at once.
const WARM_UP: u64 = 20;
/// The sizes in the publication. Each has the overheads in per cent: from the server, and to the server.
const PUBLISHED: [(usize, f64, f64); 7] = [
    (1, 200.0, 600.0),
    (16, 12.5, 37.5),
    (125, 1.6, 4.8),
    (126, 3.17, 6.35),
    (1024, 0.39, 0.78),
    (65_535, 0.006, 0.012),
    (65_536, 0.015, 0.021),
];

#[derive(Clone, Debug)]
struct OverheadWork {
    place: Place,
    /// The path of the WebSocket; `None` for bare TCP.
    web_socket: Option<String>,
    payload_bytes: usize,
}

/// Returns the bytes of a frame's header (RFC 6455 section 5.2).
const fn header_bytes(payload_bytes: usize, is_masked: bool) -> usize {
    let length = match payload_bytes {
        0..=125 => 0,
        126..=65_535 => 2,
        _ => 8,
    };
    2 + length + if is_masked { 4 } else { 0 }
}

/// Returns the overhead O_P of the publication: the bytes of the header in per cent of those of the payload.
fn overhead(payload_bytes: usize, is_masked: bool) -> f64 {
    header_bytes(payload_bytes, is_masked) as f64 / payload_bytes as f64 * 100.0
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let web = session.web()?;
    let tcp = session.tcp_echo()?;
    let path = session.target.echo_socket()?;
    let mut cells = Vec::new();
    for (payload_bytes, ..) in PUBLISHED {
        let cell = |contender: &str, place: &Place| Cell {
            case: size(payload_bytes),
            x: Some(payload_bytes as f64),
            contender: contender.to_owned(),
            key: OverheadWork {
                place: place.clone(),
                web_socket: (contender == WEB_SOCKET).then(|| path.clone()),
                payload_bytes,
            },
        };
        cells.extend(tcp.as_ref().map(|tcp| cell(TCP, tcp)));
        cells.push(cell(WEB_SOCKET, &web));
    }
    let count = session.pace.full_or_quick(100, 10);
    let series = interleaved(session, UP, &cells, |session, cell| {
        let seed = session.pace.random.next();
        let mut sample = Sample { expected: count, ..Sample::default() };
        match measure(&cell.key, count, seed) {
            Ok([opening, before, all]) => {
                sample.received = count;
                let each = |all: u64, before: u64| (all - before) as f64 / count as f64;
                sample.figures = vec![
                    (UP, each(all.sent_bytes, before.sent_bytes)),
                    (DOWN, each(all.received_bytes, before.received_bytes)),
                    (PACKETS, each(all.data_segments, before.data_segments)),
                    (WIRE, each(all.wire_bytes(), before.wire_bytes())),
                    (OPENING_BYTES, opening.payload_bytes() as f64),
                ];
                sample.add_traffic(all);
            }
            Err(fault) => sample.fault(&fault),
        }
        sample
    });
    let question = "How many bytes does WebSocket add to a message, and to the opening?";
    let mut report = session.report("overhead", question, UP, series);
    report.compare_with(TCP);
    if !session.target.is_secure() {
        let model = |(bytes, ..): (usize, f64, f64)| {
            let with_header = (bytes + header_bytes(bytes, true)) as f64;
            Model::new(&size(bytes), Some(bytes as f64), WEB_SOCKET, with_header)
        };
        report.models = PUBLISHED.map(model).to_vec();
    }
    judge(&mut report, session.target.is_secure());
    report.method.push(format!(
        "{count} echoes on a connection of their own in each round, one at a time, after {WARM_UP} that do not count. Bytes are by the client's own count (within TLS by the kernel's), and packets by \
         the kernel's (TCP_INFO) before and after. On the wire is the payload and 90 bytes a packet."
    ));
    Ok(report)
}

fn judge(report: &mut Report, is_secure: bool) {
    let small = size(PUBLISHED[0].0);
    let opening = report.median(&small, WEB_SOCKET, OPENING_BYTES.name).unwrap_or_default();
    let wire = |contender| report.median(&small, contender, WIRE.name);
    let on_the_wire = match (wire(WEB_SOCKET), wire(TCP)) {
        (Some(web_socket), Some(tcp)) => format!(
            ". On the wire, an echo of 1 byte takes {web_socket:.0} bytes instead of {tcp:.0}"
        ),
        _ => String::new(),
    };
    let added = |of: Quantity| {
        let all = PUBLISHED.iter().filter_map(|(bytes, ..)| {
            Some(report.median(&size(*bytes), WEB_SOCKET, of.name)? - *bytes as f64)
        });
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), more| {
            (low.min(more), high.max(more))
        })
    };
    let ((down_low, down_high), (up_low, up_high)) = (added(DOWN), added(UP));
    if down_low > down_high {
        return;
    }
    report.answer = format!(
        "WebSocket adds {down_low:.0} to {down_high:.0} bytes to a message from the server, {up_low:.0} to {up_high:.0} to one to the server, and {opening:.0} bytes to the opening{on_the_wire}."
    );
    let mut published = Vec::new();
    for (payload_bytes, down, up) in PUBLISHED {
        for (of, figure, published_percent, is_masked) in
            [(DOWN, "from the server", down, false), (UP, "to the server", up, true)]
        {
            let Some(bytes) = report.median(&size(payload_bytes), WEB_SOCKET, of.name) else {
                continue;
            };
            let measured = (bytes - payload_bytes as f64) / payload_bytes as f64 * 100.0;
            let is_formula = (measured - overhead(payload_bytes, is_masked)).abs() < 1e-9;
            let is_so = is_formula && rounded(measured, published_percent) == published_percent;
            let because = match (is_so, is_secure) {
                (true, _) => "",
                (false, true) => "each frame is in a record of TLS",
                (false, false) => "the server sends a message in more than one frame",
            };
            published.push(Published {
                figure: format!("O_P of {} {figure} (A3)", size(payload_bytes)),
                published: format!("{published_percent} %"),
                measured: format!("{} %", rounded(measured, published_percent)),
                verdict: Verdict::of(is_so),
                because: because.to_owned(),
            });
        }
    }
    report.published = published;
}

/// Rounds a value to as many decimals as the published value has.
fn rounded(value: f64, published: f64) -> f64 {
    let text = published.to_string();
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    format!("{value:.digits$}").parse().unwrap_or(value)
}

/// Returns the traffic of the connection at three times: after its opening, before the echoes that count, and after
/// them.
fn measure(work: &OverheadWork, count: u64, seed: u64) -> Result<[Traffic; 3], Fault> {
    let payload = vec![b'a'; work.payload_bytes];
    let wrong = |echoed: &[u8]| Err(Fault::wrong("another echo came", echoed));
    if let Some(path) = &work.web_socket {
        let mut socket = WebSocket::connect(&work.place, path, &[], seed)?;
        let opening = socket.traffic()?;
        let mut before = opening;
        let frame = socket.frame(Opcode::Binary, &payload);
        for number in 0..WARM_UP + count {
            if number == WARM_UP {
                before = socket.traffic()?;
            }
            let echoed = socket.exchange(&frame)?;
            if echoed != payload {
                return wrong(&echoed);
            }
        }
        return Ok([opening, before, socket.traffic()?]);
    }
    let mut stream = Stream::connect(&work.place)?;
    let opening = stream.traffic()?;
    let mut before = opening;
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = stream.traffic()?;
        }
        stream.exchange(&payload, payload.len())?;
        let echoed = stream.take(payload.len());
        if echoed != payload {
            return wrong(&echoed);
        }
    }
    Ok([opening, before, stream.traffic()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overhead_is_that_of_the_publication() {
        for (bytes, down, up) in PUBLISHED {
            assert_eq!(rounded(overhead(bytes, false), down), down, "{bytes} B from the server");
            assert_eq!(rounded(overhead(bytes, true), up), up, "{bytes} B to the server");
        }
    }
}
