use std::sync::Weak;

use super::*;
use crate::run::place::NEAR_PLACES;
use crate::run::run::{Keeper, NewRun};
use crate::run::state::Ending;
use crate::run::{RunFailure, RunWork};
use crate::{Epoch, Retention, Topic, UnixTime};

const EVERY: ListedRuns<'_> = ListedRuns { service: None, states: &[] };

struct Nobody;

impl Keeper for Nobody {
    fn end(&self, _: &Run, _: Ending) -> bool {
        unreachable!()
    }
    fn count(&self, _: &Run) {}
    fn tell_later(&self) {}
    fn update_places(&self, _: RunLane) -> u64 {
        0
    }
}

/// A registry at a virtual time.
struct World {
    registry: Registry,
    total: AtomicU64,
    begun: Instant,
}

impl World {
    fn new(limits: RunLimits) -> Self {
        let (registry, total) = (Registry::new(limits), AtomicU64::new(0));
        Self { registry, total, begun: Instant::now() }
    }

    fn at(&self, seconds: u64) -> Moment {
        let time = UnixTime::from_micros(seconds * 1_000_000);
        Moment { time, instant: self.begun + Duration::from_secs(seconds) }
    }

    fn add(&mut self, name: &str) -> Arc<Run> {
        self.add_work(name, RunWork::new(|_| Ok(None)))
    }

    fn add_work(&mut self, name: &str, work: RunWork) -> Arc<Run> {
        self.add_to("/a", name, work)
    }

    fn add_to(&mut self, service: &str, name: &str, work: RunWork) -> Arc<Run> {
        let topic = Topic::new("a".parse().unwrap(), Epoch::from_bits(1), Retention::default());
        let (key, service) = (RunKey::random().unwrap(), service.to_owned());
        let lane = work.lane();
        let (input, owner, is_timed) = (None, None, false);
        let new = NewRun { key, service, name: None, input, owner, is_timed, lane, topic };
        let nobody: Weak<dyn Keeper> = Weak::<Nobody>::new();
        let run = Arc::new(Run::new(new, self.at(0), nobody));
        run.count_in(&self.total);
        let job = RunJob { run: Arc::clone(&run), work };
        self.registry.add(job, Some((named(name), digest("1"))));
        run
    }

    fn end(&mut self, seconds: u64, run: &Run) {
        assert!(run.end(self.at(seconds), Ending::cancelled()));
        self.registry.end(self.at(seconds), run, &self.total);
    }

    fn next(&mut self, seconds: u64) -> Option<Arc<Run>> {
        self.next_of(RunLane::Computing, seconds)
    }

    fn next_of(&mut self, lane: RunLane, seconds: u64) -> Option<Arc<Run>> {
        let now = self.at(seconds);
        let run = self.registry.next_job(lane, now)?.run;
        assert!(run.begin(now));
        Some(run)
    }

    fn has(&self, run: &Run) -> bool {
        self.registry.get(run.key()).is_some()
    }
}

fn named(name: &str) -> ReplayKey {
    (None, "/a".to_owned(), name.parse().unwrap())
}

fn digest(body: &'static str) -> InputDigest {
    let input = crate::run::RunInput { body: body.into(), ..Default::default() };
    input.digest()
}

#[test]
fn a_run_is_kept_for_its_time_after_its_end_and_not_longer() {
    let mut world = World::new(RunLimits { running_max: 1, ..RunLimits::default() });
    let [first, second, third] = ["a", "b", "c"].map(|name| world.add(name));
    assert_eq!(world.next(1).map(|run| run.key()), Some(first.key()));
    assert!(world.next(1).is_none());
    world.end(100, &second);
    world.end(200, &first);
    let expire = |world: &mut World, seconds| {
        let now = world.at(seconds).instant;
        world.registry.expire(now, &world.total);
        world.registry.take_forgotten();
        [&first, &second, &third].map(|run| world.has(run))
    };
    assert_eq!(expire(&mut world, 699), [true, true, true]);
    assert!(matches!(world.registry.replayed(&named("b"), digest("1")), Ok(Some(_))));
    assert!(matches!(
        world.registry.replayed(&named("b"), digest("2")),
        Err(StartError::KeyReused)
    ));
    assert_eq!(expire(&mut world, 700), [true, false, true]);
    assert!(matches!(world.registry.replayed(&named("b"), digest("2")), Ok(None)));
    assert_eq!(expire(&mut world, 800), [false, false, true]);
    assert_eq!(expire(&mut world, 1_000_000), [false, false, true], "it has not ended");
    assert_eq!(world.total.load(Ordering::Relaxed), third.counted_bytes());
    assert!(world.next(801).is_none(), "the work of the first has not returned");
    world.registry.release(&first);
    world.registry.release(&first);
    assert_eq!(world.next(801).map(|run| run.key()), Some(third.key()));
    assert_eq!(world.registry.running(), 1);
}

