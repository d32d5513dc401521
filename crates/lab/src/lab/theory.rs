//! The latency of a stream of events in theory (part B of the experiments), in milliseconds.
//!
//! `d` is the delay in one direction. `round_trips` is the number of round trips of each request before it is sent: 0
//! on a kept connection, 1 on a new one. Events come every `period`, and a poll waits for `pause` after each answer.

use std::time::Duration;

/// Returns a time in milliseconds, with decimals.
pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the latency of a pushed stream.
pub(crate) fn stream(d: f64) -> f64 {
    d
}

/// Returns the latency of polling. On average, an event waits for half of a cycle.
pub(crate) fn poll(d: f64, round_trips: f64, pause: f64) -> f64 {
    d + (pause + 2.0 * d * (1.0 + round_trips)) / 2.0
}

/// Returns the latency of long polling. It is that of a stream until a cycle takes longer than the time between two
/// events.
pub(crate) fn long_poll(d: f64, round_trips: f64, period: f64) -> f64 {
    let cycle = 2.0 * d * (1.0 + round_trips);
    if cycle <= period { d } else { d + cycle / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Random;

    #[test]
    fn polling_takes_75_ms_and_two_delays_and_long_polling_falls_off_at_125_ms() {
        assert_eq!([20.0, 40.0, 90.0].map(|d| poll(d, 0.0, 150.0)), [115.0, 155.0, 255.0]);
        assert_eq!((long_poll(125.0, 0.0, 250.0), stream(125.0)), (125.0, 125.0));
        assert_eq!(long_poll(126.0, 0.0, 250.0), 252.0);
        assert_eq!(long_poll(63.0, 1.0, 250.0), 189.0);
    }
    /// Simulates the published client for 300 s. It reads a sensor. Returns the mean latency. Every 10 s, its polls
    /// begin in another phase.
    fn simulated(d: f64, is_long: bool, random: &mut Random) -> f64 {
        const PERIOD: f64 = 250.0;
        const PAUSE: f64 = 150.0;
        const EVENTS: usize = 1200;
        let mut phase = || random.below(1_000_000) as f64 / 1e6 * PERIOD;
        let mut now = if is_long { -d } else { phase() };
        let (mut next, mut begun, mut sum) = (0, 0.0, 0.0);
        while next < EVENTS {
            // The request is at the server, which answers a long poll once there is an event.
            let first = next as f64 * PERIOD;
            let asked = now + d;
            let answered = if is_long { asked.max(first) } else { asked };
            while next < EVENTS && next as f64 * PERIOD <= answered {
                sum += answered + d - next as f64 * PERIOD;
                next += 1;
            }
            now = answered + d + if is_long { 0.0 } else { PAUSE };
            if !is_long && now - begun > 10_000.0 {
                begun = now;
                now += phase();
            }
        }
        sum / EVENTS as f64
    }

    #[test]
    fn a_simulated_sensor_is_read_as_late_as_theory_says() {
        let mut random = Random::new(1);
        for d in [20.0, 40.0, 90.0] {
            let (found, expected) = (simulated(d, false, &mut random), 75.0 + 2.0 * d);
            assert!((found / expected - 1.0).abs() < 0.03, "polling at {d} ms: {found}");
        }
        for d in [0.0, 20.0, 60.0, 90.0, 120.0] {
            let found = simulated(d, true, &mut random);
            assert!((found - d).abs() < 2.0, "long polling at {d} ms: {found}");
        }
        // The cliff.
        assert!(simulated(124.0, true, &mut random) < 130.0);
        assert!(simulated(127.0, true, &mut random) > 220.0);
    }
}
