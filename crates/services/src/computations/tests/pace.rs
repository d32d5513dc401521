//! The progress of a run with a pace, and so the time left, if the processor is so fast that only the pace counts.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};

use crate::computations::action::{Algorithm, Criterion, Distribution, Word};
use crate::computations::computation::{Computation, Turn};
use crate::computations::counting;
use crate::computations::options::ComputationOptions;
use crate::computations::tree::ActionTree;

/// What the text of the progress says, the changes between two looks at it, and the bounds of the time left that it lets
/// expect, as a share of the time that is left.
struct Expected {
    word: &'static str,
    look_changes: u32,
    left: Range<f64>,
}

const COUNTED: Expected = Expected { word: "counted", look_changes: 1, left: 0.98..1.02 };
const ESTIMATED: Expected = Expected { word: "estimated", look_changes: 10, left: 0.5..2.0 };

fn list_of(id: &str, size: usize, distribution: &str) -> Value {
    json!({"id": id, "do": "list", "size": size, "distribution": distribution, "seed": 5})
}

fn sort_of(id: &str, after: &str, algorithm: &str, criterion: &str) -> Value {
    json!({"id": id, "do": "sort", "after": after, "algorithm": algorithm, "criterion": criterion})
}

fn tree(actions: &[Value]) -> ActionTree {
    ActionTree::parse(json!({ "actions": actions }).to_string().as_bytes()).unwrap()
}

/// Asserts that the time left is right when a quarter of the run is over, and half of it. Returns false if the run is too short
/// to tell.
fn has_right_time_left(actions: &[Value], expected: &Expected) -> bool {
    let options = ComputationOptions::parse("pace=1000&states=every:1000000000").unwrap();
    let mut computation = Computation::new(tree(actions), options);
    let look = Duration::from_millis(1) * expected.look_changes;
    let (mut now, mut told) = (Duration::ZERO, Vec::new());
    computation.begin(now);
    loop {
        match computation.turn(now) {
            Turn::Worked(_) => {}
            Turn::TooEarly => {
                told.push((now, computation.progress()));
                now += look;
            }
            Turn::Done => break,
        }
    }
    if told.len() < 500 {
        return false;
    }
    for (over, (progress, text)) in [&told[told.len() / 4], &told[told.len() / 2]] {
        assert!(text.ends_with(expected.word), "{text}: {actions:?}");
        let left = over.as_secs_f64() * (1.0 - progress) / progress;
        let share = left / (now - *over).as_secs_f64();
        assert!(
            expected.left.contains(&share),
            "{share} of the time left at {over:?}: {actions:?}"
        );
    }
    true
}

#[test]
fn the_time_left_of_each_sort_is_right_after_each_list() {
    let mut count = 0;
    for (distribution, _) in Distribution::ALL {
        for (algorithm, _) in Algorithm::ALL {
            let sort = sort_of("sort", "list", algorithm, "ascending");
            let actions = [list_of("list", 520, distribution), sort];
            count += u32::from(has_right_time_left(&actions, &COUNTED));
        }
    }
    assert!(count >= 25, "{count} are long enough");
}

#[test]
fn the_time_left_is_right_if_a_sort_comes_after_another() {
    for (second, _) in Algorithm::ALL {
        for first in ["insertion", "heap"] {
            for criterion in ["ascending", "by-last-digit"] {
                let list = list_of("list", 300, "random");
                let first = sort_of("first", "list", first, "ascending");
                let actions = [list, first, sort_of("second", "first", second, criterion)];
                assert!(has_right_time_left(&actions, &COUNTED));
            }
        }
    }
}

#[test]
fn a_sort_of_a_long_list_that_is_sorted_already_is_known_to_change_nothing() {
    let list = list_of("list", 1_000, "random");
    let first = sort_of("first", "list", "selection", "ascending");
    let actions = [list, first, sort_of("second", "first", "insertion", "ascending")];
    assert!(has_right_time_left(&actions, &COUNTED));
}

#[test]
fn the_time_left_of_what_is_estimated_is_right_within_a_factor_of_two() {
    let mut count = 0;
    for (distribution, _) in Distribution::ALL {
        for algorithm in ["quick", "heap", "shell", "comb", "tim"] {
            // Others leave it few of the steps that are counted.
            let list = list_of("list", 6_000, distribution);
            let mut actions = vec![list, sort_of("sort", "list", algorithm, "ascending")];
            for at in 0..16 {
                let [list, sort] = ["list", "sort"].map(|name| format!("{name}{at}"));
                actions.push(list_of(&list, 2_000, "sorted"));
                actions.push(sort_of(&sort, &list, "tim", "ascending"));
            }
            count += u32::from(has_right_time_left(&actions, &ESTIMATED));
        }
    }
    assert!(count >= 10, "{count} are long enough");
}

#[test]
fn changes_are_counted_as_they_will_be() {
    let sorts = || Algorithm::ALL.iter().map(|(algorithm, _)| *algorithm);
    for (distribution, _) in Distribution::ALL {
        for (first, _) in Criterion::ALL {
            for (second, _) in Criterion::ALL {
                let mut actions = vec![list_of("list", 25, distribution)];
                actions.extend(sorts().map(|sort| sort_of(sort, "list", sort, first)));
                let after = "quick heap shell selection".split(' ');
                let pairs = after.flat_map(|after| sorts().map(move |sort| (after, sort)));
                actions.extend(
                    pairs.map(|(after, sort)| {
                        sort_of(&format!("{after}-{sort}"), after, sort, second)
                    }),
                );
                let (counted, is_exact) = counting::count(&tree(&actions));
                assert!(is_exact);
                let options = ComputationOptions::parse("").unwrap();
                let mut computation = Computation::new(tree(&actions), options);
                computation.begin(Duration::ZERO);
                while computation.turn(Duration::ZERO) != Turn::Done {}
                let result = computation.result().to_value();
                for (sort, counted) in result["sorts"].as_array().unwrap().iter().zip(&counted[1..])
                {
                    assert_eq!(sort["changes"], *counted, "{distribution} {first} {second} {sort}");
                }
            }
        }
    }
}