#[test]
fn ended_runs_make_room_the_oldest_first_and_one_is_spared() {
    let limits = RunLimits { total_bytes_max: 0, ..RunLimits::default() };
    let mut world = World::new(limits);
    let runs = ["a", "b", "c", "d"].map(|name| world.add(name));
    for place in [2, 0, 1] {
        world.end(1, &runs[place]);
    }
    let of_two = runs[1].counted_bytes() + runs[3].counted_bytes();
    let World { registry, total, .. } = &mut world;
    assert_eq!(registry.make_room(total, &runs[1]), of_two);
    assert_eq!(runs.each_ref().map(|run| world.has(run)), [false, true, false, true]);
    let World { registry, total, .. } = &mut world;
    assert_eq!(registry.make_room(total, &runs[3]), runs[3].counted_bytes());
    assert_eq!(registry.take_forgotten().len(), 3);
    assert!(registry.list(EVERY, 9).runs.iter().map(|run| run.key()).eq([runs[3].key()]));
}

#[test]
fn runs_that_have_not_ended_are_listed_before_newer_ones_that_have() {
    let mut world = World::new(RunLimits { running_max: 1, ..RunLimits::default() });
    let runs = ["a", "b", "c", "d", "e"].map(|name| world.add(name));
    world.next(1);
    let list = |world: &World, limit| -> String {
        let place = |run: Arc<Run>| runs.iter().position(|other| other.key() == run.key());
        let listed = world.registry.list(EVERY, limit);
        assert_eq!(listed.total, 5);
        let places = listed.runs.into_iter().filter_map(place);
        places.map(|place| char::from(b"abcde"[place])).collect()
    };
    assert_eq!(list(&world, 9), "edcba");
    world.end(2, &runs[1]);
    world.end(3, &runs[4]);
    assert_eq!([9, 4, 3, 2].map(|limit| list(&world, limit)), ["dcaeb", "dcae", "dca", "dc"]);
    world.end(4, &runs[0]);
    assert_eq!(list(&world, 9), "dceba", "its work has not returned");
}

#[test]
fn runs_are_listed_and_counted_by_their_states() {
    use RunState::{Cancelled, Done, Failed, Queued, Running};
    let mut world = World::new(RunLimits { running_max: 2, ..RunLimits::default() });
    let runs = ["a", "b", "c", "d", "e", "f"].map(|name| world.add(name));
    let list = |world: &World, states: &[RunState], limit| {
        let listed = ListedRuns { service: None, states };
        let RunList { total, runs: listed } = world.registry.list(listed, limit);
        let place = |run: Arc<Run>| runs.iter().position(|other| other.key() == run.key());
        let places = listed.into_iter().filter_map(place);
        (total, places.map(|place| char::from(b"abcdef"[place])).collect::<String>())
    };
    assert_eq!(list(&world, &[Running], 9), (0, String::new()));
    world.next(1);
    world.next(1);
    let end = |world: &mut World, place: usize, ending| {
        let (now, run) = (world.at(2), &runs[place]);
        assert!(run.end(now, ending));
        world.registry.end(now, run, &world.total);
    };
    let fails = || Ending::failed(&RunFailure::new("it broke".to_owned()));
    end(&mut world, 0, fails());
    end(&mut world, 2, Ending::cancelled());
    end(&mut world, 4, fails());
    for (states, limit, total, names) in [
        (&[][..], 9, 6, "fdbeca"),
        (&[Queued], 9, 2, "fd"),
        (&[Running], 9, 1, "b"),
        (&[Failed], 9, 2, "ea"),
        (&[Failed], 1, 2, "e"),
        (&[Cancelled, Failed], 2, 3, "ec"),
        (&[Failed, Running], 2, 3, "be"),
        (&[Running, Queued, Running], 9, 3, "fdb"),
        (&[Done], 9, 0, ""),
    ] {
        assert_eq!(list(&world, states, limit), (total, names.to_owned()), "{states:?} {limit}");
    }
    let much_later = world.at(1_000_000).instant;
    world.registry.expire(much_later, &world.total);
    assert_eq!(list(&world, &[Failed, Cancelled], 9), (0, String::new()));
    assert_eq!(list(&world, &[], 9), (3, "fdb".to_owned()));
}

