/**
 * The page about propagation on the real binary: the map refines to all points, a transmitter that is moved gets a new run in place of the
 * old one, two models side by side, what is refused shows its place, and a reload goes on.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default `/usr/bin/chromium`).
 * Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { coarsen, maps, onMap, says } from "./maps.js";
import { becomes, kill, launch, ownAddress, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
/** A map that takes long, whatever the machine: 1,500,000 points behind hills. */
const LONG = { area: { width_m: 60_000, height_m: 24_000 }, step_m: 31.1, model: "free-space", terrain: { type: "valley", depth_m: 900 }, transmitters: [{ name: "far", x_m: 30_000, y_m: 12_000, height_m: 30, frequency_mhz: 800, power_dbm: 43 }] };

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

/** @type {(body: (page: import("playwright-core").Page) => Promise<void>, options?: import("./maps.js").Options) => Promise<void>} */
const withPage = (body, options) => onMap(browser, server, body, options);

/** @param {import("playwright-core").Page} page */
async function summary(page, map = 0) {
  return String(await maps(page).nth(map).locator("[data-field=summary]").textContent());
}

/** @param {import("playwright-core").Page} page */
function keyOf(page) {
  return /run=([0-9a-f]{32})/.exec(page.url())?.[1];
}

/** @param {string} key */
async function stateOf(key) {
  return await (await fetch(`${server.origin}/runs/${key}?state`)).json();
}

/**
 * Returns the key of the run that is computed, once the address leads to it: it does so a moment after the first tiles.
 * @param {import("playwright-core").Page} page
 */
async function runningKey(page) {
  let key = "";
  await until("the address to lead to a run", async () => (await stateOf((key = String(keyOf(page))))).state === "running");
  return key;
}

/**
 * The number of different colours on a map.
 * @param {import("playwright-core").Page} page
 */
function coloursOf(page, map = 0) {
  return maps(page).nth(map).locator("canvas").evaluate((canvas) => {
    const { width, height } = /** @type {HTMLCanvasElement} */ (canvas);
    const pixels = new Uint32Array(/** @type {any} */ (canvas).getContext("2d").getImageData(0, 0, width, height).data.buffer);
    return new Set(pixels).size;
  });
}

/**
 * @param {import("playwright-core").Page} page
 * @param {unknown} document
 */
async function use(page, document) {
  const details = page.locator("#document");
  if ((await details.getAttribute("open")) === null) await details.locator("summary").click();
  await page.getByLabel("The document, JSON").fill(typeof document === "string" ? document : JSON.stringify(document));
  await page.getByRole("button", { name: "Use this document" }).click();
}

test("the map refines to all points over a connection opened before, and reads a value and the path to it", { timeout: STEP_MS_MAX }, async () => {
  /** @type {string[]} */
  const sent = [];
  const prepare = (/** @type {import("playwright-core").Page} */ page) => {
    page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(String(payload).split(" ").filter((_, index) => index !== 1)[1]?.split("\n")[0] ?? "")));
  };
  await withPage(async (page) => {
    await says(page, "done");
    assert.deepEqual([sent[0], sent.filter((path) => path === "/propagation").length], ["/clock", 1]);
    assert.match(await summary(page), /^20,636 of 20,636 points · .*first seen after \d/);
    await until("the map in its colours", async () => (await coloursOf(page)) > 200);
    const map = page.getByRole("application", { name: "Map" });
    await map.focus();
    await page.keyboard.press("ArrowRight");
    await becomes("the reading", () => page.locator("#reading").textContent(), /^−\d+\.\d dBm at 46\.\d{4}° N, 11\.\d{4}° E, ground [\d,]+ m above the sea\. [\d.]+ km from (village|pass): /);
    const received = await page.locator("#reading").textContent();
    await page.locator("#quantity").selectOption("loss_db");
    await becomes("the legend", () => page.locator("#legend").textContent(), /Path loss in dB$/);
    await page.keyboard.press("Escape");
    await map.focus();
    await page.keyboard.press("ArrowLeft");
    await becomes("the loss", () => page.locator("#reading").textContent(), /^\d+\.\d dB at /);
    assert.notEqual(await page.locator("#reading").textContent(), received);
    await page.locator("#quantity").selectOption("server");
    await becomes("the servers", () => page.locator("#legend .server").allTextContents(), ["village", "pass"]);
    await page.locator("#quantity").selectOption("received_dbm");
    const plain = await coloursOf(page);
    await page.getByLabel("Contour lines at").fill("-80 -60");
    await until("contour lines", async () => (await coloursOf(page)) !== plain);
    // Each quantity has its own.
    const levels = page.getByLabel("Contour lines at");
    await page.locator("#quantity").selectOption("loss_db");
    assert.equal(await levels.inputValue(), "");
    await levels.fill("120");
    await page.locator("#quantity").selectOption("received_dbm");
    assert.equal(await levels.inputValue(), "-80 -60");
    await levels.fill("-80 nothing");
    await becomes("the fault", () => page.locator("#levels-fault").textContent(), "“nothing” is not a number from -1,000 to 1,000.");
  }, { prepare });
});

