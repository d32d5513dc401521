/**
 * The looks of the page about propagation on the real binary: tiles of the web, the legend, distances, and print.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default `/usr/bin/chromium`).
 * Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { coarsen, maps, onMap, says } from "./maps.js";
import { becomes, kill, launch, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  server = await serve("--demo", "--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
});

/** @type {(body: (page: import("playwright-core").Page) => Promise<void>) => Promise<void>} */
const withPage = (body) => onMap(browser, server, body);

test("tiles of the web are drawn below the values, where they belong", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    /** @type {Set<string>} */
    const asked = new Set();
    await page.route("**/tiles/**", async (route) => {
      const [, z, x, y] = /tiles\/(\d+)\/(\d+)\/(\d+)\.svg$/.exec(route.request().url()) ?? [];
      asked.add(`${z}/${x}/${y}`);
      // Two neighbours differ.
      const colour = (Number(x) + Number(y)) % 2 === 0 ? "#ff0000" : "#0000ff";
      const body = `<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256"><rect width="256" height="256" fill="${colour}"/></svg>`;
      await route.fulfill({ contentType: "image/svg+xml", body, headers: { "cross-origin-resource-policy": "same-origin" } });
    });
    await says(page, "done");
    await page.getByLabel("Strength of the colours").fill("0.2");
    const tiles = page.getByLabel("Map tiles below");
    await tiles.fill("/tiles/{z}/{x}/{y}.svg");
    await tiles.press("Tab");
    await page.getByRole("application", { name: "Map" }).scrollIntoViewIfNeeded();
    await becomes("what is said", () => page.locator("#tiles-said").textContent(), "");
    const bright = () =>
      maps(page).first().locator("canvas").evaluate((canvas) => {
        const { width, height } = /** @type {HTMLCanvasElement} */ (canvas);
        const { data } = /** @type {any} */ (canvas).getContext("2d").getImageData(0, 0, width, height);
        let [red, blue] = [0, 0];
        for (let at = 0; at < data.length; at += 4) {
          if (data[at] > 150 && data[at + 2] < 100) red += 1;
          if (data[at + 2] > 150 && data[at] < 100) blue += 1;
        }
        return [red, blue].map((count) => count / (width * height));
      });
    await until("red and blue tiles", async () => (await bright()).every((part) => part > 0.1));
    const coarse = new Set(asked);
    // The tiles of the middle of the area, 46.66° N 11° E, at their zoom.
    const [z] = [...asked].map((tile) => Number(tile.split("/")[0]));
    const x = Math.floor(((11 + 180) / 360) * 2 ** Number(z));
    const angle = (46.66 * Math.PI) / 180;
    const y = Math.floor(((1 - Math.asinh(Math.tan(angle)) / Math.PI) / 2) * 2 ** Number(z));
    await until(`the tile ${z}/${x}/${y}`, () => asked.has(`${z}/${x}/${y}`));
    await page.getByRole("button", { name: "Zoom in" }).click();
    await page.getByRole("button", { name: "Zoom in" }).click();
    await until("finer tiles", async () => [...asked].some((tile) => !coarse.has(tile) && Number(tile.split("/")[0]) > Number(z)));
  });
});

/**
 * The part of the map whose colours the legend has. Lines and words are in no legend, nor what is smooth between two squares.
 * @param {import("playwright-core").Page} page
 */
function shareInLegend(page) {
  return page.evaluate(() => {
    const pixels = (/** @type {string} */ selector) => {
      const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector(selector));
      const { width, height } = canvas;
      return { width, height, data: /** @type {any} */ (canvas).getContext("2d").getImageData(0, 0, width, height).data };
    };
    const [map, legend] = [pixels(".pane canvas"), pixels("#colours")];
    const servers = [...document.querySelectorAll("#legend .server")].flatMap((entry) => getComputedStyle(entry, "::before").backgroundImage.match(/rgb\([^)]+\)/g) ?? []);
    const colours = servers.map((text) => (text.match(/\d+/g) ?? []).map(Number));
    for (let at = 0; servers.length === 0 && at < legend.data.length; at += 4) colours.push([...legend.data.subarray(at, at + 3)]);
    let [found, all] = [0, 0];
    for (let y = Math.round(map.height * 0.15); y < map.height * 0.85; y += 11) {
      for (let x = Math.round(map.width * 0.35); x < map.width * 0.65; x += 11) {
        const pixel = map.data.subarray(4 * (y * map.width + x), 4 * (y * map.width + x) + 3);
        all += 1;
        if (colours.some((colour) => colour.every((part, channel) => Math.abs(part - pixel[channel]) <= 5))) found += 1;
      }
    }
    return found / all;
  });
}

