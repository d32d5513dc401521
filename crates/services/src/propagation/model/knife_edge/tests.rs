use super::super::profile::EARTH_KM;
use super::*;

/// One edge between antennas at the same height, `height_m` above them, on an Earth that is as good as flat.
fn one_edge(height_m: f64, mhz: f64) -> [f64; 2] {
    let km = [0.0, 1.0, 2.0];
    let ground_m = [0.0, 100.0 + height_m, 0.0];
    let profile =
        Profile { km: &km, ground_m: &ground_m, first_m: 100.0, second_m: 100.0, earth_km: 1e12 };
    [bullington_db(&profile, mhz), deygout_db(&profile, mhz)]
}

#[test]
fn a_single_edge_is_that_of_worked_examples() {
    // T. S. Rappaport, Wireless Communications, 2nd edition, example 4.7: a wavelength of 1/3 m and 1 km to either side.
    // An edge 25 m above the line has ν = 2.74 and 21.7 dB by the formula, one on the line 6 dB, one 25 m below it none.
    for (height_m, nu, db, within_db) in
        [(25.0, 2.74, 21.7, 0.06), (0.0, 0.0, 6.0, 0.1), (-25.0, -2.74, 0.0, 1e-9)]
    {
        let found = knife_edge_nu(height_m, 1.0, 1.0, 1.0 / 3.0);
        assert!((found - nu).abs() < 0.005, "{height_m} m: {found}");
        assert!(
            (knife_edge_db(found) - db).abs() < within_db,
            "{height_m} m: {}",
            knife_edge_db(found)
        );
    }
    // Example 4.8: ν = 4.24 gives 25.5 dB, read from a diagram.
    assert!((knife_edge_db(4.24) - 25.5).abs() < 0.2);
    assert_eq!(knife_edge_db(-0.78), 0.0);
    assert!(knife_edge_db(-0.779_999) < 0.05, "there is no step");
}

#[test]
fn with_one_edge_both_methods_add_their_corrections_to_it() {
    for height_m in [-5.0, 0.0, 25.0, 200.0] {
        let single_db = knife_edge_db(knife_edge_nu(height_m, 1.0, 1.0, wavelength_m(900.0)));
        let weight = 1.0 - (-single_db / 6.0).exp();
        let [bullington, deygout] = one_edge(height_m, 900.0);
        assert!(
            (bullington - single_db - weight * 10.04).abs() < 1e-6,
            "{height_m} m: {bullington}"
        );
        assert!((deygout - single_db - weight * 10.08).abs() < 1e-6, "{height_m} m: {deygout}");
    }
    assert_eq!(one_edge(-50.0, 900.0), [0.0, 0.0]);
}

#[test]
fn an_edge_that_only_touches_the_line_between_the_antennas_costs_as_much_as_its_neighbours() {
    let km = [0.0, 0.01, 0.02];
    let touching = 1.0 + 500.0 / EARTH_KM * 0.01 * 0.01;
    let single_db = knife_edge_db(0.0);
    let expected = single_db + (1.0 - (-single_db / 6.0).exp()) * 10.0;
    for more in [-1e-9, -f64::EPSILON, 0.0, f64::EPSILON, 1e-9] {
        let end_m = touching + more;
        let (ground_m, earth_km) = (&[0.0, 1.0, 0.0], EARTH_KM);
        let profile = Profile { km: &km, ground_m, first_m: end_m, second_m: end_m, earth_km };
        for db in [bullington_db(&profile, 900.0), deygout_db(&profile, 900.0)] {
            assert!((db - expected).abs() < 0.01, "{more}: {db}, not {expected}");
        }
    }
}

#[test]
fn nothing_between_the_antennas_costs_nothing() {
    let profile = Profile {
        km: &[0.0, 1.0],
        ground_m: &[0.0, 0.0],
        first_m: 1.0,
        second_m: 1.0,
        earth_km: EARTH_KM,
    };
    assert_eq!([bullington_db(&profile, 900.0), deygout_db(&profile, 900.0)], [0.0, 0.0]);
}

#[test]
fn the_earth_itself_is_in_the_way() {
    // A sea of 60 km between antennas at 10 m: in the middle it bulges by 500/8500·30·30 = 52.9 m.
    let km: Vec<f64> = (0..=60).map(f64::from).collect();
    let ground_m = vec![0.0; km.len()];
    let profile = |earth_km| Profile {
        km: &km,
        ground_m: &ground_m,
        first_m: 10.0,
        second_m: 10.0,
        earth_km,
    };
    let nu = knife_edge_nu(52.94 - 10.0, 30.0, 30.0, wavelength_m(900.0));
    let [main, _, _] = deygout_nus(&profile(EARTH_KM), 900.0);
    assert!((main - nu).abs() < 0.01, "{main} {nu}");
    assert!(bullington_db(&profile(EARTH_KM), 900.0) > bullington_db(&profile(1e12), 900.0) + 10.0);
}

