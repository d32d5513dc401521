//! Readers that stop reading, one and more for each way, among a thousand fast ones of all ways.
//!
//! The time that they stop is told in events: fast readers are given the next ones only when all of them have read those
//! before, so nothing here waits for time to pass. With `TEST_STOP_SECONDS=30` they are published for 30 s.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anemone_hub::{Data, Retention, Topic};
use anemone_testing::ways::{ALL, Follower, Kind, Reading, Told, Way, Wire};
use anemone_testing::{Fixture, PATIENCE, resident_bytes};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use socket2::{Domain, SockAddr, Socket, Type};

const FAST: usize = 1000;
/// Threads that the fast ones share.
const THREADS: usize = 4;
/// The number of readers of each topic.
const STOPPED_PER_WAY: usize = 4;
/// An event's data, and a little.
const EVENT_BYTES: usize = 8 << 10;
/// The same in `brief`, whose events must not all fit into what a kernel holds for a connection: up to 4 MiB by default
/// (`tcp_wmem`), and how soon it holds as much depends on its congestion control.
const BRIEF_EVENT_BYTES: usize = 256 << 10;
/// Events published before the stop, for comparison, and at least as many times while it lasts.
const EVENTS_BEFORE: u64 = 8;
const EVENTS_STOPPED: u64 = 32;

/// A connection that takes next to nothing before its reader reads: some 50 KiB, at both ends of loopback.
fn narrow(way: &Way, fixture: &Fixture) -> Wire {
    let address = if way.is_tcp() { fixture.tcp() } else { fixture.address };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    // The bytes in flight grow with the segment size, which is 64 KiB on loopback.
    socket.set_tcp_mss(536).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_tcp_nodelay(true).unwrap();
    socket.connect(&SockAddr::from(address)).unwrap();
    Wire::new(socket.into())
}

/// Two topics of the same events: `wind` keeps them all, `brief` the newest ones.
struct Topics {
    fixture: Fixture,
    brief: Arc<Topic>,
}

/// The number of events that `brief` keeps.
const KEPT: u64 = 4;

impl Topics {
    fn start() -> Self {
        let keep_all = Retention { bytes_max: 1 << 30, ..Retention::default() };
        let fixture = Fixture::with(|_| {}, keep_all);
        let retention = Retention { events_max: KEPT, ..Retention::default() };
        let brief = fixture.hub.create("brief".parse().unwrap(), retention).unwrap();
        Self { fixture, brief }
    }

    fn publish(&self, number: u64) {
        for (topic, len) in [(&self.fixture.wind, EVENT_BYTES), (&self.brief, BRIEF_EVENT_BYTES)] {
            let data = json!({ "n": number, "filling": "x".repeat(len) });
            topic.publish(SystemTime::now().into(), Data::json(&data).unwrap()).unwrap();
        }
    }
}

/// Delays from an event's publishing until each fast reader had read it.
struct Delays(Vec<Duration>);

impl Delays {
    fn summary(&mut self) -> String {
        self.0.sort_unstable();
        let [p50, p99, max] = [50, 99, 100].map(|percent| {
            self.0[((self.0.len() * percent).div_ceil(100)).max(1) - 1].as_secs_f64() * 1e3
        });
        format!("p50 {p50:.1} ms, p99 {p99:.1} ms, most {max:.1} ms")
    }
}

/// Fast readers, all of which have read an event before the next is published.
struct Audience {
    /// By thread.
    readers: Vec<Mutex<Vec<Fast>>>,
}

type Fast = (Box<dyn Reading>, Follower);

impl Audience {
    fn open(fixture: &Fixture) -> Self {
        let open = |index: usize| {
            let way = ALL[index % ALL.len()];
            let mut reader = way.open(fixture, "after=ya-0");
            if way.kind != Kind::Plain {
                assert_eq!(reader.next(), Told::Position("ya-0".to_owned()));
            }
            (reader, Follower::new(0))
        };
        let readers = (0..THREADS)
            .map(|thread| Mutex::new((thread..FAST).step_by(THREADS).map(open).collect()));
        Self { readers: readers.collect() }
    }

    /// Publishes events from this number while `go_on` returns true; each is read by all before the next.
    fn listens(&self, topics: &Topics, first: u64, go_on: impl Fn(u64) -> bool) -> (u64, Delays) {
        let delays = Mutex::new(Vec::new());
        let mut number = first;
        while go_on(number) {
            let told = Barrier::new(THREADS + 1);
            thread::scope(|scope| {
                for readers in &self.readers {
                    scope.spawn(|| {
                        let mut readers = readers.lock().unwrap();
                        readers.iter_mut().for_each(|(reader, _)| reader.wait());
                        told.wait();
                        let published = Instant::now();
                        for (reader, follower) in readers.iter_mut() {
                            while follower.offset < number {
                                follower.follow(reader.next());
                            }
                            delays.lock().unwrap().push(published.elapsed());
                        }
                    });
                }
                told.wait();
                topics.publish(number);
            });
            number += 1;
        }
        (number, Delays(delays.into_inner().unwrap()))
    }
}

