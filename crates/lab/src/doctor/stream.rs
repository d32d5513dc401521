//! Examines the beginning of a stream. A program on the way may hold it back or delay it.

use std::iter::repeat_n;
use std::time::Duration;

use super::exam::{Begun, Known, NDJSON, SSE, begin, health};
use super::finding::Finding;
use super::rules::{Examination, Unknown, WayFault, limits};
use super::way::{Trouble, Way};

/// Opens a stream, and waits for its first item. The server sends the item at once.
pub(super) async fn stream(way: &Way, known: Known, name: Examination) -> Finding {
    let wanted = if name == Examination::Sse { SSE } else { NDJSON };
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
        Begun::Held(time) => buffered(known, name, time).silent_if(true),
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

fn buffered(known: Known, name: Examination, time: Duration) -> Finding {
    let seconds = format!("{:.1}", time.as_secs_f64());
    let what = "no whole item of a stream";
    let values = [("what", what), ("seconds", &*seconds), ("when", "at once")];
    known.fault(name, WayFault::Buffered, &values)
}

/// Judges a stream that begins with this delay. With a short delay, the finding is a note; with a long one, the stream
/// counts as held back.
fn delayed(known: Known, name: Examination, delay: Duration) -> Finding {
    if delay >= limits().delayed_max {
        return buffered(known, name, delay);
    }
    let (ms, looks) = (delay.as_millis().to_string(), limits().delayed_looks.to_string());
    known.fault(name, WayFault::Delayed, &[("ms", &ms), ("looks", &looks)]).into_note()
}

/// One measurement. It has the time from a request to its answer, and the time from another request to the beginning of
/// a stream.
#[derive(Clone, Copy, Debug)]
struct Look {
    answer: Duration,
    beginning: Duration,
}

/// Measures again, since a stream has begun late. Returns the delay, if all streams have one.
async fn delay(way: &Way, known: Known, wanted: &str, first: Duration) -> Option<Duration> {
    let (mut looks, mut newest) = (Vec::new(), first);
    while newest >= limits().delayed_min {
        let answer = health(way).await.ok()?.round_trip;
        looks.push(Look { answer, beginning: newest });
        if are_enough(&looks) {
            return delay_of(&looks);
        }
        let begun = begin(way, wanted, known, known.patience()).await;
        // What is held back begins no sooner.
        let (Begun::At(time, _) | Begun::Held(time)) = begun else { return None };
        newest = time;
    }
    None
}

/// Returns true if no further look is needed. There must be at least two. If their delays are seconds, two are enough.
fn are_enough(looks: &[Look]) -> bool {
    let delay = delay_of(looks).unwrap_or_default();
    let delays: Duration = repeat_n(delay, looks.len()).sum();
    looks.len() >= limits().delayed_looks || looks.len() > 1 && delays >= limits().delays_enough
}

/// Returns the delay of streams behind other answers. The shortest times of both count, since a busy machine delays
/// only some streams, and a proxy delays all.
fn delay_of(looks: &[Look]) -> Option<Duration> {
    let answer = looks.iter().map(|look| look.answer).min()?;
    let beginning = looks.iter().map(|look| look.beginning).min()?;
    let delay = beginning.saturating_sub(answer);
    (delay >= limits().delayed_min).then_some(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns looks with these times of answers and of beginnings, in ms.
    fn looks(times: &[(u64, u64)]) -> Vec<Look> {
        let looks = times.iter().map(|&(answer, beginning)| Look {
            answer: Duration::from_millis(answer),
            beginning: Duration::from_millis(beginning),
        });
        looks.collect()
    }

    /// Returns the delay in ms that follows from looks with these times, in ms.
    fn delay_ms(times: &[(u64, u64)]) -> Option<u128> {
        delay_of(&looks(times)).map(|delay| delay.as_millis())
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
    fn two_looks_are_enough_where_each_takes_seconds_and_else_five() {
        let enough = |times: &[_]| are_enough(&looks(times));
        assert!(!enough(&[(1, 5001)]) && enough(&[(1, 5001), (2, 5003)]));
        assert!(!enough(&[(1, 1201); 3]) && enough(&[(1, 1201); 4]));
        assert!(!enough(&[(1, 999); 4]) && enough(&[(1, 209); 5]));
        assert!(
            !enough(&[(1, 5001), (1, 209)]),
            "the soonest counts: a busy machine is late in some"
        );
        assert!(!enough(&[(5000, 5003), (5000, 5003)]), "a round trip is no delay");
    }

    const KNOWN: Known =
        Known { program: None, round_trip: Duration::ZERO, begin_max: Duration::MAX };

    #[test]
    fn a_delay_of_a_second_or_more_is_a_fault_as_of_what_is_held_back() {
        assert!(delayed(KNOWN, Examination::Sse, Duration::from_millis(999)).is_remark());
        for (ms, seconds) in [(1000, "1.0"), (5003, "5.0"), (7999, "8.0")] {
            let found = delayed(KNOWN, Examination::Sse, Duration::from_millis(ms));
            assert!(found.is_fault() && found.is_held() && !found.is_silent());
            let told = found.lines().join("\n");
            let words = format!("no whole item of a stream came within {seconds} s, although");
            assert!(told.contains(&words) && told.contains("no compression of"), "{told}");
        }
    }

    #[test]
    fn a_delay_is_a_note_with_settings() {
        let found = delayed(KNOWN, Examination::Sse, Duration::from_millis(208));
        assert!(found.is_remark() && !found.is_fault());
        let told = found.lines().join("\n");
        let words = "note   SSE          a stream begins 208 ms later than another answer";
        assert!(told.contains(words) && told.contains("HAProxy: option http-no-delay"), "{told}");
    }
}