#[test]
fn deygout_takes_the_highest_edge_and_one_on_either_side() {
    // Two edges on the line between the antennas: the second is on the line from the first, too. Each has ν = 0 and 6 dB,
    // so the construction alone gives 12 dB (the exact value for three equal hops is 9.5 dB, L. E. Vogler, 1982).
    let km = [0.0, 1.0, 2.0, 3.0];
    let on_line = Profile {
        km: &km,
        ground_m: &[0.0, 50.0, 50.0, 0.0],
        first_m: 50.0,
        second_m: 50.0,
        earth_km: 1e12,
    };
    let [main, before, after] = deygout_nus(&on_line, 900.0);
    assert!(main.abs() < 1e-6 && before == f64::NEG_INFINITY && after.abs() < 1e-6);
    let hills = [0.0, 60.0, 90.0, 0.0];
    let [main, before, after] = deygout_nus(&Profile { ground_m: &hills, ..on_line }, 900.0);
    assert!((main - knife_edge_nu(40.0, 2.0, 1.0, wavelength_m(900.0))).abs() < 1e-6);
    // The line from 50 m to the top at 90 m is at 70 m after half of the way.
    assert!((before - knife_edge_nu(-10.0, 1.0, 1.0, wavelength_m(900.0))).abs() < 1e-6);
    assert_eq!(after, f64::NEG_INFINITY);
}

/// The heights of path 3 of the validation examples for the delta-Bullington method that ITU-R Study Group 3 publishes, every
/// 50 m; the last one is at 17.396,889,66 km.
const PATH_3_M: &[u16] = &[
    697, 697, 697, 690, 690, 665, 665, 661, 653, 656, 644, 644, 638, 629, 620, 620, 610, 610, 608,
    608, 610, 610, 609, 609, 611, 611, 604, 604, 604, 607, 607, 609, 609, 611, 606, 606, 606, 602,
    602, 602, 602, 604, 603, 606, 606, 603, 603, 605, 607, 607, 605, 605, 605, 605, 600, 601, 594,
    594, 589, 589, 595, 589, 589, 586, 586, 582, 584, 581, 579, 575, 575, 577, 577, 585, 587, 586,
    596, 596, 587, 589, 593, 593, 589, 589, 593, 593, 590, 600, 592, 601, 605, 605, 601, 609, 609,
    618, 618, 613, 613, 612, 615, 612, 612, 618, 618, 616, 616, 612, 613, 613, 613, 613, 613, 612,
    609, 609, 606, 606, 604, 604, 602, 602, 602, 602, 603, 603, 604, 601, 601, 602, 602, 607, 603,
    605, 606, 610, 610, 610, 610, 611, 611, 611, 616, 616, 618, 618, 622, 621, 625, 625, 635, 635,
    631, 638, 638, 621, 620, 620, 616, 611, 611, 594, 594, 589, 589, 586, 582, 579, 578, 579, 579,
    576, 576, 574, 577, 577, 575, 575, 571, 572, 572, 572, 571, 571, 575, 575, 573, 571, 569, 570,
    570, 570, 570, 575, 575, 576, 576, 577, 577, 578, 574, 574, 574, 575, 575, 577, 577, 577, 579,
    579, 579, 583, 583, 586, 583, 583, 584, 584, 586, 586, 587, 594, 599, 599, 588, 591, 590, 592,
    592, 594, 594, 596, 597, 602, 599, 605, 605, 605, 605, 610, 607, 607, 615, 615, 621, 621, 624,
    621, 633, 633, 632, 632, 636, 630, 639, 630, 630, 634, 628, 632, 632, 628, 628, 625, 625, 626,
    621, 624, 624, 620, 620, 620, 620, 620, 616, 616, 610, 610, 605, 607, 604, 604, 603, 603, 594,
    594, 594, 596, 592, 592, 587, 586, 585, 583, 583, 579, 579, 571, 573, 575, 576, 572, 572, 573,
    573, 569, 569, 569, 568, 568, 566, 568, 568, 564, 563, 563, 559, 559, 564, 567, 564, 563, 562,
    562, 561, 563, 563, 561, 561, 562, 562, 561, 563, 564, 564, 563, 563, 565, 565, 564, 566, 566,
    568, 568, 569, 567, 570, 570, 569,
];

#[test]
fn bullington_is_that_of_published_validation_examples() {
    let mut km: Vec<f64> = (0_u32..).map(|at| f64::from(at) * 0.05).take(PATH_3_M.len()).collect();
    *km.last_mut().unwrap() = 17.396_889_66;
    let ground_m: Vec<f64> = PATH_3_M.iter().map(|m| f64::from(*m)).collect();
    let (start_m, end_m) = (ground_m[0], ground_m[ground_m.len() - 1]);
    // The examples take 3·10^8 m/s, and allow 0.1 dB.
    for (first_m, second_m, mhz, expected) in [
        (30.0, 30.0, 1_000.0, 17.620_406_31),
        (50.0, 10.0, 2_500.0, 25.101_690_7),
        (20.0, 20.0, 600.0, 20.254_887_33),
        (40.0, 50.0, 200.0, 10.189_908_5),
        (70.0, 5.0, 150.0, 16.275_931_06),
    ] {
        let profile = Profile {
            km: &km,
            ground_m: &ground_m,
            first_m: start_m + first_m,
            second_m: end_m + second_m,
            earth_km: EARTH_KM,
        };
        let found = bullington_db(&profile, mhz);
        assert!((found - expected).abs() < 0.1, "{mhz} MHz: {found}, not {expected}");
    }
}