test("the legend has the colours of the map, on each ground, in light and in dark, and however strong they are", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await page.route("**/tiles/**", (route) => {
      const [x = "", y = ""] = /(\d+)\/(\d+)\.svg$/.exec(route.request().url())?.slice(1) ?? [];
      const body = `<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256"><rect width="256" height="256" fill="${(Number(x) + Number(y)) % 2 ? "#c0e0a0" : "#e0d0ff"}"/></svg>`;
      return route.fulfill({ contentType: "image/svg+xml", body, headers: { "cross-origin-resource-policy": "same-origin" } });
    });
    const looks = async (/** @type {string} */ ground) => {
      await says(page, "done");
      for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
        await page.emulateMedia({ colorScheme });
        for (const quantity of ["received_dbm", "loss_db", "server"]) {
          await page.locator("#quantity").selectOption(quantity);
          for (const opacity of ["0.2", "0.7", "1"]) {
            await page.getByLabel("Strength of the colours").fill(opacity);
            await until(`the colours of ${quantity} on ${ground}, ${colorScheme}, ${opacity}`, async () => (await shareInLegend(page)) > 0.9);
          }
        }
      }
    };
    await looks("terrain");
    const tiles = page.getByLabel("Map tiles below");
    await tiles.fill("/tiles/{z}/{x}/{y}.svg");
    await tiles.press("Tab");
    await looks("tiles");
    await page.locator("#preset").selectOption("plain");
    await looks("the card");
  });
});

/**
 * Keeps what is written on the maps of a page, with the room at both sides.
 * @param {import("playwright-core").Page} page
 * @returns {Promise<() => Promise<{ words: string, left: number, right: number }[]>>}
 */
async function keepWords(page) {
  await page.addInitScript(() => {
    /** @type {{ words: string, left: number, right: number }[]} */
    const written = [];
    Object.assign(window, { written });
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (/** @type {string} */ words, /** @type {number} */ x, /** @type {number} */ y) {
      const { canvas } = this;
      const width = this.measureText(words).width;
      const left = x - (this.textAlign === "center" ? width / 2 : this.textAlign === "right" ? width : 0);
      if (canvas instanceof HTMLCanvasElement && canvas.closest(".pane")) written.push({ words, left, right: canvas.clientWidth - left - width });
      fillText.call(this, words, x, y);
    };
  });
  return () => page.evaluate(() => Reflect.get(window, "written"));
}

test("on a narrow map each distance is whole", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 } });
  const page = await context.newPage();
  const written = await keepWords(page);
  await page.goto(`${server.origin}/propagation`);
  await says(page, "done");
  await until("the distances", async () => (await written()).filter(({ words }) => / km$/.test(words)).length > 6);
  const distances = (await written()).filter(({ words }) => / k?m$/.test(words));
  assert.deepEqual(distances.filter(({ left, right }) => Math.min(left, right) < 0), []);
  assert.ok(distances.some(({ words, right }) => words === "15 km" && right < 20), "the one at the edge is there");
  await context.close();
});

test("on a phone the map has the shape of its area, and a tap shows its value on the map and the path below it", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true });
  const page = await context.newPage();
  const written = await keepWords(page);
  await page.goto(`${server.origin}/propagation`);
  const map = page.getByRole("application", { name: "Map" });
  for (const [place, shape] of /** @type {const} */ ([["plain", 1.5], ["city", 1600 / 1200], ["valley", 15_307 / 13_340]])) {
    await page.locator("#preset").selectOption(place);
    await becomes(`the shape of the ${place}`, () => map.evaluate(({ clientWidth, clientHeight }, ratio) => Math.abs(clientWidth / clientHeight - ratio) < 0.02, shape), true);
  }
  await says(page, "done");
  await page.evaluate(() => scrollTo(0, 0));
  const box = /** @type {{ x: number, y: number, width: number, height: number }} */ (await map.boundingBox());
  for (const part of [0.05, 0.95]) {
    await page.touchscreen.tap(box.x + part * box.width, box.y + box.height / 2);
    await becomes("the reading", () => page.locator("#reading").textContent(), /^−\d+\.\d dBm at /);
    const value = String(await page.locator("#reading").textContent()).split(" at ")[0];
    await until("the value on the map", async () => (await written()).some(({ words }) => words === value));
    assert.deepEqual((await written()).filter(({ words, left, right }) => words === value && Math.min(left, right) < 0), []);
  }
  const top = (await page.locator("#profile").boundingBox())?.y;
  assert.ok(Number(top) < 844 - 60, `the path is below the screen, at ${top} px`);
  await context.close();
});