/// One that does not read for a while.
struct Stopped {
    way: &'static Way,
    topic: &'static str,
    reader: Box<dyn Reading>,
    follower: Follower,
    reconnects: u64,
}

impl Stopped {
    fn open(way: &'static Way, topic: &'static str, fixture: &Fixture, offset: u64) -> Self {
        let follower = Follower::new(offset);
        let asked = format!("after={}", follower.position());
        let mut reader = way.read(narrow(way, fixture), topic, &asked).unwrap();
        reader.wait();
        Self { way, topic, reader, follower, reconnects: 0 }
    }

    /// Reads the events that came meanwhile, and continues on another connection if the server closed this one.
    fn resume(&mut self, fixture: &Fixture, last: u64) {
        while self.follower.offset < last {
            match self.reader.read() {
                Ok(Told::End(_)) | Err(_) => {
                    assert_eq!(self.reconnects, 0, "{}", self.way.name);
                    self.reconnects += 1;
                    let asked = format!("after={}", self.follower.position());
                    self.reader =
                        self.way.read(self.way.connect(fixture), self.topic, &asked).unwrap();
                }
                Ok(told) => self.follower.follow(told),
            }
        }
    }
}

#[test]
fn a_thousand_fast_readers_go_on_and_who_had_stopped_reads_all_or_is_told_what_is_missing() {
    let seconds = std::env::var("TEST_STOP_SECONDS").map_or(0.0, |text| text.parse().unwrap());
    // Both ends of every connection are in this process.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let topics = Topics::start();
    let fixture = &topics.fixture;
    let audience = Audience::open(fixture);
    let (first, mut before) = audience.listens(&topics, 1, |number| number <= EVENTS_BEFORE);

    let mut stopped = Vec::new();
    for topic in ["wind", "brief"] {
        let ways = ALL.iter().cycle().take(ALL.len() * STOPPED_PER_WAY);
        stopped.extend(ways.map(|way| Stopped::open(way, topic, fixture, first - 1)));
    }
    let begun = Instant::now();
    let resident = resident_bytes();
    let (end, mut meanwhile) = audience.listens(&topics, first, |number| {
        number < first + EVENTS_STOPPED || begun.elapsed().as_secs_f64() < seconds
    });
    let grown = resident_bytes().saturating_sub(resident);
    let (took, events, last) = (begun.elapsed(), end - first, end - 1);
    // Half of them read each of the topics.
    let backlog = stopped.len() as u64 / 2 * events * (EVENT_BYTES + BRIEF_EVENT_BYTES) as u64;
    println!("{FAST} fast readers, alone:      {}", before.summary());
    println!("{FAST} fast readers, {} stopped: {}", stopped.len(), meanwhile.summary());
    println!(
        "stopped for {:.1} s, {events} events, {} KiB behind in all; memory grew by {} KiB",
        took.as_secs_f64(),
        backlog >> 10,
        grown >> 10
    );
    // The topic itself, a page for each, and a rest: far less than the backlog.
    assert!(grown < backlog / 2, "{grown} of {backlog} bytes");

    for reader in &mut stopped {
        reader.resume(fixture, last);
        let (way, Follower { offset, missed, events: read, .. }) =
            (reader.way.name, reader.follower);
        assert_eq!((offset, missed + read), (last, events), "{way}");
        match reader.topic {
            "wind" => assert_eq!(missed, 0, "{way}"),
            // The missed events cannot have waited anywhere.
            _ => assert!(missed > 0 && read >= KEPT, "{way}: {missed} missed, {read} read"),
        }
    }
    for (way, topic) in ALL.into_iter().flat_map(|way| [(way, "wind"), (way, "brief")]) {
        let those = stopped.iter().filter(|one| one.way.name == way.name && one.topic == topic);
        let (count, read, missed, reconnects) = those.fold((0, 0, 0, 0), |sums, one| {
            let Follower { events, missed, .. } = one.follower;
            (sums.0 + 1, sums.1 + events, sums.2 + missed, sums.3 + one.reconnects)
        });
        println!(
            "{:18} {count} stopped on {topic:5}: {read:3} events read, {missed:3} told as missed, \
             {reconnects} reconnects",
            way.name
        );
    }
}
