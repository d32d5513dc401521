//! The streets of the urban model: given, or derived from buildings.

use serde::Serialize;

use super::buildings::Buildings;
use super::model::{City, Street};
use crate::reader::{Checked, Members};

/// The streets, as they were checked.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Streets {
    pub(super) building_height_m: f64,
    pub(super) street_width_m: f64,
    pub(super) building_separation_m: f64,
    pub(super) street_angle_deg: f64,
    pub(super) line_of_sight: LineOfSight,
}

/// Which points see the transmitters along their street.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LineOfSight {
    Never,
    Always,
    /// Those whose direct path meets no building.
    Buildings,
}

impl Streets {
    /// Reads `street`. What it does not give comes from the buildings, if there are any.
    pub(super) fn read(request: &Members<'_>, buildings: Option<&Buildings>) -> Checked<Self> {
        let members = [
            "building_height_m",
            "street_width_m",
            "building_separation_m",
            "street_angle_deg",
            "line_of_sight",
        ];
        let Some(node) = request.get("street") else {
            let derived = buildings.map(Self::derived);
            return derived.ok_or_else(|| {
                let detail = "is missing: the model walfisch-ikegami needs it, or buildings";
                request.unfit("street", detail)
            });
        };
        let street = node.object(&members)?;
        let derived = buildings.map(Self::derived);
        let value = |name, derived: Option<f64>, range, unit| match derived {
            Some(derived) => street.number_or(name, derived, range, unit),
            None => street.number(name, range, unit),
        };
        let of = |pick: fn(&Self) -> f64| derived.as_ref().map(pick);
        let mut sight = vec![("never", LineOfSight::Never), ("always", LineOfSight::Always)];
        let mut usual = LineOfSight::Never;
        if buildings.is_some() {
            usual = LineOfSight::Buildings;
            sight.push(("buildings", usual));
        }
        Ok(Self {
            building_height_m: value(
                "building_height_m",
                of(|it| it.building_height_m),
                1.0..=500.0,
                "m",
            )?,
            street_width_m: value("street_width_m", of(|it| it.street_width_m), 1.0..=500.0, "m")?,
            building_separation_m: value(
                "building_separation_m",
                of(|it| it.building_separation_m),
                1.0..=1_000.0,
                "m",
            )?,
            street_angle_deg: street.number_or("street_angle_deg", 90.0, 0.0..=90.0, "degrees")?,
            line_of_sight: street.word_or("line_of_sight", usual, &sight)?,
        })
    }

    fn derived(buildings: &Buildings) -> Self {
        let shape = buildings.shape();
        Self {
            building_height_m: shape.height_m,
            street_width_m: shape.street_m,
            building_separation_m: shape.separation_m,
            street_angle_deg: 90.0,
            line_of_sight: LineOfSight::Buildings,
        }
    }

    /// Returns the street of the model.
    pub(super) fn street(&self, city: City) -> Street {
        Street {
            roof_m: self.building_height_m,
            width_m: self.street_width_m,
            separation_m: self.building_separation_m,
            angle_deg: self.street_angle_deg,
            city,
        }
    }
}
