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
    /// Compare two runs, A before and B after: each figure with the interval of its change, as Markdown
    ///
    /// A and B are each NAME.json of a run, or the directory of `lab all --out`. The figures are paired by experiment, case, transport
    /// and quantity, and runs of an experiment by their conditions, with the newest of B. Each difference of medians has a bootstrap interval over the rounds.
    Compare {
        /// The run before
        #[arg(value_name = "A")]
        from: PathBuf,
        /// The run after
        #[arg(value_name = "B")]
        to: PathBuf,
        /// Exit with status 12 if a figure is worse by more than this share, such as 5%
        ///
        /// A figure counts only if its interval leaves no doubt, which is stricter the more figures there are. A figure or an
        /// experiment that B does not have, a run that is invalid, and a run of B that is compared with none fail, too.
        #[arg(long, value_name = "SHARE")]
        fail_on: Option<Tolerance>,
    },
    /// Put runs together in one HTML file: of several times, of other machines, and of the Lab page in browsers
    ///
    /// Runs under the same conditions have their rounds and their histograms in common, and the report says from when to when; others
    /// stand beside each other, and this says what differs.
    Report {
        /// Directories with reports, or single files
        #[arg(value_name = "DIR", required = true)]
        places: Vec<PathBuf>,
        /// The file to write
        #[arg(long, value_name = "FILE", default_value = "lab.html")]
        out: PathBuf,
    },
    /// Wait for labs of other machines, which give --agent: start a server for each, publish, and tell the time
    ///
    /// Whoever reaches the port can start servers and make load, so it is for a network that you trust.
    Agent {
        /// The address and the port to listen on; the servers listen on the same address
        #[arg(long, value_name = "IP:PORT", value_parser = listen)]
        listen: SocketAddr,
    },
}

/// Parses the place where an agent listens.
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
    /// Returns true for a command that runs until it is stopped.
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
