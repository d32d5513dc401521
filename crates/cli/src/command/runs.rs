//! `anemone runs`: lists the runs of a server, or cancels one.

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
            Some(key) => {
                let run = RunHandle::at(&format!("{url}/runs/{key}"))?.with(|_| client);
                vec![run.cancel().await?]
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

/// Returns the URL of the server in that of its list of runs.
fn server(url: &str) -> &str {
    let url = url.trim_end_matches('/');
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
        ] {
            assert_eq!(server(url), expected);
        }
    }
}