test("a transmitter that is moved gets a new run, and the old one is cancelled", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await says(page, "done");
    await use(page, LONG);
    await says(page, "computes");
    await until("its first tiles", async () => /first seen/.test(await summary(page)));
    const first = await runningKey(page);
    const handle = page.getByRole("button", { name: "Transmitter far in Map" });
    const box = /** @type {{ x: number, y: number, width: number, height: number }} */ (await handle.boundingBox());
    await page.mouse.move(box.x + 10, box.y + box.height / 2);
    await page.mouse.down();
    for (let step = 1; step <= 5; step += 1) await page.mouse.move(box.x + 10 + 12 * step, box.y + box.height / 2 + 6 * step);
    await page.mouse.up();
    await until("the old run to be cancelled", async () => (await stateOf(first)).state === "cancelled");
    await until("another run", async () => keyOf(page) !== first);
    await becomes("the place in the field", async () => Number(await page.getByLabel("East", { exact: true }).inputValue()) > 30_500, true);
    await until("its first tiles", async () => /first seen/.test(await summary(page)));

    // The arrow keys move it, too.
    const second = await runningKey(page);
    await handle.focus();
    await page.keyboard.press("ArrowLeft");
    await until("the second run to be cancelled", async () => (await stateOf(second)).state === "cancelled");
    await until("a third run", async () => keyOf(page) !== second);
    await page.getByRole("button", { name: "Cancel" }).click();
    await says(page, "cancelled");
    await until("no run to be left", async () => (await stateOf(String(keyOf(page)))).state === "cancelled");
    assert.ok(!(await page.getByRole("button", { name: "Cancel" }).isVisible()));
  }, { isCoarse: true });
});

test("a run goes on after a reload and is seen by another window, and one that is held ends with its page", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await says(page, "done");
    await use(page, LONG);
    await until("its first tiles", async () => /^[\d,]+ of 1,\d{3},\d{3} points.*first seen/.test(await summary(page)));
    const key = await runningKey(page);
    await becomes("what is said of leaving", () => page.locator("#bond").textContent(), `Kept as run ${key.slice(0, 6)}. Whoever has its address may watch and cancel it.`);
    await page.reload();
    await says(page, "computes");
    await until("its tiles", async () => /^[\d,]+ of 1,\d{3},\d{3} points/.test(await summary(page)));
    assert.equal(keyOf(page), key);
    assert.equal(await page.getByLabel("Name").inputValue(), "far");
    const other = await page.context().newPage();
    await other.goto(page.url());
    await says(other, "computes");
    await other.getByRole("button", { name: "Cancel" }).click();
    await says(page, "cancelled");
    await other.close();

    await page.getByLabel("It ends").check();
    await until("its first tiles", async () => /first seen/.test(await summary(page)));
    await says(page, "computes");
    const runs = async () => (await (await fetch(`${server.origin}/runs`)).json()).runs.filter((/** @type {{ state: string }} */ { state }) => state === "running");
    assert.equal((await runs()).length, 1);
    assert.equal(keyOf(page), undefined);
    await page.goto("about:blank");
    await becomes("the runs", async () => (await runs()).length, 0);
  }, { isCoarse: true });
});

test("another browser that is given the address of two maps shows their documents, and one of a run without a map says so", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await page.locator("#preset").selectOption("city");
    await page.getByLabel("Two models side by side").check();
    await page.getByLabel("Model of the second map").selectOption("free-space");
    for (const map of [0, 1]) await says(page, "done", map);
    await until("the address to lead to both", async () => {
      const keys = [...page.url().matchAll(/(?:run|with)=([0-9a-f]{32})/g)].map(([, key]) => String(key));
      return keys.length === 2 && (await Promise.all(keys.map(stateOf))).every(({ state }) => state === "done");
    });
    await withPage(
      async (other) => {
        for (const map of [0, 1]) await says(other, "done", map);
        assert.equal(await other.getByLabel("Name").first().inputValue(), "square");
        assert.deepEqual([await other.getByLabel("Model of the first map").inputValue(), await other.getByLabel("Model of the second map").inputValue()], ["walfisch-ikegami", "free-space"]);
        assert.match(String(await other.locator("#ground").textContent()), /\d buildings\.$/);
        assert.equal(other.url(), page.url());
      },
      { at: new URL(page.url()).hash },
    );
  });
  const start = { method: "POST", headers: { "Content-Type": "application/json", Prefer: "respond-async" }, body: JSON.stringify({ actions: [{ id: "a", do: "list", size: 4 }] }) };
  const { key } = await (await fetch(`${server.origin}/computations`, start)).json();
  await withPage(async (page) => becomes("why", () => page.locator("#refused").textContent(), /^This run has no map: it is of another service\.$/), { at: `#run=${key}` });
});

