//! The states that watchers get, with a clock of the test.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample;
use serde_json::{Value, json};

use super::picture::{Picture, numbers};
use crate::computations::computation::{Computation, Turn};
use crate::computations::options::ComputationOptions;
use crate::computations::tree::ActionTree;

/// A computation with a clock that goes on by this time each turn: its events and their times, by turn.
struct Watched {
    turns: Vec<(Duration, Vec<Value>)>,
    result: Value,
    early_turns: usize,
    /// After each turn.
    progress: Vec<f64>,
}

fn watch(document: &Value, query: &str, per_turn: Duration) -> Watched {
    let tree = ActionTree::parse(document.to_string().as_bytes()).unwrap();
    let options = ComputationOptions::parse(query).unwrap();
    let mut computation = Computation::new(tree, options);
    let (mut now, mut early_turns) = (Duration::ZERO, 0);
    let mut turns = Vec::new();
    let mut events = computation.begin(now);
    let mut all_progress = vec![0.0];
    loop {
        turns.push((now, events.iter().map(|event| event.to_value()).collect()));
        let (progress, _) = computation.progress();
        let last = all_progress[all_progress.len() - 1];
        assert!((last..=1.0).contains(&progress), "{progress} after {last}");
        all_progress.push(progress);
        now += per_turn;
        events = match computation.turn(now) {
            Turn::Worked(events) => events,
            Turn::TooEarly => {
                early_turns += 1;
                Vec::new()
            }
            Turn::Done => break,
        };
    }
    assert_eq!(all_progress.pop(), Some(1.0));
    let progress = all_progress.split_off(1);
    Watched { turns, result: computation.result().to_value(), early_turns, progress }
}

impl Watched {
    fn events(&self) -> impl Iterator<Item = &Value> {
        self.turns.iter().flat_map(|(_, events)| events)
    }

    fn states(&self, action: u64) -> Vec<Vec<u64>> {
        let mut picture = Picture::default();
        let mut states: Vec<Vec<u64>> = Vec::new();
        for event in self.events() {
            let told = picture.apply(event);
            if event["action"] == action {
                states.extend(told);
            }
        }
        states
    }
}

/// One list, and the algorithms that sort it at the same time.
fn race(size: usize, algorithms: &[&str]) -> Value {
    let list = json!({"id": "list", "do": "list", "size": size, "seed": 5});
    let sorts = algorithms
        .iter()
        .map(|name| json!({"id": name, "do": "sort", "after": "list", "algorithm": name}));
    let actions: Vec<Value> = std::iter::once(list).chain(sorts).collect();
    json!({ "actions": actions })
}

const MILLI: Duration = Duration::from_millis(1);

