//! A run service: a long computation that tells its progress and its partial results, and can be watched and cancelled
//! over every transport: `cargo run --package anemone-server --example run`
//!
//! - `curl --data 1000000 http://ADDRESS/primes` starts a run and follows it;
//! - with `--header 'Prefer: respond-async'` the reply only says where the run is: `/runs/KEY`;
//! - `curl --header 'Accept: text/event-stream' http://ADDRESS/runs/KEY` watches it, from its first event;
//! - `curl --request DELETE http://ADDRESS/runs/KEY` cancels it.

use anemone_hub::run::{RunContext, RunInput, RunOutcome, RunRefusal, RunWork};
use anemone_hub::{Data, Epoch, Hub};
use anemone_server::{Mount, Server};
use tokio::signal::unix::{SignalKind, signal};

/// The numbers between two reports.
const STEP: u64 = 10_000;

/// Checks the input, which is a number, before there is a run.
fn primes(input: RunInput) -> Result<RunWork, RunRefusal> {
    let most: u64 = serde_json::from_slice(&input.body)
        .map_err(|error| RunRefusal::BadBody(format!("expected a number: {error}")))?;
    if most > 100_000_000 {
        let detail = format!("{most} is too much, at most 100000000 is allowed");
        return Err(RunRefusal::Unprocessable { pointer: Some(String::new()), detail });
    }
    Ok(RunWork::new(move |run| count(run, most)))
}

/// Counts the primes up to `most`. Every few milliseconds it tells something, and so learns whether to go on.
fn count(run: &RunContext, most: u64) -> RunOutcome {
    let mut count = 0_u64;
    for first in (0..=most).step_by(usize::try_from(STEP).unwrap_or(usize::MAX)) {
        let last = most.min(first + STEP - 1);
        let found = (first..=last).filter(|number| is_prime(*number)).count() as u64;
        count += found;
        run.partial(&json(&serde_json::json!({ "first": first, "last": last, "primes": found }))?)?;
        let progress = last as f64 / most.max(1) as f64;
        run.progress(progress, Some(&format!("up to {last}")))?;
    }
    json(&serde_json::json!({ "primes": count })).map(Some)
}

fn is_prime(number: u64) -> bool {
    number > 1
        && (2..).take_while(|part| part * part <= number).all(|part| !number.is_multiple_of(part))
}

fn json(value: &serde_json::Value) -> Result<Data, anemone_hub::run::RunFailure> {
    Data::json(value).map_err(|error| anemone_hub::run::RunFailure::new(error.to_string()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let server = Server::builder(Hub::new(Epoch::random()?))
        .listen(([127, 0, 0, 1], 0).into())
        .mount(Mount::run("/primes", primes)?)
        .bind()?;
    if let Some(address) = server.local_addr() {
        eprintln!("listening on http://{address}/");
    }
    let shutdown = async {
        terminate.recv().await;
    };
    eprintln!("{:?}", server.serve(shutdown).await?);
    Ok(())
}
