//! Antennas of transmitters, and the transmitters.

use serde::Serialize;

use super::area::{Area, Spot};
use crate::reader::{Checked, Members, Node};

pub(super) const TRANSMITTERS_MAX: usize = 16;

/// The horizontal pattern of an antenna: what it sends less than its gain, by direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pattern {
    Omni,
    /// The parabola of 3GPP TR 36.942, section 4.2.1: `min(12·(θ/θ3dB)², Am)`.
    Sector {
        azimuth_deg: f64,
        beamwidth_deg: f64,
        front_to_back_db: f64,
    },
}

/// A transmitter, as it was checked.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Transmitter {
    pub(super) name: String,
    #[serde(skip)]
    pub(super) spot: Spot,
    /// The height of the antenna above ground.
    pub(super) height_m: f64,
    pub(super) power_dbm: f64,
    pub(super) gain_dbi: f64,
    pub(super) frequency_mhz: f64,
    #[serde(skip)]
    pub(super) pattern: Pattern,
}

impl Pattern {
    /// Returns what is sent less into the direction of a place: this far to the east, and to the north.
    pub(super) fn less_db(&self, east_m: f64, north_m: f64) -> f64 {
        let Self::Sector { azimuth_deg, beamwidth_deg, front_to_back_db } = *self else {
            return 0.0;
        };
        let off_deg =
            (east_m.atan2(north_m).to_degrees() - azimuth_deg + 540.0).rem_euclid(360.0) - 180.0;
        (12.0 * (off_deg / beamwidth_deg).powi(2)).min(front_to_back_db)
    }

    fn read(node: &Node<'_>) -> Checked<Self> {
        let members = ["type", "azimuth_deg", "beamwidth_deg", "front_to_back_db"];
        let antenna = node.object(&members)?;
        if antenna.word("type", &[("omni", true), ("sector", false)])? {
            node.object(&members[..1])?;
            return Ok(Self::Omni);
        }
        Ok(Self::Sector {
            azimuth_deg: antenna.number("azimuth_deg", 0.0..=360.0, "degrees")?,
            beamwidth_deg: antenna.number_or("beamwidth_deg", 65.0, 1.0..=360.0, "degrees")?,
            front_to_back_db: antenna.number_or("front_to_back_db", 25.0, 0.0..=60.0, "dB")?,
        })
    }
}

impl Transmitter {
    /// Reads all transmitters.
    pub(super) fn read_all(request: &Members<'_>, area: &Area) -> Checked<Vec<Self>> {
        let items = request.require("transmitters")?.items(1..=TRANSMITTERS_MAX)?;
        items.enumerate().map(|(at, node)| Self::read(at, &node, area)).collect()
    }

    fn read(at: usize, node: &Node<'_>, area: &Area) -> Checked<Self> {
        let [east, north] = area.frame.names();
        let known =
            ["name", east, north, "height_m", "power_dbm", "gain_dbi", "frequency_mhz", "antenna"];
        let members = node.object(&known)?;
        let name = members.get("name").map(|name| name.text(100)).transpose()?;
        let pattern = members.get("antenna").map(|antenna| Pattern::read(&antenna)).transpose()?;
        Ok(Self {
            name: name.map_or_else(|| (at + 1).to_string(), str::to_owned),
            spot: area.read_spot(&members)?,
            height_m: members.number("height_m", 0.1..=5_000.0, "m")?,
            power_dbm: members.number("power_dbm", -100.0..=100.0, "dBm")?,
            gain_dbi: members.number_or("gain_dbi", 0.0, -50.0..=60.0, "dBi")?,
            frequency_mhz: members.number("frequency_mhz", 1.0..=300_000.0, "MHz")?,
            pattern: pattern.unwrap_or(Pattern::Omni),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_sends_3_db_less_at_half_its_width_and_its_ratio_backwards() {
        let sector =
            Pattern::Sector { azimuth_deg: 350.0, beamwidth_deg: 60.0, front_to_back_db: 25.0 };
        let less_db = |bearing_deg: f64| {
            let bearing = bearing_deg.to_radians();
            sector.less_db(500.0 * bearing.sin(), 500.0 * bearing.cos())
        };
        for (bearing_deg, db) in [
            (350.0, 0.0),
            (20.0, 3.0),
            (320.0, 3.0),
            (0.0, 12.0 / 36.0),
            (170.0, 25.0),
            (70.0, 21.333),
        ] {
            assert!(
                (less_db(bearing_deg) - db).abs() < 1e-3,
                "{bearing_deg}°: {}",
                less_db(bearing_deg)
            );
        }
        assert_eq!(Pattern::Omni.less_db(-3.0, 4.0), 0.0);
    }
}
