//! What theory says of the latency of a stream of events (part B of the experiments), in milliseconds.
//!
//! `d` is the delay in one direction, `round_trips` the round trips that each request takes beside its own (0 on a kept
//! connection, 1 on a new one). Events come every `period`, and a poll waits `pause` after each answer.

use std::time::Duration;

/// Returns a time in milliseconds, with fractions.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The latency of everything that is pushed.
pub(crate) fn stream(d: f64) -> f64 {
    d
}

/// The latency of a poll: an event waits half a cycle on average.
pub(crate) fn poll(d: f64, round_trips: f64, pause: f64) -> f64 {
    d + (pause + 2.0 * d * (1.0 + round_trips)) / 2.0
}

/// The latency of a long poll: that of a stream, until a cycle takes longer than the time between two events.
pub(crate) fn long_poll(d: f64, round_trips: f64, period: f64) -> f64 {
    let cycle = 2.0 * d * (1.0 + round_trips);
    if cycle <= period { d } else { d + cycle / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_takes_75_ms_and_two_delays_and_long_polling_falls_off_at_125_ms() {
        assert_eq!([20.0, 40.0, 90.0].map(|d| poll(d, 0.0, 150.0)), [115.0, 155.0, 255.0]);
        assert_eq!((long_poll(125.0, 0.0, 250.0), stream(125.0)), (125.0, 125.0));
        assert_eq!(long_poll(126.0, 0.0, 250.0), 252.0);
        assert_eq!(long_poll(63.0, 1.0, 250.0), 189.0);
    }
}
