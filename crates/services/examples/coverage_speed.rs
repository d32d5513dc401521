//! Measures how fast coverages are computed by one thread, what share of the time is not the model, and how soon runs stop that
//! are cancelled: `make bench -- --only coverage`
//!
//! Each line is a coverage of 1,000 x 1,000 points of one transmitter, started as a run and read to its end, beside a loop
//! that calls the model alone for the same distances. A run that is cancelled at a random moment has stopped once the next one
//! in the queue begins, since there is one slot.

use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anemone_hub::UnixTime;
use anemone_hub::run::{RunInput, RunLimits, RunRefusal, RunService, RunWork, Runs, StartRun};
use anemone_services::propagation::model::{
    City, Cost231Hata, EARTH_KM, Environment, FreeSpace, Hata, Profile, Reflection, Street, TwoRay,
    WalfischIkegami, bullington_db, deygout_db,
};
use anemone_services::{Computations, Propagation};
use serde_json::{Value, json};

const SIDE: u32 = 1_000;
const MHZ: f64 = 900.0;

/// The number of times that each is computed.
const ROUNDS: u32 = 5;

type Loss = Box<dyn Fn(f64) -> f64>;

/// The coverages: a name, what their request says besides, and their model alone.
fn cases() -> Vec<(&'static str, Value, Loss)> {
    let street = Street {
        roof_m: 15.0,
        width_m: 20.0,
        separation_m: 40.0,
        angle_deg: 90.0,
        city: City::Medium,
    };
    let streets =
        json!({"building_height_m": 15, "street_width_m": 20, "building_separation_m": 40});
    let free_space = FreeSpace::new(MHZ);
    let two_ray = TwoRay::new(MHZ, 30.0, 1.5, Reflection::Total);
    let hata = Hata::new(MHZ, 30.0, 1.5, Environment::Urban);
    let cost = Cost231Hata::new(MHZ, 30.0, 1.5, City::Medium);
    let walfisch = WalfischIkegami::new(MHZ, 30.0, 1.5, &street);
    let terrain = |method| json!({"model": "free-space", "terrain": {"type": "valley"}, "diffraction": method});
    vec![
        ("free-space", json!({"model": "free-space"}), Box::new(move |km| free_space.loss_db(km))),
        ("two-ray", json!({"model": "two-ray"}), Box::new(move |km| two_ray.loss_db(km))),
        ("hata", json!({"model": "hata"}), Box::new(move |km| hata.loss_db(km))),
        ("cost231-hata", json!({"model": "cost231-hata"}), Box::new(move |km| cost.loss_db(km))),
        (
            "walfisch-ikegami",
            json!({"model": "walfisch-ikegami", "street": streets}),
            Box::new(move |km| walfisch.loss_db(km)),
        ),
        ("bullington", terrain("bullington"), over_ground(free_space, bullington_db)),
        ("deygout", terrain("deygout"), over_ground(free_space, deygout_db)),
    ]
}

