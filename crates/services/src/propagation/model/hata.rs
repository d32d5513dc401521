//! The model of Okumura and Hata (M. Hata, Empirical Formula for Propagation Loss in Land Mobile Radio Services, IEEE
//! Transactions on Vehicular Technology 29, 1980; also GSM 03.30 version 5.0.0, annex B, section 1).

use super::environment::Environment;
use super::range::{Quantity, Range};

/// Returns the correction `a(hm)` for the height of the mobile's antenna in a small or medium city.
pub(super) fn small_city_db(mhz: f64, mobile_m: f64) -> f64 {
    (1.1 * mhz.log10() - 0.7) * mobile_m - (1.56 * mhz.log10() - 0.8)
}

/// Returns the correction `a(hm)` in a large city. Between Hata's two formulas, the nearer one is taken.
fn large_city_db(mhz: f64, mobile_m: f64) -> f64 {
    if mhz <= 300.0 {
        8.29 * (1.54 * mobile_m).log10().powi(2) - 1.1
    } else {
        3.2 * (11.75 * mobile_m).log10().powi(2) - 4.97
    }
}

/// Returns what a distance ten times as long adds, in dB.
pub(super) fn decade_db(base_m: f64) -> f64 {
    44.9 - 6.55 * base_m.log10()
}

/// The median loss that Okumura measured in and around Tokyo, in Hata's formulas.
#[derive(Clone, Copy, Debug)]
pub struct Hata {
    at_1_km_db: f64,
    decade_db: f64,
}

impl Hata {
    /// The frequencies, in MHz, between which Hata has no correction for the mobile's height in a large city. He gives one
    /// formula up to the first, and another from the second on.
    pub(crate) const LARGE_CITY_GAP_MHZ: [f64; 2] = [200.0, 400.0];

    /// The ranges of Hata's paper.
    pub const RANGES: &'static [Range] = &[
        Range::new(Quantity::FrequencyMhz, 150.0, 1_500.0),
        Range::new(Quantity::BaseHeightM, 30.0, 200.0),
        Range::new(Quantity::MobileHeightM, 1.0, 10.0),
        Range::new(Quantity::DistanceKm, 1.0, 20.0),
    ];

    /// Takes the frequency, the heights of both antennas above ground, and the surroundings.
    #[must_use]
    pub fn new(mhz: f64, base_m: f64, mobile_m: f64, environment: Environment) -> Self {
        let f = mhz.log10();
        let height_db = match environment {
            Environment::UrbanLarge => large_city_db(mhz, mobile_m),
            _ => small_city_db(mhz, mobile_m),
        };
        let less_db = match environment {
            Environment::UrbanLarge | Environment::Urban => 0.0,
            Environment::Suburban => 2.0 * (mhz / 28.0).log10().powi(2) + 5.4,
            Environment::Open => 4.78 * f * f - 18.33 * f + 40.94,
        };
        let at_1_km_db = 69.55 + 26.16 * f - 13.82 * base_m.log10() - height_db - less_db;
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
    fn open_country_is_that_of_a_worked_example() {
        // 3GPP TR 36.942, macro cells in rural areas: 900 MHz and a base station at 45 m give 95.5 + 34.1 log R. It neglects the
        // correction for a mobile at 1.5 m, which is 0.02 dB.
        let open = Hata::new(900.0, 45.0, 1.5, Environment::Open);
        for km in [1.0_f64, 5.0, 10.0] {
            let expected = 95.5 + 34.1 * km.log10();
            assert!((open.loss_db(km) - expected).abs() < 0.1, "{km} km: {}", open.loss_db(km));
        }
    }

    #[test]
    fn a_city_is_that_of_the_formula_for_field_strengths() {
        // Recommendation ITU-R P.1546, comparison with the method of Okumura and Hata: the field of 1 kW ERP in a city is
        // E = 69.82 - 6.16 log f + 13.82 log H1 + a(H2) - (44.9 - 6.55 log H1) log d.
        // The same Recommendation says that the loss is then 139.3 - E + 20 log f.
        for (mhz, base_m, mobile_m, km) in [
            (150.0_f64, 30.0_f64, 1.0, 1.0_f64),
            (900.0, 70.0, 1.5, 7.0),
            (1_500.0, 200.0, 10.0, 20.0),
        ] {
            let f = mhz.log10();
            let height_db = (1.1 * f - 0.7) * mobile_m - (1.56 * f - 0.8);
            let field = 69.82 - 6.16 * f + 13.82 * base_m.log10() + height_db
                - (44.9 - 6.55 * base_m.log10()) * km.log10();
            let loss_db = Hata::new(mhz, base_m, mobile_m, Environment::Urban).loss_db(km);
            assert!((loss_db - (139.3 - field + 20.0 * f)).abs() < 0.1, "{mhz} MHz: {loss_db}");
        }
    }

    #[test]
    fn the_loss_is_that_of_a_network_simulator() {
        // The losses that the package ns3 3.44 of PyPI returns; tests/propagation/run --ns3 compares many more.
        use Environment::{Suburban, Urban, UrbanLarge};
        for (mhz, base_m, mobile_m, environment, km, expected) in [
            (150.0, 30.0, 1.5, UrbanLarge, 1.0, 106.073),
            (150.0, 50.0, 8.0, Urban, 5.0, 115.648),
            (200.0, 200.0, 3.0, Suburban, 20.0, 127.191),
            (450.0, 50.0, 1.5, UrbanLarge, 10.0, 149.251),
            (900.0, 30.0, 1.5, Urban, 1.0, 126.409),
            (900.0, 100.0, 5.0, Suburban, 7.0, 127.186),
            (1_500.0, 50.0, 8.0, UrbanLarge, 3.0, 137.783),
            (1_500.0, 150.0, 1.0, Urban, 20.0, 163.796),
        ] {
            let loss_db = Hata::new(mhz, base_m, mobile_m, environment).loss_db(km);
            assert!((loss_db - expected).abs() < 0.1, "{mhz} MHz, {km} km: {loss_db}");
        }
    }

    #[test]
    fn the_differences_between_surroundings_are_hatas() {
        // At 900 MHz: 9.94 dB less in a suburb, and 28.5 dB less in open country.
        let loss_db = |environment| Hata::new(900.0, 50.0, 1.5, environment).loss_db(5.0);
        let urban = loss_db(Environment::Urban);
        assert!((urban - loss_db(Environment::Suburban) - 9.94).abs() < 0.01);
        assert!((urban - loss_db(Environment::Open) - 28.5).abs() < 0.02);
        // Hata made the corrections for the height so that a mobile at 1.5 m needs none, in either size of city.
        assert!((urban - loss_db(Environment::UrbanLarge)).abs() < 0.03);
        let low = |mhz| (large_city_db(mhz, 1.5), small_city_db(mhz, 1.5));
        assert!(
            low(200.0).0.abs() < 0.05 && low(400.0).0.abs() < 0.05 && low(900.0).1.abs() < 0.05
        );
    }
}
