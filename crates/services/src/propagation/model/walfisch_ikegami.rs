//! The model of Walfisch and Ikegami for streets (COST Action 231, Digital Mobile Radio Towards Future Generation
//! Systems, final report, 1999, section 4.4.1; also GSM 03.30 version 5.0.0, annex B, section 3).

use super::cost231_hata::City;
use super::range::{Quantity, Range};

/// The street of the mobile, and the houses around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Street {
    /// The mean height of the roofs above ground.
    pub roof_m: f64,
    /// The width of the street.
    pub width_m: f64,
    /// The separation of the middles of two rows of houses.
    pub separation_m: f64,
    /// The angle between the street and the direct path, from 0 to 90.
    pub angle_deg: f64,
    /// The size of the city.
    pub city: City,
}

impl Street {
    /// The correction for the angle of the street, `Lori`.
    #[must_use]
    pub fn orientation_db(&self) -> f64 {
        match self.angle_deg {
            angle if angle < 35.0 => -10.0 + 0.354 * angle,
            angle if angle < 55.0 => 2.5 + 0.075 * (angle - 35.0),
            angle => 4.0 - 0.114 * (angle - 55.0),
        }
    }
}

/// Loss in a street that sees the base station: `42.6 + 26·log10 d + 20·log10 f`.
#[derive(Clone, Copy, Debug)]
pub struct StreetCanyon {
    at_1_km_db: f64,
}

impl StreetCanyon {
    /// Takes the frequency.
    #[must_use]
    pub fn new(mhz: f64) -> Self {
        Self { at_1_km_db: 42.6 + 20.0 * mhz.log10() }
    }

    /// Returns the loss over a distance of more than 0.
    #[must_use]
    pub fn loss_db(&self, km: f64) -> f64 {
        self.at_1_km_db + 26.0 * km.log10()
    }
}

/// Loss over the roofs into a street: free space, from roof to street (`Lrts`), and over the rows of houses (`Lmsd`).
#[derive(Clone, Copy, Debug)]
pub struct WalfischIkegami {
    /// `L0` at 1 km.
    free_db: f64,
    /// `Lrts`.
    street_db: f64,
    /// `Lbsh + ka + kf·log10 f - 9·log10 b`, without what depends on the distance.
    rows_db: f64,
    /// `kd`.
    decade_db: f64,
    /// The part that a base station below the roofs adds to `ka`: from 0.5 km on, and in proportion nearer.
    below_roofs_db: f64,
}

