//! `anemone doctor`: finds what a proxy on the way to a server does to streams, WebSockets and quiet connections, and says
//! which setting changes it.

mod exam;
mod finding;
mod remedy;
mod way;

use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;

use self::exam::{connections, idle, keep_alive, protocol, reach, stream, web_socket};
use self::finding::{Finding, Name};
pub use self::way::{NotServer, Way};

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    url: String,
    /// The longest time for which connections were kept quiet, in seconds.
    wait_seconds: f64,
    faults: usize,
    findings: Vec<Finding>,
}

/// Examines the way to a server. A stream that has not begun after `begin_max`, and some round trips, counts as held back.
/// Quiet connections are kept for `wait`; everything else takes some seconds. Cancel safe: dropping the future closes all connections.
pub async fn examine(way: &Way, begin_max: Duration, wait: Duration) -> Diagnosis {
    let (first, known) = reach(way, begin_max).await;
    let mut findings = vec![first];
    if let Some(known) = known {
        let quiet = idle(way, known, wait);
        let soon = async {
            let mut findings = vec![keep_alive(way, known).await];
            findings.push(stream(way, known, Name::Sse).await);
            findings.push(stream(way, known, Name::Ndjson).await);
            findings.extend(web_socket(way, known).await);
            findings.push(LocalSet::new().run_until(connections(way, known)).await);
            findings.push(protocol(way).await);
            findings
        };
        let (soon, quiet) = tokio::join!(soon, quiet);
        findings.extend(soon);
        findings.push(quiet);
    }
    let faults = findings.iter().filter(|finding| finding.is_fault()).count();
    Diagnosis { url: way.url(), wait_seconds: wait.as_secs_f64(), faults, findings }
}

impl Diagnosis {
    /// Returns the number of faults.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.faults
    }

    /// Returns true if an answer came from the server.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.findings.len() > 1 || self.findings.iter().any(Finding::has_remedy)
    }

    /// Returns the lines for people: one for each examination, and one for each setting that mends a fault.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let findings = self.findings.iter().flat_map(Finding::lines);
        let end = (self.faults == 0).then(|| "Nothing is wrong.".to_owned());
        [self.url.clone()].into_iter().chain(findings).chain(end).collect()
    }
}
