//! `anemone doctor`: finds what a proxy on the way to a server does to streams, WebSockets and quiet connections, and says
//! which setting changes it.

mod exam;
mod finding;
mod http2;
mod rules;
mod way;

use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;

use self::exam::{cache, connections, idle, keep_alive, reach, stream, web_socket};
use self::finding::Finding;
use self::http2::protocol;
use self::rules::Name;
pub use self::way::Way;
pub use crate::server_url::NotServer;

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
/// Quiet connections are kept for `wait`; everything else takes some seconds. `tell` gets the lines about each
/// examination as soon as it has ended. Cancel safe: dropping the future closes all connections.
pub async fn examine(
    way: &Way,
    begin_max: Duration,
    wait: Duration,
    mut tell: impl FnMut(&[String]),
) -> Diagnosis {
    let (first, known) = reach(way, begin_max).await;
    tell(&first.lines());
    let mut findings = vec![first];
    if let Some(known) = known {
        let quiet = idle(way, known, wait);
        let soon = async {
            let mut findings = Vec::new();
            let mut add = |finding: Finding| {
                tell(&finding.lines());
                findings.push(finding);
            };
            add(keep_alive(way, known).await);
            add(cache(way, known).await);
            add(stream(way, known, Name::Sse).await);
            add(stream(way, known, Name::Ndjson).await);
            web_socket(way, known).await.into_iter().for_each(&mut add);
            add(LocalSet::new().run_until(connections(way, known)).await);
            add(protocol(way, known.program).await);
            findings
        };
        let (soon, quiet) = tokio::join!(soon, quiet);
        tell(&quiet.lines());
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

    /// Returns true if something on the way refused to let anybody through.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.findings.iter().any(Finding::is_refused)
    }

    /// Returns true if an answer came from the server.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.findings.len() > 1 || self.findings.iter().any(Finding::has_remedy)
    }
}
