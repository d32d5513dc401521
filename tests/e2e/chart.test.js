/**
 * The chart in a real browser: hands, keys, holes, and 100,000 values at 100 more a second. How many frames a second it draws is
 * told, not tested.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { becomes, kill, launch, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const WIDTH = 1000;

/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;
/** @type {import("playwright-core").Page} */ let page;
/** @type {string[]} */ const faults = [];

before(async () => {
  server = await serve("--listen", "127.0.0.1:0");
  browser = await launch("--no-proxy-server");
  page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  page.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  page.on("console", (message) => {
    // The page asks whether the server publishes the load of its machine.
    if (message.type() === "error" && !message.location().url.endsWith("/topics/host")) faults.push(message.text());
  });
});

after(async () => {
  await browser?.close();
  await kill(server);
  assert.deepEqual(faults, []);
});

/**
 * A page with a chart of `{ time: n * everyMs, value: n % 1000 }` for n from 0, except for those of a hole. Its clock stands at the last one.
 * @param {{ count: number, everyMs: number, hole?: [number, number] }} options
 */
async function open({ count, everyMs, hole = [0, 0] }) {
  await page.goto(`${server.origin}/`);
  await page.evaluate(
    async ({ count, everyMs, hole, width }) => {
      // The page has them; the paths are no modules of this test.
      const [{ Chart }, { Series }] = await Promise.all(["/chart/chart.js", "/chart/series.js"].map((path) => import(path)));
      const figure = document.createElement("figure");
      figure.className = "chart";
      figure.style.cssText = `width: ${width}px; margin: 0 0 3000px`;
      const canvas = document.createElement("canvas");
      canvas.id = "tested";
      canvas.style.cssText = "height: 300px";
      figure.append(canvas);
      document.body.prepend(figure);
      const series = new Series();
      const state = { series, now: 0, frames: 0, chart: /** @type {any} */ (null) };
      for (let n = 0; n < count; n += 1) if (n < hole[0] || n >= hole[1]) series.add(n * everyMs, n % 1000);
      state.now = (count - 1) * everyMs;
      state.chart = new Chart(canvas, { name: "Test", spanMs: count * everyMs, holeMs: 100 * everyMs, holeWords: "nothing", now: () => state.now });
      state.chart.show([{ caption: "n", lines: [{ name: "n", series, colour: "bloom", kind: "area", words: String }], share: 1, scale: "fits" }]);
      Object.assign(window, { state });
    },
    { count, everyMs, hole, width: WIDTH },
  );
}

function span() {
  return page.evaluate(() => {
    const { from, to } = Reflect.get(window, "state").chart.times;
    return to - from;
  });
}

function reading() {
  return page.locator("#tested").getAttribute("aria-valuetext");
}

const live = () => page.getByRole("button", { name: "Live" }).first();

/**
 * Colours below the middle of the canvas, where no level is, at parts of its width.
 * @param {number[]} parts
 */
function colours(parts) {
  return page.evaluate((parts) => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector("#tested"));
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    return parts.map((part) => [...context.getImageData(Math.round(part * canvas.width), 170, 1, 1).data].join(" "));
  }, parts);
}

test("keys read the values one by one, and zoom where they read", { timeout: STEP_MS_MAX }, async () => {
  await open({ count: 100, everyMs: 1000 });
  const chart = page.getByRole("slider", { name: "Test" });
  await chart.focus();
  await becomes("the reading", reading, /newest values/);
  for (const [key, expected] of [["ArrowLeft", 99], ["ArrowLeft", 98], ["PageUp", 88], ["ArrowRight", 89], ["+", 89], ["Home", 0], ["ArrowLeft", 0], ["End", 99]]) {
    await page.keyboard.press(String(key));
    await becomes(`the reading after ${key}`, reading, new RegExp(`^\\d\\d:\\d\\d:\\d\\d: n ${expected}$`));
  }
  assert.ok((await span()) < 70_000);
  await page.keyboard.press("Escape");
  await becomes("the whole time", span, 100_000);
  await becomes("the button to be gone", () => live().isVisible(), false);
});

test("the wheel scrolls the page, and zooms the chart that has the focus", { timeout: STEP_MS_MAX }, async () => {
  await open({ count: 100, everyMs: 1000 });
  const scrolled = () => page.evaluate(() => scrollY);
  await page.mouse.move(500, 150);
  await page.mouse.wheel(0, 40);
  await until("the page to scroll", async () => (await scrolled()) > 0);
  assert.equal(await span(), 100_000);
  await page.locator("#tested").focus();
  await page.mouse.wheel(0, -200);
  await until("the chart to zoom", async () => (await span()) < 100_000);
  const zoomed = await span();
  await page.mouse.down();
  await page.mouse.move(700, 150, { steps: 4 });
  await page.mouse.up();
  assert.equal(await span(), zoomed, "a drag moves, and does not zoom");
  await live().click();
  await becomes("the whole time", span, 100_000);
});

/**
 * Moves fingers over the chart; each has its own way, with the same number of steps.
 * @param {import("playwright-core").CDPSession} session
 * @param {[x: number, y: number][][]} ways
 */
async function touch(session, ways) {
  const at = (/** @type {number} */ step) => ways.map((way, id) => ({ id, x: Number(way[step]?.[0]), y: Number(way[step]?.[1]) }));
  await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: at(0) });
  for (let step = 1; step < (ways[0]?.length ?? 0); step += 1) await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: at(step) });
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
}

