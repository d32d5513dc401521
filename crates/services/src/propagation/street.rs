//! The streets of the urban model: given, or derived from buildings.

use serde::Serialize;

use super::buildings::Buildings;
use super::model::{City, Street};
use crate::reader::{Checked, Members, Node};

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
        let derived = buildings.map(Self::derived);
        match (request.get("street"), derived) {
            (Some(node), derived) => Self::read_node(&node, derived.as_ref(), buildings.is_some()),
            (None, Some(derived)) => Ok(derived),
            (None, None) => {
                let detail = "is missing: the model walfisch-ikegami needs it, or buildings";
                Err(request.unfit("street", detail))
            }
        }
    }

    /// Checks `street` for a model that does not use it: what it gives must fit, and nothing is required.
    pub(super) fn check(request: &Members<'_>, has_buildings: bool) -> Checked<()> {
        let Some(node) = request.get("street") else { return Ok(()) };
        let any = Self {
            building_height_m: 1.0,
            street_width_m: 1.0,
            building_separation_m: 1.0,
            street_angle_deg: 90.0,
            line_of_sight: LineOfSight::Never,
        };
        Self::read_node(&node, Some(&any), has_buildings).map(drop)
    }

    fn read_node(node: &Node<'_>, usual: Option<&Self>, has_buildings: bool) -> Checked<Self> {
        let street = node.object(&[
            "building_height_m",
            "street_width_m",
            "building_separation_m",
            "street_angle_deg",
            "line_of_sight",
        ])?;
        let metres = |name, usual: Option<f64>, most| match usual {
            Some(usual) => street.number_or(name, usual, 1.0..=most, "m"),
            None => street.number(name, 1.0..=most, "m"),
        };
        let of = |pick: fn(&Self) -> f64| usual.map(pick);
        let all = [
            ("never", LineOfSight::Never),
            ("always", LineOfSight::Always),
            ("buildings", LineOfSight::Buildings),
        ];
        let (sight, known) = if has_buildings {
            (LineOfSight::Buildings, &all[..])
        } else {
            (LineOfSight::Never, &all[..2])
        };
        Ok(Self {
            building_height_m: metres("building_height_m", of(|it| it.building_height_m), 500.0)?,
            street_width_m: metres("street_width_m", of(|it| it.street_width_m), 500.0)?,
            building_separation_m: metres(
                "building_separation_m",
                of(|it| it.building_separation_m),
                1_000.0,
            )?,
            street_angle_deg: street.number_or("street_angle_deg", 90.0, 0.0..=90.0, "degrees")?,
            line_of_sight: street.word_or("line_of_sight", sight, known)?,
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
