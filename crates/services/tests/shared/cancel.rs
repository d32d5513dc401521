//! Runs that are cancelled at random moments leave no thread behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anemone_hub::run::{Run, RunInput, RunLimits, RunService, RunState, Runs, StartRun};
use anemone_services::{Computations, Propagation};
use anemone_testing::wait_until;
use serde_json::{Value, json};

const RUNS: usize = 50;

/// The longest time before a cancel.
const LATEST: Duration = Duration::from_millis(400);

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// A computation that takes long, or a coverage by one of the models with all that takes long in it.
fn document(at: usize) -> (&'static str, Value) {
    if at.is_multiple_of(2) {
        let algorithm = ["bubble", "insertion", "quick", "merge", "selection"][at / 2 % 5];
        let actions = json!([
            {"id": "list", "do": "list", "size": 20_000, "seed": at},
            {"id": "sort", "do": "sort", "after": "list", "algorithm": algorithm},
        ]);
        return ("/computations", json!({ "actions": actions }));
    }
    let model = ["free-space", "two-ray", "hata", "cost231-hata", "walfisch-ikegami"][at / 2 % 5];
    let formats = [json!(["png"]), json!(["geojson", "png"])][at / 2 % 2].clone();
    let mut request = json!({
        "area": {"width_m": 10_000, "height_m": 10_000}, "step_m": 10, "model": model,
        "transmitters": [{"x_m": 1, "y_m": 1, "height_m": 30, "frequency_mhz": 900, "power_dbm": 43}],
        "street": {"building_height_m": 15, "street_width_m": 20, "building_separation_m": 40},
        "output": {"formats": formats, "levels": [-80, -70, -60]},
    });
    if at.is_multiple_of(3) {
        request["terrain"] = json!({"type": "valley"});
    }
    ("/propagation", request)
}

fn start(runs: &Runs, propagation: &Propagation, at: usize) -> Arc<Run> {
    let (service, request) = document(at);
    let query = (service == "/computations").then(|| "states=rate:100".to_owned());
    let input = RunInput { body: request.to_string().into(), query, ..RunInput::default() };
    let work = match service {
        "/computations" => Computations.prepare(input),
        _ => propagation.prepare(input),
    };
    runs.start(StartRun::new(service, work.unwrap())).unwrap().run
}

#[test]
fn fifty_runs_that_are_each_cancelled_at_random_leave_no_thread() {
    let before = threads();
    let total_bytes_max = 4 << 30;
    let limits = RunLimits { running_max: RUNS, total_bytes_max, ..RunLimits::default() };
    let runs = Runs::new(limits);
    let propagation = Propagation::with_helpers(4);
    let begun = Instant::now();
    let mut waiting: Vec<_> = (0..RUNS)
        .map(|at| (start(&runs, &propagation, at), LATEST.mul_f64(fastrand::f64())))
        .collect();
    assert!(threads() > before);
    let mut cancelled = 0;
    while !waiting.is_empty() {
        waiting.retain(|(run, at)| {
            let waits = begun.elapsed() < *at;
            // One that has ended meanwhile has nothing to stop.
            cancelled += usize::from(!waits && run.cancel().is_ok());
            waits
        });
        thread::yield_now();
    }
    assert!(cancelled > RUNS / 2, "{cancelled}");
    assert_eq!(runs.list(&[RunState::Running, RunState::Queued], RUNS).total, 0);
    drop(runs);
    wait_until("threads of cancelled runs are left", || threads() <= before);
}
