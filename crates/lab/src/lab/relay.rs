//! A relay in front of a server that behaves like a link.
//!
//! The bytes of each direction leave in order, with the delay and the rate of the link. The relay accepts a TCP
//! connection at once. But it holds the first bytes as if SYN and SYN-ACK had crossed the link before. So the first
//! byte of the client reaches the server after three delays.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::link::{Link, QUEUE};
use crate::statistics::Random;

const READ_BYTES: usize = 16 << 10;
/// The most reads that wait to be sent, for each direction of a connection.
const WAITING_MAX: usize = 4096;

/// A running relay. Once it is dropped, it accepts no more connections.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

/// The capacity of a link in one direction. All its connections share it.
#[derive(Debug, Default)]
struct Capacity {
    /// The time at which the link will have sent all bytes so far.
    free_at: Mutex<Option<Instant>>,
}

impl Relay {
    /// Starts a relay to a server on a free port of this machine.
    pub(crate) fn start(link: &Link, server: SocketAddr, seed: u64) -> io::Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, link, server, seed)
    }

    /// Starts a relay at another address of this machine.
    pub(crate) fn start_at(
        ip: Ipv4Addr,
        link: &Link,
        server: SocketAddr,
        seed: u64,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (link, over) = (Arc::new(link.clone()), Arc::clone(&is_over));
        let (up, down) = (Arc::new(Capacity::default()), Arc::new(Capacity::default()));
        let mut random = Random::new(seed);
        thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), accepted_at) = (client, Instant::now()) else { continue };
                let (link, up, down) = (Arc::clone(&link), Arc::clone(&up), Arc::clone(&down));
                let seed = random.next();
                // A connection that cannot be joined is closed, as by a server that is not there.
                thread::spawn(move || {
                    join(&client, server, &link, [&up, &down], accepted_at, seed)
                });
            }
        });
        Ok(Self { address, is_over })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

/// Connects a client to the server, until both have closed.
fn join(
    client: &TcpStream,
    server: SocketAddr,
    link: &Arc<Link>,
    [up, down]: [&Arc<Capacity>; 2],
    accepted_at: Instant,
    seed: u64,
) -> io::Result<()> {
    // The SYN arrives.
    sleep_until(accepted_at + link.delay);
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    // The client cannot have sent anything before the SYN-ACK came.
    let first_at = accepted_at + 2 * link.delay;
    let upwards = Direction::start(client, &server, link, up, first_at, seed)?;
    let downwards = Direction::start(&server, client, link, down, accepted_at, seed ^ 1)?;
    upwards.wait();
    downwards.wait();
    Ok(())
}

/// The threads for one direction of a connection. One thread reads. If the link has a delay or a rate, another one
/// waits and writes.
struct Direction(thread::JoinHandle<()>);

impl Direction {
    fn start(
        from: &TcpStream,
        to: &TcpStream,
        link: &Arc<Link>,
        capacity: &Arc<Capacity>,
        first_at: Instant,
        seed: u64,
    ) -> io::Result<Self> {
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        if link.is_direct() {
            return Ok(Self(thread::spawn(move || copy(from, to))));
        }
        let (link, capacity) = (Arc::clone(link), Arc::clone(capacity));
        let (sender, receiver) = sync_channel(WAITING_MAX);
        thread::spawn(move || write(to, &receiver));
        Ok(Self(thread::spawn(move || {
            read(from, &link, &capacity, first_at, Random::new(seed), &sender)
        })))
    }

    fn wait(self) {
        // A thread that has panicked has ended, too.
        let _ = self.0.join();
    }
}

/// Copies all bytes, and then the end of the connection.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    // The other end may have closed already.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// Reads bytes, and computes the time at which they have crossed the link. The end of the connection crosses the link,
/// too.
fn read(
    mut from: TcpStream,
    link: &Link,
    capacity: &Capacity,
    first_at: Instant,
    mut random: Random,
    sender: &SyncSender<(Instant, Vec<u8>)>,
) {
    let mut last = first_at;
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let len = from.read(&mut bytes).unwrap_or(0);
        let sent_at = capacity.send(Instant::now().max(first_at), len, link.rate_bits);
        let jitter = link.jitter.mul_f64(random.below(1 << 20) as f64 / f64::from(1 << 20));
        last = last.max(sent_at + link.delay + jitter);
        if sender.send((last, bytes[..len].to_vec())).is_err() || len == 0 {
            return;
        }
        // Whoever sends more than the queue holds waits.
        sleep_until(sent_at.checked_sub(QUEUE).unwrap_or(sent_at));
    }
}

fn write(mut to: TcpStream, receiver: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((due, bytes)) = receiver.recv() {
        sleep_until(due);
        if bytes.is_empty() || to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other end may have closed already.
    let _ = to.shutdown(Shutdown::Write);
}

impl Capacity {
    /// Returns the time at which the link will have sent the last of these bytes.
    fn send(&self, now: Instant, len: usize, rate_bits: Option<u64>) -> Instant {
        let Some(rate) = rate_bits else { return now };
        let time = Duration::from_secs_f64(len as f64 * 8.0 / rate as f64);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let sent_at = free_at.map_or(now, |free| free.max(now)) + time;
        *free_at = Some(sent_at);
        sent_at
    }
}

fn sleep_until(time: Instant) {
    let left = time.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::sleep(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time from the beginning of a connection until one byte has come back, and the time for one more
    /// byte.
    fn trips(link: &str) -> [Duration; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay =
            Relay::start(&link.parse().unwrap(), listener.local_addr().unwrap(), 1).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            while stream.read(&mut byte).unwrap() == 1 {
                stream.write_all(&byte).unwrap();
            }
        });
        let begun = Instant::now();
        let mut stream = TcpStream::connect(relay.address()).unwrap();
        let mut trip = |begun: Instant| {
            stream.write_all(b"a").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            begun.elapsed()
        };
        [trip(begun), trip(Instant::now())]
    }

    #[test]
    fn a_connection_costs_a_round_trip_more() {
        let [first, second] = trips("delay=20ms");
        assert!(first >= Duration::from_millis(80), "{first:?}");
        assert!(second >= Duration::from_millis(40), "{second:?}");
    }

    #[test]
    fn bytes_wait_for_those_before_them() {
        let capacity = Capacity::default();
        let now = Instant::now();
        let sent = |len| capacity.send(now, len, Some(8_000)) - now;
        assert_eq!([sent(100), sent(50)].map(|time| time.as_millis()), [100, 150]);
        assert_eq!(Capacity::default().send(now, 1 << 30, None), now);
    }

    #[test]
    fn the_end_of_a_connection_crosses_the_link_after_its_bytes() {
        crosses_after_its_bytes(&"delay=5ms,jitter=5ms,rate=10mbit".parse().unwrap());
        crosses_after_its_bytes(&Link::default());
    }

    fn crosses_after_its_bytes(link: &Link) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay::start(link, listener.local_addr().unwrap(), 1).unwrap();
        let mut client = TcpStream::connect(relay.address()).unwrap();
        let sent: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        let expected = sent.clone();
        let writer = thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            client
        });
        let (mut server, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert!(received == expected);
        drop(writer.join());
    }
}
