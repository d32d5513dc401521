//! The commands beside the experiments: `anemone lab compare`, `anemone lab report` and `anemone lab agent`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Subcommand;

use super::bounds::Amount;
use super::compare::{Tolerance, judge, pairs};
use super::regular_file::write_whole;
use super::terminal::print;
use super::{agent, files, merge, write};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Evaluation {
    /// Compare two runs, A before and B after: print each figure, its change and the interval of the change as Markdown
    ///
    /// A and B are each a file NAME.json of a run, or the directory of `lab all --out`. Figures are paired by experiment, case,
    /// transport and quantity. A run of A is paired with the newest run of B that has the same conditions. The interval of a
    /// change is made by bootstrap over the rounds.
    Compare {
        /// The earlier run
        #[arg(value_name = "A")]
        from: PathBuf,
        /// The later run
        #[arg(value_name = "B")]
        to: PathBuf,
        /// Exit with status 12 if a figure is worse by more than this share, such as 5%
        ///
        /// A figure counts only if its interval leaves no doubt. The more figures there are, the wider the intervals. The command
        /// also fails if B lacks a figure or an experiment, if a run is invalid, or if a run of B has no partner in A.
        #[arg(long, value_name = "SHARE")]
        fail_on: Option<Tolerance>,
    },
    /// Put several runs into one HTML file: of other times, of other machines, or of the Lab page in browsers
    ///
    /// Runs under the same conditions are merged: the report has the rounds and histograms of all, and says when they were made.
    /// Other runs stand side by side, and this command says how their conditions differ.
    Report {
        /// Directories with reports, or single files
        #[arg(value_name = "DIR", required = true)]
        places: Vec<PathBuf>,
        /// The file to write
        #[arg(long, value_name = "FILE", default_value = "lab.html")]
        out: PathBuf,
    },
    /// Serve labs on other machines that use --agent: start a server for each, publish events, and tell the time
    ///
    /// Anyone who reaches the port can start servers and make load. Use it only on a network that you trust.
    Agent {
        /// Address and port to listen on. The servers use the same address
        #[arg(long, value_name = "IP:PORT", value_parser = listen)]
        listen: SocketAddr,
    },
}

/// Parses the address at which an agent listens.
fn listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    Err(match text.trim_start_matches(':').parse::<u16>() {
        Ok(port) => format!(
            "a port without an address: expected 0.0.0.0:{port}, for every address of this machine, or the one at which the other \
             machine reaches this one, such as 192.0.2.7:{port}"
        ),
        Err(_) => "expected IP:PORT, such as 192.0.2.7:7000, or 0.0.0.0:7000 for every address of this machine".to_owned(),
    })
}

impl Evaluation {
    /// Returns true for a command that runs until the user stops it.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self, Self::Agent { .. })
    }

    pub(crate) fn run(&self, stop: &AtomicBool) -> anyhow::Result<()> {
        match self {
            Self::Agent { listen } => agent::serve(*listen, stop),
            Self::Compare { from, to, fail_on } => {
                let mut amount = Amount::default();
                let mut read = |path| files::read(path, &mut amount).and_then(merge::merged);
                let (from, to) = (read(from)?, read(to)?);
                let pairs = pairs(&from, &to)?;
                for pair in &pairs.all {
                    print(&write::changes(pair))?;
                }
                print(&write::alone(&pairs))?;
                Ok(fail_on.map_or(Ok(()), |tolerance| judge(&pairs, tolerance))?)
            }
            Self::Report { places, out } => {
                let (mut reports, mut amount) = (Vec::new(), Amount::default());
                for place in places {
                    reports.extend(files::read(place, &mut amount)?);
                }
                let html = write::all(&merge::merged(reports)?)?;
                write_whole(out, html.as_bytes())
                    .with_context(|| format!("writing {}", out.display()))?;
                Ok(writeln!(std::io::stdout(), "{}", out.display())?)
            }
        }
    }
}
