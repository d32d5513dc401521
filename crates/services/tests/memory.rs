//! The memory of coverages counts against the limits of runs as it is.
#![allow(clippy::unwrap_used)]

use std::alloc::System;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use anemone_hub::run::{RunInput, RunLimits, RunService, RunState, RunWork, Runs, StartRun};
use anemone_services::Propagation;
use cap::Cap;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// The largest part by which both may differ, and what counts as nothing: the list of runs and a thread.
const PART: f64 = 0.15;
const NOTHING: f64 = 150_000.0;

fn prepare(request: &Value) -> RunWork {
    let input = RunInput { body: request.to_string().into(), ..RunInput::default() };
    Propagation::with_helpers(0).prepare(input).unwrap()
}

/// The bytes of all runs, as they are counted and as they are allocated: while a work waits, and the most while it works.
fn bytes(runs: &Runs, request: &Value) -> [(f64, f64); 2] {
    // It begins once the work before has returned; while it works, the others wait.
    let ((begin, begun), (go, wait)) = (channel(), channel::<()>());
    let gate = RunWork::new(move |_| {
        let _ = begin.send(());
        let _ = wait.recv();
        Ok(None)
    });
    let _gate = runs.start(StartRun::new("/gate", gate)).unwrap();
    begun.recv().unwrap();
    let (counted, allocated) = (runs.bytes() as f64, ALLOCATED.allocated() as f64);
    let run = runs.start(StartRun::new("/propagation", prepare(request))).unwrap().run;
    let count = || runs.bytes() as f64 - counted;
    let waiting = (count(), ALLOCATED.allocated() as f64 - allocated);
    go.send(()).unwrap();
    let mut most = 0_f64;
    while !run.has_ended() {
        most = most.max(count());
        thread::yield_now();
    }
    let status = run.status(Instant::now());
    assert_eq!(status.state, RunState::Done, "{status:?}");
    [waiting, (most, ALLOCATED.max_allocated() as f64 - allocated)]
}

fn check(told: &str, (counted, allocated): (f64, f64)) {
    let told = format!("{told}: {counted} counted, {allocated} allocated");
    assert!((counted - allocated).abs() <= PART * allocated.max(counted) + NOTHING, "{told}");
}

fn coverage(step_m: f64, more: Value) -> Value {
    let mut request = json!({
        "area": {"width_m": 10_000, "height_m": 10_000}, "step_m": step_m, "model": "free-space",
        "quantities": ["loss_db", "received_dbm", "field_dbuv_m"],
        "transmitters": [{"x_m": 1, "y_m": 1, "height_m": 30, "frequency_mhz": 900, "power_dbm": 43}],
    });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

fn houses(count: usize) -> Value {
    let house = |at: usize| {
        let (x, y) = ((at % 100) * 20, (at / 100) * 20);
        json!({"type": "Feature", "properties": {"height": 9}, "geometry": {"type": "Polygon",
            "coordinates": [[[x, y], [x + 9, y], [x + 9, y + 9], [x, y + 9], [x, y]]]}})
    };
    let features: Vec<Value> = (0..count).map(house).collect();
    json!({"model": "walfisch-ikegami", "quantities": ["loss_db"],
        "buildings": {"type": "FeatureCollection", "features": features}})
}

#[test]
fn what_a_coverage_holds_is_what_is_counted() {
    // What earlier runs hold stays.
    let runs = Runs::new(RunLimits { running_max: 1, ..RunLimits::default() });
    // Each takes more than those before it, so the most that was allocated at any time is its own.
    for (name, request) in [
        ("roofs", coverage(100.0, houses(500))),
        ("points", coverage(72.0, json!({"output": {"formats": ["geojson"]}}))),
        ("lines", coverage(32.0, json!({"output": {"formats": ["csv"]}}))),
        ("an image", coverage(8.2, json!({"output": {"formats": ["png"]}}))),
    ] {
        let [waiting, working] = bytes(&runs, &request);
        check(&format!("{name}, waiting"), waiting);
        check(&format!("{name}, working"), working);
    }
    let heights = "100 ".repeat(1_000_000);
    let grid = format!("ncols 1000 nrows 1000 xllcorner 0 yllcorner 0 cellsize 10 {heights}");
    let grid = json!({"terrain": {"type": "esri-ascii", "text": grid}, "diffraction": "none"});
    for (name, request) in
        [("a grid", coverage(200.0, grid)), ("buildings", coverage(500.0, houses(8_000)))]
    {
        let [waiting, _] = bytes(&runs, &request);
        check(&format!("{name}, waiting"), waiting);
    }
}
