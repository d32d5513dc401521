//! `anemone runs`: lists the runs of a server, shows one, or cancels one.

use std::io::{self, IsTerminal as _};
use std::time::{SystemTime, UNIX_EPOCH};

use anemone_client::{Client, RunHandle, RunList, RunState, RunStatus};
use anemone_sources::printable;
use serde_json::Value;

use super::call::connected;
use super::{Misuse, runtime};
use crate::args::{self, CallVia, RunListing};
use crate::output::{print, report};

pub(crate) fn run(args: &args::Runs) -> anyhow::Result<()> {
    let (target, cancelled) = targets(args)?;
    let client = reached(args, target, Client::new(&server(target))?)?;
    let url = client.url();
    runtime()?.block_on(async {
        let runs = match cancelled {
            Some(run) => vec![find(args, &client, run).await?.cancel().await?],
            None if RunHandle::at(target).is_ok() => vec![one(args, target)?.state().await?],
            None => list(args, &client).await?,
        };
        if let (Some(stderr), RunListing::Line) = (failure(&runs), args.output) {
            report(stderr);
        }
        let has_head = args.output == RunListing::Line && io::stdout().is_terminal();
        let head = (has_head && !runs.is_empty()).then(|| HEAD.to_owned());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = now.as_secs_f64() * 1000.0;
        print(head.into_iter().chain(runs.iter().map(|run| match args.output {
            RunListing::Line => line(&url, run, now),
            RunListing::Json => anemone_client::one_line(&run.json).into_owned(),
        })))?;
        Ok(())
    })
}

/// Lists the runs of the service and in the states that were asked for, and says how many there are besides.
async fn list(args: &args::Runs, client: &Client) -> anyhow::Result<Vec<RunStatus>> {
    let states: Vec<_> = args.state.iter().copied().map(RunState::from).collect();
    let limit = args.limit.get();
    let RunList { total, runs, .. } = match &args.service {
        Some(service) => client.runs_of(service, &states, limit).await?,
        None => client.runs(&states, limit).await?,
    };
    let listed = runs.len() as u64;
    match total.filter(|total| *total > listed) {
        _ if args.reach.quiet => {}
        None if runs.is_empty() => {
            let service = if args.service.is_some() { " of this service" } else { "" };
            let state = if states.is_empty() { "" } else { " in this state" };
            tracing::info!("there are no runs{service}{state}");
        }
        Some(total) => tracing::info!("these are the first {listed} of {total} runs"),
        None => {}
    }
    Ok(runs)
}

/// Returns the handle of the run at this URL, whose state alone is asked for.
fn one(args: &args::Runs, url: &str) -> anyhow::Result<RunHandle> {
    match (&args.state[..], &args.service) {
        ([], None) => handle(args, url),
        ([], Some(_)) => Err(Misuse::ChoiceOfRun { option: "--service" }.into()),
        _ => Err(Misuse::ChoiceOfRun { option: "--state" }.into()),
    }
}

/// Returns the URL of the server or of a run, and the run to cancel. The URL of a run names both.
fn targets(args: &args::Runs) -> Result<(&str, Option<&str>), Misuse> {
    match (args.url.as_deref(), args.cancel.as_ref().map(Option::as_deref)) {
        (Some(url), None) => Ok((url, None)),
        (Some(url), Some(Some(run))) => Ok((url, Some(run))),
        (Some(url), Some(None)) if RunHandle::at(url).is_ok() => Ok((url, Some(url))),
        (None, Some(Some(run))) if run.contains('/') => Ok((run, Some(run))),
        _ => Err(Misuse::NoCancelled),
    }
}

fn reached(args: &args::Runs, url: &str, client: Client) -> anyhow::Result<Client> {
    connected(client, url, CallVia::Auto, &args.reach, args.patience.retries)
}

/// Returns the standard error of a run that has failed, which may say more about it. No list has it.
fn failure(runs: &[RunStatus]) -> Option<&str> {
    runs.iter().filter(|run| run.state() == RunState::Failed).find_map(|run| run.stderr.as_deref())
}

/// The most runs that a server lists.
const LISTED_MAX: u32 = 1000;
const KEY_DIGITS: usize = 32;

/// Returns the handle of the run with this URL, this key, or the only key that begins so.
async fn find(args: &args::Runs, client: &Client, run: &str) -> anyhow::Result<RunHandle> {
    if run.contains('/') {
        return handle(args, run);
    }
    let url = |key: &str| format!("{}/runs/{key}", client.url());
    if run.len() > KEY_DIGITS || !run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Misuse::NoKey { text: run.to_owned() }.into());
    }
    if run.len() == KEY_DIGITS {
        return handle(args, &url(run));
    }
    let runs = client.runs(&[], LISTED_MAX).await?.runs;
    let runs: Vec<_> = runs.iter().map(|run| (&*run.key, run.state().is_end())).collect();
    handle(args, &url(only(&runs, run, LISTED_MAX as usize)?))
}

/// Returns the only key that begins so. Each key is with the answer whether its run has ended: such a run counts only if no
/// other one fits, since it cannot be cancelled. If there are `most` runs, others may not be listed; those that have not
/// ended come first.
fn only<'a>(runs: &[(&'a str, bool)], beginning: &str, most: usize) -> Result<&'a str, Misuse> {
    let (beginning, count) = (beginning.to_owned(), runs.len());
    let of = |ended| {
        let fits =
            |(key, has_ended): &&(&str, bool)| *has_ended == ended && key.starts_with(&beginning);
        runs.iter().filter(fits).map(|(key, _)| *key).collect::<Vec<_>>()
    };
    let live = of(false);
    let lists_all_live = runs.last().is_some_and(|(_, has_ended)| *has_ended);
    if count >= most && (live.is_empty() || !lists_all_live) {
        return Err(Misuse::ManyRuns { beginning, count });
    }
    let found = if live.is_empty() { of(true) } else { live };
    match found[..] {
        [key] => Ok(key),
        [] => Err(Misuse::NoRun { beginning }),
        _ => Err(Misuse::SeveralRuns { beginning, count: found.len() }),
    }
}

