//! Models of propagation loss, each in a file of its own: functions of frequencies in MHz, distances in km, and heights in m,
//! whose results are in dB. They are pure, and do not look at their ranges, which are data beside them.

mod cost231_hata;
mod environment;
pub(super) mod free_space;
mod hata;
mod knife_edge;
mod profile;
mod range;
mod two_ray;
mod walfisch_ikegami;

pub use self::cost231_hata::{City, Cost231Hata};
pub use self::environment::Environment;
pub use self::free_space::{FreeSpace, field_dbuv_m, wavelength_m};
pub use self::hata::Hata;
pub use self::knife_edge::{bullington_db, deygout_db, knife_edge_db, knife_edge_nu};
pub use self::profile::{EARTH_KM, Profile};
pub use self::range::{Quantity, Range, range_of};
pub use self::two_ray::{Polarization, Reflection, TwoRay};
pub use self::walfisch_ikegami::{Street, StreetCanyon, WalfischIkegami};
