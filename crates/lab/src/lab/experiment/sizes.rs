//! `sizes`: measures data of rising size over HTTP and WebSocket through several links, and the share of time that
//! masking takes (C).

use std::time::{Duration, Instant};

use anemone_ws::proto::Opcode;

use super::echo::WEB_SOCKET;
use crate::lab::link::Link;
use crate::lab::probe::{Fault, Http, Place, WebSocket};
use crate::lab::report::{Published, Quantity, Report, Verdict, ms};
use crate::lab::rounds::{Cell, Sample, interleaved};
use crate::lab::session::Session;
use crate::statistics::Random;

const TIME: Quantity = Quantity::less("time of all messages", "ms");
const MASKING: Quantity = Quantity::less("share of masking", "%");
const HTTP: &str = "HTTP";
const HTTP_NEW: &str = "HTTP, new connections";
const LOCAL: &str = "this machine";
/// The sizes of messages in bytes, and their numbers, as in the publication.
const SIZES: [(usize, usize); 6] =
    [(1, 100), (500, 10), (1_000, 10), (100_000, 10), (1_000_000, 1), (10_000_000, 1)];
const QUICK_SIZES: [(usize, usize); 4] = [(1, 5), (1_000, 5), (100_000, 1), (1_000_000, 1)];
/// The networks of the publication.
const LINKS: [&str; 3] = ["wifi", "wan", "hsdpa"];
const QUICK_LINKS: [&str; 1] = ["wan"];
/// The networks on which WebSocket was faster in the publication.
const FAR: [&str; 2] = ["wan", "hsdpa"];
/// The longest time that a link may take for the data of a case. Cases with more data are left out.
const TRANSFER_MAX: Duration = Duration::from_secs(10);
/// The size in bytes below which WebSocket was faster in the publication.
const LARGE_BYTES: usize = 100_000;
/// The factor of time up to which HTTP counts as equally fast.
const SOONER: f64 = 1.1;
/// The case for which the publication has a share of masking.
const LONGEST: &str = "1 x 10 MB";
/// The share of masking in the publication, in per cent: 4.48 of 4.55 s.
const PUBLISHED_MASKING: f64 = 98.5;

#[derive(Clone, Debug)]
struct SizesWork {
    place: Place,
    contender: &'static str,
    path: String,
    payload_bytes: usize,
    count: usize,
}

pub(super) fn run(session: &mut Session) -> anyhow::Result<Report> {
    let sizes = session.pace.full_or_quick(&SIZES[..], &QUICK_SIZES[..]);
    let links = links(session)?;
    let (http, socket) = (session.target.echo_http()?, session.target.offered_echo_socket());
    let mut contenders = vec![(HTTP, &http), (HTTP_NEW, &http)];
    contenders.extend(socket.as_ref().map(|path| (WEB_SOCKET, path)));
    let mut cells = Vec::new();
    for (network, link) in &links {
        let place = session.web_behind(link)?;
        let fits = |(bytes, count): &&(usize, usize)| fits(link, *bytes, *count);
        for &(payload_bytes, count) in sizes.iter().filter(fits) {
            cells.extend(contenders.iter().map(|(contender, path)| Cell {
                case: case(network, payload_bytes, count),
                x: None,
                contender: (*contender).to_owned(),
                key: SizesWork {
                    place: place.clone(),
                    contender,
                    path: (*path).clone(),
                    payload_bytes,
                    count,
                },
            }));
        }
    }
    let series = interleaved(session, TIME, &cells, |session, cell| {
        let seed = session.pace.random.next();
        let mut sample = Sample { expected: cell.key.count as u64, ..Sample::default() };
        if let Err(fault) = measure(&cell.key, seed, &mut sample) {
            sample.fault(&fault);
        }
        sample
    });
    let question = "Is data sooner at a server over HTTP or over WebSocket, by its size?";
    let mut report = session.report("sizes", question, TIME, series);
    report.compare_with(HTTP);
    let networks: Vec<_> = links.into_iter().map(|(network, _)| network).collect();
    judge(&mut report, &networks, sizes);
    if socket.is_none() {
        report.answer = of_http_alone(&report);
    }
    report.method.push(format!(
        "Each message is sent once its predecessor has come back whole (POST /echo, and the echo by WebSocket), and is compared \
         with what was sent. The time is that of all messages over a connection that is open, or over one that is opened for each. \
         A WebSocket's echo may come back while it is sent, that of a POST comes once the server has the body. A link that would need \
         more than {} s for a case is not asked. Frames are made and masked within the time, and the share of masking is of the time \
         there and back.",
        TRANSFER_MAX.as_secs()
    ));
    Ok(report)
}