#[test]
fn joining_at_any_plan_gives_the_picture_of_one_who_watched_from_the_start() {
    let document = race(250, &["insertion", "merge", "heap", "bubble"]);
    for query in ["", "batch=1", "states=every:7", "states=every:100", "states=rate:200"] {
        let watched = watch(&document, query, MILLI);
        let ends: Vec<usize> = watched
            .turns
            .iter()
            .scan(0, |count, (_, events)| {
                *count += events.len();
                Some(*count)
            })
            .collect();
        let events: Vec<&Value> = watched.events().collect();
        let plans: Vec<usize> =
            (0..events.len()).filter(|at| events[*at].get("plan").is_some()).collect();
        let mut whole = Picture::default();
        let mut joined = vec![Picture::default(); plans.len()];
        let mut compared = 0;
        for (at, event) in events.iter().enumerate() {
            whole.apply(event);
            for (picture, plan) in joined.iter_mut().zip(&plans) {
                // One that joins just behind the plan before gets the rest of its lists, and ignores them.
                if at + 3 > *plan {
                    picture.apply(event);
                }
                if picture.has_plan() && ends.contains(&(at + 1)) {
                    assert_eq!(*picture, whole, "{query}: joined at {plan}, at {at}");
                    compared += 1;
                }
            }
        }
        let is_long = !query.starts_with("states");
        assert!(plans.len() >= if is_long { 3 } else { 1 }, "{query}: {plans:?}");
        assert!(compared > 0);
        let sorted: Vec<u64> = (1..=250).collect();
        assert!(whole.lists.values().skip(1).all(|list| list.values == sorted && list.is_done));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn joining_at_any_event_gives_the_picture_of_one_who_watched_from_the_start(
        size in 2_usize..120,
        algorithms in sample::subsequence(&ALGORITHMS[..], 1..6),
        query in sample::select(vec!["", "batch=1", "states=every:3", "states=every:50", "states=rate:500"]),
        joined_at in vec(any::<sample::Index>(), 8),
    ) {
        let watched = watch(&race(size, &algorithms), query, MILLI);
        let events: Vec<&Value> = watched.events().collect();
        let mut whole = Picture::default();
        events.iter().for_each(|event| drop(whole.apply(event)));
        let sorted: Vec<u64> = (1..=size as u64).collect();
        prop_assert!(whole.lists.values().skip(1).all(|list| list.values == sorted && list.is_done));
        for at in joined_at {
            let at = at.index(events.len());
            let mut joined = Picture::default();
            events[at..].iter().for_each(|event| drop(joined.apply(event)));
            // One who joins behind the last plan reads on from it instead.
            if joined.has_plan() {
                prop_assert_eq!(&joined, &whole, "joined at {} of {}", at, events.len());
            }
        }
    }
}

const ALGORITHMS: [&str; 11] = [
    "quick",
    "merge",
    "heap",
    "shell",
    "insertion",
    "selection",
    "bubble",
    "cocktail",
    "comb",
    "radix",
    "tim",
];

#[test]
fn whole_lists_come_at_intervals_of_bytes() {
    let document = race(150, &["insertion", "cocktail", "bubble"]);
    let watched = watch(&document, "", MILLI);
    let (mut since, mut wholes, mut longest) = (0, 0, 0);
    for (_, events) in &watched.turns {
        for event in events {
            if event.get("plan").is_some() {
                wholes += 1;
                longest = longest.max(since);
                since = 0;
            }
            since += event.to_string().len();
        }
    }
    assert!(wholes > 2, "{wholes}");
    // The plan follows the turn that passed the limit, and a turn has at most 4,096 changes.
    assert!((64 << 10..(64 << 10) + 4_096 * 16).contains(&longest), "{longest}");
}

#[test]
fn every_state_is_told_and_each_nth_one_is_that_one() {
    let document = race(60, &["shell", "merge", "cocktail"]);
    let all = watch(&document, "", MILLI);
    for (action, sort) in (1..).zip(all.result["sorts"].as_array().unwrap()) {
        // The whole list at the beginning is the state before the first change.
        let states = all.states(action);
        let changes = sort["changes"].as_u64().unwrap() as usize;
        assert_eq!(states.len(), changes + 1, "{sort}");
        for count in [1, 7, 50, 100_000] {
            let some = watch(&document, &format!("states=every:{count}"), MILLI).states(action);
            let expected = states
                .iter()
                .step_by(count)
                .chain((!changes.is_multiple_of(count)).then(|| states.last()).flatten());
            assert!(some.iter().eq(expected), "{sort} every {count}");
        }
    }
    let total = all.result["states"].as_u64().unwrap();
    let changes = all.result["sorts"].as_array().unwrap().iter();
    assert_eq!(total, changes.map(|sort| sort["changes"].as_u64().unwrap()).sum::<u64>());
}

#[test]
fn a_rate_bounds_the_states_and_the_last_one_is_told() {
    let document = race(600, &["bubble"]);
    let watched = watch(&document, "states=rate:100", MILLI);
    let milliseconds = watched.turns.len() as u64;
    let states = watched.result["states"].as_u64().unwrap();
    assert!(
        (milliseconds / 10..=milliseconds / 10 + 1).contains(&states),
        "{states} in {milliseconds}"
    );
    assert!(states > 5);
    assert!(watched.states(1).last().unwrap().iter().copied().eq(1..=600));
}

#[test]
fn a_rate_sends_a_mebibyte_a_second_of_each_list_at_most() {
    let document = race(20_000, &["heap"]);
    let watched = watch(&document, "states=rate:1000", 20 * MILLI);
    let seconds = 0.02 * watched.turns.len() as f64;
    let of_heap = watched.events().filter(|event| event["action"] == 1);
    let bytes: usize = of_heap.map(|event| event.to_string().len()).sum();
    // Whole lists, again and again: the first and the last one come at once, and after a plan it is told again.
    let whole = 140_000.0;
    let most = seconds * 1.5 * 1_048_576.0 + 3.0 * whole;
    assert!((whole * 5.0..most).contains(&(bytes as f64)), "{bytes} in {seconds} s");
}

#[test]
fn a_batch_bounds_the_states_of_an_event() {
    let document = race(100, &["bubble"]);
    for batch in [1, 10, 1_000] {
        let watched = watch(&document, &format!("batch={batch}"), MILLI);
        let most = watched.events().filter_map(|event| event["changes"].as_array());
        let most = most.map(Vec::len).max().unwrap();
        assert!(if batch == 1_000 { most > 100 } else { most == batch }, "{batch}: {most}");
    }
}

#[test]
fn with_a_pace_progress_is_the_part_of_the_time_that_is_over() {
    let tree = include_str!("../../../../../examples/computations/tree.json");
    let tree: Value = serde_json::from_str(tree).unwrap();
    for document in [tree, race(100, &ALGORITHMS)] {
        let watched = watch(&document, "pace=200&states=rate:60", 10 * MILLI);
        let turns = watched.turns.len() as f64;
        assert!(turns > 500.0);
        for (turn, progress) in watched.progress.iter().enumerate() {
            let over = turn as f64 / turns;
            assert!((progress - over).abs() < 0.02, "{progress} at {over}");
        }
    }
}

#[test]
fn a_pace_bounds_the_changes_of_each_list_and_what_waits_is_told_in_between() {
    let document = race(40, &["bubble", "insertion"]);
    let watched = watch(&document, "pace=100", MILLI);
    let mut states = [0, 0];
    for (now, events) in &watched.turns {
        for event in events.iter().filter(|event| event["action"].as_u64().unwrap_or_default() > 0)
        {
            let [state, action] = ["state", "action"].map(|name| event[name].as_u64().unwrap());
            states[action as usize - 1] = state;
        }
        for state in states {
            let allowed = now.as_millis() as u64 / 10 + 1;
            assert!(state <= allowed, "{state} at {now:?}");
            // Each list tells its states 20 ms later at the latest.
            let is_over =
                states == [states[0]; 2] && watched.result["sorts"][0]["changes"] == state;
            assert!(is_over || state + 4 >= allowed, "{state} at {now:?}");
        }
    }
    assert!(watched.early_turns > 1_000, "{}", watched.early_turns);
}

#[test]
fn children_begin_with_the_list_of_their_parent_when_that_is_done_and_siblings_take_turns() {
    let document = json!({"actions": [
        {"id": "up", "do": "sort", "after": "list", "algorithm": "bubble"},
        {"id": "down", "do": "sort", "after": "up", "algorithm": "merge", "criterion": "descending"},
        {"id": "list", "do": "list", "size": 100},
        {"id": "beside", "do": "sort", "after": "list", "algorithm": "bubble"},
        {"id": "other", "do": "list", "after": "up", "size": 3, "distribution": "reversed"},
    ]});
    let watched = watch(&document, "batch=100", MILLI);
    let events: Vec<&Value> = watched.events().collect();
    let first_of = |action: u64| events.iter().position(|event| event["action"] == action).unwrap();
    let done = |action: u64| {
        let is_done = |event: &&Value| event["action"] == action && event["done"] == true;
        events.iter().position(is_done).unwrap()
    };
    assert!(first_of(1) > done(0) && first_of(4) > done(0));
    assert!(first_of(0) < first_of(3) && first_of(3) < done(0), "beside it, not after it");
    let turns: Vec<u64> = events.iter().filter_map(|event| event["action"].as_u64()).collect();
    let changes_of_turn =
        turns.iter().filter(|action| [0, 3].contains(*action)).collect::<Vec<_>>();
    let alternations = changes_of_turn.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(alternations > 2, "{turns:?}");
    assert_eq!(numbers(&events[first_of(1)]["list"]), (1..=100).collect::<Vec<_>>());
    assert_eq!(numbers(&events[first_of(4)]["list"]), [3, 2, 1]);
    assert!(watched.states(1).last().unwrap().iter().copied().eq((1..=100).rev()));
}

#[test]
fn the_events_of_a_small_computation_are_as_documented() {
    let document = json!({"actions": [
        {"id": "list", "do": "list", "size": 4, "distribution": "reversed"},
        {"id": "sort", "do": "sort", "after": "list", "algorithm": "selection"},
    ]});
    let watched = watch(&document, "", MILLI);
    let expected = [
        json!({"plan": [
            {"id": "list", "do": "list", "distribution": "reversed", "seed": 1, "size": 4},
            {"id": "sort", "do": "sort", "algorithm": "selection", "criterion": "ascending", "size": 4, "after": 0,
             "work": {"unit": "comparisons", "total": 6, "rule": "n(n-1)/2", "exact": true}},
        ], "states": "all"}),
        json!({"action": 0, "list": [4, 3, 2, 1], "state": 0, "comparisons": 0, "writes": 0, "done": true}),
        json!({"action": 1, "list": [4, 3, 2, 1], "state": 0, "comparisons": 0, "writes": 0}),
        json!({"action": 1, "changes": [["s", 0, 3], ["s", 1, 2]], "state": 2, "comparisons": 6, "writes": 4,
               "done": true}),
    ];
    assert!(watched.events().eq(&expected), "{:?}", watched.turns);
    let result = json!({"states": 2, "sorts": [{"id": "sort", "changes": 2, "comparisons": 6, "writes": 4}]});
    assert_eq!(watched.result, result);
}
