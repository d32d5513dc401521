//! Looks for a cache on the way, which may answer polls instead of the server.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::exam::{INDEX, Known};
use super::finding::Finding;
use super::rules::{Examination, WayFault, limits};
use super::way::{AnswerHead, Trouble, Way};

const JSON: &str = "application/json";

struct Polled {
    body: Vec<u8>,
    time: Duration,
    age: u64,
}

/// The result of two polls with the same URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PollPair {
    /// The second poll waited about as long as the first, so no cache answered it.
    Anew,
    /// The second poll was answered sooner, since the index had changed.
    Changed,
    /// The second poll got the answer to the first one at once, although the first one had waited.
    Early,
    /// Neither poll waited. A server can be configured to answer at once.
    AtOnce,
}

/// Makes several pairs of polls. The two polls of a pair have the same URL, and ask the server to wait for a second. If
/// the second answer is the same as the first and comes much sooner, it is from a cache.
pub(super) async fn cache(way: &Way, known: Known) -> Finding {
    let cached = |how: &str| known.fault(Examination::Cache, WayFault::Cached, &[("how", how)]);
    let unknown = |words: String| Finding::unknown(Examination::Cache, words);
    let (mut early, mut at_once) = (0, 0);
    for _ in 0..limits().poll_pairs {
        let path = fresh_poll();
        let polled = async { Ok((poll(way, &path).await?, poll(way, &path).await?)) };
        let (first, second) = match polled.await {
            Ok(polled) => polled,
            Err(trouble) => return Finding::trouble(Examination::Cache, &trouble),
        };
        let age = first.age.max(second.age);
        if age > 0 {
            return cached(&format!("with Age: {age}"));
        }
        match judge_pair(&first, &second) {
            PollPair::Anew => {
                return Finding::good(Examination::Cache, "each poll is answered anew".to_owned());
            }
            PollPair::Early => early += 1,
            PollPair::AtOnce => at_once += 1,
            PollPair::Changed => {}
        }
        if early == limits().early_pairs {
            let [first, second] = [first, second].map(|polled| polled.time.as_millis());
            return cached(&format!(
                "after {second} ms with the answer of the one before, which took {first} ms"
            ));
        }
    }
    unknown(match at_once {
        0 => "topics are created or deleted all the time".to_owned(),
        _ => "the server answers polls at once, so a cache cannot be told from it".to_owned(),
    })
}

/// Returns the path of a new poll. No cache can have an answer for it. The poll waits up to a second for a change of
/// the index.
fn fresh_poll() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = since.subsec_micros().wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    // Parts of a millisecond, which make no difference to the server.
    format!("{INDEX}&wait=1.000{:06}", number % 1_000_000)
}

async fn poll(way: &Way, path: &str) -> Result<Polled, Trouble> {
    let mut connection = way.ask(path, "").await?;
    let asked = Instant::now();
    let answer = connection.answer(way.patience()).await?;
    let body = connection.body(&answer, way.patience()).await?;
    let (time, AnswerHead { status, media_type, age, .. }) = (asked.elapsed(), answer);
    if status != 200 || !media_type.starts_with(JSON) {
        return Err(Trouble::NoPage { status, media_type });
    }
    Ok(Polled { body, time, age })
}

fn judge_pair(first: &Polled, second: &Polled) -> PollPair {
    let waited_min = limits().waited_min;
    // A server may be set to wait for less than it is asked to.
    if second.time >= waited_min && 2 * second.time >= first.time {
        return PollPair::Anew;
    }
    match first.body == second.body {
        false => PollPair::Changed,
        true if first.time >= waited_min => PollPair::Early,
        true => PollPair::AtOnce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(first: (&str, u64), second: (&str, u64)) -> PollPair {
        let [first, second] = [first, second].map(|(body, ms)| Polled {
            body: body.into(),
            time: Duration::from_millis(ms),
            age: 0,
        });
        judge_pair(&first, &second)
    }

    #[test]
    fn a_server_that_limits_waits_is_no_cache() {
        assert_eq!(pair(("a", 1002), ("a", 1001)), PollPair::Anew);
        assert_eq!(
            pair(("a", 502), ("a", 501)),
            PollPair::Anew,
            "[limits] wait_proxied = \"500ms\""
        );
        assert_eq!(pair(("a", 3), ("a", 2)), PollPair::AtOnce, "wait_proxied = \"0s\"");
        assert_eq!(
            pair(("a", 3), ("a", 1001)),
            PollPair::Anew,
            "the index had changed before the first"
        );
    }

    #[test]
    fn what_comes_at_once_and_is_the_same_as_what_was_waited_for_is_of_a_cache() {
        assert_eq!(pair(("a", 1002), ("a", 2)), PollPair::Early);
        assert_eq!(pair(("a", 502), ("a", 2)), PollPair::Early);
        assert_eq!(pair(("a", 1002), ("b", 2)), PollPair::Changed);
    }

    #[test]
    fn each_pair_of_polls_is_for_something_that_no_cache_has() {
        assert_ne!(fresh_poll(), fresh_poll());
    }
}