/// Returns the links with their names. They are those of the publication, or only that of this run.
fn links(session: &Session) -> anyhow::Result<Vec<(String, Link)>> {
    let link = &session.settings.link;
    if !link.is_direct() {
        return Ok(vec![(link.name.clone().unwrap_or_else(|| link.to_string()), link.clone())]);
    }
    let names = session.pace.full_or_quick(&LINKS[..], &QUICK_LINKS[..]);
    let named = names.iter().map(|name| Ok(((*name).to_owned(), name.parse()?)));
    [Ok((LOCAL.to_owned(), Link::default()))].into_iter().chain(named).collect()
}

fn fits(link: &Link, bytes: usize, count: usize) -> bool {
    let bits = (bytes * count * 8) as f64;
    link.rate_bits.is_none_or(|rate| bits / rate as f64 <= TRANSFER_MAX.as_secs_f64())
}

fn case(network: &str, bytes: usize, count: usize) -> String {
    let size = match bytes {
        _ if bytes >= 1_000_000 => format!("{} MB", bytes / 1_000_000),
        _ if bytes >= 1_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{bytes} B"),
    };
    format!("{network}, {count} x {size}")
}

fn measure(work: &SizesWork, seed: u64, sample: &mut Sample) -> Result<(), Fault> {
    // Text, as the publication sent it; the same bytes may not be compressed on the way.
    let payload: Vec<u8> =
        Random::new(seed).bytes(work.payload_bytes).iter().map(|byte| b'a' + byte % 26).collect();
    let mut masking = Duration::ZERO;
    let begun;
    if work.contender == WEB_SOCKET {
        let mut socket = WebSocket::connect(&work.place, &work.path, &[], seed)?;
        // The first bytes also open the connection, behind an emulated link.
        let first = socket.frame(Opcode::Text, b"a");
        check(&socket.exchange(&first)?, b"a")?;
        begun = Instant::now();
        for _ in 0..work.count {
            let (frame, time) = socket.masked(Opcode::Text, &payload);
            masking += time;
            check(&socket.exchange(&frame)?, &payload)?;
            sample.received += 1;
        }
    } else {
        let mut http = Http::connect(&work.place)?;
        let fields = "Content-Type: text/plain\r\n";
        check(&http.exchange("POST", &work.path, fields, b"a")?.expect(200)?, b"a")?;
        begun = Instant::now();
        for _ in 0..work.count {
            if work.contender == HTTP_NEW {
                http = Http::connect(&work.place)?;
            }
            check(&http.exchange("POST", &work.path, fields, &payload)?.expect(200)?, &payload)?;
            sample.received += 1;
        }
    }
    let time = begun.elapsed();
    sample.durations.record(time);
    sample.figures.push((TIME, ms(time)));
    if work.contender == WEB_SOCKET {
        sample.figures.push((MASKING, masking.as_secs_f64() / time.as_secs_f64() * 100.0));
    }
    Ok(())
}

fn check(echoed: &[u8], payload: &[u8]) -> Result<(), Fault> {
    if echoed == payload { Ok(()) } else { Err(Fault::wrong("another echo came", echoed)) }
}

