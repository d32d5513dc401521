//! The work of a run: computes the tiles on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anemone_hub::Data;
use anemone_hub::run::{RunContext, RunFailure, RunOutcome, Stopped};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::cores::{Core, Cores};
use super::coverage::Coverage;
use super::encode;
use super::loss::{Land, Scratch};
use super::memory;
use super::output::{self, Field, Outputs};
use super::tiles::{Tile, Tiles};
use super::values::Values;
use super::warning::{Outside, Warning};

struct CoverageWork<'a> {
    coverage: &'a Coverage,
    land: &'a Land,
    tiles: &'a Tiles,
    run: &'a RunContext,
    next: AtomicUsize,
    done: Mutex<Done>,
}

/// The findings of all tiles together.
#[derive(Debug)]
struct Done {
    points: usize,
    /// The smallest and the largest value of each quantity.
    extents: Vec<(f32, f32)>,
    outside: Vec<Outside>,
    /// All values, if an output needs them.
    field: Option<Field>,
}

#[derive(Debug, Serialize)]
struct CoverageResult {
    points: usize,
    /// The smallest and the largest value by the name of the quantity.
    #[serde(flatten)]
    extents: Map<String, Value>,
    warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Outputs>,
}

/// Computes a coverage, with as many helpers as there are processors free. Watchers are told the document that it is of.
pub(super) fn compute(
    mut coverage: Coverage,
    document: Option<Data>,
    cores: &Cores,
    run: &RunContext,
) -> RunOutcome {
    run.hold(memory::working(&coverage, document.as_ref()));
    let land = build_land(&mut coverage, run)?;
    let tiles = Tiles::new(coverage.area.columns, coverage.area.rows);
    run.partial(&encode::plan(&coverage, &land, &tiles, document.as_ref())?)?;
    drop(document);
    let done = Done {
        points: 0,
        extents: vec![(f32::INFINITY, f32::NEG_INFINITY); coverage.measures.len()],
        outside: vec![Outside::default(); coverage.paths.len()],
        field: coverage.output.as_ref().map(|_| Field::new(&coverage)),
    };
    let work = CoverageWork {
        coverage: &coverage,
        land: &land,
        tiles: &tiles,
        run,
        next: AtomicUsize::new(0),
        done: Mutex::new(done),
    };
    let results = thread::scope(|scope| {
        let helper = |core: Core<'_>| {
            let outcome = work.run();
            drop(core);
            outcome
        };
        let work = &work;
        let helpers: Vec<_> = std::iter::from_fn(|| cores.take())
            .take(tiles.len().saturating_sub(1))
            .map(|core| {
                thread::Builder::new()
                    .name("coverage".to_owned())
                    .spawn_scoped(scope, move || helper(core))
            })
            .collect();
        let own = work.run();
        let joined = helpers.into_iter().flatten().map(|helper| {
            helper
                .join()
                .unwrap_or_else(|_| Err(RunFailure::new("a thread of the coverage panicked")))
        });
        std::iter::once(own).chain(joined).collect::<Vec<_>>()
    });
    results.into_iter().collect::<Result<(), _>>()?;
    let mut done = work.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    drop(land);
    let (mut result, field) = (result(&coverage, &done), done.field.take());
    if let (Some(options), Some(field)) = (&coverage.output, field) {
        result.outputs = Some(output::write(&coverage, field, options, || run.check())?);
    }
    encode::data(&result).map(Some)
}

/// Makes the ground and the roofs. What they are made of is dropped.
fn build_land(coverage: &mut Coverage, run: &RunContext) -> Result<Land, Stopped> {
    let area = coverage.area;
    let terrain = coverage.terrain.take().map(|terrain| terrain.grid(&area).0);
    let roofs = coverage.buildings.take();
    let roofs = roofs.map(|of| of.roofs(&area, || run.check())).transpose()?;
    Ok(Land { terrain, roofs })
}

impl CoverageWork<'_> {
    /// Computes tiles until none is left.
    fn run(&self) -> Result<(), RunFailure> {
        let mut scratch = Scratch::default();
        while let Some(tile) = self.tiles.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let check = || self.run.check();
            let values = Values::compute(self.coverage, self.land, tile, &mut scratch, check)?;
            if values.len() > 0 {
                self.run.partial(&encode::tile(self.coverage, tile, &values)?)?;
            }
            let part = self.add(tile, &values) as f64 / self.coverage.area.points() as f64;
            self.run.progress(part, Some(&self.words(tile)))?;
        }
        Ok(())
    }

    fn words(&self, tile: Tile) -> String {
        format!("level {} of {}", tile.level + 1, self.tiles.levels())
    }

    /// Adds the values of a tile, and returns the number of all points so far.
    fn add(&self, tile: Tile, values: &Values) -> usize {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        for (extent, values) in done.extents.iter_mut().zip(&values.measures) {
            *extent = values
                .iter()
                .fold(*extent, |(low, high), value| (low.min(*value), high.max(*value)));
        }
        for (all, new) in done.outside.iter_mut().zip(&values.outside) {
            all.add(new);
        }
        if let Some(field) = &mut done.field {
            field.add(tile, values);
        }
        done.points += values.len();
        done.points
    }
}

/// Returns the result of the run, without its outputs.
fn result(coverage: &Coverage, done: &Done) -> CoverageResult {
    let mut extents = Map::new();
    for (measure, (min, max)) in coverage.measures.iter().zip(&done.extents) {
        let hundredth = |value: f32| (f64::from(value) * 100.0).round() / 100.0;
        extents.insert(
            measure.name().to_owned(),
            json!({ "min": hundredth(*min), "max": hundredth(*max) }),
        );
    }
    let distances =
        done.outside.iter().enumerate().filter_map(|(at, outside)| {
            outside.warning(at, *coverage.paths[at].model.distances()?)
        });
    let warnings: Vec<_> = coverage.warnings.iter().cloned().chain(distances).collect();
    CoverageResult { points: done.points, extents, warnings, outputs: None }
}