impl WalfischIkegami {
    /// The ranges of the report, for both formulas.
    pub const RANGES: &'static [Range] = &[
        Range::new(Quantity::FrequencyMhz, 800.0, 2_000.0),
        Range::new(Quantity::BaseHeightM, 4.0, 50.0),
        Range::new(Quantity::MobileHeightM, 1.0, 3.0),
        Range::new(Quantity::DistanceKm, 0.02, 5.0),
    ];

    /// Takes the frequency, the heights of both antennas above ground, and the street. The mobile is below the roofs.
    #[must_use]
    pub fn new(mhz: f64, base_m: f64, mobile_m: f64, street: &Street) -> Self {
        let f = mhz.log10();
        let above_m = base_m - street.roof_m;
        let street_db = -16.9 - 10.0 * street.width_m.log10()
            + 10.0 * f
            + 20.0 * (street.roof_m - mobile_m).log10()
            + street.orientation_db();
        let (shadow_db, decade_db, below_roofs_db) = if above_m > 0.0 {
            (-18.0 * (1.0 + above_m).log10(), 18.0, 0.0)
        } else {
            (0.0, 18.0 - 15.0 * above_m / street.roof_m, -0.8 * above_m)
        };
        let city = if street.city == City::Metropolitan { 1.5 } else { 0.7 };
        let frequency = -4.0 + city * (mhz / 925.0 - 1.0);
        let rows_db = shadow_db + 54.0 + frequency * f - 9.0 * street.separation_m.log10();
        Self { free_db: 32.4 + 20.0 * f, street_db, rows_db, decade_db, below_roofs_db }
    }

    /// Returns the loss over a distance of more than 0.
    #[must_use]
    pub fn loss_db(&self, km: f64) -> f64 {
        let d = km.log10();
        let near = (km / 0.5).min(1.0);
        let over_db =
            self.street_db + self.rows_db + self.below_roofs_db * near + self.decade_db * d;
        self.free_db + 20.0 * d + over_db.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREET: Street = Street {
        roof_m: 15.0,
        width_m: 20.0,
        separation_m: 40.0,
        angle_deg: 90.0,
        city: City::Medium,
    };

    #[test]
    fn the_loss_over_roofs_is_that_of_worked_examples() {
        // GSM 03.30 version 5.0.0 (ETR 364), section 3.4.2: streets of 20 m, roofs at 15 m, rows 40 m apart, 90°, antennas
        // at 17 m and 1.5 m: 132.8 + 38 log d for GSM 900, 142.9 + 38 log d for DCS 1800 in medium cities, and
        // 145.3 + 38 log d in metropolitan centres.
        for (mhz, city, at_1_km_db) in [
            (900.0, City::Medium, 132.8),
            (1_800.0, City::Medium, 142.9),
            (1_800.0, City::Metropolitan, 145.3),
        ] {
            let model = WalfischIkegami::new(mhz, 17.0, 1.5, &Street { city, ..STREET });
            for km in [0.2_f64, 1.0, 3.0] {
                let loss_db = model.loss_db(km);
                let expected = at_1_km_db + 38.0 * km.log10();
                assert!((loss_db - expected).abs() < 0.06, "{mhz} MHz, {km} km: {loss_db}");
            }
        }
    }

    #[test]
    fn the_loss_over_roofs_is_that_of_another_program() {
        // The losses that cost231.m of LLAMAComm (MIT Lincoln Laboratory, version of 2019, run in GNU Octave 7.3) returns.
        // MHz, base, mobile, roofs, separation, width, angle, metropolitan, km, dB.
        const LOSSES: [([f64; 7], bool, f64, f64); 12] = [
            ([900.0, 40.0, 1.5, 16.0, 48.0, 22.0, 20.0], false, 1.0, 112.8435),
            ([900.0, 40.0, 1.5, 16.0, 48.0, 22.0, 45.0], false, 3.0, 137.1441),
            ([900.0, 40.0, 1.5, 16.0, 48.0, 22.0, 90.0], false, 0.2, 89.2126),
            ([1_800.0, 40.0, 1.5, 16.0, 48.0, 22.0, 20.0], true, 1.0, 125.3451),
            ([1_800.0, 30.0, 2.0, 16.0, 48.0, 22.0, 70.0], true, 2.5, 149.3653),
            ([2_000.0, 17.0, 1.5, 16.0, 48.0, 22.0, 90.0], true, 0.4, 135.2230),
            ([900.0, 16.0, 1.5, 16.0, 48.0, 22.0, 45.0], false, 0.7, 138.2901),
            ([800.0, 10.0, 1.5, 15.0, 40.0, 20.0, 90.0], false, 0.25, 116.0050),
            ([800.0, 10.0, 1.5, 15.0, 40.0, 20.0, 35.0], true, 0.5, 133.1254),
            ([1_800.0, 8.0, 1.5, 20.0, 60.0, 30.0, 55.0], false, 1.2, 168.1830),
            ([2_000.0, 4.0, 3.0, 24.0, 30.0, 15.0, 10.0], true, 0.1, 108.7107),
            ([1_800.0, 50.0, 1.0, 30.0, 50.0, 25.0, 34.0], false, 5.0, 161.0673),
        ];
        for (numbers, metropolitan, km, expected) in LOSSES {
            let [mhz, base_m, mobile_m, roof_m, separation_m, width_m, angle_deg] = numbers;
            let city = if metropolitan { City::Metropolitan } else { City::Medium };
            let street = Street { roof_m, width_m, separation_m, angle_deg, city };
            let loss_db = WalfischIkegami::new(mhz, base_m, mobile_m, &street).loss_db(km);
            assert!((loss_db - expected).abs() < 1e-3, "{mhz} MHz, {km} km: {loss_db}");
        }
    }

    #[test]
    fn in_a_street_in_sight_it_begins_like_free_space() {
        // The report chose 42.6 so that the loss at 20 m is that of free space.
        for mhz in [800.0, 2_000.0] {
            let free_db = super::super::FreeSpace::new(mhz).loss_db(0.02);
            assert!((StreetCanyon::new(mhz).loss_db(0.02) - free_db).abs() < 0.06);
        }
        // GSM 03.30 version 5.0.0, section 3.4.3: 101.7 + 26 log d for GSM 900, and 107.7 + 26 log d for DCS 1800.
        for (mhz, at_1_km_db) in [(900.0, 101.7), (1_800.0, 107.7)] {
            assert!((StreetCanyon::new(mhz).loss_db(1.0) - at_1_km_db).abs() < 0.06);
        }
    }

    #[test]
    fn each_term_changes_where_the_report_says() {
        let orientation = |angle_deg| Street { angle_deg, ..STREET }.orientation_db();
        for (angle, db) in
            [(0.0, -10.0), (34.999_999, 2.39), (35.0, 2.5), (55.0, 4.0), (90.0, 0.01)]
        {
            assert!((orientation(angle) - db).abs() < 1e-5, "{angle}°: {}", orientation(angle));
        }
        // A base station 5 m below the roofs: Lbsh = 0, ka = 54 + 0.8·5 from 0.5 km on and 54 + 0.8·5·d/0.5 nearer,
        // kd = 18 + 15·5/15 = 23.
        let below = WalfischIkegami::new(900.0, 10.0, 1.5, &STREET);
        let f = 900_f64.log10();
        let free_db = |km: f64| 32.4 + 20.0 * f + 20.0 * km.log10();
        let street_db = -16.9 - 10.0 * 20_f64.log10() + 10.0 * f + 20.0 * 13.5_f64.log10() + 0.01;
        let rest = (-4.0 + 0.7 * (900.0 / 925.0 - 1.0)) * f - 9.0 * 40_f64.log10();
        for (km, ka) in [(0.5_f64, 58.0), (1.0, 58.0), (0.25, 56.0)] {
            let expected = free_db(km) + street_db + ka + 23.0 * km.log10() + rest;
            assert!((below.loss_db(km) - expected).abs() < 1e-9, "{km} km");
        }
        // As high as the roofs counts as not above them.
        let level = WalfischIkegami::new(900.0, 15.0, 1.5, &STREET);
        assert!((level.loss_db(1.0) - (free_db(1.0) + street_db + 54.0 + rest)).abs() < 1e-9);
        // Where both parts together are less than nothing, free space is left.
        let wide = Street { width_m: 1_000.0, roof_m: 1.6, angle_deg: 0.0, ..STREET };
        let free = WalfischIkegami::new(900.0, 50.0, 1.5, &wide);
        assert!((free.loss_db(0.02) - free_db(0.02)).abs() < 1e-9);
    }
}
