//! The real binary is killed over and over while everyone publishes and reads in every way there is. Then a
//! checker reads what all of them saw, and finds no acknowledged event lost, none doubled, none reordered.
//!
//! `TEST_CRASH_SEED` and `TEST_CRASH_KILLS` have it run otherwise. When it fails, it keeps its directory
//! and says where that is: the histories, what the server said, and its data.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod checker;
mod disk;
mod history;
mod product;
mod publishers;
mod readers;
mod relay;
mod server;
mod wire;
mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anemone_client::Via;
use tempfile::TempDir;

use crate::disk::Flushes;
use crate::history::{MayBeGone, Role};
use crate::product::Sub;
use crate::readers::Read;
use crate::server::Server;
use crate::wire::{connect, request};
use crate::world::{LONG, Witness, World};

#[test]
fn no_acknowledged_event_is_lost_or_doubled_or_reordered_by_50_kills_and_power_cuts() {
    Experiment::new("always", 50).run();
}

#[test]
fn none_is_by_kills_alone_when_the_disk_is_flushed_now_and_then() {
    Experiment::new("interval", 8).run();
}

#[test]
fn none_is_by_kills_alone_when_the_disk_is_never_flushed() {
    Experiment::new("never", 8).run();
}

/// The topic at which most is read and published.
const MAIN: &str = "scratch-main";
/// The topic whose segments become too old all the time.
const EXPIRING: &str = "scratch-expiring";
/// The number of topics at which a new segment is begun, once each.
const ROLLING: u64 = 16;

/// A directory of its own, which remains if the test fails.
struct Directory(TempDir);

impl Drop for Directory {
    fn drop(&mut self) {
        self.0.disable_cleanup(std::thread::panicking());
    }
}

/// The moment at which the server is killed.
#[derive(Debug)]
enum Moment {
    /// After this share of the time that the last start took.
    Starting(f64),
    Listening,
    /// After this many more acknowledged events, and this many microseconds.
    Acknowledged(u64, u64),
}

impl Moment {
    fn draw(chance: &mut fastrand::Rng) -> Self {
        match chance.u8(..10) {
            0 => Self::Starting(chance.f64()),
            1 => Self::Listening,
            _ => Self::Acknowledged(chance.u64(1..500), chance.u64(..3000)),
        }
    }
}

struct Experiment {
    fsync: &'static str,
    kills: u64,
    seed: u64,
    chance: fastrand::Rng,
    world: Arc<World>,
    /// The directory, which is named when it fails.
    directory: Directory,
    /// The time that the last start took.
    start: Duration,
    cuts: u64,
    /// The bytes that were not flushed, over all power cuts.
    unflushed: u64,
}

impl Experiment {
    fn new(fsync: &'static str, kills: u64) -> Self {
        let number = |name| std::env::var(name).ok().map(|text| text.parse().expect(name));
        let seed = number("TEST_CRASH_SEED").unwrap_or(1);
        let kills = number("TEST_CRASH_KILLS").unwrap_or(kills);
        let directory = Directory(tempfile::tempdir().unwrap());
        let world = Arc::new(World::new(directory.0.path().to_owned()));
        let chance = fastrand::Rng::with_seed(seed);
        let start = Duration::from_millis(100);
        eprintln!("seed {seed}, {kills} kills, {}", directory.0.path().display());
        Self { fsync, kills, seed, chance, world, directory, start, cuts: 0, unflushed: 0 }
    }

    fn run(mut self) {
        let began = Instant::now();
        let data = self.data();
        let rolling: Vec<_> =
            (0..ROLLING).map(|number| format!("scratch-rolling-{number}")).collect();
        // About as long as this takes, so that there is always something that becomes too old.
        let span = Duration::from_millis(300 * self.kills);
        let gone = disk::prepare(&self.world, &data, MAIN, EXPIRING, &rolling, span);

        let flushes = Flushes::new(self.directory.0.path(), &data);

        let readers = self.start_readers();
        let sub = Sub::start(&self.world, MAIN, "command");
        let publishers = self.start_publishers(rolling);
        for _ in 0..self.kills {
            self.start_and_kill(&flushes);
        }

        let server = self.start(&flushes);
        let enough = self.world.state().acked + 100;
        self.world.wait_for("events after all kills", |state| state.acked >= enough);
        self.world.change(|state| state.publishing_is_over = true);
        publishers.into_iter().for_each(|thread| thread.join().unwrap());
        self.world.change(|state| state.is_settled = true);
        self.kill(server);

        let server = self.start(&flushes);
        self.read_logs();
        self.world.wait_for("readers at the end", |state| {
            state.reached.values().all(|(topic, reached)| state.newest.get(topic) == Some(reached))
        });
        let until = Instant::now() + LONG;
        while sub.newest() < self.world.state().newest[MAIN] && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        sub.end();
        self.world.change(|state| state.reading_is_over = true);
        self.kill(server);
        readers.into_iter().for_each(|thread| thread.join().unwrap());

        self.report(began);
        self.check(gone);
    }

    fn data(&self) -> PathBuf {
        self.directory.0.path().join("data")
    }

    fn spawn(
        &self,
        name: &str,
        run: impl FnOnce(&Arc<World>, &str) + Send + 'static,
    ) -> JoinHandle<()> {
        let (world, name) = (Arc::clone(&self.world), name.to_owned());
        std::thread::Builder::new().name(name.clone()).spawn(move || run(&world, &name)).unwrap()
    }

