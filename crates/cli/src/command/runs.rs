//! `anemone runs`: lists the runs of a server, shows one, or cancels one.

use anemone_client::{Client, RunHandle, RunState, RunStatus};
use anemone_sources::printable;

use super::runtime;
use crate::args::{self, RunListing};
use crate::output::print;

pub(crate) fn run(args: &args::Runs) -> anyhow::Result<()> {
    let client = Client::new(server(&args.url))?;
    let client = args.reach.apply(&args.url, client)?;
    let url = client.url();
    runtime()?.block_on(async {
        let runs = match &args.cancel {
            Some(run) => {
                let run = if run.contains('/') { run } else { &format!("{url}/runs/{run}") };
                vec![handle(args, run)?.cancel().await?]
            }
            None if RunHandle::at(&args.url).is_ok() => {
                vec![handle(args, &args.url)?.state().await?]
            }
            None => client.runs(args.limit.get()).await?,
        };
        if runs.is_empty() && !args.reach.quiet {
            tracing::info!("there are no runs");
        }
        print(runs.iter().map(|run| match args.output {
            RunListing::Line => line(&url, run),
            RunListing::Json => anemone_client::one_line(&run.json).into_owned(),
        }))?;
        Ok(())
    })
}

/// Returns the handle of the run at this URL.
fn handle(args: &args::Runs, url: &str) -> anyhow::Result<RunHandle> {
    let run = RunHandle::at(url)?;
    // The client of a handle has the server of the URL.
    let client = args.reach.apply(url, Client::split(url)?.0)?;
    Ok(run.with(|_| client))
}

/// Returns the URL of the server in that of its list of runs, or of a run.
fn server(url: &str) -> &str {
    let url = match RunHandle::at(url) {
        Ok(_) => url.rsplit_once('/').map_or(url, |(list, _)| list),
        Err(_) => url.trim_end_matches('/'),
    };
    url.strip_suffix("/runs").unwrap_or(url)
}

/// Returns a line; its words come from the server, and may be anything.
fn line(url: &str, run: &RunStatus) -> String {
    let mut line = format!("{url}/runs/{}  {}", run.key, run.state());
    match (run.state(), run.progress.done, run.change.place) {
        (RunState::Running, Some(done), _) => line += &format!(" {:.0}%", done * 100.0),
        (RunState::Queued, _, Some(place)) => line += &format!(" after {place}"),
        _ => {}
    }
    line += &format!("  {}", run.service);
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
    fn a_list_of_runs_is_below_its_server() {
        for (url, expected) in [
            ("http://a", "http://a"),
            ("http://a/x/", "http://a/x"),
            ("http://a/runs", "http://a"),
            ("http://a/x/runs/", "http://a/x"),
            ("http://a/x/runs/0123456789abcdef0123456789abcdef", "http://a/x"),
        ] {
            assert_eq!(server(url), expected);
        }
    }
}
