//! Loss in free space (Recommendation ITU-R P.525-4, section 2.2).

/// The speed of light in vacuum, in m/s.
pub(crate) const LIGHT_M_S: f64 = 299_792_458.0;

/// Returns the wavelength, in m.
#[must_use]
pub fn wavelength_m(mhz: f64) -> f64 {
    LIGHT_M_S / (mhz * 1e6)
}

/// The basic loss between isotropic antennas in free space, `20·log10(4πd/λ)`.
#[derive(Clone, Copy, Debug)]
pub struct FreeSpace {
    at_1_km_db: f64,
}

impl FreeSpace {
    /// Takes the frequency.
    #[must_use]
    pub fn new(mhz: f64) -> Self {
        let at_1_km_db = 20.0 * (4.0e3 * std::f64::consts::PI / wavelength_m(mhz)).log10();
        Self { at_1_km_db }
    }

    /// Returns the loss over a distance of more than 0.
    #[must_use]
    pub fn loss_db(&self, km: f64) -> f64 {
        self.at_1_km_db + 20.0 * km.log10()
    }
}

/// Returns the field strength in dB(µV/m) at a place that receives this power with an isotropic antenna (the conversion
/// formulas of Recommendation ITU-R P.525-4, with MHz and dBm).
#[must_use]
pub fn field_dbuv_m(isotropic_dbm: f64, mhz: f64) -> f64 {
    isotropic_dbm + 20.0 * mhz.log10() + 77.2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_that_of_worked_examples() {
        // T. S. Rappaport, Wireless Communications, 2nd edition, example 4.2: 50 W (47.0 dBm) at 900 MHz with antennas of
        // unity gain arrive with -24.5 dBm after 100 m, and with -64.5 dBm after 10 km.
        let sent_dbm = 10.0 * 50_000_f64.log10();
        for (km, received_dbm) in [(0.1, -24.5), (10.0, -64.5)] {
            let loss_db = FreeSpace::new(900.0).loss_db(km);
            assert!((sent_dbm - loss_db - received_dbm).abs() < 0.06, "{km} km: {loss_db}");
        }
        // P.525-4, the loss in practical units: 32.4 + 20 log f + 20 log d.
        assert!((FreeSpace::new(1.0).loss_db(1.0) - 32.4).abs() < 0.05);
    }

    #[test]
    fn the_field_strength_is_that_of_the_recommendation() {
        // P.525-4, conversion formulas: 1 kW (60 dBm) from an isotropic antenna give 74.8 + 30 dB(µV/m) at 1 km, whatever the frequency.
        for mhz in [30.0, 900.0, 30_000.0] {
            let received_dbm = 60.0 - FreeSpace::new(mhz).loss_db(1.0);
            assert!((field_dbuv_m(received_dbm, mhz) - 104.8).abs() < 0.06, "{mhz} MHz");
        }
    }
}
