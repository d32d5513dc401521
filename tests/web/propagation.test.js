/** The parts of the page about propagation that know no page: tiles, places, colours, contours, profiles, documents and files. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { areaOf, isBeyondMap, readGrid } from "../../web/page/propagation/area.js";
import { buildingsFault, buildingsIn, city, outlinesOf } from "../../web/page/propagation/buildings.js";
import { colourAt, colourRange, palette } from "../../web/page/propagation/colours.js";
import { contour, readLevels } from "../../web/page/propagation/contours.js";
import { VALIDITY, addTransmitter, coverageFault, faultOf, fieldsIn, fitted, isOutside, moveInside, moveTransmitter, spotOf, transmitterFields } from "../../web/page/propagation/document.js";
import { hashOf, keysIn } from "../../web/page/propagation/address.js";
import { FILE_BYTES_MAX, TIFF_BYTES_MAX, readBuildings, readTerrain } from "../../web/page/propagation/files.js";
import { readGeoTiff } from "../../web/page/propagation/geotiff.js";
import { get, set } from "../../web/page/propagation/pointers.js";
import { PRESETS, presetOf } from "../../web/page/propagation/presets.js";
import { profile, profileInWords } from "../../web/page/propagation/profile.js";
import { Frame, View, tileUrl, webTiles } from "../../web/page/propagation/projection.js";
import { Relief } from "../../web/page/propagation/relief.js";
import { Grid, NONE, eachPoint, numbersOf } from "../../web/page/propagation/tiles.js";

/** @param {readonly number[]} values */
function base64Of(values) {
  return Buffer.from(Int16Array.from(values).buffer).toString("base64");
}

/**
 * A tile whose values are 1,000 times the column and the row.
 * @param {import("../../web/page/propagation/tiles.js").Tile} tile
 */
function tileEvent(tile) {
  /** @type {number[]} */
  const values = [];
  eachPoint(tile, (column, row) => values.push(100 * column + row));
  return { tile, loss_db: base64Of(values) };
}

/** @typedef {[min: number, max: number]} Ends */
/** @typedef {{ document: import("../../web/page/propagation/document.js").Coverage, bounds: Record<string, Ends> }} FieldRanges */

// The service has these ranges in its own code: the tests of crates/services/src/propagation/coverage.rs read the same file.
test("models and fields have the ranges that the service has", async () => {
  const { validity, fields } = /** @type {{ validity: Record<string, Record<string, Ends>>, fields: FieldRanges[] }} */ (JSON.parse(await readFile("tests/cases/propagation.json", "utf8")));
  const names = /** @type {const} */ ({ mhz: "frequency_mhz", base: "base_height_m", mobile: "mobile_height_m", km: "distance_km" });
  const own = Object.entries(VALIDITY).map(([model, ranges]) => [model, Object.fromEntries(Object.entries(ranges).map(([name, ends]) => [names[/** @type {keyof typeof names} */ (name)], ends]))]);
  assert.deepEqual(Object.fromEntries(own), validity);
  for (const { document, bounds } of fields) {
    // The ends of a longitude or a latitude are those of the area, with digits that depend on the order of the operations.
    const numbers = fieldsIn({ ...document, transmitters: document.transmitters.slice(0, 1) }).filter(({ kind, pointer }) => kind === "number" && !/\/(lon|lat)$/.test(pointer));
    assert.deepEqual(Object.fromEntries(numbers.map(({ pointer, min, max }) => [pointer, [min, max]])), bounds);
    for (const field of numbers) {
      const [min, max] = /** @type {Ends} */ (bounds[field.pointer]);
      assert.deepEqual([min - 1e-6, min, max, max + 1e-6].map((value) => faultOf(field, value) !== null), [true, false, false, true], field.pointer);
    }
  }
});

test("numbers are signed, with the low byte first", () => {
  assert.deepEqual([...numbersOf("ZACA/w==")], [100, -128]);
});