test("the address of a run that is gone says how long runs are kept, and nothing of a run that is kept", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  await coarsen(page);
  await page.goto(`${server.origin}/propagation#run=${"0".repeat(32)}`);
  await becomes("why", () => page.locator("#refused").textContent(), /^There is no run with this key\. A run is kept .* 10 minutes .* restart of the server\.$/);
  assert.equal(await page.locator("#bond").textContent(), "");
  await page.getByRole("button", { name: "Compute" }).click();
  await says(page, "done");
  await becomes("what is said of leaving", () => page.locator("#bond").textContent(), /^Kept as run /);

  // Of two maps, it says which one has none, while that is seen.
  const key = keyOf(page);
  await page.evaluate((key) => (location.hash = `#run=${key}&with=${"0".repeat(32)}`), key);
  await becomes("why", () => page.locator("#refused").textContent(), /^Second map: There is no run with this key\. /);
  await says(page, "done");
  await page.getByLabel("Two models side by side").uncheck();
  assert.equal(await page.locator("#refused").textContent(), "");
  await page.evaluate(() => (location.hash = `#run=${"1".repeat(32)}&with=${"0".repeat(32)}`));
  await becomes("why", () => page.locator("#refused").textContent(), /^There is no run with this key\. /);
  await page.evaluate((key) => (location.hash = `#run=${key}`), key);
  await says(page, "done");
  assert.equal(await page.locator("#refused").textContent(), "");
  await page.close();
});

test("two models are side by side, of the same place", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await page.locator("#preset").selectOption("plain");
    await page.getByLabel("Two models side by side").check();
    await says(page, "done", 0);
    await says(page, "done", 1);
    assert.match(await summary(page, 1), /^60,501 of 60,501 points/);
    assert.equal(await page.getByLabel("Environment of the first map").inputValue(), "open");
    assert.equal(await page.getByLabel("Environment of the second map").inputValue(), "urban");
    const map = page.getByRole("application", { name: "Second map" });
    await map.focus();
    for (let step = 0; step < 5; step += 1) await page.keyboard.press("ArrowRight");
    const pattern = /^First map: (−\d+\.\d) dBm · Second map: (−\d+\.\d) dBm at /;
    await becomes("both values", () => page.locator("#reading").textContent(), pattern);
    const [, open, urban] = pattern.exec(String(await page.locator("#reading").textContent())) ?? [];
    const value = (/** @type {string | undefined} */ text) => Number(text?.replace("−", "-"));
    assert.ok(value(open) - value(urban) > 20, "a town hides more than open country");
    await until("both maps in their colours", async () => (await coloursOf(page, 0)) > 50 && (await coloursOf(page, 1)) > 50);
    await becomes("warnings of the distance", () => page.locator("#warnings li").count(), 2);
    await page.getByLabel("Two models side by side").uncheck();
    assert.equal(await maps(page).count(), 1);
  });
});

test("of two maps that are refused, the one that is put away takes its mark along", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      await page.locator("#preset").selectOption("plain");
      await says(page, "done");
      const odd = { area: { width_m: 100, height_m: 100 }, step_m: 5, model: "free-space", transmitters: [{ x_m: 5, y_m: 5, height_m: 20, frequency_mhz: 900, power_dbm: 30 }], receiver: { height_m: 30 }, output: { formats: ["odd"] } };
      await use(page, odd);
      const refused = page.locator("#refused");
      await becomes("why", () => refused.textContent(), /at \/output/);
      const words = await refused.textContent();
      await page.getByLabel("Two models side by side").check();
      await becomes("the state", () => maps(page).nth(1).locator("[data-field=state]").textContent(), "not computed");
      await page.getByLabel("Model of the second map").selectOption("walfisch-ikegami");
      await becomes("why", () => refused.textContent(), /^First map: .* Second map: Height: .* below the roofs/);
      const mark = () => page.locator("#field-receiver-height_m").getAttribute("aria-invalid");
      assert.equal(await mark(), "true");
      await page.getByLabel("Two models side by side").uncheck();
      assert.equal(await refused.textContent(), words);
      assert.equal(await mark(), "false");
    },
    { refused: 10, isCoarse: true },
  );
});

