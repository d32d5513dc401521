//! The beginning of a stream, which something on the way may hold back for long, or delay by a moment.

use std::time::Duration;

use super::exam::{Begun, Known, NDJSON, SSE, begin, health};
use super::finding::Finding;
use super::rules::{Name, Unknown, WayFault, limits};
use super::way::{Trouble, Way};

/// Opens a stream, and waits for the beginning that every stream of the server has.
pub(super) async fn stream(way: &Way, known: Known, name: Name) -> Finding {
    let wanted = if name == Name::Sse { SSE } else { NDJSON };
    match begin(way, wanted, known, known.patience()).await {
        Begun::At(time, connection) => {
            drop(connection);
            match delay(way, known, wanted, time).await {
                Some(delay) => delayed(known, name, delay),
                None => {
                    Finding::good(name, format!("a stream begins after {} ms", time.as_millis()))
                }
            }
        }
        Begun::Held(time) => {
            let seconds = format!("{:.1}", time.as_secs_f64());
            let what = "no whole item of a stream";
            let values = [("what", what), ("seconds", &*seconds), ("when", "at once")];
            known.fault(name, WayFault::Buffered, &values).silent_if(true)
        }
        Begun::Refused(status) => {
            Finding::unknown(name, format!("the index of topics is refused with status {status}"))
        }
        Begun::Foreign(found) => {
            let found = found.escape_debug().to_string();
            known.fault(name, WayFault::Foreign, &[("found", &found), ("wanted", wanted)])
        }
        Begun::Trouble(Trouble::Closed) => Finding::unknown(name, Unknown::Unbegun.words(&[])),
        Begun::Trouble(trouble) => Finding::trouble(name, &trouble),
    }
}

fn delayed(known: Known, name: Name, delay: Duration) -> Finding {
    let (ms, looks) = (delay.as_millis().to_string(), limits().delayed_looks.to_string());
    known.fault(name, WayFault::Delayed, &[("ms", &ms), ("looks", &looks)]).into_note()
}

/// One answer and one beginning of a stream, each with its time since it was asked for.
#[derive(Clone, Copy, Debug)]
struct Look {
    answer: Duration,
    beginning: Duration,
}

/// Looks again at a stream that began late, and returns its delay if all streams have it.
async fn delay(way: &Way, known: Known, wanted: &str, first: Duration) -> Option<Duration> {
    let (mut looks, mut newest) = (Vec::new(), first);
    while looks.len() < limits().delayed_looks {
        if newest < limits().delayed_min {
            return None;
        }
        let answer = health(way).await.ok()?.round_trip;
        let begun = begin(way, wanted, known, known.patience()).await;
        let Begun::At(beginning, _) = begun else { return None };
        looks.push(Look { answer, beginning });
        newest = beginning;
    }
    delay_of(&looks)
}

/// Returns the delay of streams behind other answers. The soonest of each count: a busy machine makes some late, what delays streams all.
fn delay_of(looks: &[Look]) -> Option<Duration> {
    let answer = looks.iter().map(|look| look.answer).min()?;
    let beginning = looks.iter().map(|look| look.beginning).min()?;
    let delay = beginning.saturating_sub(answer);
    (delay >= limits().delayed_min).then_some(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the delay in ms, of looks with these times in ms.
    fn delay_ms(looks: &[(u64, u64)]) -> Option<u128> {
        let looks = looks.iter().map(|&(answer, beginning)| Look {
            answer: Duration::from_millis(answer),
            beginning: Duration::from_millis(beginning),
        });
        delay_of(&looks.collect::<Vec<_>>()).map(|delay| delay.as_millis())
    }

    #[test]
    fn a_delay_of_every_stream_is_of_the_way_and_that_of_some_is_of_a_busy_machine() {
        assert_eq!(delay_ms(&[(1, 209), (2, 211)]), Some(208));
        assert_eq!(delay_ms(&[(1, 150), (1, 900)]), None);
        assert_eq!(delay_ms(&[(1, 151), (1, 900)]), Some(150));
        assert_eq!(delay_ms(&[(400, 209), (1, 900)]), Some(208), "an answer may be late, too");
        assert_eq!(delay_ms(&[(1, 900), (1, 700), (1, 20)]), None);
        assert_eq!(delay_ms(&[]), None);
    }

    #[test]
    fn a_round_trip_is_no_delay() {
        assert_eq!(delay_ms(&[(600, 603), (610, 640)]), None);
        assert_eq!(delay_ms(&[(600, 803), (610, 811)]), Some(203));
    }

    #[test]
    fn a_delay_is_a_note_with_settings() {
        let known = Known { program: None, round_trip: Duration::ZERO, begin_max: Duration::MAX };
        let found = delayed(known, Name::Sse, Duration::from_millis(208));
        assert!(found.is_remark() && !found.is_fault());
        let told = found.lines().join("\n");
        let words = "note   SSE          a stream begins 208 ms later than another answer";
        assert!(told.contains(words) && told.contains("HAProxy: option http-no-delay"), "{told}");
    }
}