test("what is read stays while the page scrolls and the pointer leaves, until Escape", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${server.origin}/propagation`);
  await says(page, "done");
  const map = page.getByRole("application", { name: "Map" });
  const reading = () => page.locator("#reading").textContent();
  const lowest = () => page.locator(".coverage").evaluate((coverage) => [coverage.scrollHeight, coverage.querySelector(".under")?.getBoundingClientRect().top]);
  const before = await lowest();
  const box = /** @type {{ width: number, height: number }} */ (await map.boundingBox());
  await map.hover({ position: { x: box.width * 0.55, y: box.height * 0.75 } });
  await becomes("the reading", reading, /^−\d+\.\d dBm at /);
  assert.deepEqual(await lowest(), before, "nothing moves for it");
  const profile = /** @type {{ y: number, height: number }} */ (await page.locator("#profile").boundingBox());
  assert.ok(profile.y + profile.height <= 800, `the path ends at ${profile.y + profile.height} px`);
  const words = await reading();
  await page.mouse.wheel(0, 200);
  await until("the page to scroll", async () => (await page.evaluate(() => scrollY)) > 0);
  await page.mouse.move(20, 5);
  await page.getByRole("heading", { name: "Coverage" }).hover();
  assert.equal(await reading(), words);
  assert.ok(await page.locator("#profile").isVisible());
  await map.press("Escape");
  await becomes("the reading", reading, /^Point at the map /);
  await context.close();
});

test("a map is printed in its shape, with the transmitters at their places, and light from a dark screen", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await page.emulateMedia({ colorScheme: "dark" });
    await says(page, "done");
    const look = () =>
      page.locator(".map").first().evaluate((map) => {
        const [canvas, box] = [/** @type {HTMLCanvasElement} */ (map.querySelector("canvas")), map.getBoundingClientRect()];
        const handles = [...map.querySelectorAll(".handle")].map((handle) => handle.getBoundingClientRect());
        const [red = 0] = /** @type {any} */ (canvas).getContext("2d").getImageData(3, 3, 1, 1).data;
        return {
          shape: canvas.clientWidth / canvas.clientHeight / (canvas.width / canvas.height),
          // Of the middle of the dot: the letters keep their size.
          places: handles.map(({ left, top }) => [(left + 11 - box.left) / box.width, (top + 11 - box.top) / box.height].map((part) => Math.round(part * 50))),
          isLight: red > 128,
        };
      });
    await until("the handles", async () => (await look()).places.length === 2);
    const before = await look();
    assert.deepEqual([Math.abs(before.shape - 1) < 0.02, before.isLight], [true, false]);
    // While it prints, a browser draws no frame.
    await page.evaluate(() => {
      window.requestAnimationFrame = () => 0;
      window.dispatchEvent(new Event("beforeprint"));
    });
    await page.setViewportSize({ width: 700, height: 990 });
    await page.emulateMedia({ colorScheme: "dark", media: "print" });
    const printed = await look();
    assert.ok(Math.abs(printed.shape - 1) < 0.02, `stretched by ${printed.shape}`);
    assert.deepEqual(printed.places, before.places);
    assert.ok(printed.isLight);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.equal(await page.locator(".handle").first().evaluate((handle) => getComputedStyle(handle).printColorAdjust), "exact");
    await page.emulateMedia({ colorScheme: "dark", media: null });
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    assert.ok(!(await look()).isLight);
  });
});

test("a map of tiles that is not there is told", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await coarsen(page);
  await page.goto(`${server.origin}/propagation`);
  await says(page, "done");
  const tiles = page.getByLabel("Map tiles below");
  const said = () => page.locator("#tiles-said").textContent();
  await tiles.fill("https://tiles.example/{z}/{x}/{y}.png");
  await tiles.press("Tab");
  await becomes("what is said", said, /^Images of https:\/\/tiles\.example are refused/);
  await tiles.fill("/nothing/{z}/{x}/{y}.png");
  await tiles.press("Tab");
  await becomes("what is said", said, /^A tile does not come, for instance \/nothing\/\d+\/\d+\/\d+\.png\.$/);
  await tiles.fill("/tiles/");
  await tiles.press("Tab");
  await becomes("what is said", said, "The address of tiles has {z}, {x} and {y}.");
  await context.close();
});