/// Free space and diffraction over a ground in steps of the valley, which has 256 columns on 10 km.
fn over_ground(free_space: FreeSpace, diffraction: fn(&Profile<'_>, f64) -> f64) -> Loss {
    let ground_m: Vec<f64> =
        (0..600).map(|at| 500.0 + 100.0 * (f64::from(at) / 40.0).sin()).collect();
    Box::new(move |km| {
        let count = (km * 1e3 / (10_000.0 / 255.0)).ceil().clamp(2.0, 512.0);
        let distances: Vec<f64> = (0..=count as u32).map(|at| f64::from(at) / count * km).collect();
        let ground_m = &ground_m[..distances.len()];
        let profile = Profile {
            km: &distances,
            ground_m,
            first_m: 530.0,
            second_m: 501.5,
            earth_km: EARTH_KM,
        };
        free_space.loss_db(km) + diffraction(&profile, MHZ)
    })
}

/// Computes a coverage, and returns the time until its first tile.
fn run(more: &Value) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut request = json!({
        "area": {"width_m": 9_990, "height_m": 9_990}, "step_m": 10,
        "transmitters": [{"x_m": 5_000, "y_m": 5_000, "height_m": 30, "frequency_mhz": MHZ, "power_dbm": 43}],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        request[name] = value.clone();
    }
    let begun = Instant::now();
    let input = RunInput { body: request.to_string().into(), ..RunInput::default() };
    let work = Propagation::with_helpers(0).prepare(input)?;
    let runs = Runs::new(RunLimits::default());
    let run = runs.start(StartRun::new("/propagation", work))?.run;
    let mut first = None;
    while !run.has_ended() {
        // The state, the plan and a tile.
        if first.is_none() && run.topic().info(UnixTime::now()).events() >= 3 {
            first = Some(begun.elapsed());
        }
        thread::sleep(Duration::from_micros(500));
    }
    Ok(first.unwrap_or_else(|| begun.elapsed()))
}

/// Calls the model alone for all points.
fn alone(loss: &Loss) {
    for row in 0..SIDE {
        for column in 0..SIDE {
            let [x, y] = [column, row].map(|at| (f64::from(at) - 500.0) / 100.0);
            black_box(loss(black_box(x.hypot(y).max(0.001))));
        }
    }
}

/// The number of times that each kind of run is cancelled, and the latest moment for that.
const CANCELS: usize = 50;
const CANCELLED_WITHIN: Duration = Duration::from_millis(400);

type Prepare = Box<dyn Fn() -> Result<RunWork, RunRefusal>>;

/// Runs that take longer than [`CANCELLED_WITHIN`], or nearly so.
fn long_runs() -> Vec<(&'static str, Prepare)> {
    let input =
        |document: Value| RunInput { body: document.to_string().into(), ..RunInput::default() };
    let sort = |algorithm: &str, size: u32| {
        let list = json!({"id": "a", "do": "list", "size": size});
        let sort = json!({"id": "b", "do": "sort", "after": "a", "algorithm": algorithm});
        let query = Some("states=rate:100".to_owned());
        let input = RunInput { query, ..input(json!({ "actions": [list, sort] })) };
        Box::new(move || Computations.prepare(input.clone())) as Prepare
    };
    let coverage = |transmitters: usize, more: Value| {
        let mast =
            json!({"x_m": 1, "y_m": 1, "height_m": 30, "frequency_mhz": MHZ, "power_dbm": 43});
        let mut request = json!({
            "area": {"width_m": 9_990, "height_m": 9_990}, "step_m": 10,
            "transmitters": vec![mast; transmitters],
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        let input = input(request);
        Box::new(move || Propagation::with_helpers(0).prepare(input.clone())) as Prepare
    };
    let outputs = json!({"formats": ["geojson", "png"], "levels": [-80, -70, -60]});
    vec![
        ("selection", sort("selection", 20_000)),
        ("bubble", sort("bubble", 20_000)),
        ("hata", coverage(16, json!({"model": "hata"}))),
        ("deygout", coverage(16, json!({"model": "free-space", "terrain": {"type": "valley"}}))),
        // Most of its time goes into the outputs.
        ("outputs", coverage(1, json!({"model": "free-space", "output": outputs}))),
    ]
}

/// Cancels such a run at a random moment, and returns the time until its work has returned; `None` if it had ended by then.
fn cancel(prepare: &Prepare) -> Result<Option<Duration>, Box<dyn std::error::Error>> {
    let runs =
        Runs::new(RunLimits { running_max: 1, total_bytes_max: 4 << 30, ..RunLimits::default() });
    let run = runs.start(StartRun::new("/long", prepare()?))?.run;
    let (begins, begun) = mpsc::channel();
    let next = RunWork::new(move |_| {
        let _ = begins.send(Instant::now());
        Ok(None)
    });
    runs.start(StartRun::new("/next", next))?;
    thread::sleep(CANCELLED_WITHIN.mul_f64(fastrand::f64()));
    let cancelled = Instant::now();
    let is_cancelled = run.cancel().is_ok();
    Ok(is_cancelled.then_some(begun.recv()?.saturating_duration_since(cancelled)))
}

/// The seconds of processor time that this process has taken: other programs do not count. In steps of 10 ms.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

#[allow(clippy::print_stdout, reason = "its results")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:18} {:>14} {:>15} {:>13}", "model", "points/s/core", "not the model", "first tile");
    for (name, request, loss) in cases() {
        let begun = processor_seconds();
        let firsts = (0..ROUNDS).map(|_| run(&request)).collect::<Result<Vec<_>, _>>()?;
        let ran = processor_seconds();
        (0..ROUNDS).for_each(|_| alone(&loss));
        let (whole, model) = (ran - begun, processor_seconds() - ran);
        let points = f64::from(ROUNDS * SIDE * SIDE) / whole;
        let share = 100.0 * (1.0 - model / whole);
        let first = firsts.into_iter().min().unwrap_or_default();
        println!("{name:18} {points:>14.0} {share:>13.0} % {:>10.1} ms", first.as_secs_f64() * 1e3);
    }
    println!("\n{:18} {:>14} {:>15}", "cancelled", "median", "longest");
    for (name, prepare) in long_runs() {
        let times = (0..CANCELS).map(|_| cancel(&prepare)).collect::<Result<Vec<_>, _>>()?;
        let mut times: Vec<_> = times.into_iter().flatten().collect();
        times.sort_unstable();
        let at = |at: usize| times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        let (median, longest) = (at(times.len() / 2), at(times.len().saturating_sub(1)));
        println!("{name:18} {median:>11.1} ms {longest:>12.1} ms");
    }
    Ok(())
}