test("a terrain that is refused leaves no map of another place behind", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      await says(page, "done");
      await until("the map in its colours", async () => (await coloursOf(page)) > 1000);
      const text = "ncols 3\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 100\n1 2 inf\n4 5 6\n";
      await page.getByLabel("Terrain: GeoTIFF").setInputFiles({ name: "bad.asc", mimeType: "text/plain", buffer: Buffer.from(text) });
      await says(page, "not computed");
      await becomes("the width", () => page.getByLabel("Width", { exact: true }).inputValue(), "250");
      await becomes("why", () => page.locator("#refused").textContent(), /^The terrain: Row 1, column 3 is inf[^/]* \(at \/terrain\/text\)\.$/);
      await until("a map with lines and words alone", async () => (await coloursOf(page)) < 500);
      await page.getByRole("application", { name: "Map" }).press("ArrowUp");
      await becomes("the reading", () => page.locator("#reading").textContent(), /^no value yet at /);
    },
    { refused: 1 },
  );
});

test("an area whose east is not beyond its west is refused by the service, whatever was refused before", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      await says(page, "done");
      const [west, east] = [page.locator("#field-area-west"), page.locator("#field-area-east")];
      const right = await east.inputValue();
      const why = () => page.locator("#refused").textContent();
      for (let time = 0; time < 2; time += 1) {
        await east.fill(await west.inputValue());
        await becomes("why", why, /at \/area/);
        await east.fill("181");
        await becomes("why", why, /^East: allowed are/);
      }
      await east.fill(right);
      await says(page, "done");
      assert.ok(!(await page.locator("#refused").isVisible()));
    },
    { refused: 2, isCoarse: true },
  );
});

test("terrain from a file leaves in place what is inside its area, and says what it moves and leaves out", { timeout: STEP_MS_MAX }, async () => {
  await withPage(async (page) => {
    await says(page, "done");
    const load = async (/** @type {number} */ columns, /** @type {number} */ rows, /** @type {string} */ corner, /** @type {string} */ said, unit = "degrees") => {
      const text = `ncols ${columns}\nnrows ${rows}\n${corner}\n${"100 ".repeat(columns * rows)}\n`;
      await page.getByLabel("Terrain: GeoTIFF").setInputFiles({ name: "a.asc", mimeType: "text/plain", buffer: Buffer.from(text) });
      await becomes("what is said", () => page.locator("#files-said").textContent(), `a.asc is the terrain, and the map is its area.${said} The file does not say its unit: it counts as ${unit}.`);
      await says(page, "done");
    };
    const place = () => page.locator("#preset option:checked").textContent();
    assert.equal(await place(), "A valley, with terrain");
    await page.getByLabel("Longitude").first().fill("11.0123");
    await page.getByLabel("Latitude").first().fill("46.6543");
    await page.keyboard.press("Tab");
    await load(60, 40, "xllcorner 10.8\nyllcorner 46.5\ncellsize 0.01", "");
    const values = (/** @type {string[]} */ ...labels) => Promise.all(labels.map((label) => page.getByLabel(label, { exact: true }).first().inputValue()));
    assert.deepEqual(await values("Longitude", "Latitude", "East"), ["11.0123", "46.6543", "11.395"]);
    assert.equal(await place(), "Another place");

    await page.locator("#preset").selectOption("city");
    await becomes("the ground", () => page.locator("#ground").textContent(), "No terrain: a plain. 197 buildings.");
    await says(page, "done");
    await load(40, 30, "xllcorner 0\nyllcorner 0\ncellsize 50", "", "metres");
    assert.deepEqual([await page.locator("#ground").textContent(), await place(), ...(await values("East"))], ["Terrain from a file. 197 buildings.", "Another place", "800"]);
    await load(40, 30, "xllcorner 500000\nyllcorner 5000000\ncellsize 50", " Transmitters that were outside it, and are moved into it: square, west. 197 of 197 buildings are outside it, and are left out.", "metres");
    assert.equal(await page.locator("#ground").textContent(), "Terrain from a file. No buildings.");
    await page.locator("#preset").selectOption("city");
    await becomes("the ground", () => page.locator("#ground").textContent(), "No terrain: a plain. 197 buildings.");
    assert.equal(await page.locator("#files-said").textContent(), "", "what was said of the file of another place");
    await says(page, "done");

    // Without a coordinate, a transmitter has no place, whatever is typed, until a terrain puts it into the middle.
    await page.locator("#preset").selectOption("plain");
    await page.getByLabel("East", { exact: true }).fill("");
    await page.getByLabel("Width", { exact: true }).fill("20000");
    assert.deepEqual(await values("East"), [""]);
    await load(40, 30, "xllcorner 600000\nyllcorner 200000\ncellsize 50", " Transmitters that were outside it, and are moved into it: mast.", "metres");
    assert.deepEqual(await values("East"), ["601000"]);
    await use(page, { area: { width_m: 100, height_m: 100 }, step_m: 5, model: "free-space", transmitters: [{ x_m: 5, y_m: 5, height_m: 20, frequency_mhz: 900, power_dbm: 30 }] });
    await becomes("what is said", () => page.locator("#files-said").textContent(), "");
  }, { isCoarse: true });
});

