use anemone_hub::run::RunRefusal;
use serde_json::{Value, json};

use super::*;

fn area() -> Area {
    let request = json!({"area": {"width_m": 100, "height_m": 100}, "step_m": 10});
    Area::read(&Node::root(&request).open_object().unwrap()).unwrap()
}

fn never() -> Result<(), std::convert::Infallible> {
    Ok(())
}

fn square(x: f64, y: f64, side: f64) -> Value {
    json!([[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]])
}

fn house(height: &Value, rings: &Value) -> Value {
    json!({"type": "Feature", "properties": {"height": height}, "geometry": {"type": "Polygon", "coordinates": rings}})
}

fn read(features: &Value) -> Checked<Buildings> {
    let collection = json!({"type": "FeatureCollection", "features": features});
    Buildings::read(&Node::root(&collection), &area())
}

#[test]
fn the_shape_of_a_city_is_that_of_its_squares() {
    // Four houses of 20 m x 20 m whose middles are 60 m apart, in a box of 80 m x 80 m.
    let houses = json!([
        house(&json!(10), &json!([square(0.0, 0.0, 20.0)])),
        house(&json!(20), &json!([square(60.0, 0.0, 20.0)])),
        house(&json!(10), &json!([square(0.0, 60.0, 20.0)])),
        {"type": "Feature", "properties": {"building:levels": 4},
         "geometry": {"type": "MultiPolygon", "coordinates": [[square(60.0, 60.0, 20.0)]]}},
    ]);
    let shape = read(&houses).unwrap().shape();
    assert_eq!(shape, Shape { height_m: 13.0, separation_m: 40.0, street_m: 20.0 });
}

#[test]
fn roofs_cover_their_houses_and_not_the_yards() {
    let mut yard = square(40.0, 40.0, 20.0);
    yard.as_array_mut().unwrap().reverse();
    let houses = json!([house(&json!(15), &json!([square(20.0, 20.0, 60.0), yard]))]);
    let buildings = read(&houses).unwrap();
    let roofs = buildings.roofs(&area(), never).unwrap();
    for (x_m, y_m, height_m) in [
        (10.0, 50.0, 0.0),
        (30.0, 50.0, 15.0),
        (50.0, 50.0, 0.0),
        (70.0, 30.0, 15.0),
        (50.0, 90.0, 0.0),
    ] {
        assert_eq!(roofs.height_m(Spot { x_m, y_m }), height_m, "{x_m} {y_m}");
    }
    assert!((feature::area_m2(&buildings.buildings[0].rings) - 3_200.0).abs() < 1e-6);
    // A house of which the area has a corner of its box alone draws nothing, and does not end the program.
    let beside =
        json!([house(&json!(15), &json!([[[-50, 90], [10, 150], [-50, 150], [-50, 90]]]))]);
    let roofs = read(&beside).unwrap().roofs(&area(), never).unwrap();
    assert!(roofs.heights_m.iter().all(|m| *m == 0.0));
}

#[test]
fn the_sides_of_all_buildings_cross_as_many_rows_as_they_may_and_no_more() {
    // From below the area to above it, and back: each side crosses its 52 rows.
    let zigzag = |sides: usize| {
        let corner = |at: usize| {
            let y = if at.is_multiple_of(2) { -10.0 } else { 110.0 + (at % 7) as f64 };
            json!([at % 100, y])
        };
        house(&json!(3), &json!([(0..sides).map(corner).collect::<Vec<_>>()]))
    };
    let sides = CROSSINGS_MAX / 52;
    let most = [zigzag(10_000), zigzag(sides - 10_000)];
    assert!(read(&json!(most)).is_ok());
    let Err(RunRefusal::Unprocessable { pointer, detail }) =
        read(&json!([most[0], zigzag(sides - 10_000 + 2)]))
    else {
        panic!()
    };
    assert_eq!(pointer.as_deref(), Some("/features/1"));
    assert!(detail.contains("more than 2000 km from south to north"), "{detail}");
}

