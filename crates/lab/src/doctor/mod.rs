//! `anemone doctor`: finds what a proxy on the way to a server does to streams, WebSockets and quiet connections, and says
//! which setting changes it.

mod exam;
mod finding;
mod http2;
mod quiet;
mod rules;
mod way;

use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout_at};

use self::exam::{Known, cache, connections, keep_alive, reach, stream, web_socket};
use self::finding::Finding;
pub use self::finding::Unreached;
use self::http2::protocol;
use self::quiet::idle;
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

/// The examinations beside that of silence, in their order.
const SOON: [Name; 7] = [
    Name::KeepAlive,
    Name::Cache,
    Name::Sse,
    Name::Ndjson,
    Name::Upgrade,
    Name::Connections,
    Name::Http2,
];

/// Examines the way to a server. A stream that has not begun after `begin_max`, and some round trips, counts as held back.
/// Quiet connections are kept for `wait`; everything else takes some seconds. A server that stalls after its first answer is asked
/// nothing else, once two examinations had no answer. The whole takes at most four times the timeout of the way, `wait`, and five times
/// `begin_max` with those round trips.
/// `tell` gets the lines about each examination as soon as it has ended. Cancel safe: dropping the future closes all connections.
pub async fn examine(
    way: &Way,
    begin_max: Duration,
    wait: Duration,
    mut tell: impl FnMut(&[String]),
) -> Diagnosis {
    let mut findings = Vec::new();
    let mut add = |finding: Finding| {
        tell(&finding.lines());
        findings.push(finding);
    };
    let (first, known) = reach(way, begin_max).await;
    add(first);
    if let Some(known) = known {
        let quiet = idle(way, known, wait);
        tokio::pin!(quiet);
        let mut last = None;
        let stall = {
            let soon = soon(way, known, &mut add);
            tokio::pin!(soon);
            loop {
                tokio::select! {
                    stall = &mut soon => break stall,
                    finding = &mut quiet, if last.is_none() => last = Some(finding),
                }
            }
        };
        add(match (stall, last) {
            (Some(stall), _) => Finding::wrong(Name::Reach, stall),
            (None, Some(last)) => last,
            (None, None) => quiet.await,
        });
    }
    let faults = findings.iter().filter(|finding| finding.is_fault()).count();
    Diagnosis { url: way.url(), wait_seconds: wait.as_secs_f64(), faults, findings }
}

/// Makes the examinations one after the other. Returns a sentence about a server that stalls, after which nothing else is asked.
async fn soon(way: &Way, known: Known, mut add: impl FnMut(Finding)) -> Option<String> {
    let most = 2 * way.patience() + 5 * known.patience();
    let (mut way, mut is_silent) = (way.clone(), false);
    let deadline = Instant::now() + most;
    for name in SOON {
        let Ok(findings) = timeout_at(deadline, findings(&way, known, name)).await else {
            let most = most.as_secs_f64();
            return Some(format!(
                "it stalls: the examinations were not over after {most:.0} s, so the rest is left out"
            ));
        };
        for finding in findings {
            if finding.is_silent() {
                if is_silent {
                    let words = "it stalls: it answered at first, and then two examinations got no answer, so the rest is left out";
                    return Some(words.to_owned());
                }
                // Streams that are held back are as silent, and say nothing about the others.
                if ![Name::Sse, Name::Ndjson].contains(&finding.name()) {
                    (is_silent, way) = (true, known.hasty(&way));
                }
            }
            add(finding);
        }
    }
    None
}

async fn findings(way: &Way, known: Known, name: Name) -> Vec<Finding> {
    match name {
        Name::KeepAlive => vec![keep_alive(way, known).await],
        Name::Cache => vec![cache(way, known).await],
        Name::Upgrade => web_socket(way, known).await.into(),
        Name::Connections => vec![LocalSet::new().run_until(connections(way, known)).await],
        Name::Http2 => vec![protocol(way, known.program).await],
        stream_name => vec![stream(way, known, stream_name).await],
    }
}

impl Diagnosis {
    /// Returns the number of faults.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.faults
    }

    /// Returns the number of examinations that could not tell whether something is wrong.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_unknown()).count()
    }

    /// Returns why nothing was examined. `None` if an answer came from the server.
    #[must_use]
    pub fn unreached(&self) -> Option<&Unreached> {
        self.findings.iter().find_map(Finding::why_unreached)
    }
}
