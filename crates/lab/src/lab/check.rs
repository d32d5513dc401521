//! Checks that an emulated link behaves according to its settings, before anything is measured over it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::link::Link;
use super::relay::Relay;
use super::report::ms;

/// The number of tries for each figure. The best one counts, since other work of the machine only makes figures worse.
const TRIES: usize = 3;
const ROUND_TRIPS: usize = 5;
/// The approximate time that the link needs for the bytes with which its rate is measured.
const RATE_TIME: Duration = Duration::from_millis(100);
const RATE_BYTES_MIN: u64 = 4 << 10;
const RATE_BYTES_MAX: u64 = 1 << 20;
/// The time by which a figure may be too short, since timers have a resolution; below, the time by which it may be too
/// long, since threads take time to wake.
const EARLY: Duration = Duration::from_micros(500);
const LATE: Duration = Duration::from_millis(3);
const LATE_SHARE: f64 = 0.1;
/// The byte that the peer sends back.
const ECHOED: u8 = 0;
/// The byte that the peer only counts.
const COUNTED: u8 = 1;
/// The byte for which the peer sends as many bytes as it has counted.
const RETURNED: u8 = 2;

/// The result of a check. It has the measured times, and those that the link's settings allow.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    link: String,
    /// The times. Each has a name, the shortest measured time, and the shortest and the longest time that the settings
    /// allow.
    times: Vec<(&'static str, Duration, Duration, Duration)>,
}

impl Checked {
    pub(crate) fn sentence(&self) -> String {
        let times = self.times.iter().map(|(what, measured, least, most)| {
            let (first, rest) = what.split_at(1);
            let [measured, least, most] = [measured, least, most].map(|time| ms(*time));
            let first = first.to_uppercase();
            format!(" {first}{rest} took {measured:.1} ms for {least:.1} to {most:.1}.")
        });
        let link = &self.link;
        format!("The emulated link ({link}) was checked before use.{}", times.collect::<String>())
    }

    /// Returns the reason why the link cannot be used; `None` if it can be used.
    pub(crate) fn fault(&self) -> Option<String> {
        let is_wrong = |time: &&(&str, Duration, Duration, Duration)| {
            let (_, measured, least, most) = **time;
            measured + EARLY < least || measured > most + LATE + most.mul_f64(LATE_SHARE)
        };
        self.times.iter().find(is_wrong).map(|(what, measured, least, most)| {
            format!(
                "the emulated link ({}) is not what it was set to: {what} took {:.1} ms instead of {:.1} to {:.1}",
                self.link,
                ms(*measured),
                ms(*least),
                ms(*most)
            )
        })
    }
}

/// Measures a relay with the settings of the link: the opening of a connection, round trips, and the rate in both
/// directions.
///
/// # Errors
/// A relay or a server cannot be started, or a wait takes more than a minute.
pub(crate) fn check(
    link: &Link,
    relay_to: impl FnOnce(SocketAddr) -> anyhow::Result<Relay>,
) -> anyhow::Result<Checked> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let relay = relay_to(listener.local_addr()?)?;
    // It ends when the last connection of this check does.
    thread::spawn(move || {
        for stream in listener.incoming().take(TRIES).flatten() {
            // The other end sees that the connection has ended.
            let _ = serve(stream);
        }
    });
    let len = link.rate_bits.map(|bits| {
        let bytes = bits as f64 / 8.0 * RATE_TIME.as_secs_f64();
        (bytes as u64).clamp(RATE_BYTES_MIN, RATE_BYTES_MAX)
    });
    let mut best = [Duration::MAX; 4];
    for _ in 0..TRIES {
        for (best, time) in best.iter_mut().zip(measure(&relay, len)?) {
            *best = time.min(*best);
        }
    }
    let trip = |trips: u32, bytes: u64| {
        let bytes = link.rate_bits.map_or(0.0, |rate| bytes as f64 * 8.0 / rate as f64);
        let least = 2 * trips * link.delay + Duration::from_secs_f64(bytes);
        (least, least + 2 * trips * link.jitter)
    };
    let [opening, round_trip, up, down] = best;
    let ((opening_min, opening_max), (trip_min, trip_max)) = (trip(2, 1), trip(1, 1));
    let mut times = vec![
        ("the opening and a round trip", opening, opening_min, opening_max),
        ("a round trip", round_trip, trip_min, trip_max),
    ];
    if let Some(len) = len {
        let (least, most) = trip(1, len);
        times.push(("many bytes and their answer", up, least, most));
        times.push(("an answer of many bytes", down, least, most));
    }
    Ok(Checked { link: link.to_string(), times })
}