#[test]
fn a_move_of_a_long_queue_takes_few_steps_and_so_does_a_question_after_it() {
    let limits = RunLimits { running_max: 1, queued_max: 9_999, ..RunLimits::default() };
    let mut world = World::new(limits);
    let mut runs: Vec<_> = (0..2_000).map(|number| world.add(&number.to_string())).collect();
    let (mut questions, mut steps, mut long) = (0, 0, 0);
    while runs.len() > 1_000 {
        let working = world.next(1).unwrap();
        assert!(Arc::ptr_eq(&working, &runs.remove(0)));
        world.registry.tell_places(RunLane::Computing, world.at(1), None);
        let now = world.at(1);
        let begun = world.registry.update_places(RunLane::Computing, now);
        // A step of the walk tells a run its place of this moment.
        let is_told = |run: &&Arc<Run>| run.known_place().unwrap().begun == begun;
        let told = runs.iter().filter(is_told).count();
        (questions, steps) = (questions + 1, steps + told);
        long += usize::from(told > NEAR_PLACES);
        let known = runs.iter().map(|run| run.known_place().unwrap().before(begun));
        assert!(known.eq(0..runs.len()), "each begins after those before it");
        world.end(1, &working);
        world.registry.release(&working);
    }
    assert_eq!(questions, 1_000);
    // There are two moves before each question: a slot is returned and taken.
    let moves = 2 * questions;
    assert!(steps <= moves * 2 * NEAR_PLACES, "{steps} steps");
    assert!(long <= moves / 10, "{long} questions looked at all runs");
}

#[test]
fn a_work_is_overdue_once_its_time_is_over() {
    let time_max = Some(Duration::from_secs(3_600));
    let limits = RunLimits { running_max: 2, time_max, ..RunLimits::default() };
    let mut world = World::new(limits);
    let [first, second] = ["a", "b"].map(|name| world.add(name));
    assert_eq!(world.registry.next_due(world.at(0).instant), None);
    world.next(10);
    world.next(20);
    let due = |world: &World, seconds| world.registry.next_due(world.at(seconds).instant);
    assert_eq!(due(&world, 10), Some(Duration::from_secs(3_600)));
    let overdue = |world: &World, seconds| {
        let overdue = world.registry.overdue(world.at(seconds).instant);
        overdue.iter().map(|run| run.key()).collect::<Vec<_>>()
    };
    assert_eq!(overdue(&world, 3_609), []);
    assert_eq!(overdue(&world, 3_610), [first.key()]);
    world.end(3_610, &first);
    assert_eq!(overdue(&world, 3_700), [second.key()], "one that has ended is not");
    assert_eq!(due(&world, 3_615), Some(Duration::from_secs(5)));
    world.end(3_620, &second);
    assert_eq!(due(&world, 4_000), Some(Duration::from_secs(210)), "the end of its retention");
    assert_eq!(world.registry.stop().len(), 0);
}

#[test]
fn runs_are_listed_and_counted_by_their_service() {
    use RunState::{Cancelled, Queued, Running};
    let mut world = World::new(RunLimits { running_max: 1, ..RunLimits::default() });
    let runs = [("/a", "a"), ("/b", "b"), ("/a", "c"), ("/b", "d"), ("/b", "e")]
        .map(|(service, name)| world.add_to(service, name, RunWork::new(|_| Ok(None))));
    let list = |world: &World, service, states: &[RunState], limit| {
        let listed = ListedRuns { service: Some(service), states };
        let RunList { total, runs: listed } = world.registry.list(listed, limit);
        let place = |run: Arc<Run>| runs.iter().position(|other| other.key() == run.key());
        let places = listed.into_iter().filter_map(place);
        (total, places.map(|place| char::from(b"abcde"[place])).collect::<String>())
    };
    world.next(1);
    world.end(2, &runs[1]);
    world.end(2, &runs[3]);
    for (service, states, limit, total, names) in [
        ("/a", &[][..], 9, 2, "ca"),
        ("/a", &[Running], 9, 1, "a"),
        ("/a", &[Queued, Running], 1, 2, "c"),
        ("/a", &[Cancelled], 9, 0, ""),
        ("/b", &[], 9, 3, "edb"),
        ("/b", &[], 2, 3, "ed"),
        ("/b", &[Cancelled], 1, 2, "d"),
        ("/", &[], 9, 0, ""),
    ] {
        let expected = (total, names.to_owned());
        assert_eq!(list(&world, service, states, limit), expected, "{service} {states:?} {limit}");
    }
    let much_later = world.at(1_000_000).instant;
    world.registry.expire(much_later, &world.total);
    assert_eq!(list(&world, "/b", &[], 9), (1, "e".to_owned()));
}
