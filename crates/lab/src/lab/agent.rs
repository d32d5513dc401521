//! The agent on a second machine. It starts the measured server, publishes events by its own clock, and answers
//! questions about its time.
//!
//! A lab has one connection to the agent, with lines of JSON in both directions. It asks one question at a time.

use std::io::{BufReader, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::lines::{Answer, Ask, Events, VERSION, hear, say};
use super::probe::{Http, Place};
use super::target::Target;
use super::terminal::tell;
use super::theory::ms;

/// The longest wait for the first line of a lab. A lab sends it at once.
const HELLO_MAX: Duration = Duration::from_secs(3);
/// The most connections that have not identified themselves as labs yet.
const STRANGERS_MAX: usize = 64;
/// The longest silence of a lab. After it, the lab counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// The greatest number of events in a question; below, the limits on the number of the first event, on the bytes of
/// each, and on the time between two.
const EVENTS_MAX: u32 = 100_000;
const FIRST_MAX: usize = 1_000_000;
const EVENT_BYTES_MAX: usize = 1_000_000;
const PERIOD_MS_MAX: f64 = 10_000.0;
/// The most labs at once. Each lab has a server.
const LABS_MAX: usize = 4;
const LOOK: Duration = Duration::from_millis(100);

/// Serves labs until `stop` is true. Each lab has a thread and a server of its own.
pub(super) fn serve(listen: SocketAddr, stop: &AtomicBool) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("listening on {listen}"))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    writeln!(std::io::stdout(), "agent on {address}")?;
    let (strangers, labs) = (Places::of(STRANGERS_MAX), Places::of(LABS_MAX));
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, peer)) => {
                // Too many strangers: this one is dropped without a word.
                let Some(stranger) = strangers.take() else { continue };
                let labs = labs.clone();
                thread::spawn(move || {
                    if let Err(error) = greet(stream, peer, address.ip(), (stranger, &labs)) {
                        tell(&format!("{peer}: {error:#}"));
                    }
                });
            }
            Err(error) => {
                // One that was reset before it was accepted, or that finds no descriptor left, is no end of the others.
                if error.kind() != std::io::ErrorKind::WouldBlock {
                    tell(&format!("a lab could not be accepted: {error}"));
                }
                thread::sleep(LOOK);
            }
        }
    }
    Ok(())
}

/// A limited number of places.
#[derive(Clone, Debug)]
struct Places(Arc<AtomicUsize>);

/// A taken place. It is free again once this is dropped.
#[derive(Debug)]
struct TakenPlace(Places);

impl Places {
    fn of(count: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(count)))
    }

    fn take(&self) -> Option<TakenPlace> {
        let less = |free: usize| free.checked_sub(1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.ok().map(|_| TakenPlace(self.clone()))
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until the peer has identified itself as a lab. Serves it if a place is free.
fn greet(
    stream: TcpStream,
    peer: SocketAddr,
    ip: IpAddr,
    (stranger, labs): (TakenPlace, &Places),
) -> anyhow::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    say(&mut writer, &Answer::Hello { version: VERSION })?;
    let hello = hear(&mut reader, Instant::now() + HELLO_MAX)?;
    drop(stranger);
    let Some(Ask::Hello { version: VERSION }) = hello else { bail!("it is not a lab") };
    let Some(_place) = labs.take() else {
        let words = format!("this agent serves {LABS_MAX} labs already, the most that it can");
        return say(&mut writer, &Answer::Failed(words));
    };
    tell(&format!("{peer}: a lab begins"));
    talk(reader, &mut writer, ip)?;
    tell(&format!("{peer}: the lab is over"));
    Ok(())
}

fn talk(
    mut reader: BufReader<TcpStream>,
    writer: &mut TcpStream,
    ip: IpAddr,
) -> anyhow::Result<()> {
    let clock = Instant::now();
    let server = Target::start_reference_at(ip, &[], &[])?;
    let [tcp, tcp_echo] =
        [server.tcp(), server.tcp_echo()].map(|found| found.map_or(0, |at| at.port()));
    let machine = crate::cpu::processor().unwrap_or_else(|| "unknown".to_owned());
    let web = server.web().port();
    say(writer, &Answer::Ready { machine, web, tcp, tcp_echo })?;
    // The server takes events from its own machine only.
    let place = Place::new((if ip.is_unspecified() { loopback(ip) } else { ip }, web).into());
    while let Some(ask) = hear(&mut reader, Instant::now() + SILENCE_MAX)? {
        match ask {
            Ask::Time => say(writer, &Answer::Time(ms(clock.elapsed())))?,
            Ask::Publish(events) => publish_all(writer, &place, &events, clock)?,
            // What was to be stopped is over.
            Ask::Stop | Ask::Hello { .. } => {}
        }
    }
    Ok(())
}

fn loopback(ip: IpAddr) -> IpAddr {
    if ip.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() }
}

