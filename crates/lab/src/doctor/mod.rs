//! `anemone doctor`: finds out if a proxy on the way to a server disturbs streams, WebSockets or quiet connections.
//! Names the settings that help.

mod cache;
mod exam;
mod finding;
mod first_item;
mod http2;
mod quiet;
mod rules;
mod stream;
mod way;

use std::mem;
use std::time::Duration;

use serde::Serialize;
use tokio::task::LocalSet;
use tokio::time::timeout;

use self::cache::cache;
use self::exam::{Known, Presence, connections, keep_alive, presence, reach, web_socket};
use self::finding::Finding;
pub use self::finding::Unreached;
use self::http2::protocol;
use self::quiet::idle;
use self::rules::{EarlyEnd, Examination, limits};
use self::stream::stream;
use self::way::Trouble;
pub use self::way::Way;
pub use crate::server_url::NotServer;

/// Returns the default of `begin_max`: the time after which a stream that has not begun counts as held back.
#[must_use]
pub fn begin_max() -> Duration {
    limits().begin_max
}

/// The findings of all examinations.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    url: String,
    /// The longest time that connections were kept quiet, in seconds.
    wait_seconds: f64,
    faults: usize,
    findings: Vec<Finding>,
}

/// The short examinations in their order. Only the examination of quiet connections is not among them.
const SOON: [Examination; 7] = [
    Examination::KeepAlive,
    Examination::Cache,
    Examination::Sse,
    Examination::Ndjson,
    Examination::Upgrade,
    Examination::Connections,
    Examination::Http2,
];

/// Examines the way to a server. `tell` gets the lines about each examination as soon as it has ended.
///
/// A stream counts as held back if it has not begun after `begin_max` and some round trips. Quiet connections are kept
/// for `wait`; all other examinations take some seconds.
///
/// If the server is gone, the examination ends at once. If the server stalls after its first answer, the examination
/// ends after two silences. After each doubtful result, the server is asked again, to find out if it is still there.
///
/// The whole takes at most four times the timeout of the way, `wait`, and five times `begin_max` with the round trips.
///
/// # Cancel safety
/// Dropping the future closes all connections.
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
        let mut examined = Examined { way: way.clone(), known };
        let most = limits().late_answers * way.patience() + limits().late_begins * known.patience();
        let quiet = idle(way, known, wait);
        tokio::pin!(quiet);
        let mut last = None;
        let soon = {
            let soon = timeout(most, examined.soon(&mut add));
            tokio::pin!(soon);
            loop {
                tokio::select! {
                    ended = &mut soon => break ended.unwrap_or(Err(EarlyEnd::Late)),
                    finding = &mut quiet, if last.is_none() => last = Some(finding),
                }
            }
        };
        let ended = match soon {
            Err(end) => Err(end),
            Ok(()) => {
                let last = match last {
                    Some(last) => last,
                    None => quiet.await,
                };
                examined.judge(vec![last]).await
            }
        };
        ended.unwrap_or_else(|end| vec![of_end(end, most)]).into_iter().for_each(add);
    }
    let faults = findings.iter().filter(|finding| finding.is_fault()).count();
    Diagnosis { url: way.url(), wait_seconds: wait.as_secs_f64(), faults, findings }
}

/// Makes the finding that explains why the other examinations were left out. `most` is the time limit of all
/// examinations.
fn of_end(end: EarlyEnd, most: Duration) -> Finding {
    let seconds = format!("{:.0}", most.as_secs_f64());
    let words = end.words(&[("seconds", &seconds)]);
    match end {
        EarlyEnd::Gone => Finding::unreached(Unreached::Gone, words),
        EarlyEnd::Silent | EarlyEnd::Late => Finding::wrong(Examination::Reach, words),
    }
}

/// A server that is being examined. It has answered once, but may stall or disappear.
struct Examined {
    /// The way to the server. Its patience is short after the first silence.
    way: Way,
    known: Known,
}

impl Examined {
    /// Makes the short examinations one after the other.
    async fn soon(&mut self, mut add: impl FnMut(Finding)) -> Result<(), EarlyEnd> {
        for name in SOON {
            let found = findings(&self.way, self.known, name).await;
            self.judge(found).await?.into_iter().for_each(&mut add);
        }
        Ok(())
    }

    /// Returns the findings if they are about the way, or otherwise the reason to stop. If the server is gone or
    /// stalls, the findings are not about the way.
    async fn judge(&mut self, mut findings: Vec<Finding>) -> Result<Vec<Finding>, EarlyEnd> {
        if findings.iter().any(Finding::is_doubtful) {
            match presence(&self.way, self.known).await {
                Presence::There => {}
                Presence::Gone => return Err(EarlyEnd::Gone),
                Presence::Silent(time) => {
                    let mut is_first = true;
                    for finding in findings.iter_mut().filter(|one| one.is_doubtful()) {
                        let unanswered = Finding::trouble(finding.name(), &Trouble::Silent(time));
                        // It is one silence.
                        *finding = unanswered.silent_if(mem::take(&mut is_first));
                    }
                }
            }
        }
        for finding in findings.iter().filter(|one| one.is_silent()) {
            if self.way.is_hasty() {
                return Err(EarlyEnd::Silent);
            }
            // Streams that are held back are as silent, and say nothing about the others.
            if !finding.is_held() {
                self.way = self.known.hasty(&self.way);
            }
        }
        Ok(findings)
    }
}

async fn findings(way: &Way, known: Known, name: Examination) -> Vec<Finding> {
    match name {
        Examination::KeepAlive => vec![keep_alive(way, known).await],
        Examination::Cache => vec![cache(way, known).await],
        Examination::Upgrade => web_socket(way, known).await.into(),
        Examination::Connections => vec![LocalSet::new().run_until(connections(way, known)).await],
        Examination::Http2 => vec![protocol(way, known.program).await],
        stream_name => vec![stream(way, known, stream_name).await],
    }
}

impl Diagnosis {
    /// Returns the number of faults.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.faults
    }

    /// Returns the number of examinations without a result.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_unknown()).count()
    }

    /// Returns the number of notes with settings.
    #[must_use]
    pub fn remarks(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_remark()).count()
    }

    /// Returns the reason why the server was not reached, or is not reached any more. Returns `None` if it was reached.
    #[must_use]
    pub fn unreached(&self) -> Option<&Unreached> {
        self.findings.iter().find_map(Finding::why_unreached)
    }
}