test("a run that gets no answer says that the server is away, and begins once it is back", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await coarsen(page);
  let own = await serve("--demo", "--listen", await ownAddress());
  try {
    await page.goto(`${own.origin}/propagation`);
    await says(page, "done");
    const notice = page.getByRole("heading", { name: "The server cannot be reached" });
    assert.ok(!(await notice.isVisible()));
    await kill(own);
    await page.getByRole("button", { name: "Compute" }).click();
    await notice.waitFor();
    await says(page, "starts");
    own = await serve("--demo", "--listen", new URL(own.origin).host);
    await notice.waitFor({ state: "hidden" });
    await becomes("the end", () => maps(page).first().locator("[data-field=state]").textContent(), /done|not computed/);
    await page.getByRole("button", { name: "Compute" }).click();
    await says(page, "done");
  } finally {
    await context.close();
    await kill(own);
  }
});

test("a server whose answer takes longer than the silence that makes the page ask is not said to be away", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await coarsen(page);
  let isHeld = false;
  /** @type {(() => void)[]} */
  const held = [];
  await page.routeWebSocket(/./, (socket) => {
    socket.connectToServer().onMessage((message) => (isHeld ? held.push(() => socket.send(message)) : socket.send(message)));
  });
  await page.goto(`${server.origin}/propagation`);
  await says(page, "done");
  await page.locator("#notice-no-server").evaluate((notice) => new MutationObserver(() => notice instanceof HTMLElement && !notice.hidden && notice.classList.add("was-seen")).observe(notice, { attributes: true }));
  await page.route("**/health", async (route) => {
    await sleep(3000);
    await route.continue();
  });
  const isOfHealth = (/** @type {import("playwright-core").Request} */ request) => request.url().endsWith("/health");
  const ended = Promise.any(["requestfinished", "requestfailed"].map((type) => page.waitForEvent(/** @type {"requestfinished"} */ (type), { predicate: isOfHealth })));
  isHeld = true;
  await page.getByRole("button", { name: "Compute" }).click();
  assert.equal((await ended).failure(), null, "the page waits for the answer");
  isHeld = false;
  for (const send of held) send();
  await says(page, "done");
  assert.equal(await page.locator("#notice-no-server.was-seen").count(), 0);
  await context.close();
});

test("what is refused shows its place, and what is outside the model is a warning", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      const latitude = page.getByLabel("Latitude").first();
      await latitude.fill("46,660");
      assert.equal(await latitude.getAttribute("aria-invalid"), "false");
      await page.locator("#preset").selectOption("plain");
      await says(page, "done");
      const width = page.getByLabel("Width", { exact: true });
      await width.fill("20,000");
      await until("a strip of 20 km", async () => /^40,401 of/.test(await summary(page)));
      await width.fill("30000");
      await until("the plain", async () => /^60,501 of/.test(await summary(page)));
      await says(page, "done");

      // The place of a transmitter has the range of the area, however that came.
      const [east, range] = [page.getByLabel("East", { exact: true }), page.locator("#field-transmitters-0-x_m-hint")];
      await width.fill("1000");
      assert.equal(await range.textContent(), "0 to 1,000 m");
      await page.getByLabel("Model", { exact: true }).selectOption("free-space");
      await width.fill("");
      assert.equal(await range.textContent(), "0 to 1,000 m");
      await width.fill("30000");
      assert.equal(await range.textContent(), "0 to 30,000 m");
      await east.fill("1,500");
      assert.equal(await east.getAttribute("aria-invalid"), "false");
      await page.getByLabel("Model", { exact: true }).selectOption("hata");
      await until("the plain", async () => /^60,501 of/.test(await summary(page)));
      await says(page, "done");
      const frequency = page.getByLabel("Frequency");
      await frequency.fill("0");
      await becomes("why", () => page.locator("#refused").textContent(), "Frequency: allowed are 1 to 300,000 MHz.");
      assert.equal(await frequency.getAttribute("aria-invalid"), "true");
      await frequency.fill("3000");
      await becomes("the warning", () => page.locator("#warnings").textContent(), /mast: the frequency is 3000 MHz, the model is made for 150 to 1500 MHz\./);
      assert.ok(!(await page.locator("#refused").isVisible()));
      assert.equal(await page.locator("#field-transmitters-0-frequency_mhz-hint").textContent(), "The model is made for 150 to 1,500 MHz.");

      // What only the service knows.
      await page.getByLabel("Distance of points").fill("1");
      await becomes("why", () => page.locator("#refused").textContent(), /^Distance of points: Gives 30001 x 20001 points[^/]* \(at \/step_m\)\.$/);
      await says(page, "not computed");
      await use(page, "{");
      await becomes("why", () => page.locator("#json-said").textContent(), /^This is not JSON: /);
      await use(page, { area: {} });
      await becomes("why", () => page.locator("#json-said").textContent(), /needs an area/);
      const transmitters = Array(2000).fill({ x_m: 5, y_m: 5, height_m: 20, frequency_mhz: 900, power_dbm: 30 });
      const many = { area: { width_m: 100, height_m: 100 }, step_m: 5, model: "free-space", transmitters };
      await use(page, many);
      await becomes("why", () => page.locator("#json-said").textContent(), "At /transmitters: at most 16 are allowed, and there are 2,000.");
      assert.equal(await page.locator("[data-transmitter]").count(), 1);
      await use(page, { ...many, terrain: null, transmitters: transmitters.slice(0, 2) });
      await becomes("why", () => page.locator("#json-said").textContent(), "At /terrain: an object is expected.");
      assert.equal(await page.locator("[data-transmitter]").count(), 1);
    },
    { refused: 1 },
  );
});

