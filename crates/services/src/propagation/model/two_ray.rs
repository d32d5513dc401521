//! Two rays over flat ground: the direct one, and the one that the ground reflects.

use std::f64::consts::{PI, TAU};

use super::free_space::wavelength_m;
use super::range::{Quantity, Range};

/// The effect of the ground on the reflected ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reflection {
    /// Turns its phase by 180° and takes nothing of it, as any ground does at small angles.
    Total,
    /// As Fresnel's equations say for this ground.
    Ground {
        /// The relative permittivity: about 15 for average ground, 3 for dry, 30 for wet, 80 for water.
        permittivity: f64,
        /// The conductivity: about 0.005 S/m for average ground, 5 for the sea.
        conductivity_s_m: f64,
        /// The polarization.
        polarization: Polarization,
    },
}

/// The direction of the electric field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Polarization {
    /// Parallel to the ground.
    Horizontal,
    /// In the plane of the rays.
    Vertical,
}

/// The sum of both rays with their phases: `20·log10(4π/λ) - 20·log10|e^(-jkr)/r + Γ·e^(-jks)/s|`.
#[derive(Clone, Copy, Debug)]
pub struct TwoRay {
    wavelength_m: f64,
    base_m: f64,
    mobile_m: f64,
    reflection: Reflection,
}

impl TwoRay {
    /// The ground counts as flat; from about 30 km on, the bulge of the Earth is no longer small beside the heights.
    pub const RANGES: &'static [Range] = &[
        Range::new(Quantity::FrequencyMhz, 30.0, 100_000.0),
        Range::new(Quantity::DistanceKm, 0.0, 30.0),
    ];

    /// Takes the frequency and the heights of both antennas above ground.
    #[must_use]
    pub fn new(mhz: f64, base_m: f64, mobile_m: f64, reflection: Reflection) -> Self {
        Self { wavelength_m: wavelength_m(mhz), base_m, mobile_m, reflection }
    }

    /// Returns the loss over a horizontal distance of more than 0.
    #[must_use]
    pub fn loss_db(&self, km: f64) -> f64 {
        let metres = km * 1e3;
        let direct_m = metres.hypot(self.base_m - self.mobile_m);
        let reflected_m = metres.hypot(self.base_m + self.mobile_m);
        let (size, turn) = self.coefficient((self.base_m + self.mobile_m) / reflected_m);
        // The difference of the ways, without the loss of digits of a subtraction of nearly equal numbers.
        let longer_m = 4.0 * self.base_m * self.mobile_m / (direct_m + reflected_m);
        let phase = turn - TAU * longer_m / self.wavelength_m;
        let (direct, reflected) = (direct_m.recip(), size / reflected_m);
        let sum = (direct + reflected * phase.cos()).hypot(reflected * phase.sin());
        20.0 * (4.0 * PI / self.wavelength_m).log10() - 20.0 * sum.log10()
    }

    /// Returns the distance from which on the loss grows with the fourth power of the distance: `4·h1·h2/λ`, in km.
    #[must_use]
    pub fn critical_km(&self) -> f64 {
        4.0 * self.base_m * self.mobile_m / self.wavelength_m / 1e3
    }

    /// Returns the size and the phase of the coefficient of reflection, for the sine of the angle to the ground.
    fn coefficient(&self, sine: f64) -> (f64, f64) {
        let Reflection::Ground { permittivity, conductivity_s_m, polarization } = self.reflection
        else {
            return (1.0, PI);
        };
        let ground = Complex(permittivity, -60.0 * conductivity_s_m * self.wavelength_m);
        let root = Complex(ground.0 - (1.0 - sine * sine), ground.1).sqrt();
        let first = match polarization {
            Polarization::Horizontal => Complex(sine, 0.0),
            Polarization::Vertical => Complex(ground.0 * sine, ground.1 * sine),
        };
        let (above, below) = (
            Complex(first.0 - root.0, first.1 - root.1),
            Complex(first.0 + root.0, first.1 + root.1),
        );
        (above.0.hypot(above.1) / below.0.hypot(below.1), above.phase() - below.phase())
    }
}

#[derive(Clone, Copy)]
struct Complex(f64, f64);

impl Complex {
    fn phase(self) -> f64 {
        self.1.atan2(self.0)
    }

