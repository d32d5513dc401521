//! Coverages from a request to their last event.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests are tests too")]

mod refused;

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anemone_hub::run::{
    Run, RunInput, RunLimits, RunRefusal, RunService, RunState, RunWork, Runs, StartRun,
};
use anemone_hub::{After, UnixTime};
use anemone_services::Propagation;
use anemone_services::propagation::model::{
    City, EARTH_KM, FreeSpace, Profile, Street, WalfischIkegami, bullington_db,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

fn prepare(body: &str) -> Result<RunWork, RunRefusal> {
    Propagation::with_helpers(2)
        .prepare(RunInput { body: body.to_owned().into(), ..RunInput::default() })
}

/// Waits for the end of a run, and returns its partial results and its result.
fn outcome(run: &Arc<Run>) -> (Vec<Value>, Value) {
    while !run.has_ended() {
        thread::yield_now();
    }
    let mut position = run.topic().start(UnixTime::now(), After::Earliest).unwrap();
    let (mut partials, mut result) = (Vec::new(), Value::Null);
    loop {
        let page = run.topic().read(UnixTime::now(), position, Default::default()).unwrap();
        for event in &page.events {
            let mut event: Value = serde_json::from_str(event.data.as_str()).unwrap();
            if event["state"] == "done" {
                result = event["result"].take();
            } else if !event["partial"].is_null() {
                partials.push(event["partial"].take());
            }
        }
        if page.is_last {
            let status = run.status(Instant::now());
            assert_eq!(status.state, RunState::Done, "{status:?}");
            return (partials, result);
        }
        position = page.next;
    }
}

fn run_of(request: &Value) -> (Vec<Value>, Value) {
    let runs = Runs::new(RunLimits::default());
    let work = prepare(&request.to_string()).unwrap();
    outcome(&runs.start(StartRun::new("/propagation", work)).unwrap().run)
}

fn bytes(text: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(text.as_str().unwrap()).unwrap()
}

/// The columns and rows of the points of a tile, as docs/PROPAGATION.md says.
fn points(tile: &Value) -> Vec<(usize, usize)> {
    let number = |name: &str| usize::try_from(tile[name].as_u64().unwrap()).unwrap();
    let (stride, column, row) = (number("stride"), number("column"), number("row"));
    let is_new = |at: usize| number("level") == 0 || !at.is_multiple_of(2 * stride);
    let rows = (row..row + number("rows")).step_by(stride);
    rows.flat_map(|row| {
        let columns = (column..column + number("columns")).step_by(stride);
        columns
            .filter(move |column| is_new(*column) || is_new(row))
            .map(move |column| (column, row))
    })
    .collect()
}

/// The values of all tiles by column and row. Each point is in one tile.
fn values(partials: &[Value], quantity: &str) -> (usize, Vec<f64>) {
    let area = &partials[0]["coverage"]["area"];
    let [columns, rows] =
        ["columns", "rows"].map(|name| usize::try_from(area[name].as_u64().unwrap()).unwrap());
    let mut grid = vec![f64::NAN; columns * rows];
    for partial in &partials[1..] {
        let bytes = bytes(&partial[quantity]);
        let values: Vec<_> = if quantity == "server" {
            bytes.iter().map(|server| f64::from(*server)).collect()
        } else {
            bytes
                .chunks(2)
                .map(|two| f64::from(i16::from_le_bytes([two[0], two[1]])) / 100.0)
                .collect()
        };
        let points = points(&partial["tile"]);
        assert_eq!(points.len(), values.len(), "{}", partial["tile"]);
        for ((column, row), value) in points.into_iter().zip(values) {
            let cell = &mut grid[row * columns + column];
            assert!(cell.is_nan(), "column {column}, row {row} is there twice");
            *cell = value;
        }
    }
    assert!(grid.iter().all(|value| !value.is_nan()), "all points are there");
    (columns, grid)
}

fn transmitter(x_m: f64, y_m: f64) -> Value {
    json!({"x_m": x_m, "y_m": y_m, "height_m": 30, "power_dbm": 43, "gain_dbi": 15, "frequency_mhz": 900})
}

/// A coverage of 10 km x 8 km.
fn coverage() -> Value {
    json!({
        "area": {"width_m": 10_000, "height_m": 8_000},
        "step_m": 50,
        "model": "free-space",
        "quantities": ["loss_db", "received_dbm", "field_dbuv_m"],
        "transmitters": [transmitter(2_000.0, 4_000.0)],
    })
}

fn with(mut request: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

#[test]
fn the_tiles_have_each_point_once_with_the_values_of_the_model() {
    let (partials, result) = run_of(&coverage());
    assert_eq!(partials[0]["coverage"]["tiles"].as_u64().unwrap(), partials.len() as u64 - 1);
    let (columns, loss_db) = values(&partials, "loss_db");
    let (_, received_dbm) = values(&partials, "received_dbm");
    let (_, field) = values(&partials, "field_dbuv_m");
    assert_eq!((columns, loss_db.len()), (201, 201 * 161));
    let model = FreeSpace::new(900.0);
    for (at, loss_db) in loss_db.iter().enumerate() {
        let (column, row) = ((at % columns) as f64, (at / columns) as f64);
        let metres =
            (column * 50.0 - 2_000.0).hypot(8_000.0 - row * 50.0 - 4_000.0).max(1.0).hypot(28.5);
        assert!((loss_db - model.loss_db(metres / 1e3)).abs() < 0.006, "{column} {row}: {loss_db}");
        assert!((received_dbm[at] - (43.0 + 15.0 - loss_db)).abs() < 0.011);
        let expected = received_dbm[at] + 20.0 * 900_f64.log10() + 77.2;
        assert!((field[at] - expected).abs() < 0.011);
    }
    assert_eq!(result["points"], loss_db.len());
    let high = loss_db.iter().copied().fold(0.0, f64::max);
    assert_eq!(result["loss_db"]["max"].as_f64(), Some(high));
    assert_eq!(result["warnings"], json!([]));
}

#[test]
fn the_best_of_several_transmitters_serves_each_point() {
    let mut sector = transmitter(8_000.0, 4_000.0);
    sector["antenna"] =
        json!({"type": "sector", "azimuth_deg": 90, "beamwidth_deg": 65, "front_to_back_db": 25});
    let request =
        with(coverage(), json!({"transmitters": [transmitter(2_000.0, 4_000.0), sector]}));
    let (partials, _) = run_of(&request);
    let (columns, server) = values(&partials, "server");
    let (_, loss_db) = values(&partials, "loss_db");
    let at = |x_m: usize, y_m: usize| (8_000 - y_m) / 50 * columns + x_m / 50;
    assert_eq!((server[at(3_000, 4_000)], server[at(9_000, 4_000)]), (0.0, 1.0));
    // Behind the sector, 25 dB are more than the longer way.
    assert_eq!(server[at(7_000, 4_000)], 0.0);
    assert!((loss_db[at(7_000, 4_000)] - FreeSpace::new(900.0).loss_db(5.000_081)).abs() < 0.006);
}

#[test]
fn terrain_adds_what_its_profile_says() {
    // A ridge of 300 m runs from south to north, on a plain at 100 m.
    let row =
        |_| (0..101).map(|column| if column == 50 { "400 " } else { "100 " }).collect::<String>();
    let text: String = (0..81).map(row).collect();
    let text = format!("ncols 101\nnrows 81\nxllcenter 0\nyllcenter 0\ncellsize 100\n{text}");
    let request = with(
        coverage(),
        json!({"terrain": {"type": "esri-ascii", "text": text}, "diffraction": "bullington", "quantities": ["loss_db"]}),
    );
    let (partials, result) = run_of(&request);
    let (columns, loss_db) = values(&partials, "loss_db");
    let at = |x_m: usize| (8_000 - 4_000) / 50 * columns + x_m / 50;
    let km: Vec<f64> = (0..=70).map(|at| f64::from(at) / 10.0).collect();
    let ground_m: Vec<f64> =
        km.iter().map(|km| if (km - 3.0).abs() < 1e-9 { 400.0 } else { 100.0 }).collect();
    let profile = Profile {
        km: &km,
        ground_m: &ground_m,
        first_m: 130.0,
        second_m: 101.5,
        earth_km: EARTH_KM,
    };
    let expected =
        FreeSpace::new(900.0).loss_db(7_f64.hypot(0.0285)) + bullington_db(&profile, 900.0);
    assert!((loss_db[at(9_000)] - expected).abs() < 0.02, "{} {expected}", loss_db[at(9_000)]);
    assert!(loss_db[at(9_000)] > loss_db[at(4_000)] + 40.0);
    assert_eq!(result["warnings"], json!([]));
    let terrain = &partials[0]["coverage"]["terrain"];
    let heights = bytes(&terrain["heights_m"]);
    assert_eq!(
        heights.len() as u64,
        2 * terrain["columns"].as_u64().unwrap() * terrain["rows"].as_u64().unwrap()
    );
}

/// A GeoTIFF file of the library, in Base64: its first cell has this corner in the north-west. The first key is that of the
/// coordinates: 1 for metres, 2 for degrees.
fn geotiff(heights: &[f32], columns: u32, corner: [f64; 2], cell: f64, kind: u16) -> Value {
    geotiff_of(heights, columns, corner, cell, &[1024, kind])
}

/// A GeoTIFF file with these keys, each with its code.
fn geotiff_of(heights: &[f32], columns: u32, corner: [f64; 2], cell: f64, keys: &[u16]) -> Value {
    let mut file = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap();
    let rows = heights.len() as u32 / columns;
    let mut image = encoder.new_image::<colortype::Gray32Float>(columns, rows).unwrap();
    let tags = image.encoder();
    tags.write_tag(Tag::ModelPixelScaleTag, &[cell, cell, 0.0][..]).unwrap();
    let tie = [0.0, 0.0, 0.0, corner[0], corner[1], 0.0];
    tags.write_tag(Tag::ModelTiepointTag, &tie[..]).unwrap();
    let entries = keys.chunks(2).flat_map(|key| [key[0], 0, 1, key[1]]);
    let directory: Vec<_> = [1, 1, 0, keys.len() as u16 / 2].into_iter().chain(entries).collect();
    tags.write_tag(Tag::GeoKeyDirectoryTag, &directory[..]).unwrap();
    tags.write_tag(Tag::GdalNodata, "-9999").unwrap();
    image.write_data(heights).unwrap();
    json!({"type": "geotiff", "data": BASE64_STANDARD.encode(file.into_inner())})
}

/// A small area in degrees, and a transmitter in it.
fn degrees() -> Value {
    let mut transmitter = transmitter(0.0, 0.0);
    for name in ["x_m", "y_m"] {
        transmitter.as_object_mut().unwrap().remove(name);
    }
    (transmitter["lon"], transmitter["lat"]) = (json!(8.01), json!(47.01));
    json!({
        "area": {"west": 8, "south": 47, "east": 8.02, "north": 47.02},
        "step_m": 200, "transmitters": [transmitter],
    })
}

/// A GeoTIFF file of heights of 1,000 with these keys, for the area in degrees or in metres.
fn keyed(keys: &[u16]) -> Value {
    let is_degrees = keys[1] == 2;
    let (corner, cell) =
        if is_degrees { ([7.9, 47.1], 0.1) } else { ([-1_000.0, 10_000.0], 10_000.0) };
    geotiff_of(&[1_000.0; 9], 3, corner, cell, keys)
}

/// The sentences of the warnings of a run about its input.
fn doubts(request: &Value) -> Vec<String> {
    let (partials, result) = run_of(request);
    let words = |warnings: &Value| -> Vec<String> {
        let all = warnings.as_array().unwrap().iter();
        let of_input = all.filter(|warning| warning["transmitter"].is_null());
        of_input.map(|warning| warning["detail"].as_str().unwrap().to_owned()).collect()
    };
    let first = words(&partials[0]["coverage"]["warnings"]);
    assert_eq!(first, words(&result["warnings"]), "they are told at once, and again at the end");
    first
}

#[test]
fn what_a_file_of_terrain_says_is_used_or_told() {
    let of_degrees = |keys: &[u16]| {
        let request = with(coverage(), degrees());
        doubts(&with(request, json!({"terrain": keyed(keys)})))
    };
    let of_metres =
        |keys: &[u16]| doubts(&with(coverage(), json!({"terrain": keyed(keys), "step_m": 1_000})));
    let coarse = |words: &[String]| words.iter().any(|word| word.contains("each larger than"));
    // NAD83, ETRS89, GDA2020 and JGD2011 count as WGS 84; so does UTM as metres on the ground.
    for code in [4326, 4269, 4258, 7844, 6668] {
        let found = of_degrees(&[1024, 2, 2048, code]);
        assert!(coarse(&found) && found.len() == 1, "{code}: {found:?}");
    }
    assert_eq!(of_metres(&[1024, 1, 3072, 32_632]), Vec::<String>::new());
    for (keys, words) in [
        (
            &[1024, 1, 3072, 32_632, 4096, 6360][..],
            "the terrain has heights in US survey feet: they are converted to metres",
        ),
        (
            &[1024, 1, 3072, 19_999],
            "the terrain is in EPSG 19999, which is not known here: its coordinates count as metres on the ground",
        ),
        (
            &[1024, 1, 3072, 3035],
            "the terrain is in Lambert's azimuthal equal-area projection (EPSG 3035): its distances can differ from those on the ground by some percent",
        ),
    ] {
        assert_eq!(of_metres(keys), [words]);
    }
    // The heights of the map are the converted ones.
    let feet = json!({"terrain": keyed(&[1024, 1, 4099, 9002]), "step_m": 1_000});
    let (partials, _) = run_of(&with(coverage(), feet));
    let heights = bytes(&partials[0]["coverage"]["terrain"]["heights_m"]);
    assert!(heights.chunks(2).all(|two| i16::from_le_bytes([two[0], two[1]]) == 305));
}

#[test]
fn terrain_from_0_to_360_degrees_is_that_of_the_same_places() {
    let of = |west: f64| {
        let heights: Vec<f32> = (0..100).map(|at| at as f32).collect();
        let terrain = geotiff_of(&heights, 10, [west, 47.05], 0.01, &[1024, 2]);
        let mut request = with(coverage(), degrees());
        request["area"] = json!({"west": -75, "south": 47, "east": -74.98, "north": 47.02});
        (request["transmitters"][0]["lon"], request["terrain"]) = (json!(-74.99), terrain);
        values(&run_of(&request).0, "loss_db")
    };
    let (columns, losses) = of(284.95);
    let (same_columns, same) = of(-75.05);
    assert_eq!(columns, same_columns);
    // The longitudes differ in their last digits.
    assert!(losses.iter().zip(&same).all(|(one, other)| (one - other).abs() < 0.02));
}

#[test]
fn the_same_grid_is_the_same_terrain_in_each_form_of_a_file() {
    let (columns, rows) = (103_u32, 83_u32);
    let height = |at: u32| f64::from(at % 17 * 20 + at % columns).round();
    let heights: Vec<f64> = (0..columns * rows).map(height).collect();
    let text: Vec<String> = heights.iter().map(f64::to_string).collect();
    let text = format!(
        "ncols {columns} nrows {rows} xllcorner -100 yllcorner -100 cellsize 100 {}",
        text.join(" ")
    );
    let heights: Vec<f32> = heights.iter().map(|height| *height as f32).collect();
    let file = geotiff(&heights, columns, [-100.0, 8_200.0], 100.0, 1);
    let of = |terrain: Value| {
        let request = json!({"terrain": terrain, "step_m": 200, "quantities": ["loss_db"]});
        let (partials, result) = run_of(&with(coverage(), request));
        (values(&partials, "loss_db"), partials[0]["coverage"]["terrain"].clone(), result)
    };
    assert_eq!(of(file), of(json!({"type": "esri-ascii", "text": text})));
    // A map in the coordinates of a projection, which its places and the file have, is the same map.
    let (x_m, y_m) = (412_345.0, 5_298_765.0);
    let projected = geotiff(&heights, columns, [x_m - 100.0, y_m + 8_200.0], 100.0, 1);
    let changes = json!({
        "area": {"x_m": x_m, "y_m": y_m, "width_m": 10_000, "height_m": 8_000},
        "transmitters": [transmitter(x_m + 2_000.0, y_m + 4_000.0)],
        "terrain": projected, "step_m": 200, "quantities": ["loss_db"],
    });
    let (partials, _) = run_of(&with(coverage(), changes));
    let area = &partials[0]["coverage"]["area"];
    assert_eq!((&area["x_m"], &area["y_m"]), (&json!(x_m), &json!(y_m)));
    assert_eq!(
        values(&partials, "loss_db"),
        of(geotiff(&heights, columns, [-100.0, 8_200.0], 100.0, 1)).0
    );
    // Cells without a height count as 0 m, and are told.
    let mut holes = heights;
    (holes[5], holes[6]) = (-9_999.0, -9_999.0);
    let (.., result) = of(geotiff(&holes, columns, [-100.0, 8_200.0], 100.0, 1));
    let warning = &result["warnings"][0]["detail"];
    assert_eq!(warning, "2 cells of the terrain have no height, and count as 0 m");
}

#[test]
fn watchers_are_told_the_document_unless_it_is_too_deep_for_an_event() {
    let request = with(coverage(), json!({"step_m": 1_000}));
    assert_eq!(run_of(&request).0[0]["document"], request);
    let corners = json!([[0, 0], [20, 0], [20, 20], [0, 0]]);
    let house = json!({
        "type": "Feature",
        "properties": {"height": 9, "deep": (0..110).fold(json!(1), |inside, _| json!([inside]))},
        "geometry": {"type": "Polygon", "coordinates": [corners]},
    });
    let buildings = json!({"type": "FeatureCollection", "features": [house]});
    let deep = with(request, json!({ "buildings": buildings }));
    let (partials, result) = run_of(&deep);
    assert_eq!((partials[0].get("document"), result["points"].as_u64()), (None, Some(11 * 9)));
}

#[test]
fn the_valley_comes_with_the_program_and_its_hills_hide_points() {
    let valley = json!({"terrain": {"type": "valley", "depth_m": 500}, "step_m": 200, "quantities": ["loss_db"]});
    let (_, plain) = run_of(&with(coverage(), json!({"step_m": 200, "quantities": ["loss_db"]})));
    for diffraction in ["bullington", "deygout"] {
        let request = with(with(coverage(), valley.clone()), json!({"diffraction": diffraction}));
        let (_, result) = run_of(&request);
        let most = |result: &Value| result["loss_db"]["max"].as_f64().unwrap();
        assert!(most(&result) > most(&plain) + 20.0, "{result} {plain}");
    }
}

#[test]
fn buildings_give_the_urban_model_its_streets_and_hide_points() {
    let square = |x: f64, y: f64| {
        json!({"type": "Feature", "properties": {"height": 15}, "geometry": {"type": "Polygon", "coordinates":
            [[[x, y], [x + 40.0, y], [x + 40.0, y + 40.0], [x, y + 40.0], [x, y]]]}})
    };
    // Streets of 20 m between houses of 40 m.
    let mut houses: Vec<_> =
        (0..256).map(|at| square(f64::from(at % 16) * 60.0, f64::from(at / 16) * 60.0)).collect();
    // As in maps, some have no height.
    houses[0]["properties"] = json!({});
    let mut low = transmitter(50.0, 50.0);
    (low["height_m"], low["frequency_mhz"]) = (json!(10), json!(1_800));
    let request = json!({
        "area": {"width_m": 940, "height_m": 940}, "step_m": 10, "model": "walfisch-ikegami", "environment": "urban-large",
        "quantities": ["loss_db"], "transmitters": [low],
        "buildings": {"type": "FeatureCollection", "features": houses},
    });
    let (partials, result) = run_of(&request);
    let street = &partials[0]["coverage"]["street"];
    assert_eq!(street["building_height_m"], 15.0);
    let found =
        ["building_separation_m", "street_width_m"].map(|name| street[name].as_f64().unwrap());
    assert!((found[0] - 58.75).abs() < 1e-9 && (found[1] - 18.75).abs() < 1e-9, "{street}");
    let (columns, loss_db) = values(&partials, "loss_db");
    let at = |x_m: usize, y_m: usize| (940 - y_m) / 10 * columns + x_m / 10;
    // Along the street, the transmitter is in sight; behind the houses it is not.
    let seen = 42.6 + 26.0 * 0.6_f64.log10() + 20.0 * 1_800_f64.log10();
    assert!((loss_db[at(50, 650)] - seen).abs() < 0.01, "{}", loss_db[at(50, 650)]);
    let street = Street {
        roof_m: 15.0,
        width_m: 18.75,
        separation_m: 58.75,
        angle_deg: 90.0,
        city: City::Metropolitan,
    };
    let hidden = WalfischIkegami::new(1_800.0, 10.0, 1.5, &street).loss_db(0.6 * 2_f64.sqrt());
    assert!((loss_db[at(650, 650)] - hidden).abs() < 0.01, "{}", loss_db[at(650, 650)]);
    let warning = &result["warnings"][0]["detail"];
    assert_eq!(
        *warning,
        "buildings without a height: 1 of 256; each counts with the mean of the others"
    );
    let nearest = &result["warnings"][1];
    assert_eq!(
        (nearest["quantity"].as_str(), nearest["min"].as_f64()),
        (Some("distance_km"), Some(0.02))
    );
}

#[test]
fn what_lies_outside_the_range_of_a_model_is_a_warning() {
    let mut far = transmitter(2_000.0, 4_000.0);
    (far["frequency_mhz"], far["height_m"]) = (json!(2_600), json!(20));
    let request = with(
        coverage(),
        json!({"model": "hata", "environment": "suburban", "transmitters": [far], "receiver": {"height_m": 12}}),
    );
    let (partials, result) = run_of(&request);
    let words = |warnings: &Value| -> Vec<String> {
        let warnings = warnings.as_array().unwrap().iter();
        warnings.map(|warning| warning["detail"].as_str().unwrap().to_owned()).collect()
    };
    let first = words(&partials[0]["coverage"]["warnings"]);
    assert_eq!(
        first,
        [
            "the frequency is 2600 MHz, the model is made for 150 to 1500 MHz",
            "the height of the transmitter is 20 m, the model is made for 30 to 200 m",
            "the height of the receiver is 12 m, the model is made for 1 to 10 m",
        ]
    );
    let last = words(&result["warnings"]);
    assert_eq!(last[..3], first[..]);
    assert_eq!(
        last[3],
        "1245 points are outside the distances of the model, 1 to 20 km: they are 0.001 to 0.996 km away"
    );
    // In the range of all quantities there is no warning.
    let mut near = transmitter(0.0, 0.0);
    near["height_m"] = json!(100);
    let request = json!({"area": {"width_m": 1, "height_m": 1}, "step_m": 1, "model": "hata", "transmitters": [near]});
    assert_eq!(words(&run_of(&request).1["warnings"]).len(), 1, "all four points are too near");
}

#[test]
fn the_plan_is_kept_beside_a_result_with_large_outputs() {
    let request = with(coverage(), json!({"output": {"formats": ["csv"]}}));
    let run_within = |bytes_max| {
        let runs = Runs::new(RunLimits { bytes_max, ..RunLimits::default() });
        let work = prepare(&request.to_string()).unwrap();
        let run = runs.start(StartRun::new("/propagation", work)).unwrap().run;
        let (partials, result) = outcome(&run);
        (partials, result.to_string().len() as u64)
    };
    let (all, result_bytes) = run_within(RunLimits::default().bytes_max);
    let of_tiles: usize = all.iter().map(|partial| partial.to_string().len() + 1_000).sum();
    assert!(result_bytes > of_tiles as u64, "what comes before is smaller than the result");
    let (kept, _) = run_within(result_bytes + 1_000);
    assert_eq!(kept[0], all[0]);
    assert_eq!(kept.len(), all.len());
}

#[test]
fn cancelled_coverages_stop_and_leave_room_for_others() {
    let slow = with(
        coverage(),
        json!({"step_m": 10, "terrain": {"type": "valley"}, "transmitters": vec![transmitter(2_000.0, 4_000.0); 16]}),
    );
    let runs = Runs::new(RunLimits { running_max: 1, ..RunLimits::default() });
    let start = |request: &Value| {
        let work = prepare(&request.to_string()).unwrap();
        runs.start(StartRun::new("/propagation", work)).unwrap().run
    };
    for events in [1, 2, 3] {
        let run = start(&slow);
        while run.topic().info(UnixTime::now()).events() < events {
            thread::yield_now();
        }
        run.cancel().unwrap();
        // It begins once the work of the cancelled one has returned.
        let (partials, _) = outcome(&start(&with(coverage(), json!({"step_m": 2_000}))));
        assert_eq!(partials.len(), 2);
        assert_eq!(run.status(Instant::now()).state, RunState::Cancelled);
    }
}

#[test]
fn the_result_is_also_geojson_csv_and_an_image() {
    let output = json!({"formats": ["geojson", "csv", "png"], "quantity": "loss_db", "levels": [100.0, 300.0]});
    let (partials, result) = run_of(&with(coverage(), json!({"output": output})));
    let outputs = &result["outputs"];
    let (_, loss_db) = values(&partials, "loss_db");
    let csv = outputs["csv"].as_str().unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("x_m,y_m,loss_db,received_dbm,field_dbuv_m,server"));
    let losses = lines.map(|line| line.split(',').nth(2).unwrap().parse::<f64>().unwrap());
    assert!(losses.zip(&loss_db).all(|(csv, tile)| (csv - tile).abs() < 0.011));
    assert!(csv.contains("\n2000,4000,") && csv.lines().count() == loss_db.len() + 1);
    let features = &outputs["geojson"]["features"];
    assert_eq!(
        (&features[0]["properties"]["loss_db"], features[1]["geometry"]["coordinates"].clone()),
        (&json!(100.0), json!([]))
    );
    // In free space, the contour is a circle around the transmitter.
    let line = features[0]["geometry"]["coordinates"][0].as_array().unwrap();
    assert!(line.len() > 100);
    for at in line {
        let [x_m, y_m] = [0, 1].map(|part| at[part].as_f64().unwrap());
        let found = FreeSpace::new(900.0).loss_db((x_m - 2_000.0).hypot(y_m - 4_000.0) / 1e3);
        assert!((found - 100.0).abs() < 0.02, "{at}: {found}");
    }
    let image = bytes(&outputs["png"]);
    assert_eq!((&image[1..4], &image[16..24]), (&b"PNG"[..], &[0, 0, 0, 201, 0, 0, 0, 161][..]));
    // Without levels, GeoJSON has the points.
    let points =
        json!({"output": {"formats": ["geojson"]}, "step_m": 2_000, "quantities": ["loss_db"]});
    let (_, result) = run_of(&with(coverage(), points));
    let features = result["outputs"]["geojson"]["features"].as_array().unwrap();
    assert_eq!(
        (features.len(), &features[0]["geometry"]),
        (30, &json!({"type": "Point", "coordinates": [0.0, 8_000.0]}))
    );
}

#[test]
fn the_examples_are_computed() {
    for (text, points) in [
        (include_str!("../../../../../examples/propagation/valley.json"), 154 * 134),
        (include_str!("../../../../../examples/propagation/city.json"), 401 * 301),
    ] {
        let (_, result) = run_of(&serde_json::from_str(text).unwrap());
        assert_eq!(result["points"], points, "{result}");
    }
}