    fn start_readers(&self) -> Vec<JoinHandle<()>> {
        let by_hand = readers::ALL.into_iter().map(|(name, read)| (name, MAIN, read));
        let by_hand = by_hand.chain([("slow", EXPIRING, readers::slow as Read)]);
        let by_hand = by_hand.map(|(name, topic, read)| {
            let run = move |world: &Arc<World>, name: &str| readers::run(world, topic, name, read);
            self.spawn(name, run)
        });
        let by_client = Via::ALL.into_iter().map(|via| {
            let run = move |world: &Arc<World>, name: &str| {
                product::subscribe(world, EXPIRING, name, via);
            };
            self.spawn(&format!("client-{via}"), run)
        });
        by_hand.chain(by_client).collect()
    }

    fn start_publishers(&self, rolling: Vec<String>) -> Vec<JoinHandle<()>> {
        let mut threads = Vec::new();
        for (name, open, most) in publishers::KEYED {
            threads.push(self.spawn(&format!("pub-{name}"), move |world, name| {
                publishers::keyed(world, MAIN, name, open, most);
            }));
        }
        threads.push(self.spawn("pub-ws", |world, name| publishers::web_socket(world, MAIN, name)));
        threads.push(self.spawn("pub-pipe", |world, name| product::pipe(world, MAIN, name)));
        let (_, batches, most) = publishers::KEYED[1];
        threads.push(self.spawn("pub-more", move |world, name| {
            publishers::keyed(world, EXPIRING, name, batches, most);
        }));
        threads
            .push(self.spawn("pub-client", |world, name| product::publish(world, EXPIRING, name)));
        threads.push(self.spawn("pub-rolling", move |world, name| {
            let topic = |number| rolling[usize::try_from(number % ROLLING).unwrap()].clone();
            publishers::around(world, name, 1, topic);
        }));
        threads.push(self.spawn("pub-new", |world, name| {
            publishers::around(world, name, 60, |number| format!("scratch-new-{number}"));
        }));
        threads
    }

    /// Starts the server, and has everyone know.
    fn start(&mut self, flushes: &Flushes) -> Server {
        let began = Instant::now();
        let mut server = Server::spawn(self.directory.0.path(), self.fsync, flushes);
        let addresses = server.addresses();
        self.start = began.elapsed();
        self.world.change(|state| state.server = Some(addresses));
        server
    }

    fn kill(&self, server: Server) {
        server.kill();
        self.world.change(|state| state.server = None);
    }

    fn start_and_kill(&mut self, flushes: &Flushes) {
        let moment = Moment::draw(&mut self.chance);
        match moment {
            Moment::Starting(part) => {
                let server = Server::spawn(self.directory.0.path(), self.fsync, flushes);
                // Does not wait for an event: its progress is random.
                std::thread::sleep(self.start.mul_f64(part));
                server.kill();
            }
            Moment::Listening => {
                let server = self.start(flushes);
                self.kill(server);
            }
            Moment::Acknowledged(events, micros) => {
                let enough = self.world.state().acked + events;
                let server = self.start(flushes);
                self.world.wait_for("acknowledgements", |state| state.acked >= enough);
                std::thread::sleep(Duration::from_micros(micros));
                self.kill(server);
            }
        }
        if self.fsync == "always" && self.chance.u8(..4) == 0 {
            self.unflushed += flushes.cut_power(&self.data(), &mut self.chance);
            self.cuts += 1;
        }
    }

    /// Reads all that is kept of all topics.
    fn read_logs(&self) {
        let addresses = self.world.state().server.unwrap();
        let mut stream = connect(addresses.http).unwrap();
        let reply = request(&mut stream, "GET /topics HTTP/1.1", b"").unwrap();
        let topics: serde_json::Value =
            serde_json::from_str(&reply.body(&mut stream).unwrap()).unwrap();
        for topic in topics["topics"].as_array().unwrap() {
            let name = topic["name"].as_str().unwrap();
            let next: history::Place = topic["next"].as_str().unwrap().parse().unwrap();
            if name.starts_with("scratch-") {
                let mut witness = Witness::new(&self.world, "log", name, Role::Log);
                readers::whole_log(addresses, &mut witness, next.offset).unwrap();
            }
        }
    }

    fn report(&self, began: Instant) {
        let state = self.world.state();
        eprintln!(
            "{} kills and {} power cuts of {} bytes with --fsync {}: {} events acknowledged, {} again, {} gaps, {:.1?}",
            self.kills,
            self.cuts,
            self.unflushed,
            self.fsync,
            state.acked,
            state.replayed,
            state.gaps,
            began.elapsed()
        );
    }

    fn check(&self, gone: u64) {
        let histories = history::read_all(self.directory.0.path());
        let may_be_gone = MayBeGone::from([(EXPIRING.to_owned(), gone)]);
        let violations = checker::check(&histories, &may_be_gone);
        let said: Vec<_> = violations.iter().take(20).map(ToString::to_string).collect();
        assert!(
            violations.is_empty(),
            "seed {}, {}: {} violations, such as\n{}",
            self.seed,
            self.directory.0.path().display(),
            violations.len(),
            said.join("\n")
        );
    }
}
