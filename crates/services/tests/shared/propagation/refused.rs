//! Refusals of requests for a coverage: the place that does not fit, and what is allowed there.

use super::*;

#[test]
fn what_does_not_fit_is_refused_with_its_place_and_what_is_allowed() {
    let at = |pointer: &str, value: Value| {
        let mut request = coverage();
        *request.pointer_mut(pointer).unwrap() = value;
        request
    };
    let add = |changes| with(coverage(), changes);
    let ascii = |text: &str| add(json!({"terrain": {"type": "esri-ascii", "text": text}}));
    let of_degrees = |changes| with(with(coverage(), degrees()), changes);
    let header = "ncols 2 nrows 2 xllcorner 0 yllcorner 0 cellsize";
    for (request, pointer, words) in [
        (
            at("/transmitters/0/frequency_mhz", json!(0)),
            "/transmitters/0/frequency_mhz",
            "expected a number from 1 to 300000 MHz",
        ),
        (
            at("/transmitters/0/height_m", json!(-1)),
            "/transmitters/0/height_m",
            "expected a number from 0.1 to 5000 m",
        ),
        (
            at("/transmitters/0/x_m", json!(10_000.1)),
            "/transmitters/0/x_m",
            "expected a number from 0 to 10000 m",
        ),
        (
            at("/transmitters/0/y_m", json!("4")),
            "/transmitters/0/y_m",
            "expected a number from 0 to 8000 m",
        ),
        (
            add(json!({
                "area": {"west": 7.9, "south": 47, "east": 8, "north": 47.1}, "step_m": 500,
                "transmitters": [{"lon": 8.1, "lat": 47.05, "height_m": 30, "frequency_mhz": 900, "power_dbm": 43}],
            })),
            "/transmitters/0/lon",
            "expected a number from 7.9 to 8 degrees",
        ),
        (
            at("/transmitters/0/power_dbm", json!(1e9)),
            "/transmitters/0/power_dbm",
            "from -100 to 100 dBm",
        ),
        (at("/transmitters", json!([])), "/transmitters", "expected an array of 1 to 16 items"),
        (at("/transmitters", json!(vec![transmitter(0.0, 0.0); 17])), "/transmitters", "1 to 16"),
        (at("/transmitters/0", json!(7)), "/transmitters/0", "expected an object"),
        (at("/area/width_m", json!(1e12)), "/area/width_m", "expected a number from 1 to 200000 m"),
        (
            at("/area", json!({"west": 8, "south": 47, "east": 7, "north": 48})),
            "/area/east",
            "must be more than west, which is 8: an area does not reach across",
        ),
        (
            at("/area", json!({"west": 180, "south": 47, "east": -180, "north": 48})),
            "/area/east",
            "must be more than west, which is 180: an area does not reach across the longitude of 180 degrees",
        ),
        (
            at("/area", json!({"west": 7, "south": 48, "east": 8, "north": 48})),
            "/area/north",
            "must be more than south, which is 48",
        ),
        (
            at("/area", json!({"west": 7, "south": 48, "east": 181, "north": 49})),
            "/area/east",
            "from -180 to 180 degrees",
        ),
        (
            at("/area", json!({"west": 0, "south": 40, "east": 10, "north": 41})),
            "/area/east",
            "gives a side of",
        ),
        (
            at("/area", json!({"west": 0, "south": 86, "east": 10, "north": 87})),
            "/area/south",
            "from -85 to 85 degrees",
        ),
        (at("/area", json!({"width_m": 10})), "/area/height_m", "is missing"),
        (
            at("/area", json!({"width_m": 10, "height_m": 10, "x_m": 1e9})),
            "/area/x_m",
            "expected a number from -30000000 to 30000000 m",
        ),
        (at("/area", json!({"width_m": 10, "height_m": 10, "west": 1})), "/area/west", ""),
        (at("/step_m", json!(0)), "/step_m", "expected a number from 0.1 to 200000 m"),
        (at("/step_m", json!(0.1)), "/step_m", "100001 x 80001 points, at most 1500000 allowed"),
        (
            at("/model", json!("magic")),
            "/model",
            "expected one of free-space, two-ray, hata, cost231-hata, walfisch-ikegami",
        ),
        (at("/quantities", json!(["loss_db", "loss_db"])), "/quantities/1", "is there already"),
        (add(json!({"receiver": {"height_m": -1.5}})), "/receiver/height_m", "from 0.1 to 1000 m"),
        (add(json!({"colour/~": 1})), "/colour~1~0", "is unknown here; allowed are area,"),
        (add(json!({"diffraction": "bullington"})), "/diffraction", "needs terrain"),
        (
            add(json!({"model": "cost231-hata", "environment": "open"})),
            "/environment",
            "expected one of urban-large, urban, suburban",
        ),
        (add(json!({"model": "walfisch-ikegami"})), "/street", "is missing"),
        (
            add(json!({"street": {"building_height_m": 0.5}})),
            "/street/building_height_m",
            "from 1 to 500 m",
        ),
        (
            add(json!({"model": "hata", "street": {"street_width": 20}})),
            "/street/street_width",
            "is unknown here; allowed are building_height_m,",
        ),
        (
            add(json!({"model": "two-ray", "street": {"line_of_sight": "buildings"}})),
            "/street/line_of_sight",
            "expected one of never, always",
        ),
        (add(json!({"street": 20})), "/street", "expected an object"),
        (
            add(
                json!({"model": "walfisch-ikegami", "street": {"building_height_m": 1.5, "street_width_m": 20, "building_separation_m": 40}}),
            ),
            "/street",
            "the receiver at 1.5 m must be below the roofs at 1.5 m",
        ),
        (
            add(json!({"buildings": {"type": "FeatureCollection", "features": []}})),
            "/buildings/features",
            "1 to 20000 items",
        ),
        (
            add(json!({"terrain": {"type": "valley", "depth_m": 0}})),
            "/terrain/depth_m",
            "from 1 to 3000 m",
        ),
        (
            add(json!({"output": {"formats": ["gif"]}})),
            "/output/formats/0",
            "expected one of geojson, csv, png",
        ),
        (
            add(json!({"output": {"formats": ["geojson"]}})),
            "/output/formats/0",
            "takes at most 20000 points, and the grid has 32361",
        ),
        (
            add(json!({"output": {"formats": ["csv"]}, "step_m": 25})),
            "/output/formats/0",
            "at most 100000 points",
        ),
        (
            add(json!({"output": {"formats": ["png"], "levels": [1e9]}})),
            "/output/levels/0",
            "from -1000 to 1000",
        ),
        (
            add(json!({"output": {"formats": ["png", "png"]}})),
            "/output/formats/1",
            "is there already: expected each word once",
        ),
        (
            add(json!({"output": {"formats": ["png"], "levels": [3, -3, 3.0]}})),
            "/output/levels/2",
            "is there already: expected each level once",
        ),
        (ascii("ncols 9999999 nrows 9999999"), "/terrain/text", "ncols is 9999999, expected"),
        (
            ascii(&format!("{header} 10000 1 2 inf 4")),
            "/terrain/text",
            "row 2, column 1 is inf, expected a height from -500 to 9000 m",
        ),
        (add(json!({"terrain": {"type": "geotiff"}})), "/terrain/data", "is missing"),
        (
            add(json!({"terrain": {"type": "geotiff", "text": "SUkqAA=="}})),
            "/terrain/text",
            "is unknown here; allowed are type, data",
        ),
        (
            add(json!({"terrain": {"type": "geotiff", "data": "SUkq*A=="}})),
            "/terrain/data",
            "is no Base64: ",
        ),
        (
            add(json!({"terrain": {"type": "geotiff", "data": "SUkqAA=="}})),
            "/terrain/data",
            "ends before the end of its directory",
        ),
        (
            add(json!({"terrain": geotiff(&[1.0, 1.0, 1e5, 1.0], 2, [0.0, 9_000.0], 9_000.0, 1)})),
            "/terrain/data",
            "row 2, column 1 is 100000, expected a height from -500 to 9000 m",
        ),
        (
            add(json!({"terrain": geotiff(&[1.0; 4], 2, [500_000.0, 9_000.0], 9_000.0, 1)})),
            "/terrain/data",
            "does not cover the area: x_m from 499999.999 to",
        ),
        (
            add(json!({"terrain": geotiff(&[1.0; 4], 2, [0.0, 9_000.0], 9_000.0, 2)})),
            "/terrain/data",
            "has degrees, but the area is in metres",
        ),
        (
            ascii(&format!("{header} 10 1 2 3 4")),
            "/terrain/text",
            "does not cover the area: x_m from",
        ),
        (
            ascii(&format!("{header} 0.01 1 2 3 4")),
            "/terrain/text",
            "has cells of 0.01 m, which seem to be degrees, but the area is in metres",
        ),
        (
            of_degrees(
                json!({"terrain": {"type": "esri-ascii", "text": format!("{header} 1000 1 2 3 4")}}),
            ),
            "/terrain/text",
            "has latitudes from 500 to 1500, which are no degrees",
        ),
        (
            add(json!({"terrain": keyed(&[1024, 1, 3072, 3857, 3076, 9001])})),
            "/terrain/data",
            "is in Mercator (EPSG 3857), whose metres are not those on the ground",
        ),
        (
            add(json!({"terrain": keyed(&[1024, 1, 3072, 2263])})),
            "/terrain/data",
            "has coordinates in US survey feet (EPSG 2263), expected metres",
        ),
        (
            of_degrees(json!({"terrain": keyed(&[1024, 2, 2048, 4230])})),
            "/terrain/data",
            "has degrees that lie 132 m from the same degrees of WGS 84 (EPSG 4230)",
        ),
        (
            of_degrees(json!({"terrain": keyed(&[1024, 2, 2048, 4807])})),
            "/terrain/data",
            "counts longitudes from another meridian than Greenwich (paris) (EPSG 4807)",
        ),
    ] {
        match prepare(&request.to_string()) {
            Err(RunRefusal::Unprocessable { pointer: found, detail }) => {
                assert_eq!(found.as_deref(), Some(pointer), "{detail}");
                assert!(detail.contains(words), "{pointer}: {detail}");
                assert!(detail.len() < 200, "{detail}");
            }
            other => panic!("{pointer}: {other:?}"),
        }
    }
    for body in ["", "{", "{\"step_m\": NaN}", "{\"step_m\": 1e999}"] {
        let refused = prepare(body).unwrap_err();
        assert!(
            matches!(&refused, RunRefusal::BadBody(detail) if detail.contains("line 1 column")),
            "{refused:?}"
        );
    }
    let depth = "[".repeat(100_000);
    assert!(matches!(prepare(&depth), Err(RunRefusal::BadBody(_))));
    let refused = Propagation::new()
        .prepare(RunInput { query: Some("a=1".to_owned()), ..RunInput::default() });
    assert!(matches!(refused, Err(RunRefusal::BadParameter(_))));
}

#[test]
fn members_of_other_models_are_checked_and_have_no_effect() {
    let few = with(coverage(), json!({"step_m": 1_000}));
    let alone = run_of(&few);
    for more in [
        json!({"street": {}}),
        json!({"street": {"street_width_m": 20, "line_of_sight": "always"}}),
        json!({"ground": {"permittivity": 5}}),
        json!({"environment": "open"}),
    ] {
        let (mut partials, result) = run_of(&with(few.clone(), more.clone()));
        partials[0]["document"] = alone.0[0]["document"].clone();
        assert_eq!((partials, result), alone, "{more}");
    }
}