/// Reads a city of these features and of two houses, which have no fault. Returns how many buildings there are, and the doubts.
fn city(odd: &[Value]) -> (usize, Vec<String>) {
    let mut features = vec![
        house(&json!(10), &json!([square(0.0, 0.0, 20.0)])),
        house(&json!(20), &json!([square(50.0, 0.0, 20.0)])),
    ];
    features.extend_from_slice(odd);
    let found = read(&json!(features)).unwrap();
    (found.buildings.len(), found.doubts)
}

#[test]
fn an_odd_feature_is_left_out_and_counted() {
    let of = |geometry: Value| json!({"type": "Feature", "properties": {"height": 9}, "geometry": geometry});
    let polygon = |rings: Value| of(json!({"type": "Polygon", "coordinates": rings}));
    let good = json!([square(0.0, 0.0, 20.0)]);
    let many: Vec<_> = (0..10_001).map(|at| json!([at % 90, at / 200])).collect();
    for feature in [
        of(json!(null)),
        of(json!({"type": "Point", "coordinates": [1, 1]})),
        of(json!({"type": "LineString", "coordinates": square(0.0, 0.0, 20.0)})),
        of(
            json!({"type": "GeometryCollection", "geometries": [{"type": "Polygon", "coordinates": good}]}),
        ),
        of(json!({"type": "MultiPolygon", "coordinates": []})),
        of(json!({"type": "MultiPolygon", "coordinates": good})),
        of(json!({"type": "Polygon"})),
        of(json!([])),
        polygon(json!([])),
        polygon(json!([[]])),
        polygon(json!([square(0.0, 0.0, 20.0), []])),
        polygon(json!([[[0, 0], [1, 0], [0, 0]]])),
        polygon(json!([[[0, 0], [20, 0], [20, "x"], [0, 0]]])),
        polygon(json!([[[0, 0], [20], [20, 20], [0, 0]]])),
        polygon(json!([[[0, 0], [20, null], [20, 20], [0, 0]]])),
        polygon(json!([many])),
        // No area: a line, a bow, and degrees that are taken for metres.
        polygon(json!([[[0, 0], [20, 0], [20, 0], [0, 0]]])),
        polygon(json!([[[0, 0], [20, 20], [20, 0], [0, 20], [0, 0]]])),
        polygon(json!([square(8.0, 47.0, 0.0003)])),
        // As large as a country, and larger than any number of metres.
        polygon(json!([square(-50_000.0, -50_000.0, 100_000.0)])),
        polygon(json!([square(-1e308, -1e308, 1.7e308)])),
        json!({"type": "FeatureCollection", "features": []}),
        json!({"type": "Polygon", "coordinates": good}),
        json!(7),
        json!(null),
    ] {
        let words = "features that are no polygon with the area of a building: 1 of 3, the first at /buildings/features/2; they are left out";
        assert_eq!(city(std::slice::from_ref(&feature)), (2, vec![words.to_owned()]), "{feature}");
        let alone = read(&json!([feature])).unwrap_err();
        let RunRefusal::Unprocessable { pointer, detail } = alone else { panic!() };
        assert_eq!(pointer.as_deref(), Some("/features"));
        assert!(detail.starts_with("none of the features is a polygon"), "{detail}");
    }
}

#[test]
fn a_height_that_cannot_be_used_counts_as_missing() {
    let odd = ["12,5", "unknown", "-1"]
        .map(|text| house(&json!(text), &json!([square(0.0, 50.0, 20.0)])));
    let words = [
        "heights that are no metres from 1 to 1000: 3 of 5, such as \"12,5\"; they count as missing",
        "buildings without a height: 3 of 5; each counts with the mean of the others",
    ];
    assert_eq!(city(&odd), (5, words.map(str::to_owned).to_vec()));
    let RunRefusal::Unprocessable { pointer, detail } = read(&json!(odd)).unwrap_err() else {
        panic!()
    };
    assert_eq!(pointer.as_deref(), Some("/features"));
    assert_eq!(detail, "none of the buildings has a height in metres, or building:levels");
}