test("tiles in any order give each point its own value, and fill the squares around points that are missing", () => {
  const [columns, rows] = [11, 7];
  const tiles = [4, 2, 1].map((stride, level) => tileEvent({ level, stride, column: 0, row: 0, columns, rows }));
  const [coarse, middle, fine] = tiles;
  for (const order of [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 1, 0]]) {
    const grid = new Grid({ columns, rows }, ["loss_db"], false);
    for (const index of order) assert.ok(grid.add(/** @type {any} */ (tiles[index])));
    assert.equal(grid.points, columns * rows);
    assert.ok(grid.isWhole);
    assert.equal(grid.stride, 1);
    for (let row = 0; row < rows; row += 1) for (let column = 0; column < columns; column += 1) assert.equal(grid.at("loss_db", column, row), column + row / 100);
  }
  const grid = new Grid({ columns, rows }, ["loss_db"], false);
  assert.deepEqual(grid.add(/** @type {any} */ (coarse)), { left: 0, top: 0, right: columns, bottom: rows });
  assert.equal(grid.points, 6);
  assert.equal(grid.stride, 4);
  assert.ok(!grid.values("loss_db")?.includes(NONE), "the map is whole from the first tile on");
  assert.deepEqual([grid.at("loss_db", 5, 1), grid.at("loss_db", 10, 6), grid.at("loss_db", 11, 0)], [4, 8.04, null]);
  grid.add(/** @type {any} */ (middle));
  assert.equal(grid.stride, 2);
  grid.add(/** @type {any} */ (fine));
  assert.deepEqual(grid.quantiles("loss_db", [0, 1]), [0, 11]);
});

test("a tile that does not fit is left out", () => {
  const grid = new Grid({ columns: 4, rows: 4 }, ["loss_db"], true);
  const tile = { level: 0, stride: 2, column: 0, row: 0, columns: 4, rows: 4 };
  const loss_db = base64Of([1, 2, 3, 4]);
  for (const event of [
    { tile, loss_db },
    { tile, loss_db: base64Of([1]), server: "AAAAAA==" },
    { tile: { ...tile, stride: 3 }, loss_db, server: "AAAAAA==" },
    { tile: { ...tile, columns: 5 }, loss_db, server: "AAAAAA==" },
  ]) assert.equal(grid.add(event), null);
  assert.equal(grid.points, 0);
  assert.ok(grid.add({ tile, loss_db, server: "AAECAw==" }));
  assert.deepEqual([grid.serverAt(3, 3), grid.at("loss_db", 2, 0)], [3, 0.02]);
});

test("places are the same there and back", () => {
  const area = { west: 10.9, south: 46.6, east: 11.1, north: 46.72 };
  const frame = new Frame(area);
  // The service says the same of this area.
  assert.ok(Math.abs(frame.width - 15_307.418) < 0.01 && Math.abs(frame.height - 13_339.701) < 0.01);
  const spot = frame.spot(11.02, 46.66);
  assert.deepEqual(frame.coordinates(spot), [11.02, 46.66]);
  assert.equal(frame.inWords(spot), "46.6600° N, 11.0200° E");
  const [east, north] = frame.coordinates(frame.inside({ x: 1e9, y: -1e9 }));
  assert.ok(east <= area.east && north >= area.south);
  assert.deepEqual(new Frame({ width_m: 100, height_m: 50 }).inside({ x: -3, y: 60 }), { x: 0, y: 50 });
  const projected = new Frame({ x_m: 412_345, y_m: 5_298_765.5, width_m: 100, height_m: 50 });
  assert.deepEqual([projected.spot(412_355, 5_298_770.5), projected.coordinates({ x: 10, y: 5 })], [{ x: 10, y: 5 }, [412_355, 5_298_770.5]]);
  assert.deepEqual(projected.inside({ x: -3, y: 60 }), { x: 0.1, y: 49.9 });
});

test("a view keeps the place under the hand, and shows all again", () => {
  const view = new View();
  view.fit({ width: 1000, height: 500 }, { width: 416, height: 316 });
  assert.deepEqual([view.scale, view.pixel({ x: 0, y: 500 })], [0.4, { x: 8, y: 58 }]);
  assert.ok(view.isWhole);
  const before = view.spot(100, 100);
  view.zoom(0.5, 100, 100);
  const after = view.spot(100, 100);
  assert.ok(Math.abs(before.x - after.x) < 1e-9 && Math.abs(before.y - after.y) < 1e-9);
  view.pan(0.8, 0);
  assert.ok(!view.isWhole);
  assert.ok(Math.abs(view.spot(100, 100).x - after.x - 1) < 1e-9);
  view.zoom(1e9, null, null);
  assert.equal(view.scale, 0.2);
  view.reveal({ x: 1000, y: 0 });
  const { x, y } = view.pixel({ x: 1000, y: 0 });
  assert.ok(x <= 416 && y <= 316);
});

