//! The ranges within which a model was fitted or derived, as data.

use serde::Serialize;

/// A quantity on which a model depends.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The frequency, in MHz.
    FrequencyMhz,
    /// The height of the base station's antenna above ground, in m.
    BaseHeightM,
    /// The height of the mobile's antenna above ground, in m.
    MobileHeightM,
    /// The horizontal distance, in km.
    DistanceKm,
}

/// The values of a quantity for which a model is valid, with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// The quantity, whose name has the unit.
    pub quantity: Quantity,
    /// The smallest valid value.
    pub min: f64,
    /// The largest valid value.
    pub max: f64,
}

impl Range {
    pub(super) const fn new(quantity: Quantity, min: f64, max: f64) -> Self {
        Self { quantity, min, max }
    }

    /// Returns true if the model is valid for this value.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }
}

/// Returns the range of a quantity; `None` if the model has no limit to it.
#[must_use]
pub fn range_of(ranges: &'static [Range], quantity: Quantity) -> Option<&'static Range> {
    ranges.iter().find(|range| range.quantity == quantity)
}