fn handle(args: &args::Runs, url: &str) -> anyhow::Result<RunHandle> {
    let run = RunHandle::at(url)?;
    // The client of a handle has the server of the URL.
    let client = reached(args, url, Client::split(url)?.0)?;
    Ok(run.with(|_| client))
}

/// Returns the URL of the server in that of its list of runs, or of a run.
fn server(url: &str) -> String {
    let (server, path) = args::split(url);
    let path = match RunHandle::at(url) {
        Ok(_) => path.rsplit_once('/').map_or(path, |(list, _)| list),
        Err(_) => path.trim_end_matches('/'),
    };
    format!("{server}{}", path.strip_suffix("/runs").unwrap_or(path))
}

/// The first line on a terminal.
const HEAD: &str = "URL  STATE  SERVICE  TIMES  PROGRESS";

/// The times of a run, ms since the Unix epoch by the server's clock.
#[derive(Debug)]
struct Times {
    started: Option<f64>,
    ended: Option<f64>,
}

impl Times {
    /// Returns those in the state of a run.
    fn of(json: &str) -> Self {
        let state: Value = serde_json::from_str(json).unwrap_or_default();
        Self { started: state["started"].as_f64(), ended: state["ended"].as_f64() }
    }

    /// Returns them in words; `now` is by this machine's clock.
    fn in_words(&self, now: f64) -> Option<String> {
        let started = self.started?;
        let ago = duration((now - started).max(0.0));
        Some(match self.ended {
            Some(ended) => format!("started {ago} ago, took {}", duration(ended - started)),
            None => format!("started {ago} ago"),
        })
    }
}

/// Formats a duration: "0.9 s", "12 s", "3 min 12 s", "2 h 5 min", "3 d 4 h".
fn duration(ms: f64) -> String {
    let seconds = (ms / 1000.0) as u64;
    match seconds {
        0..10 => format!("{:.1} s", ms / 1000.0),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Returns a line; its words come from the server, and may be anything.
fn line(url: &str, run: &RunStatus, now: f64) -> String {
    let mut line = format!("{url}/runs/{}  {}", run.key, run.state());
    match (run.state(), run.progress.done, run.change.place) {
        (RunState::Running, Some(done), _) => line += &format!(" {:.0}%", done * 100.0),
        (RunState::Queued, _, Some(0)) => line += " next",
        (RunState::Queued, _, Some(place)) => line += &format!(" after {place}"),
        _ => {}
    }
    line += &format!("  {}", run.service);
    if let Some(name) = &run.name {
        line += &format!(" \"{name}\"");
    }
    if let Some(words) = Times::of(&run.json).in_words(now) {
        line += &format!("  {words}");
    }
    let problem = run.change.problem.as_ref().map(ToString::to_string);
    if let Some(text) = problem.as_ref().or(run.progress.text.as_ref()) {
        line += &format!("  {text}");
    }
    printable(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_key_names_the_only_run_that_can_be_cancelled() {
        let runs = [("3f2a", false), ("5", false), ("3f00", true), ("4aaa", true), ("4aab", true)];
        let only = |beginning| only(&runs, beginning, 6).map_err(|error| error.to_string());
        for (beginning, key) in [("3f2a", "3f2a"), ("3", "3f2a"), ("3f0", "3f00")] {
            assert_eq!(only(beginning), Ok(key));
        }
        assert!(only("4").unwrap_err().starts_with("2 runs have keys that begin with 4"));
        assert_eq!(only("6").unwrap_err(), "no run has a key that begins with 6");
        // Those that have not ended are listed first, so all of them are, if the last one has.
        assert!(matches!(super::only(&runs, "5", 5), Ok("5")));
        for (runs, beginning) in [(&runs[..], "4aaa"), (&runs[..2], "5")] {
            let many = super::only(runs, beginning, runs.len()).unwrap_err();
            assert!(matches!(many, Misuse::ManyRuns { .. }), "{many}");
        }
    }

    #[test]
    fn the_times_of_a_run_say_when_it_started_and_how_long_it_took() {
        let words = |json: &str| Times::of(json).in_words(200_000.0);
        assert_eq!(words("{}"), None);
        assert_eq!(words(r#"{"started":null,"ended":5000}"#), None);
        let ended = words(r#"{"started":8000.5,"ended":8900.5,"key":"k"}"#);
        assert_eq!(ended.as_deref(), Some("started 3 min 11 s ago, took 0.9 s"));
        let works = words(r#"{"started":300000,"ended":null}"#);
        assert_eq!(works.as_deref(), Some("started 0.0 s ago"));
        let of = [9_949.0, 10_000.0, 7_500_000.0, 273_600_000.0].map(duration);
        assert_eq!(of, ["9.9 s", "10 s", "2 h 5 min", "3 d 4 h"]);
    }

    #[test]
    fn a_list_of_runs_is_below_its_server() {
        for (url, expected) in [
            ("http://a", "http://a"),
            ("http://a/x/", "http://a/x"),
            ("http://a/runs", "http://a"),
            ("http://a/x/runs/", "http://a/x"),
            ("http://a/x/runs/0123456789abcdef0123456789abcdef", "http://a/x"),
            ("unix:/tmp/runs", "unix:/tmp/runs:"),
            ("unix:a:/x/runs/0123456789abcdef0123456789abcdef", "unix:a:/x"),
        ] {
            assert_eq!(server(url), expected);
        }
    }
}
