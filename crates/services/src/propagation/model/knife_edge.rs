//! Loss at knife edges (Recommendation ITU-R P.526-15): what terrain adds to the loss in free space.

use super::free_space::wavelength_m;
use super::profile::{Edge, Profile};

/// Returns the loss at one edge with this parameter, `J(ν)` (section 4.1, equation 31).
#[must_use]
pub fn knife_edge_db(nu: f64) -> f64 {
    if nu <= -0.78 {
        return 0.0;
    }
    let x = nu - 0.1;
    6.9 + 20.0 * (x.hypot(1.0) + x).log10()
}

/// Returns the parameter ν of an edge that is `height_m` above the straight line between two antennas (section 4.1,
/// equation 26).
#[must_use]
pub fn knife_edge_nu(height_m: f64, before_km: f64, after_km: f64, wavelength_m: f64) -> f64 {
    height_m * (0.002 * (before_km + after_km) / (wavelength_m * before_km * after_km)).sqrt()
}

/// Returns the loss of a path by the method of Bullington (section 4.5.1), which replaces the terrain by one edge.
#[must_use]
pub fn bullington_db(profile: &Profile<'_>, mhz: f64) -> f64 {
    let wavelength_m = wavelength_m(mhz);
    let (first, second) = profile.ends();
    let length_km = second.km;
    let line = (second.m - first.m) / length_km;
    let rises = profile.edges().map(|edge| (edge.m - first.m) / edge.km);
    let Some(rise) = rises.reduce(f64::max) else { return 0.0 };
    let falls = profile.edges().map(|edge| (edge.m - second.m) / (length_km - edge.km));
    let fall = falls.fold(f64::NEG_INFINITY, f64::max);
    // Both lines of sight meet nowhere if an edge only touches the line between the antennas.
    let single_db = if rise <= line || rise + fall <= 0.0 {
        let nus = profile.edges().map(|edge| nu_between(first, second, edge, wavelength_m));
        knife_edge_db(nus.fold(f64::NEG_INFINITY, f64::max))
    } else {
        let between = profile.edges().map(|edge| edge.km);
        let (nearest, farthest) =
            between.fold((length_km, 0.0), |(low, high), km| (km.min(low), km.max(high)));
        let km = (second.m - first.m + fall * length_km) / (rise + fall);
        let km = km.clamp(nearest, farthest);
        let top = Edge { km, m: first.m + rise * km };
        knife_edge_db(nu_between(first, second, top, wavelength_m))
    };
    single_db + (1.0 - (-single_db / 6.0).exp()) * (10.0 + 0.02 * length_km)
}

/// Returns the loss of a path by the method of Deygout, limited to three edges and with the empirical correction of
/// Recommendation ITU-R P.526-13, section 4.5.2: `J(νp) + T·(J(νt) + J(νr) + C)`.
#[must_use]
pub fn deygout_db(profile: &Profile<'_>, mhz: f64) -> f64 {
    let [main, before, after] = deygout_nus(profile, mhz);
    let main_db = knife_edge_db(main);
    let weight = 1.0 - (-main_db / 6.0).exp();
    let more_db = 10.0 + 0.04 * profile.length_km();
    main_db + weight * (knife_edge_db(before) + knife_edge_db(after) + more_db)
}

/// Returns the parameters of the main edge, and of those between it and either antenna; minus infinity for none.
fn deygout_nus(profile: &Profile<'_>, mhz: f64) -> [f64; 3] {
    let wavelength_m = wavelength_m(mhz);
    let (first, second) = profile.ends();
    let highest = |from: Edge, to: Edge| {
        let between = profile.edges().filter(|edge| from.km < edge.km && edge.km < to.km);
        let nus = between.map(|edge| (nu_between(from, to, edge, wavelength_m), edge));
        nus.reduce(|best, next| if next.0 > best.0 { next } else { best })
    };
    const NONE: f64 = f64::NEG_INFINITY;
    let Some((main, edge)) = highest(first, second).filter(|(nu, _)| *nu > -0.78) else {
        return [NONE; 3];
    };
    let nu = |from, to| highest(from, to).map_or(NONE, |(nu, _)| nu);
    [main, nu(first, edge), nu(edge, second)]
}

/// Returns the parameter of an edge between two others, or antennas. The bulge of the Earth is in the heights.
fn nu_between(from: Edge, to: Edge, edge: Edge, wavelength_m: f64) -> f64 {
    let (before_km, after_km) = (edge.km - from.km, to.km - edge.km);
    let line_m = (from.m * after_km + to.m * before_km) / (before_km + after_km);
    knife_edge_nu(edge.m - line_m, before_km, after_km, wavelength_m)
}

#[cfg(test)]
#[path = "knife_edge/tests.rs"]
mod tests;