test("transmitters are added and taken away, files are checked, and results are saved", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      await page.locator("#preset").selectOption("plain");
      await page.getByRole("button", { name: "Add a transmitter" }).click();
      await says(page, "done");
      assert.equal(await page.locator("[data-transmitter]").count(), 2);
      await page.locator("[data-transmitter='1']").getByLabel("Antenna").selectOption("sector");
      await page.getByLabel("Azimuth").fill("90");
      await page.getByRole("button", { name: "Remove transmitter mast" }).click();
      assert.equal(await page.locator("[data-transmitter]").count(), 1);
      await until("the sector alone", async () => /^60,501 of/.test(await summary(page)));
      await says(page, "done");

      const grid = `ncols 21\nnrows 11\nxllcenter 0\nyllcenter 0\ncellsize 100\n${"100 ".repeat(231)}\n`;
      const file = (/** @type {string} */ name, /** @type {string | number} */ data) => ({ name, mimeType: "text/plain", buffer: Buffer.alloc(typeof data === "number" ? data : data.length, typeof data === "number" ? " " : data) });
      await page.getByLabel("Buildings, GeoJSON").setInputFiles(file("none.json", '{"type":"Feature","geometry":null}'));
      await becomes("what is said", () => page.locator("#files-said").textContent(), "none.json cannot be used: a FeatureCollection of GeoJSON is expected.");
      await page.getByRole("button", { name: "Compute" }).click();
      await says(page, "done");

      const terrain = page.getByLabel("Terrain: GeoTIFF");
      await terrain.setInputFiles(file("large.asc", 1_000_001));
      await becomes("what is said", () => page.locator("#files-said").textContent(), "large.asc has 1.00 MB, and at most 1.00 MB can be sent.");
      await terrain.setInputFiles(file("flat.asc", grid));
      await becomes("what is said", () => page.locator("#files-said").textContent(), "flat.asc is the terrain, and the map is its area. Transmitters that were outside it, and are moved into it: new 2. The file does not say its unit: it counts as metres.");
      await becomes("the width", () => page.getByLabel("Width", { exact: true }).inputValue(), "2000");
      await says(page, "done");
      await page.getByRole("application", { name: "Map" }).press("ArrowUp");
      await becomes("the ground", () => page.locator("#reading").textContent(), /ground 100 m above the sea/);

      await terrain.setInputFiles({ name: "hill.tif", mimeType: "image/tiff", buffer: geoTiff(21, 11, 100, 250) });
      await becomes("what is said", () => page.locator("#files-said").textContent(), "hill.tif is the terrain, and the map is its area.");
      await says(page, "done");
      await page.getByRole("application", { name: "Map" }).press("ArrowUp");
      await becomes("the ground", () => page.locator("#reading").textContent(), /ground 250 m above the sea/);

      await page.getByLabel("Contour lines at").fill("-50 x");
      await page.getByRole("button", { name: "GeoJSON", exact: true }).click();
      await becomes("why nothing is saved", () => page.locator("#download-said").textContent(), "Not saved. Contour lines: “x” is not a number from -1,000 to 1,000.");
      await page.getByLabel("Contour lines at").fill("-500, -600");
      await page.getByRole("button", { name: "GeoJSON", exact: true }).click();
      await becomes("why nothing is saved", () => page.locator("#download-said").textContent(), "Nothing is saved: no point of the map has one of these levels.");
      await page.getByLabel("Contour lines at").fill("-50, -500");
      for (const [name, begin] of /** @type {const} */ ([["GeoJSON", '{"type":"FeatureCollection"'], ["CSV", ""], ["PNG", "\x89PNG"]])) {
        const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
        assert.equal(download.suggestedFilename(), `coverage.${name.toLowerCase()}`);
        const saved = await readFile(await download.path(), "latin1");
        assert.ok(saved.length > 100 && saved.startsWith(begin), saved.slice(0, 200));
        if (name === "PNG") await becomes("the colours", () => page.locator("#download-said").textContent(), /light is −?\d+\.\d dBm, dark is −\d+\.\d dBm\.$/);
      }
    },
  );
});

