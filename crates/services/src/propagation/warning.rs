//! Warnings: what lies outside the range of a model.

use serde::Serialize;

use super::model::{Quantity, Range};

/// A value, or distances, for which a model is not valid. It is used nevertheless.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Warning {
    /// The index of the transmitter; `None` for what concerns all.
    pub(super) transmitter: Option<usize>,
    #[serde(flatten)]
    pub(super) range: Option<Range>,
    /// The number of points, if it depends on the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) points: Option<u64>,
    pub(super) detail: String,
}

/// The points whose distance is outside the range of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    pub(super) points: u64,
    min_km: f64,
    max_km: f64,
}

impl Default for Outside {
    fn default() -> Self {
        Self { points: 0, min_km: f64::INFINITY, max_km: 0.0 }
    }
}

impl Outside {
    pub(super) fn count(&mut self, km: f64) {
        self.points += 1;
        (self.min_km, self.max_km) = (self.min_km.min(km), self.max_km.max(km));
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.points += other.points;
        (self.min_km, self.max_km) = (self.min_km.min(other.min_km), self.max_km.max(other.max_km));
    }

    pub(super) fn warning(&self, transmitter: usize, range: Range) -> Option<Warning> {
        let Range { min, max, .. } = range;
        let detail = format!(
            "{} points are outside the distances of the model, {min} to {max} km: they are {:.3} to {:.3} km away",
            self.points, self.min_km, self.max_km
        );
        (self.points > 0).then_some(Warning {
            transmitter: Some(transmitter),
            range: Some(range),
            points: Some(self.points),
            detail,
        })
    }
}

impl Warning {
    /// Returns the warning for a doubt about what the request gives.
    pub(super) fn of_input(detail: String) -> Self {
        Self { transmitter: None, range: None, points: None, detail }
    }

    /// Returns the warnings for values that are the same for all points of a transmitter.
    pub(super) fn of_values(
        transmitter: usize,
        ranges: &[Range],
        value: impl Fn(Quantity) -> Option<f64>,
    ) -> Vec<Self> {
        let warning = |range: &Range| {
            let value = value(range.quantity).filter(|value| !range.contains(*value))?;
            let (name, unit) = match range.quantity {
                Quantity::FrequencyMhz => ("the frequency", "MHz"),
                Quantity::BaseHeightM => ("the height of the transmitter", "m"),
                Quantity::MobileHeightM => ("the height of the receiver", "m"),
                Quantity::DistanceKm => ("the distance", "km"),
            };
            let Range { min, max, .. } = range;
            let detail =
                format!("{name} is {value} {unit}, the model is made for {min} to {max} {unit}");
            Some(Self { transmitter: Some(transmitter), range: Some(*range), points: None, detail })
        };
        ranges.iter().filter_map(warning).collect()
    }
}