    fn sqrt(self) -> Self {
        let (size, phase) = (self.0.hypot(self.1).sqrt(), self.phase() / 2.0);
        Self(size * phase.cos(), size * phase.sin())
    }
}

#[cfg(test)]
mod tests {
    use super::super::FreeSpace;
    use super::*;

    #[test]
    fn the_field_is_that_of_a_worked_example() {
        // T. S. Rappaport, Wireless Communications, 2nd edition, example 4.6: at 900 MHz with antennas at 50 m and 1.5 m,
        // a field of 1 mV/m at 1 km becomes 113.1 µV/m at 5 km. The book takes a small angle for its sine, which makes 0.12 dB.
        let loss_db = TwoRay::new(900.0, 50.0, 1.5, Reflection::Total).loss_db(5.0);
        let free_db = FreeSpace::new(900.0).loss_db(1.0);
        let field_uv_m = 1_000.0 * 10_f64.powf((free_db - loss_db) / 20.0);
        assert!((20.0 * (field_uv_m / 113.1).log10()).abs() < 0.15, "{field_uv_m}");
    }

    #[test]
    fn the_critical_distance_is_that_of_a_worked_example() {
        // A. Goldsmith, Wireless Communications, example 2.2: 2 GHz, 10 m and 3 m give 800 m; 3 m and 2 m give 160 m.
        for (base_m, mobile_m, km) in [(10.0, 3.0, 0.8), (3.0, 2.0, 0.16)] {
            let found = TwoRay::new(2_000.0, base_m, mobile_m, Reflection::Total).critical_km();
            assert!((found - km).abs() < 0.001, "{found}");
        }
    }

    #[test]
    fn far_away_the_loss_is_that_of_a_plane_earth() {
        // J. D. Parsons, The Mobile Radio Propagation Channel, equation 2.25: 40 log d - 20 log h1 - 20 log h2, in m.
        for km in [20.0, 30.0] {
            let loss_db = TwoRay::new(450.0, 30.0, 1.5, Reflection::Total).loss_db(km);
            let plane_db = 40.0 * (km * 1e3).log10() - 20.0 * (30.0 * 1.5_f64).log10();
            assert!((loss_db - plane_db).abs() < 0.02, "{km} km: {loss_db} {plane_db}");
        }
    }

    #[test]
    fn far_away_the_loss_is_that_of_a_network_simulator() {
        // The losses that the package ns3 3.44 of PyPI returns; tests/propagation/run --ns3 compares many more.
        for (mhz, base_m, mobile_m, km, expected) in [
            (150.0, 30.0, 1.5, 5.0, 114.895),
            (450.0, 30.0, 1.5, 10.0, 126.936),
            (900.0, 30.0, 1.5, 20.0, 138.977),
            (900.0, 10.0, 2.0, 10.0, 133.979),
            (450.0, 50.0, 3.0, 25.0, 132.396),
        ] {
            let loss_db = TwoRay::new(mhz, base_m, mobile_m, Reflection::Total).loss_db(km);
            assert!((loss_db - expected).abs() < 0.1, "{mhz} MHz, {km} km: {loss_db}");
        }
    }

    #[test]
    fn real_ground_reflects_nearly_all_at_small_angles_and_nothing_at_brewsters() {
        let of = |polarization| {
            let ground =
                Reflection::Ground { permittivity: 15.0, conductivity_s_m: 0.0, polarization };
            TwoRay::new(900.0, 30.0, 1.5, ground)
        };
        for polarization in [Polarization::Horizontal, Polarization::Vertical] {
            let (size, phase) = of(polarization).coefficient(1e-6);
            assert!((size - 1.0).abs() < 1e-4 && (phase.abs() - PI).abs() < 1e-4, "{size} {phase}");
        }
        // tan ψ = 1/√ε
        let sine = (1.0 / 15_f64.sqrt()).atan().sin();
        assert!(of(Polarization::Vertical).coefficient(sine).0 < 1e-9);
        // At right angles both are (1 - √ε)/(1 + √ε).
        let straight = (15_f64.sqrt() - 1.0) / (15_f64.sqrt() + 1.0);
        for polarization in [Polarization::Horizontal, Polarization::Vertical] {
            assert!((of(polarization).coefficient(1.0).0 - straight).abs() < 1e-12);
        }
    }
}
