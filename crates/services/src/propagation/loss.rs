//! The loss between one transmitter and the points of an area.

use super::area::Spot;
use super::model::{
    Cost231Hata, EARTH_KM, FreeSpace, Hata, Profile, Quantity, Range, StreetCanyon, TwoRay,
    WalfischIkegami, bullington_db, deygout_db, range_of,
};
use super::terrain::HeightGrid;

/// The most points of the ground that are looked at below a path.
const SAMPLES_MAX: f64 = 512.0;

/// The nearest horizontal distance that counts: no model tells apart what is nearer.
const NEAREST_KM: f64 = 0.001;

/// The model of a transmitter, with all that does not change from point to point.
#[derive(Clone, Debug)]
pub(super) enum Model {
    /// Over the straight line between the antennas.
    FreeSpace,
    TwoRay(TwoRay),
    Hata(Hata),
    Cost231Hata(Cost231Hata),
    WalfischIkegami {
        over: WalfischIkegami,
        seen: StreetCanyon,
        sight: Sight,
    },
}

/// Which points see the transmitter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sight {
    Never,
    Always,
    /// Those to which no roof of the map is in the way.
    Roofs,
}

/// The loss that terrain adds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Diffraction {
    None,
    Bullington,
    Deygout,
}

/// The ground and the roofs of an area.
#[derive(Clone, Debug, Default)]
pub(super) struct Land {
    pub(super) terrain: Option<HeightGrid>,
    pub(super) roofs: Option<HeightGrid>,
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) model: Model,
    pub(super) diffraction: Diffraction,
    pub(super) free_space: FreeSpace,
    pub(super) mhz: f64,
    pub(super) from: Spot,
    pub(super) base_m: f64,
    pub(super) mobile_m: f64,
}

/// Memory that is used again for each path.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    km: Vec<f64>,
    ground_m: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PathLoss {
    pub(super) db: f64,
    /// The horizontal distance.
    pub(super) km: f64,
}

impl Land {
    /// Returns true if a point may take long enough to ask at each whether to go on.
    pub(super) fn is_slow(&self) -> bool {
        self.terrain.is_some() || self.roofs.is_some()
    }
}

impl Model {
    pub(super) fn ranges(&self) -> &'static [Range] {
        match self {
            Self::FreeSpace => &[],
            Self::TwoRay(_) => TwoRay::RANGES,
            Self::Hata(_) => Hata::RANGES,
            Self::Cost231Hata(_) => Cost231Hata::RANGES,
            Self::WalfischIkegami { .. } => WalfischIkegami::RANGES,
        }
    }

    pub(super) fn distances(&self) -> Option<&'static Range> {
        range_of(self.ranges(), Quantity::DistanceKm)
    }
}

impl Path {
    pub(super) fn loss(&self, to: Spot, land: &Land, scratch: &mut Scratch) -> PathLoss {
        let km = (to.x_m - self.from.x_m).hypot(to.y_m - self.from.y_m) / 1e3;
        let km = km.max(NEAREST_KM);
        let ends_m = land
            .terrain
            .as_ref()
            .map_or([0.0; 2], |terrain| [self.from, to].map(|spot| terrain.height_m(spot)));
        let rise_m = ends_m[0] + self.base_m - ends_m[1] - self.mobile_m;
        let free_db = self.free_space.loss_db(km.hypot(rise_m / 1e3));
        // Formulas that were fitted from 1 km on give less than free space near the transmitter, which is impossible.
        let model_db = match &self.model {
            Model::FreeSpace => free_db,
            Model::TwoRay(model) => model.loss_db(km),
            Model::Hata(model) => model.loss_db(km).max(free_db),
            Model::Cost231Hata(model) => model.loss_db(km).max(free_db),
            Model::WalfischIkegami { over, seen, sight } => {
                let is_seen = match sight {
                    Sight::Never => false,
                    Sight::Always => true,
                    Sight::Roofs => self.sees(to, land, km),
                };
                if is_seen { seen.loss_db(km) } else { over.loss_db(km) }.max(free_db)
            }
        };
        PathLoss { db: model_db + self.terrain_db(to, km, ends_m, land, scratch), km }
    }

    fn terrain_db(
        &self,
        to: Spot,
        km: f64,
        ends_m: [f64; 2],
        land: &Land,
        scratch: &mut Scratch,
    ) -> f64 {
        let Some(terrain) = &land.terrain else { return 0.0 };
        if self.diffraction == Diffraction::None {
            return 0.0;
        }
        let count = samples(km, terrain);
        scratch.km.clear();
        scratch.ground_m.clear();
        for at in 0..=count {
            let part = f64::from(at) / f64::from(count);
            scratch.km.push(part * km);
            scratch.ground_m.push(terrain.height_m(self.between(to, part)));
        }
        let profile = Profile {
            km: &scratch.km,
            ground_m: &scratch.ground_m,
            first_m: ends_m[0] + self.base_m,
            second_m: ends_m[1] + self.mobile_m,
            earth_km: EARTH_KM,
        };
        match self.diffraction {
            Diffraction::Bullington => bullington_db(&profile, self.mhz),
            _ => deygout_db(&profile, self.mhz),
        }
    }

    /// Returns true if no roof is in the way to a point. Heights count from the ground.
    fn sees(&self, to: Spot, land: &Land, km: f64) -> bool {
        let Some(roofs) = &land.roofs else { return false };
        let count = samples(km, roofs);
        (1..count).all(|at| {
            let part = f64::from(at) / f64::from(count);
            let line_m = self.base_m + part * (self.mobile_m - self.base_m);
            roofs.height_m(self.between(to, part)) < line_m
        })
    }

    fn between(&self, to: Spot, part: f64) -> Spot {
        let along = |from: f64, to: f64| from + part * (to - from);
        Spot { x_m: along(self.from.x_m, to.x_m), y_m: along(self.from.y_m, to.y_m) }
    }
}

/// Returns the number of steps in which a path over a grid is looked at: one for each cell, and not too many.
fn samples(km: f64, grid: &HeightGrid) -> u16 {
    let cell_m = grid.x_step_m.min(grid.y_step_m);
    // From 2 to SAMPLES_MAX.
    (km * 1e3 / cell_m).ceil().clamp(2.0, SAMPLES_MAX) as u16
}
