//! A model of the wind. The same seed and the same times give the same wind.
//!
//! A fan turns from side to side in a mean wind with gusts. The direction swings around the mean, and the wind is
//! strongest when the fan faces the instrument. At times the wind is too weak for a direction.

use std::f64::consts::TAU;
use std::time::Duration;

use fastrand::Rng;

const MEAN_METRES_PER_SECOND: f64 = 3.5;
const MEAN_DIRECTION_DEGREES: f64 = 229.0;

/// The angle by which the fan turns to each side, and the time of a complete swing.
const FAN_SWING_DEGREES: f64 = 40.0;
const FAN_PERIOD_SECONDS: f64 = 17.0;

/// The standard deviation of gusts as a share of the mean wind, and their time constant.
const GUST_SHARE: f64 = 0.25;
const GUST_MEMORY_SECONDS: f64 = 3.0;

/// The standard deviation of small, quick changes of direction, in degrees.
const FLUTTER_DEGREES: f64 = 6.0;

/// The shortest and the longest time between two calms, and the shortest and the longest calm.
const CALM_EVERY_SECONDS: (f64, f64) = (30.0, 90.0);
const CALM_SECONDS: (f64, f64) = (2.0, 5.0);

/// The wind at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindSample {
    pub(crate) metres_per_second: f64,
    /// The direction from which the wind comes, in degrees; may exceed 360.
    pub(crate) degrees: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    rng: Rng,
    last: f64,
    gust: f64,
    flutter: f64,
    /// The beginning and the end of the present or next calm, in seconds.
    calm: (f64, f64),
}

impl Model {
    pub(crate) fn new(seed: u64) -> Self {
        let mut model = Self {
            rng: Rng::with_seed(seed),
            last: 0.0,
            gust: 0.0,
            flutter: 0.0,
            calm: (0.0, 0.0),
        };
        model.calm = model.next_calm(0.0);
        model
    }

    /// Returns the wind at this time since the beginning. Times must not decrease from call to call.
    pub(crate) fn sample(&mut self, at: Duration) -> WindSample {
        let now = at.as_secs_f64();
        let elapsed = (now - self.last).max(0.0);
        self.last = now;
        self.gust = self.wander(self.gust, elapsed);
        self.flutter = self.wander(self.flutter, elapsed);
        if now >= self.calm.1 {
            self.calm = self.next_calm(now);
        }
        let turn = (TAU * now / FAN_PERIOD_SECONDS).sin();
        let facing = 1.0 - 0.5 * turn * turn;
        let blowing = MEAN_METRES_PER_SECOND * facing * (1.0 + GUST_SHARE * self.gust).max(0.05);
        // In a calm, the speed is between zero and a little above the threshold.
        let calm = 0.06 * self.rng.f64();
        WindSample {
            metres_per_second: if now >= self.calm.0 { calm } else { blowing },
            degrees: MEAN_DIRECTION_DEGREES
                + FAN_SWING_DEGREES * turn
                + FLUTTER_DEGREES * self.flutter,
        }
    }

    /// Returns the next value of an Ornstein-Uhlenbeck process with a variance of 1.
    fn wander(&mut self, value: f64, elapsed: f64) -> f64 {
        let kept = (-elapsed / GUST_MEMORY_SECONDS).exp();
        value * kept + self.normal() * (1.0 - kept * kept).sqrt()
    }

    /// Returns a random number with approximately the normal distribution: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0
    }

    fn next_calm(&mut self, after: f64) -> (f64, f64) {
        let between = |rng: &mut Rng, (from, to): (f64, f64)| from + (to - from) * rng.f64();
        let from = after + between(&mut self.rng, CALM_EVERY_SECONDS);
        (from, from + between(&mut self.rng, CALM_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns ten minutes of wind at 4 Hz.
    fn samples(seed: u64) -> Vec<WindSample> {
        let mut model = Model::new(seed);
        (0..2400).map(|tick| model.sample(Duration::from_millis(250 * tick))).collect()
    }

    #[test]
    fn a_seed_determines_the_wind() {
        assert_eq!(samples(7), samples(7));
        assert_ne!(samples(7), samples(8));
    }

    #[test]
    fn the_wind_is_wind_for_any_seed() {
        for seed in 0..20 {
            let samples = samples(seed);
            let speeds = || samples.iter().map(|sample| sample.metres_per_second);
            assert!(speeds().all(|speed| (0.0..60.0).contains(&speed)), "seed {seed}");
            let mean = speeds().sum::<f64>() / 2400.0;
            assert!((1.5..5.0).contains(&mean), "mean {mean} with seed {seed}");
            assert!(speeds().any(|speed| speed < 0.05), "never calm with seed {seed}");
            let degrees = || samples.iter().map(|sample| sample.degrees);
            assert!(degrees().any(|degrees| degrees > MEAN_DIRECTION_DEGREES + 30.0));
            assert!(degrees().any(|degrees| degrees < MEAN_DIRECTION_DEGREES - 30.0));
        }
    }
}