fn judge(report: &mut Report, networks: &[String], sizes: &[(usize, usize)]) {
    let gain = |network: &str, (bytes, count): (usize, usize)| {
        let median = |contender| report.median(&case(network, bytes, count), contender, TIME.name);
        Some(median(HTTP)? / median(WEB_SOCKET)?)
    };
    let of_all = |size: &(usize, usize)| -> Vec<f64> {
        networks.iter().filter_map(|of| gain(of, *size)).collect()
    };
    let small: Vec<_> = small_sizes(sizes).flat_map(of_all).collect();
    let large = sizes.iter().filter(|(bytes, _)| *bytes >= LARGE_BYTES).flat_map(of_all);
    let large: Vec<_> = large.collect();
    let Some(((small_low, small_high), (large_low, large_high))) = range(&small).zip(range(&large))
    else {
        return;
    };
    let masked = report.series.iter().filter(|series| series.quantity == MASKING.name);
    let shares = masked.filter_map(|series| Some((&series.case, series.estimate()?.value)));
    let (mut masking, mut masking_of_longest) = (0.0_f64, None::<f64>);
    for (case, share) in shares {
        masking = masking.max(share);
        if case.ends_with(LONGEST) {
            masking_of_longest = Some(masking_of_longest.map_or(share, |most| most.max(share)));
        }
    }
    let far_gains: Vec<_> =
        small_sizes(sizes).flat_map(|size| FAR.iter().filter_map(|of| gain(of, *size))).collect();
    report.answer = format!(
        "Over a connection that stays open, HTTP takes {small_low:.2} to {small_high:.2} times as long as WebSocket for messages below \
         100 kB, and {large_low:.2} to {large_high:.2} times from there on. Masking is at most {masking:.1} % of the time to send."
    );
    let far = range(&far_gains);
    report.published.push(Published {
        figure: "small messages are sooner over WebSocket on WAN and HSDPA+ (C)".to_owned(),
        published: "yes, below 100 kB".to_owned(),
        measured: far.map_or_else(
            || "these networks were not asked".to_owned(),
            |(low, high)| format!("HTTP takes {low:.2} to {high:.2} times as long there"),
        ),
        verdict: far.map_or(Verdict::NotTestableHere, |(low, _)| Verdict::of(low > SOONER)),
        because: "a request of their page had the fields of a browser and often a connection of its own. \
                  A request over an open connection costs one round trip, as an echo by WebSocket does"
            .to_owned(),
    });
    report.published.push(Published {
        figure: "share of masking in the time to send 10 MB, % (C)".to_owned(),
        published: format!("{PUBLISHED_MASKING}"),
        measured: masking_of_longest.map_or_else(
            || "10 MB were not sent".to_owned(),
            |most| format!("at most {most:.1}, of all links, and of the time of the echo"),
        ),
        verdict: masking_of_longest
            .map_or(Verdict::NotTestableHere, |most| Verdict::of(most > 90.0)),
        because: "their client masked byte by byte in a script, at 2.2 MB/s".to_owned(),
    });
}

/// Returns the answer about a server that has no WebSocket echo.
fn of_http_alone(report: &Report) -> String {
    let ratios = report.comparisons.iter().filter_map(|one| one.ratio);
    let ratios: Vec<_> = ratios.map(|ratio| ratio.value).collect();
    let times = range(&ratios).map_or_else(String::new, |(low, high)| {
        format!(" Over new connections, HTTP takes {low:.2} to {high:.2} times as long as over one that stays open.")
    });
    format!("The file has no websocket in [echo], so there is nothing to compare HTTP with.{times}")
}

/// Returns the sizes below which WebSocket was faster in the publication.
fn small_sizes(sizes: &[(usize, usize)]) -> impl Iterator<Item = &(usize, usize)> {
    sizes.iter().filter(|(bytes, _)| *bytes < LARGE_BYTES)
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    Some((low, values.iter().copied().fold(low, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_link_is_not_asked_for_what_takes_it_too_long() {
        let hsdpa: Link = "hsdpa".parse().unwrap();
        assert!(fits(&hsdpa, 1_000_000, 1), "2.7 s");
        assert!(!fits(&hsdpa, 10_000_000, 1), "27 s");
        assert!(fits(&Link::default(), usize::MAX / 8, 1), "without a rate");
    }

    #[test]
    fn a_case_says_how_many_messages_of_which_size_go_where() {
        assert_eq!(case("wan", 1, 100), "wan, 100 x 1 B");
        assert_eq!(case("wan", 500, 10), "wan, 10 x 500 B");
        assert_eq!(case("wifi", 10_000_000, 1), "wifi, 1 x 10 MB");
        assert_eq!(case("wifi", 100_000, 10), "wifi, 10 x 100 kB");
    }

    #[test]
    fn a_range_is_that_of_all_values() {
        assert_eq!(range(&[2.0, 1.0, 3.0]), Some((1.0, 3.0)));
        assert_eq!(range(&[]), None);
    }
}