test("fingers pinch the time apart and together, and move it", { timeout: STEP_MS_MAX }, async () => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, hasTouch: true });
  const before = page;
  page = await context.newPage();
  const session = await context.newCDPSession(page);
  try {
    await open({ count: 100, everyMs: 1000 });
    /** @type {(from: [number, number], to: [number, number]) => [number, number][]} */
    const way = (from, to) => Array.from({ length: 9 }, (_, n) => [from[0] + ((to[0] - from[0]) * n) / 8, from[1] + ((to[1] - from[1]) * n) / 8]);
    const times = () => page.evaluate(() => Reflect.get(window, "state").chart.times);
    // Apart along the chart: a quarter of the time, and what was in the middle stays there.
    const middle = 546;
    await touch(session, [way([middle - 50, 150], [middle - 200, 150]), way([middle + 50, 150], [middle + 200, 150])]);
    // Chromium passes fingers on with the next frame.
    const spans = (/** @type {number} */ ms, /** @type {number} */ tolerance) => until(`${ms} ms`, async () => Math.abs((await span()) - ms) < tolerance);
    await spans(25_000, 500);
    const apart = await times();
    const centre = (apart.from + apart.to) / 2;
    assert.ok(centre > 35_000 && centre < 65_000, JSON.stringify(apart));
    // Together across it.
    await touch(session, [way([middle, 50], [middle, 125]), way([middle, 250], [middle, 175])]);
    await spans(100_000, 6000);
    await touch(session, [way([middle - 50, 150], [middle - 200, 150]), way([middle + 50, 150], [middle + 200, 150])]);
    await spans(25_000, 1500);
    const zoomed = await times();
    await touch(session, [way([400, 150], [600, 150])]);
    await until("earlier times", async () => (await times()).from < zoomed.from - 1000);
    const moved = await times();
    assert.ok(Math.abs(moved.to - moved.from - (zoomed.to - zoomed.from)) < 1);
    assert.equal(await page.evaluate(() => visualViewport?.scale), 1, "the page itself was not zoomed");
  } finally {
    await context.close();
    page = before;
  }
});

test("a time without values is shown as one", { timeout: STEP_MS_MAX }, async () => {
  await open({ count: 4000, everyMs: 10, hole: [1500, 2500] });
  const hole = await page.evaluate(() => {
    const probe = document.createElement("i");
    probe.style.color = "var(--hole)";
    document.body.append(probe);
    return `${(getComputedStyle(probe).color.match(/\d+/g) ?? []).join(" ")} 255`;
  });
  await until("the picture", async () => (await colours([0.46]))[0] === hole);
  const [before, inside, after] = await colours([0.3, 0.6, 0.75]);
  assert.equal(inside, hole);
  assert.ok(before !== hole && after !== hole, `${before}, ${after}`);
});

test("two values at nearly the same time are seen", { timeout: STEP_MS_MAX }, async () => {
  await open({ count: 1, everyMs: 1 });
  await page.evaluate(() => {
    const { state } = /** @type {any} */ (window);
    state.series.add(13, 0);
    state.now = 1_200_000;
    state.chart.fit(1_300_000);
  });
  /** Pixels of the colour of the line. */
  const painted = () =>
    page.evaluate(() => {
      const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector("#tested"));
      const { data } = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).getImageData(0, 0, canvas.width, canvas.height);
      const hex = getComputedStyle(document.documentElement).getPropertyValue("--bloom").trim();
      const bloom = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
      let count = 0;
      for (let at = 0; at < data.length; at += 4) if (bloom.every((part, nth) => Math.abs(Number(data[at + nth]) - part) < 40)) count += 1;
      return count;
    });
  await until("a dot", async () => (await painted()) > 8);
});

test("100,000 values, and 100 more each second, are drawn in each frame", { timeout: STEP_MS_MAX }, async (context) => {
  await open({ count: 100_000, everyMs: 10 });
  const measured = await page.evaluate(async () => {
    const state = Reflect.get(window, "state");
    const begin = performance.now();
    const [first, added] = [state.now, state.series.end];
    let frames = 0;
    // To ask for a size lays out the page, once for each canvas that is drawn.
    let asked = 0;
    const { get } = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(Element.prototype, "clientWidth"));
    Object.defineProperty(HTMLCanvasElement.prototype, "clientWidth", {
      configurable: true,
      get() {
        asked += 1;
        return get?.call(this);
      },
    });
    await new Promise((resolve) => {
      const frame = (/** @type {number} */ now) => {
        const passed = now - begin;
        while (state.now < first + passed) state.series.add((state.now += 10), state.series.end % 1000);
        state.chart.redraw();
        frames += 1;
        if (passed < 3000) requestAnimationFrame(frame);
        else resolve(undefined);
      };
      requestAnimationFrame(frame);
    });
    Reflect.deleteProperty(HTMLCanvasElement.prototype, "clientWidth");
    return { perSecond: (frames * 1000) / (performance.now() - begin), added: state.series.end - added, asked };
  });
  assert.equal(measured.asked, 0);
  context.diagnostic(`${measured.perSecond.toFixed(1)} frames a second, ${measured.added} values added`);
  const { low, high, count } = await page.evaluate(() => {
    const { chart, series } = Reflect.get(window, "state");
    return chart.summary(series);
  });
  assert.deepEqual([low, high, count >= 100_000], [0, 999, true]);
  await page.locator("#tested").focus();
  await page.keyboard.press("End");
  const newest = await page.evaluate(() => {
    const { series } = Reflect.get(window, "state");
    return series.value(series.end - 1);
  });
  await becomes("the reading", reading, new RegExp(` n ${newest}$`));
});