#[test]
fn buildings_outside_the_area_are_left_out_and_counted() {
    let far = [
        house(&json!(9), &json!([square(500.0, 10.0, 20.0)])),
        house(&json!(9), &json!([square(-90.0, 10.0, 20.0)])),
    ];
    let words = "buildings outside the area: 2 of 4; they are left out";
    assert_eq!(city(&far), (2, vec![words.to_owned()]));
    // One that reaches into the area is in it.
    assert_eq!(city(&[house(&json!(9), &json!([square(90.0, 90.0, 20.0)]))]), (3, vec![]));
    let refused = |features: Value, area: &Area| {
        let collection = json!({"type": "FeatureCollection", "features": features});
        let refused = Buildings::read(&Node::root(&collection), area).unwrap_err();
        let RunRefusal::Unprocessable { pointer, detail } = refused else { panic!() };
        assert_eq!(pointer.as_deref(), Some("/features"));
        detail
    };
    assert_eq!(
        refused(json!(far), &area()),
        "all buildings are outside the area: x_m from -90 to 500, y_m from 10 to 10"
    );
    let degrees =
        json!({"area": {"west": 8, "south": 47, "east": 8.02, "north": 47.02}, "step_m": 100});
    let degrees = Area::read(&Node::root(&degrees).open_object().unwrap()).unwrap();
    let swapped = house(&json!(9), &json!([square(47.01, 8.01, 0.0003)]));
    assert_eq!(
        refused(json!([swapped]), &degrees),
        "all buildings are outside the area: lon from 47.01 to 47.01, lat from 8.01 to 8.01: GeoJSON has the coordinate to the east first"
    );
    let metres = house(&json!(9), &json!([square(500_000.0, 5_200_000.0, 20.0)]));
    let found = refused(json!([metres]), &degrees);
    assert!(found.starts_with("all buildings are outside the area: lon from 500000 to"), "{found}");
}

#[test]
fn a_crs_that_contradicts_the_area_is_refused_and_an_unknown_one_is_told() {
    let local = area();
    let degrees =
        json!({"area": {"west": 8, "south": 47, "east": 8.02, "north": 47.02}, "step_m": 100});
    let degrees = Area::read(&Node::root(&degrees).open_object().unwrap()).unwrap();
    let read = |crs: Value, area: &Area| {
        let at = if matches!(area.frame, crate::propagation::area::Frame::Local { .. }) {
            square(0.0, 0.0, 20.0)
        } else {
            square(8.01, 47.01, 0.0003)
        };
        let collection = json!({"type": "FeatureCollection", "crs": crs, "features": [house(&json!(9), &json!([at]))]});
        Buildings::read(&Node::root(&collection), area).map(|found| found.doubts)
    };
    let named = |name: &str| json!({"type": "name", "properties": {"name": name}});
    for (crs, area) in [
        (named("urn:ogc:def:crs:OGC:1.3:CRS84"), &degrees),
        (named("EPSG:4326"), &degrees),
        (named("urn:ogc:def:crs:EPSG::4258"), &degrees),
        (named("urn:ogc:def:crs:EPSG::25832"), &local),
        (json!({"type": "EPSG", "properties": {"code": 25_832}}), &local),
        (Value::Null, &local),
    ] {
        assert_eq!(read(crs, area), Ok(vec![]));
    }
    for (crs, area, words) in [
        (named("EPSG:4326"), &local, "has degrees (EPSG 4326), but the area is in metres"),
        (named("EPSG:25832"), &degrees, "has metres (EPSG 25832), but the area is in degrees"),
        (named("EPSG:3857"), &local, "is in Mercator (EPSG 3857), whose metres are not those"),
        (
            named("EPSG:2263"),
            &local,
            "has coordinates in US survey feet (EPSG 2263), expected metres",
        ),
        (
            named("EPSG:4230"),
            &degrees,
            "has degrees that lie 132 m from the same degrees of WGS 84 (EPSG 4230)",
        ),
    ] {
        let RunRefusal::Unprocessable { pointer, detail } = read(crs, area).unwrap_err() else {
            panic!()
        };
        assert_eq!(pointer.as_deref(), Some("/crs"));
        assert!(detail.starts_with(words), "{detail}");
    }
    for crs in [named("EPSG:1"), json!({"type": "link", "properties": {"href": "x"}}), json!("x")] {
        let found = read(crs, &local).unwrap();
        assert!(found[0].starts_with("the crs of the buildings ("), "{found:?}");
    }
}
