//! Hata's model for 1,500 to 2,000 MHz (COST Action 231, Digital Mobile Radio Towards Future Generation Systems, final
//! report, 1999, section 4.4.1).

use super::hata::{decade_db, small_city_db};
use super::range::{Quantity, Range};

/// The size of the city.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum City {
    /// A medium city, or suburbs with a moderate density of trees.
    Medium,
    /// A metropolitan centre.
    Metropolitan,
}

/// The COST extension of Hata's model.
#[derive(Clone, Copy, Debug)]
pub struct Cost231Hata {
    at_1_km_db: f64,
    decade_db: f64,
}

impl Cost231Hata {
    /// The ranges of the report.
    pub const RANGES: &'static [Range] = &[
        Range::new(Quantity::FrequencyMhz, 1_500.0, 2_000.0),
        Range::new(Quantity::BaseHeightM, 30.0, 200.0),
        Range::new(Quantity::MobileHeightM, 1.0, 10.0),
        Range::new(Quantity::DistanceKm, 1.0, 20.0),
    ];

    /// Takes the frequency, the heights of both antennas above ground, and the size of the city.
    #[must_use]
    pub fn new(mhz: f64, base_m: f64, mobile_m: f64, city: City) -> Self {
        let metropolitan_db = if city == City::Metropolitan { 3.0 } else { 0.0 };
        let at_1_km_db =
            46.3 + 33.9 * mhz.log10() - 13.82 * base_m.log10() - small_city_db(mhz, mobile_m)
                + metropolitan_db;
        Self { at_1_km_db, decade_db: decade_db(base_m) }
    }

    /// Returns the loss over a distance of more than 0.
    #[must_use]
    pub fn loss_db(&self, km: f64) -> f64 {
        self.at_1_km_db + self.decade_db * km.log10()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_that_of_a_worked_example() {
        // H. Holma and A. Toskala, WCDMA for UMTS, chapter 8: 1,950 MHz, 30 m and 1.5 m give 137.4 + 35.2 log R.
        let medium = Cost231Hata::new(1_950.0, 30.0, 1.5, City::Medium);
        let metropolitan = Cost231Hata::new(1_950.0, 30.0, 1.5, City::Metropolitan);
        for km in [1.0_f64, 2.0, 5.0] {
            let loss_db = medium.loss_db(km);
            assert!((loss_db - (137.4 + 35.2 * km.log10())).abs() < 0.1, "{km} km: {loss_db}");
            assert!((metropolitan.loss_db(km) - loss_db - 3.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_loss_is_that_of_a_network_simulator() {
        // The losses that the package ns3 3.44 of PyPI returns; tests/propagation/run --ns3 compares many more.
        for (mhz, base_m, mobile_m, km, expected) in [
            (1_500.0, 30.0, 1.5, 1.0, 133.478),
            (1_500.0, 200.0, 1.5, 20.0, 160.894),
            (1_800.0, 50.0, 1.5, 5.0, 156.688),
            (1_950.0, 35.0, 1.2, 2.0, 147.757),
            (2_000.0, 30.0, 1.0, 10.0, 174.401),
            (2_000.0, 100.0, 1.5, 15.0, 167.868),
        ] {
            let loss_db = Cost231Hata::new(mhz, base_m, mobile_m, City::Medium).loss_db(km);
            assert!((loss_db - expected).abs() < 0.1, "{mhz} MHz, {km} km: {loss_db}");
        }
    }
}
