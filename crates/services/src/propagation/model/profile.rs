//! The profile of a path: the ground between two antennas.

/// The radius of the Earth that accounts for the usual refraction, in km (Recommendation ITU-R P.526-15, section 1).
pub const EARTH_KM: f64 = 8_500.0;

/// The ground below a path, from the first antenna to the second.
///
/// Both slices are equally long. The distances rise from 0, and have at least two values.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// The distances from the first antenna.
    pub km: &'a [f64],
    /// The heights of the ground above the sea.
    pub ground_m: &'a [f64],
    /// The height of the first antenna above the sea.
    pub first_m: f64,
    /// The height of the second antenna above the sea.
    pub second_m: f64,
    /// The effective radius of the Earth.
    pub earth_km: f64,
}

/// A point of a profile that could be in the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) km: f64,
    /// The height above the sea, with the bulge of the Earth.
    pub(super) m: f64,
}

impl Profile<'_> {
    /// Returns the length of the path, in km.
    #[must_use]
    pub fn length_km(&self) -> f64 {
        self.km.last().copied().unwrap_or_default()
    }

    /// Returns the points between the antennas. The Earth bulges above the straight line between the ends.
    pub(super) fn edges(&self) -> impl Iterator<Item = Edge> + Clone {
        let length_km = self.length_km();
        let bulge = 500.0 / self.earth_km;
        let points = self.km.iter().zip(self.ground_m);
        let points =
            points.map(move |(km, m)| Edge { km: *km, m: m + bulge * km * (length_km - km) });
        points.filter(move |edge| edge.km > 0.0 && edge.km < length_km)
    }

    /// Returns both antennas.
    pub(super) fn ends(&self) -> (Edge, Edge) {
        (Edge { km: 0.0, m: self.first_m }, Edge { km: self.length_km(), m: self.second_m })
    }
}