fn publish_all(
    writer: &mut TcpStream,
    place: &Place,
    events: &Events,
    clock: Instant,
) -> anyhow::Result<()> {
    if let Err(error) = check(events) {
        return say(writer, &Answer::Failed(format!("{error:#}")));
    }
    let mut http = match Http::connect(place) {
        Ok(http) => http,
        Err(fault) => return say(writer, &Answer::Failed(fault.to_string())),
    };
    let period = Duration::from_secs_f64(events.period_ms / 1e3);
    let begun = Instant::now();
    for count in 0..events.count {
        let planned = begun + period * count;
        thread::sleep(planned.saturating_duration_since(Instant::now()));
        let (now, number) = (Instant::now(), events.first + count as usize);
        if let Err(fault) = http.publish(&events.topic, number, events.bytes) {
            return say(writer, &Answer::Failed(fault.to_string()));
        }
        let late_ms = ms(now.saturating_duration_since(planned));
        // A lab that is gone ends it.
        say(writer, &Answer::Sent { number, at_ms: ms(now - clock), late_ms })?;
        if has_more(writer)? {
            break;
        }
    }
    say(writer, &Answer::Done)
}

/// Returns true if the lab has sent another line. That can only be a request to stop.
fn has_more(stream: &TcpStream) -> anyhow::Result<bool> {
    stream.set_nonblocking(true)?;
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    Ok(peeked.is_ok_and(|len| len > 0))
}

fn check(events: &Events) -> anyhow::Result<()> {
    let Events { topic, first, count, period_ms, bytes } = events;
    let is_path =
        topic.starts_with("/topics/") && topic.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(is_path, "{topic:?} is not a topic");
    ensure!(*first <= FIRST_MAX, "the first event is {first}: at most {FIRST_MAX}");
    ensure!(*count <= EVENTS_MAX, "{count} events: at most {EVENTS_MAX} at once");
    ensure!(*bytes <= EVENT_BYTES_MAX, "{bytes} bytes: at most {EVENT_BYTES_MAX}");
    ensure!(
        (0.0..=PERIOD_MS_MAX).contains(period_ms),
        "a period of {period_ms} ms: at most {PERIOD_MS_MAX}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_once_it_is_dropped() {
        let places = Places::of(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        assert!(places.take().is_none() && places.take().is_none());
        drop(second);
        let again = places.take().unwrap();
        assert!(places.take().is_none());
        drop((first, again));
        assert!(places.take().is_some());
    }

    #[test]
    fn what_a_lab_may_ask_for_is_bounded() {
        let events =
            Events { topic: "/topics/a".to_owned(), first: 1, count: 1, period_ms: 1.0, bytes: 20 };
        assert!(check(&events).is_ok());
        for wrong in [
            Events { topic: "/runs".to_owned(), ..events.clone() },
            Events { topic: "/topics/a\r\nb".to_owned(), ..events.clone() },
            Events { first: usize::MAX, ..events.clone() },
            Events { count: EVENTS_MAX + 1, ..events.clone() },
            Events { bytes: EVENT_BYTES_MAX + 1, ..events.clone() },
            Events { period_ms: f64::NAN, ..events.clone() },
            Events { period_ms: -1.0, ..events.clone() },
        ] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
    }
}