test("what is doubtful about files is told, and what contradicts the map is refused", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      await page.locator("#preset").selectOption("city");
      await says(page, "done");
      const [said, warnings, refused] = ["#files-said", "#warnings", "#refused"].map((place) => () => page.locator(place).textContent());
      assert.ok(said && warnings && refused);
      const feature = (/** @type {unknown} */ geometry, /** @type {unknown} */ height = 12) => ({ type: "Feature", properties: { height }, geometry });
      const house = (/** @type {number} */ east, /** @type {number} */ north, /** @type {unknown} */ height = 12) => feature({ type: "Polygon", coordinates: [[[east, north], [east + 20, north], [east + 20, north + 20], [east, north + 20], [east, north]]] }, height);
      const load = async (/** @type {string} */ name, /** @type {unknown[]} */ features, more = {}) => {
        const text = JSON.stringify({ type: "FeatureCollection", ...more, features });
        await page.getByLabel("Buildings, GeoJSON").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
      };
      await load("town.json", [house(100, 100), house(200, 100, "12,5"), house(90_000, 100), feature(null)]);
      await becomes("what is said", said, "town.json: 2 of 4 features are buildings in the area. They count for the model COST 231-Walfisch-Ikegami.");
      for (const words of [/features that are no polygon with the area of a building: 1 of 4, the first at \/buildings\/features\/3; they are left out\./, /buildings outside the area: 1 of 4; they are left out\./, /heights that are no metres from 1 to 1000: 1 of 2, such as "12,5"; they count as missing\./]) await becomes("the warnings", warnings, words);
      await says(page, "done");
      assert.ok(!(await page.locator("#refused").isVisible()));
      await load("else.json", [house(100, 100)], { crs: { type: "name", properties: { name: "EPSG:3857" } } });
      await becomes("why", refused, /Is in Mercator \(EPSG 3857\), whose metres are not those on the ground/);
      await load("far.json", [house(90_000, 100)]);
      await becomes("what is said", said, /^far\.json: 0 of 1 features are buildings in the area\./);
      await becomes("why", refused, /All buildings are outside the area: x_m from 90000 to 90000/);
      await load("near.json", [house(100, 100), house(200, 100)]);
      await says(page, "done");
      // Heights of 1,000 feet.
      await page.getByLabel("Terrain: GeoTIFF").setInputFiles({ name: "feet.tif", mimeType: "image/tiff", buffer: geoTiff(21, 11, 100, 1000, 9002) });
      await becomes("the warning", warnings, /the terrain has heights in feet: they are converted to metres\./);
      await says(page, "done");
      await page.getByRole("application", { name: "Map" }).press("ArrowUp");
      await becomes("the ground", () => page.locator("#reading").textContent(), /ground 305 m above the sea/);
    },
    { refused: 2, isCoarse: true },
  );
});

/**
 * A GeoTIFF file of 16-bit heights that are all the same, whose first cell is at the south-west corner of a map in metres.
 * @param {number} columns
 * @param {number} rows
 * @param {number} cell metres
 * @param {number} height
 * @param {number} unit of the height, a code of EPSG; 9001 is the metre
 */
function geoTiff(columns, rows, cell, height, unit = 9001) {
  const heights = Buffer.alloc(2 * columns * rows);
  for (let at = 0; at < heights.length; at += 2) heights.writeInt16LE(height, at);
  const far = Buffer.alloc(24 + 48 + 32);
  [cell, cell, 0, 0, 0, 0, 0, (rows - 1) * cell, 0].forEach((value, at) => far.writeDoubleLE(value, 8 * at));
  // Projected, in metres, and tied by the middle of a cell.
  [1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 2, 4099, 0, 1, unit].forEach((value, at) => far.writeUInt16LE(value, 72 + 2 * at));
  const tags = [[256, 4, 1, columns], [257, 4, 1, rows], [258, 3, 1, 16], [259, 3, 1, 1], [262, 3, 1, 1], [273, 4, 1, 0], [277, 3, 1, 1], [278, 4, 1, rows], [279, 4, 1, heights.length], [339, 3, 1, 2], [33550, 12, 3, 0], [33922, 12, 6, 0], [34735, 3, 16, 0]];
  const begin = 8 + 2 + 12 * tags.length + 4;
  const places = new Map([[273, begin + far.length], [33550, begin], [33922, begin + 24], [34735, begin + 72]]);
  const head = Buffer.alloc(begin);
  head.write("II*\0\x08", "latin1");
  head.writeUInt16LE(tags.length, 8);
  for (const [index, [tag = 0, type = 0, count = 0, value = 0]] of tags.entries()) {
    const at = 10 + 12 * index;
    head.writeUInt16LE(tag, at);
    head.writeUInt16LE(type, at + 2);
    head.writeUInt32LE(count, at + 4);
    head.writeUInt32LE(places.get(tag) ?? value, at + 8);
  }
  return Buffer.concat([head, far, heights]);
}