test("tiles of the web's maps cover the view", () => {
  const frame = new Frame({ west: 10.9, south: 46.6, east: 11.1, north: 46.72 });
  const tiles = webTiles(frame, { x: 0, y: 0 }, { x: frame.width, y: frame.height }, 0.04);
  assert.equal(tiles[0]?.z, 12);
  const [first] = tiles;
  assert.deepEqual([first?.x, first?.y], [2172, 1445]);
  assert.ok(first && first.low.x <= 0 && first.high.y >= frame.height);
  const last = tiles.at(-1);
  assert.ok(last && last.high.x >= frame.width && last.low.y <= 0);
  assert.equal(tileUrl("/tiles/{z}/{x}/{y}.png", { z: 1, x: 2, y: 3 }), "/tiles/1/2/3.png");
});

test("colours become brighter with the value, and their range keeps still", () => {
  const brightness = Array.from({ length: 101 }, (_, part) => {
    const [red, green, blue] = colourAt(part / 100);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
  assert.ok(brightness.every((value, index) => index === 0 || value > (brightness[index - 1] ?? 0) - 0.5), "brighter at each step");
  assert.ok((brightness[100] ?? 0) - (brightness[0] ?? 0) > 180);
  assert.deepEqual(palette(true)[0], palette(false)[255]);
  const range = colourRange(-118, -43, null);
  assert.deepEqual(range, { low: -120, high: -40, marks: [-120, -100, -80, -60, -40] });
  assert.equal(colourRange(-99, -50, range), range);
  assert.notEqual(colourRange(-121, -50, range), range);
  assert.deepEqual(colourRange(5, 5, null).marks, [0, 20, 40]);
});

test("contours lie where the values say", () => {
  const [columns, rows] = [9, 5];
  const values = Int16Array.from({ length: columns * rows }, (_, at) => (at % columns) * 100);
  const lines = contour(values, columns, 2.5, 1);
  assert.equal(lines.length, 4 * (rows - 1));
  assert.ok(lines.every((value, index) => index % 2 === 1 || value === 2.5));
  assert.deepEqual([...contour(values, columns, 2.5, 4)], [2.5, 0, 2.5, 4]);
  assert.equal(contour(values, columns, 99, 1).length, 0);
  assert.equal(contour(Int16Array.from([0, NONE, 100, 100]), 2, 0.5, 1).length, 0);
  // A saddle: the high corners are together if the middle is high.
  const north = (/** @type {number} */ low) => [...contour(Int16Array.from([100, low, low, 100]), 2, 0.5, 1)].length;
  assert.deepEqual([north(0), north(49)], [8, 8]);
  assert.deepEqual([...contour(Int16Array.from([100, 0, 0, 100]), 2, 0.4, 1)].slice(0, 4).map((value) => Math.round(value * 10) / 10), [0.6, 0, 1, 0.4]);
});

test("levels are read as they are typed", () => {
  assert.deepEqual(readLevels(" −90, -100;-90  -80.5 "), { levels: [-100, -90, -80.5], fault: null });
  assert.deepEqual(readLevels("-80,-90,-100").levels, [-100, -90, -80]);
  assert.deepEqual(readLevels("100,110,120").levels, [100, 110, 120]);
  assert.deepEqual(readLevels("−1,000,0, 1,000").levels, [-1000, 0, 1000]);
  assert.match(String(readLevels("-80,000").fault), /“-80,000”/);
  assert.match(String(readLevels("-90 x").fault), /“x”/);
  assert.match(String(readLevels("1001").fault), /1,000/);
  assert.equal(readLevels(Array.from({ length: 32 }, (_, at) => at).join(" ")).fault, null);
  assert.match(String(readLevels(Array.from({ length: 33 }, (_, at) => at).join(" ")).fault), /At most 32/);
});

test("a profile sees the hill in the way, the Earth's curve and the first Fresnel zone", () => {
  const [from, to] = [{ spot: { x: 0, y: 0 }, height: 30 }, { spot: { x: 10_000, y: 0 }, height: 30 }];
  const plain = profile(from, to, 300, () => 0);
  const middle = plain.steps[80];
  // 10 km²/4 over twice 8,500 km; and the square root of 1 m times 10 km over 4.
  assert.ok(Math.abs((middle?.ground ?? 0) - 1.47) < 0.01);
  assert.ok(Math.abs((middle?.zone ?? 0) - 50) < 0.1);
  assert.match(profileInWords(plain), /reaches into the first Fresnel zone/);
  const hill = profile(from, to, 300, ({ x }) => (Math.abs(x - 5000) < 100 ? 130 : 0));
  assert.match(profileInWords(hill), /^not in sight: the ground is 101 m above the line of sight, (4.9\d|5|5.0\d) km from the transmitter$/);
  assert.equal(profileInWords(profile({ ...from, height: 500 }, { ...to, height: 500 }, 300, () => 0)), "in sight, and the first Fresnel zone is free");
  assert.equal(profileInWords(profile(from, from, 300, () => 0)), "at the transmitter");
});

test("terrain has heights between those that are told, and is lighter where it faces the light", () => {
  // A slope that rises to the east, and one that rises to the west.
  const relief = new Relief({ columns: 3, rows: 2, heights_m: base64Of([0, 100, 0, 0, 100, 0]) }, { columns: 201, rows: 101, step_m: 1 });
  assert.deepEqual([relief.stepX, relief.stepY], [100, 100]);
  assert.deepEqual([relief.heightAt({ x: 50, y: 50 }), relief.heightAt({ x: 100, y: 0 }), relief.heightAt({ x: -5, y: 500 })], [50, 100, 0]);
  const shade = relief.shade();
  assert.ok((shade[0] ?? 0) > (shade[1] ?? 0) && (shade[1] ?? 0) > (shade[2] ?? 0));
  assert.throws(() => new Relief({ columns: 3, rows: 3, heights_m: "" }, { columns: 3, rows: 3, step_m: 1 }), RangeError);
});

test("the valley of the page is the example", async () => {
  const example = JSON.parse(await readFile(new URL("../../examples/propagation/valley.json", import.meta.url), "utf8"));
  assert.deepEqual(PRESETS[0]?.make(), example);
});

test("each preset fits the page, and its fields have no fault", () => {
  for (const { name, make } of PRESETS) {
    const document = make();
    assert.equal(coverageFault(document), null, name);
    for (const field of fieldsIn(document)) assert.equal(faultOf(field, get(document, field.pointer)), null, `${name} ${field.pointer}`);
    assert.deepEqual(fitted(document), document, name);
  }
  const buildings = city({ width_m: 1600, height_m: 1200 });
  assert.ok(buildings.features.length > 100 && outlinesOf(buildings).length === buildings.features.length);
  assert.deepEqual(city({ width_m: 1600, height_m: 1200 }), buildings);
});

test("values are found and changed by their pointers", () => {
  const document = { a: [{ "b/c": 1 }] };
  assert.equal(get(document, "/a/0/b~1c"), 1);
  assert.equal(get(document, "/a/7/x"), undefined);
  set(document, "/a/0/b~1c", undefined);
  set(document, "/d/e", 2);
  assert.deepEqual(document, { a: [{}], d: { e: 2 } });
});

test("a document is made to fit its model", () => {
  const [valley, town] = [PRESETS[0]?.make(), PRESETS[1]?.make()];
  assert.ok(valley && town);
  assert.deepEqual(fitted({ ...valley, model: "walfisch-ikegami" }).street, { building_height_m: 15, street_width_m: 20, building_separation_m: 40 });
  assert.equal(fitted({ ...valley, model: "hata", street: {} }).street, undefined);
  assert.equal(fitted({ ...valley, model: "cost231-hata", environment: "open" }).environment, "suburban");
  assert.equal(fitted({ ...valley, model: "two-ray", environment: "open" }).environment, undefined);
  const { terrain: _, ...plain } = valley;
  assert.equal(fitted(plain).diffraction, undefined);
  assert.equal(fitted(town).street, undefined);
});

test("what is refused and what is doubtful are told apart", () => {
  const document = /** @type {import("../../web/page/propagation/document.js").Coverage} */ (PRESETS[2]?.make());
  const frequency = transmitterFields(document, 0).find(({ pointer }) => pointer.endsWith("frequency_mhz"));
  assert.ok(frequency);
  assert.deepEqual([900, 3000].map((value) => isOutside(frequency, value)), [false, true]);
  assert.equal(faultOf(frequency, 3000), null);
  for (const value of [0, 300_001, NaN, "x"]) assert.equal(faultOf(frequency, value), "Frequency: allowed are 1 to 300,000 MHz.");
  assert.equal(faultOf(frequency, undefined), "Frequency: a value is missing.");
});

test("transmitters are added within the area, at most 16", () => {
  for (const preset of PRESETS) {
    const document = preset.make();
    const frame = new Frame(document.area);
    while (addTransmitter(document) !== null);
    assert.equal(document.transmitters.length, 16);
    for (const transmitter of document.transmitters) {
      const { x, y } = spotOf(transmitter, frame);
      assert.ok(x >= 0 && y >= 0 && x <= frame.width && y <= frame.height);
    }
    const [one] = document.transmitters;
    assert.ok(one);
    moveTransmitter(one, frame, { x: -10, y: 1e9 });
    const { x, y } = spotOf(one, frame);
    assert.ok(x >= 0 && y <= frame.height);
  }
});

test("in a new area, the transmitters that are inside stay, and the others are spread as before", () => {
  const valley = /** @type {import("../../web/page/propagation/document.js").Coverage} */ (PRESETS[0]?.make());
  const before = new Frame(valley.area);
  const [village, pass] = valley.transmitters;
  const document = { ...valley, area: { west: 11, south: 46.5, east: 11.4, north: 46.9 } };
  assert.deepEqual(moveInside(document, before), ["pass"]);
  assert.deepEqual(document.transmitters, [village, { ...pass, lon: 11.08, lat: 46.833333 }]);
  const metres = { ...valley, area: { width_m: 1000, height_m: 600 } };
  assert.deepEqual(moveInside(metres, before), ["village", "pass"]);
  assert.deepEqual(metres.transmitters.map(({ lon, x_m, y_m }) => [lon, x_m, y_m]), [[undefined, 600, 300], [undefined, 200, 500]]);
  const { lon: _, ...unplaced } = /** @type {import("../../web/page/propagation/document.js").Transmitter} */ (village);
  const middle = { ...metres, transmitters: [unplaced] };
  moveInside(middle, before);
  assert.deepEqual(middle.transmitters.map(({ x_m, y_m }) => [x_m, y_m]), [[500, 300]], "the middle, where a coordinate is missing");
});

test("buildings with a corner in an area are in it", () => {
  const all = city({ width_m: 1600, height_m: 1200 });
  assert.deepEqual(buildingsIn(all, new Frame({ width_m: 1975, height_m: 1475 })), all);
  assert.equal(buildingsIn(all, new Frame({ x_m: 500_000, y_m: 5_000_000, width_m: 2000, height_m: 1500 })).features.length, 0);
  const west = buildingsIn(all, new Frame({ width_m: 800, height_m: 1200 })).features;
  assert.deepEqual(west, all.features.filter((feature) => Number(outlinesOf({ features: [feature] })[0]?.[0]?.[0]) <= 800));
});

test("a document has the place of a preset, or another one", () => {
  for (const { name, make } of PRESETS) {
    assert.equal(presetOf(make()), name);
    assert.equal(presetOf({ ...make(), step_m: 50, transmitters: [] }), name);
    assert.equal(presetOf({ ...make(), terrain: { type: "esri-ascii", text: "" } }), "");
    assert.equal(presetOf({ ...make(), area: { width_m: 5, height_m: 5 } }), "");
  }
  const { buildings: _, ...bare } = /** @type {import("../../web/page/propagation/document.js").Coverage} */ (PRESETS[1]?.make());
  assert.equal(presetOf(bare), "");
});

test("a document without what the page shows is told", () => {
  const area = { width_m: 1, height_m: 1 };
  const fit = { area, transmitters: [{}], model: "hata" };
  for (const value of [null, 1, {}, { ...fit, transmitters: [] }, { ...fit, transmitters: [null] }, { ...fit, area: {} }, { ...fit, area: { ...area, west: 1 } }]) assert.match(String(coverageFault(value)), /needs an area/);
  assert.equal(coverageFault(fit), null);
  assert.equal(coverageFault({ ...fit, transmitters: Array(17).fill({}) }), "At /transmitters: at most 16 are allowed, and there are 17.");
  assert.equal(coverageFault({ ...fit, terrain: null }), "At /terrain: an object is expected.");
  assert.equal(coverageFault({ ...fit, buildings: 5 }), "The buildings cannot be used: a FeatureCollection of GeoJSON is expected.");
  assert.equal(coverageFault({ ...fit, transmitters: [{ name: {} }] }), "At /transmitters/0/name: text is expected.");
  assert.equal(coverageFault({ ...fit, receiver: { height_m: [] } }), "At /receiver/height_m: a number is expected.");
});

test("features that are no buildings are not drawn, and spoil no others", () => {
  const geometry = (/** @type {string} */ type, /** @type {unknown} */ coordinates) => ({ type: "Feature", properties: { height: 9 }, geometry: { type, coordinates } });
  const ring = [[0, 0], [1, 0], [1, 1], [0, 0]];
  const good = [geometry("Polygon", [ring]), geometry("MultiPolygon", [[ring, ring], [ring]])];
  const odd = [null, 7, { type: "Feature", geometry: null }, geometry("Point", [0, 0]), geometry("Polygon", undefined), geometry("Polygon", "abc"), geometry("Polygon", []), geometry("Polygon", [[5, 6]]), geometry("Polygon", [[[5, null]]]), geometry("MultiPolygon", [null]), geometry("GeometryCollection", undefined)];
  assert.equal(buildingsFault({ type: "FeatureCollection", features: [...odd, ...good] }), null);
  for (const value of [null, 7, {}, { type: "FeatureCollection" }, { type: "Feature", features: [] }]) assert.equal(buildingsFault(value), "a FeatureCollection of GeoJSON is expected");
  assert.deepEqual(outlinesOf({ features: [...odd, ...good] }), [ring, ring, ring]);
});

test("files are refused by their size before they are read", async () => {
  const file = (/** @type {string} */ text, /** @type {number | undefined} */ size = undefined) => {
    const blob = new File([text], "a.file");
    let isRead = false;
    const reading = () => {
      isRead = true;
      return Blob.prototype.text.call(blob);
    };
    const fake = { name: "a.file", size: size ?? blob.size, text: reading, arrayBuffer: () => blob.arrayBuffer(), slice: (/** @type {number} */ begin, /** @type {number} */ end) => blob.slice(begin, end) };
    return { fake: /** @type {any} */ (fake), isRead: () => isRead };
  };
  const large = file("{}", FILE_BYTES_MAX + 1);
  assert.deepEqual(await readBuildings(large.fake), { fault: "a.file has 1.00 MB, and at most 1.00 MB can be sent." });
  assert.deepEqual(await readTerrain(large.fake), { fault: "a.file has 1.00 MB, and at most 1.00 MB can be sent." });
  assert.ok(!large.isRead());
  assert.deepEqual(await readTerrain(file("").fake), { fault: "a.file is empty." });
  assert.match(JSON.stringify(await readTerrain(file("II*").fake)), /ncols/);
  assert.deepEqual(await readTerrain(file("II*\0", TIFF_BYTES_MAX + 1).fake), { fault: "a.file has 750 kB, and at most 750 kB can be sent." });
  assert.deepEqual(await readTerrain(file("II*\0").fake), { terrain: { type: "geotiff", data: "SUkqAA==" }, covered: null, assumed: "" });
  assert.match(JSON.stringify(await readBuildings(file("{").fake)), /is not JSON/);
  assert.match(JSON.stringify(await readBuildings(file("{}").fake)), /FeatureCollection/);
  assert.deepEqual(await readBuildings(file('{"type":"FeatureCollection","features":[]}').fake), { buildings: { type: "FeatureCollection", features: [] } });
});

/**
 * The header of a TIFF file with these tags.
 * @param {boolean} isLittle
 * @param {readonly (readonly [tag: number, type: 3 | 4 | 12, values: readonly number[]])[]} tags
 */
function tiff(isLittle, tags) {
  const view = new DataView(new ArrayBuffer(1000));
  view.setUint32(0, isLittle ? 0x49492a00 : 0x4d4d002a);
  view.setUint32(4, 8, isLittle);
  view.setUint16(8, tags.length, isLittle);
  let free = 500;
  for (const [index, [tag, type, values]] of tags.entries()) {
    const at = 10 + 12 * index;
    const size = { 3: 2, 4: 4, 12: 8 }[type];
    view.setUint16(at, tag, isLittle);
    view.setUint16(at + 2, type, isLittle);
    view.setUint32(at + 4, values.length, isLittle);
    const isHere = values.length * size <= 4;
    if (!isHere) view.setUint32(at + 8, free, isLittle);
    for (const [nth, value] of values.entries()) {
      const place = (isHere ? at + 8 : free) + nth * size;
      if (type === 3) view.setUint16(place, value, isLittle);
      else if (type === 4) view.setUint32(place, value, isLittle);
      else view.setFloat64(place, value, isLittle);
    }
    if (!isHere) free += values.length * size;
  }
  return new Uint8Array(view.buffer);
}

test("the place of a GeoTIFF file is read from its tags, whatever the order of bytes, and a cut file has none", () => {
  const tags = (/** @type {number[]} */ ...keys) => /** @type {const} */ ([[256, 3, [3]], [257, 4, [2]], [33550, 12, [0.5, 0.25, 0]], [33922, 12, [0, 0, 0, 10, 47, 0]], [34735, 3, [1, 1, 0, keys.length / 4, ...keys]]]);
  for (const isLittle of [true, false]) {
    const header = readGeoTiff(tiff(isLittle, tags(1024, 0, 1, 2)));
    assert.deepEqual(header, { columns: 3, rows: 2, west: 10.25, south: 46.625, cellWidth: 0.5, cellHeight: 0.25, isMetres: false });
    assert.deepEqual(header && areaOf(header)?.area, { west: 10.25, south: 46.625, east: 11.25, north: 46.875 });
  }
  // Without the type of the model, or with one of its own, the keys of the systems tell it.
  for (const [keys, isMetres] of /** @type {const} */ ([[[3072, 0, 1, 25832, 2048, 0, 1, 4258], true], [[2048, 0, 1, 4326], false], [[1024, 0, 1, 32767, 2048, 0, 1, 4326, 3073, 34737, 9, 0], true], [[1024, 0, 1, 32767], null]])) assert.equal(readGeoTiff(tiff(true, tags(...keys)))?.isMetres, isMetres);
  const middles = readGeoTiff(tiff(true, tags(1024, 0, 1, 1, 1025, 0, 1, 2)));
  assert.deepEqual([middles?.west, middles?.south, middles?.isMetres], [10, 46.75, true]);
  assert.deepEqual(middles && areaOf({ ...middles, west: 412_345, south: 5_298_765, cellWidth: 100, cellHeight: 100 })?.area, { x_m: 412_345, y_m: 5_298_765, width_m: 200, height_m: 100 });
  const whole = tiff(true, tags());
  for (let length = 0; length < 580; length += 1) assert.equal(readGeoTiff(whole.slice(0, length)), null);
  assert.equal(readGeoTiff(tiff(true, [[256, 3, [3]], [257, 3, [2]]])), null);
});

test("the address has the runs of one map or of two", () => {
  const [first, second] = ["a".repeat(32), "0".repeat(32)];
  for (const keys of /** @type {const} */ ([[first, null], [first, second]])) assert.deepEqual(keysIn(hashOf(keys)), keys);
  for (const hash of ["", "#", "#run=1", `#with=${first}`, `#run=${first}x`]) assert.equal(keysIn(hash), null);
  assert.deepEqual(keysIn(`#run=${first}&with=x`), [first, null]);
});

test("the area of a grid is read from its header", () => {
  const areaOfGrid = (/** @type {string} */ text) => areaOf(readGrid(text));
  const header = (/** @type {string} */ corner, /** @type {number} */ cell) => `ncols 3\nnrows 2\n${corner}\ncellsize ${cell}\nNODATA_value -9999\n1 2 3\n4 5 6\n`;
  assert.deepEqual(areaOfGrid(header("xllcenter 10\nyllcenter 46", 0.5))?.area, { west: 10, south: 46, east: 11, north: 46.5 });
  assert.deepEqual(areaOfGrid(header("xllcorner -50\nyllcorner -50", 100))?.area, { width_m: 200, height_m: 100 });
  assert.deepEqual(areaOfGrid(header("xllcorner 500000\nyllcorner 5000000", 100))?.area, { x_m: 500_050, y_m: 5_000_050, width_m: 200, height_m: 100 });
  const noisy = "ncols 60\nnrows 40\nxllcorner 10.8\nyllcorner 46.5\ncellsize 0.01\n";
  assert.deepEqual(areaOfGrid(noisy)?.area, { west: 10.805, south: 46.505, east: 11.395, north: 46.895 });
  // As GDAL, and as programs of other languages write it.
  const oblong = "# heights\r\nnrows 2\r\nncols 3\r\nyllcenter 46,5\r\nxllcenter 10,25\r\ndx 0,25\r\ndy 0.5\r\n1 2 3\r\n";
  assert.deepEqual(areaOfGrid(oblong)?.area, { west: 10.25, south: 46.5, east: 10.75, north: 47 });
  for (const text of ["", header("xllcorner 0", 1), header("xllcorner 0\nyllcorner 0", 0)]) assert.equal(areaOfGrid(text), null);
});

test("terrain beyond 180° of longitude is refused, and no metres are taken for that", async () => {
  const grid = (/** @type {number} */ west, /** @type {number} */ south, columns = 201) => ({ columns, rows: 101, west, south, cellWidth: 0.05, cellHeight: 0.05, isMetres: /** @type {boolean | null} */ (null) });
  const coarse = (/** @type {number} */ cell) => ({ ...grid(170, 10), columns: Math.round(20 / cell), rows: 10, cellWidth: cell, cellHeight: cell });
  const world = (/** @type {number} */ west, /** @type {number} */ cell) => ({ columns: 360 / cell, rows: 180 / cell, west: west + cell / 2, south: -90 + cell / 2, cellWidth: cell, cellHeight: cell, isMetres: null });
  for (const header of [grid(179, 10), grid(175, -70), grid(-181, 10), grid(0, 0, 4001), coarse(0.25), coarse(0.5), { ...coarse(1), isMetres: false }, world(0, 0.5), world(0, 1)]) assert.ok(isBeyondMap(header), JSON.stringify(header));
  for (const header of [grid(80, 10), grid(-180, 10), grid(412_345, 5_298_765), { ...grid(179, 10), isMetres: true }, coarse(1), { ...grid(181, 10), isMetres: false }, { ...grid(-190, 10, 3), isMetres: false }, world(-180, 1)]) assert.ok(!isBeyondMap(header), JSON.stringify(header));
  assert.deepEqual(await readTerrain(new File(["ncols 3\nnrows 2\nxllcenter 179.95\nyllcenter -17\ncellsize 0.05\n1 2 3\n4 5 6\n"], "fiji.asc")), {
    fault: "fiji.asc goes beyond 180° of longitude, where a map ends. Cut it there: one map has longitudes from -180° to 180°.",
  });
});

test("longitudes from 0° to 360° are those of the map, and a unit that a file does not say is told", async () => {
  const text = (/** @type {number} */ west, /** @type {number} */ cell) => `ncols 3\nnrows 2\nxllcenter ${west}\nyllcenter 40\ncellsize ${cell}\n1 2 3\n4 5 6\n`;
  const read = async (/** @type {string} */ content) => {
    const found = await readTerrain(new File([content], "a.asc"));
    return "fault" in found ? found.fault : [found.covered?.area, found.assumed];
  };
  assert.deepEqual(await read(text(285, 0.25)), [{ west: -75, south: 40, east: -74.5, north: 40.25 }, "The file does not say its unit: it counts as degrees."]);
  assert.deepEqual(await read(`# made by hand\n\n; ncols 7\r\n${text(285, 0.25)}`), await read(text(285, 0.25)));
  assert.match(String(await read(`north 5\n${text(285, 0.25)}`)), /is neither a GeoTIFF file nor an ASCII grid/);
  assert.deepEqual(await read(text(285, 10)), [{ x_m: 285, y_m: 40, width_m: 20, height_m: 10 }, "The file does not say its unit: it counts as metres."]);
});

test("the page preloads what opens its connection and starts its runs, and nothing else", async () => {
  const root = new URL("../../web/", import.meta.url);
  const page = await readFile(new URL("propagation.html", root), "utf8");
  /** @type {Set<string>} */
  const needed = new Set();
  /** @param {string} path */
  const visit = async (path) => {
    if (needed.has(path)) return;
    needed.add(path);
    const isClient = path === "client.js" || path.startsWith("anemone-client/");
    const text = await readFile(new URL(isClient ? `../clients/js/src/${path}` : path, root), "utf8");
    for (const [, next = ""] of text.matchAll(/^(?:import|export) .*from "(\.[^"]+)";$/gm)) await visit(new URL(next, new URL(path, root)).href.slice(root.href.length));
  };
  await visit("page/propagation/early.js");
  await visit("anemone-client/call.js"); // loaded by the first call
  const early = "page/propagation/early.js";
  assert.ok(page.includes(`<script type="module" async src="${early}">`));
  const preloaded = [...page.matchAll(/rel="modulepreload" href="([^"]+)"/g)].map(([, path]) => path);
  assert.deepEqual(preloaded.sort(), [...needed].filter((path) => path !== early).sort());
});