/// Returns four times: that of an opening with an echo, the shortest of another echo, and those of many bytes in each
/// direction.
fn measure(relay: &Relay, len: Option<u64>) -> io::Result<[Duration; 4]> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let begun = Instant::now();
    let mut stream = TcpStream::connect(relay.address())?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut echo = |begun: Instant| {
        stream.write_all(&[ECHOED])?;
        stream.read_exact(&mut [0])?;
        io::Result::Ok(begun.elapsed())
    };
    let opening = echo(begun)?;
    let mut shortest = Duration::MAX;
    for _ in 0..ROUND_TRIPS {
        shortest = shortest.min(echo(Instant::now())?);
    }
    let Some(len) = len else { return Ok([opening, shortest, Duration::ZERO, Duration::ZERO]) };
    let mut both_ways = || {
        let mut bytes = vec![COUNTED; len as usize];
        let begun = Instant::now();
        stream.write_all(&bytes)?;
        stream.write_all(&[ECHOED])?;
        stream.read_exact(&mut [0])?;
        let up = begun.elapsed();
        let begun = Instant::now();
        stream.write_all(&[RETURNED])?;
        stream.read_exact(&mut bytes)?;
        io::Result::Ok([up, begun.elapsed()])
    };
    // Once before: a new TCP connection is slower than its link (slow start, RFC 5681 section 3.1).
    both_ways()?;
    let [up, down] = both_ways()?;
    Ok([opening, shortest, up, down])
}

/// Serves a connection: answers [`ECHOED`] and [`RETURNED`], and counts [`COUNTED`].
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut bytes, mut counted) = ([0; 16 << 10], 0);
    loop {
        let len = stream.read(&mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        let of = |kind| bytes[..len].iter().filter(|byte| **byte == kind).count();
        counted += of(COUNTED);
        let mut answered = of(ECHOED);
        if of(RETURNED) > 0 {
            answered += std::mem::take(&mut counted);
        }
        stream.write_all(&vec![ECHOED; answered])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_what_it_was_set_to() {
        for link in ["delay=10ms", "delay=5ms,jitter=5ms,rate=2mbit"] {
            let link: Link = link.parse().unwrap();
            let checked = check(&link, |server| Ok(Relay::start(&link, server, 1)?)).unwrap();
            // A busy machine makes it late, and nothing may make it early.
            for (what, measured, least, _) in &checked.times {
                assert!(*measured + EARLY >= *least, "{link}: {what}: {measured:?} {least:?}");
            }
            let sentence = checked.sentence().to_lowercase();
            assert!(sentence.contains("a round trip"), "{sentence}");
            let has_rate = link.rate_bits.is_some();
            assert_eq!(sentence.contains("an answer of many bytes"), has_rate, "{sentence}");
        }
    }

    #[test]
    fn a_link_that_is_early_or_late_is_told() {
        let checked = |measured| Checked {
            link: "20 ms each way".to_owned(),
            times: vec![(
                "a round trip",
                Duration::from_micros(measured),
                Duration::from_millis(40),
                Duration::from_millis(50),
            )],
        };
        for right in [39_600, 40_000, 50_000, 57_900] {
            assert_eq!(checked(right).fault(), None, "{right}");
        }
        for wrong in [39_400, 58_100] {
            assert!(checked(wrong).fault().unwrap().contains("a round trip took"), "{wrong}");
        }
    }
}