test("fingers move the map, pinch it, read a value, drag a transmitter and scroll the page", { timeout: STEP_MS_MAX }, async () => {
  await withPage(
    async (page) => {
      await page.locator("#preset").selectOption("plain");
      await says(page, "done");
      const map = page.getByRole("application", { name: "Map" });
      await map.scrollIntoViewIfNeeded();
      const box = /** @type {{ x: number, y: number, width: number, height: number }} */ (await map.boundingBox());
      const place = async () => {
        const found = await page.locator(".handle").boundingBox();
        return { x: Number(found?.x), y: Number(found?.y) };
      };
      const touch = await fingers(page);
      const [x, y] = [box.x + box.width * 0.25, box.y + box.height * 0.3];
      const before = await place();
      await touch([[x, y]], [[x + 20, y + 10]], [[x + 60, y + 30]]);
      await until("the map to move with the finger", async () => Math.abs((await place()).x - before.x - 60) <= 1 && Math.abs((await place()).y - before.y - 30) <= 1);

      // Two fingers around the transmitter move apart to twice the distance: the middle stays, and the map is twice as large.
      const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      const apart = (/** @type {number} */ px) => /** @type {[number, number][]} */ ([[middle.x - px, middle.y], [middle.x + px, middle.y]]);
      const [near, scale] = [await place(), await metres(page, map, box)];
      await touch(apart(60), apart(80), apart(100), apart(120));
      await until("the map to be twice as large", async () => Math.abs((await metres(page, map, box)) / scale - 0.5) < 0.02);
      const far = await place();
      const fromMiddle = (/** @type {{ x: number }} */ spot) => spot.x - middle.x;
      assert.ok(Math.abs(fromMiddle(far)) > Math.abs(fromMiddle(near)), "what is beside the middle moves away from it");

      await touch([[middle.x, middle.y]]);
      await becomes("the reading", () => page.locator("#reading").textContent(), /^−\d+\.\d dBm at /);
      const first = keyOf(page);
      const handle = await place();
      await touch([[handle.x + 12, handle.y + 12]], [[handle.x + 20, handle.y + 20]], [[handle.x + 52, handle.y + 12]]);
      await until("another run", async () => keyOf(page) !== first);
      await until("the transmitter at the finger", async () => Math.abs((await place()).x - handle.x - 40) <= 1);

      // One finger up scrolls the page past the map, which stays as it is and says how it moves.
      // Both places at once, since the page may be scrolling.
      const within = async () => await page.evaluate(() => {
        const [handle, map] = [".handle", ".pane canvas"].map((selector) => document.querySelector(selector)?.getBoundingClientRect().y);
        return Math.round(Number(handle) - Number(map));
      });
      const [scrolled, still] = [await page.evaluate(() => scrollY), await within()];
      await page.locator(".fingers").first().evaluate((hint) => (hint.style.animationPlayState = "paused"));
      const low = Number((await map.boundingBox())?.y) + box.height * 0.9;
      await touch([[x, low]], [[x, low - 20]], [[x, low - 60]], [[x, low - 120]], [[x, low - 180]]);
      await until("the page to scroll", async () => (await page.evaluate(() => scrollY)) > scrolled + 50);
      assert.equal(await within(), still);
      await becomes("the hint", () => page.locator(".fingers:visible").allTextContents(), ["Two fingers move the map."]);
    },
    { hasTouch: true },
  );
});

/**
 * Returns what moves fingers over a page: from place to place, and up at the last one.
 * @param {import("playwright-core").Page} page
 */
async function fingers(page) {
  const session = await page.context().newCDPSession(page);
  return async (/** @type {[number, number][][]} */ ...places) => {
    for (const [index, place] of places.entries()) {
      const touchPoints = place.map(([x, y], id) => ({ x, y, id }));
      await session.send("Input.dispatchTouchEvent", { type: index === 0 ? "touchStart" : "touchMove", touchPoints });
    }
    await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  };
}

/**
 * The metres between two places of the map that are 100 pixels apart.
 * @param {import("playwright-core").Page} page
 * @param {import("playwright-core").Locator} map
 * @param {{ width: number, height: number }} box
 */
async function metres(page, map, { width, height }) {
  const easts = [];
  for (const x of [width / 2 - 50, width / 2 + 50]) {
    await map.hover({ position: { x, y: height / 2 + 60 } });
    easts.push(Number(/at (\d+) m east/.exec(String(await page.locator("#reading").textContent()))?.[1]));
  }
  return Number(easts[1]) - Number(easts[0]);
}
