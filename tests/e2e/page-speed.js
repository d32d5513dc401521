/**
 * Measures how fast the pages draw: the frames a second of /computations with four branches of 2,000 elements, and the times of /propagation
 * from a wish to the first tiles that are seen - on a page that has just loaded, of a press of "Compute", and in a drag, where a wish waits
 * for the tiles of the one before - and from the end of a drag to the new map. On a processor that Chromium slows down to a
 * quarter, and as it is.
 * Not a test, since the figures are the machine's, too: `node tests/e2e/page-speed.js`.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`; for figures, a release build) and Chromium.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EXAMPLES } from "../../web/page/computations/examples.js";
import { kill, launch, serve, until } from "./support.js";

const SLOWDOWNS = [4, 1];
const FRAMES_MS = 5000;
const PRESSES = 20;
const DRAGS = 10;
const MOVES = 30;
const MOVE_EVERY_MS = 16;
/** Between two presses. */
const PAUSE_MS = 300;

/** @typedef {import("playwright-core").Page} Page */

const server = await serve("--demo", "--listen", "127.0.0.1:0");
const browser = await launch("--no-proxy-server");
try {
  for (const slowdown of SLOWDOWNS) {
    console.log(`processor at 1/${slowdown}`);
    await computations(await open("computations", slowdown));
    await propagation(await open("propagation", slowdown));
  }
} finally {
  await browser.close();
  await kill(server);
}

/**
 * @param {string} path
 * @param {number} slowdown
 */
async function open(path, slowdown) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } });
  await page.goto(`${server.origin}/${path}`);
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
  return page;
}

/** @param {Page} page */
async function computations(page) {
  const example = EXAMPLES.findIndex(({ name }) => name === "Four branches of 2,000 elements");
  await page.locator("#example").selectOption(String(example));
  await page.locator("#pace").selectOption("1000");
  await page.getByRole("button", { name: /^Start/ }).click();
  await until("four lists", async () => (await page.locator("#run canvas").count()) === 4);
  const { frames, drawn, canvases, longest } = await page.evaluate(noteFrames, FRAMES_MS);
  const perSecond = (/** @type {number} */ count) => ((count * 1000) / FRAMES_MS).toFixed(1);
  console.log(`computations: ${perSecond(frames)} frames/s, ${perSecond(drawn)} of them with a list, ${perSecond(canvases)} lists/s; longest between two frames ${longest.toFixed(0)} ms`);
  await page.close();
}

/**
 * Runs in the page: counts frames, those in which a list was drawn, and the lists.
 * @param {number} ms
 */
async function noteFrames(ms) {
  const { putImageData } = CanvasRenderingContext2D.prototype;
  let [frames, drawn, canvases, inFrame, longest] = [0, 0, 0, 0, 0];
  CanvasRenderingContext2D.prototype.putImageData = function (/** @type {any[]} */ ...image) {
    inFrame += 1;
    Reflect.apply(putImageData, this, image);
  };
  const begun = performance.now();
  let last = begun;
  while (last - begun < ms) {
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    [frames, drawn, canvases] = [frames + 1, drawn + (inFrame > 0 ? 1 : 0), canvases + inFrame];
    [longest, last, inFrame] = [Math.max(longest, now - last), now, 0];
  }
  return { frames, drawn, canvases, longest };
}

/** @param {Page} page */
async function propagation(page) {
  const state = page.locator(".pane:visible [data-field=state]").first();
  const summary = page.locator(".pane:visible [data-field=summary]").first();
  const isDone = async () => (await state.textContent()) === "done";
  await until("the first map", isDone);
  const firstSeen = async () => Number(/first seen after ([\d.]+) ms/.exec((await summary.textContent()) ?? "")?.[1]);
  console.log(`propagation: after loading the page, first tiles ${(await firstSeen()).toFixed(0)} ms after the wish`);
  const presses = [];
  for (let press = 0; press < PRESSES; press += 1) {
    await sleep(PAUSE_MS);
    presses.push(await page.evaluate(notePress));
    await until("the map", isDone);
  }
  console.log(`propagation: from a press of Compute to the first tiles that are seen: ${words(presses)}`);
  const handle = page.locator(".pane:visible .handle").first();
  /** @type {{ first: number, whole: number, wish: number }[]} */
  const all = [];
  for (let drag = 0; drag < DRAGS; drag += 1) {
    const box = await handle.boundingBox();
    if (!box) throw new Error("the map has no transmitter");
    const [x, y, by] = [box.x + box.width / 2, box.y + box.height / 2, drag % 2 === 0 ? 3 : -3];
    const told = page.evaluate(noteEnd);
    await page.mouse.move(x, y);
    await page.mouse.down();
    for (let move = 1; move <= MOVES; move += 1) {
      await page.mouse.move(x + move * by, y);
      await sleep(MOVE_EVERY_MS);
    }
    await page.mouse.up();
    all.push({ ...(await told), wish: await firstSeen() });
  }
  console.log(`propagation: from a wish in a drag to the first tiles that are seen: ${words(all.map(({ wish }) => wish))}`);
  console.log(`propagation: from the end of a drag to the first tiles of the new map: ${words(all.map(({ first }) => first))}`);
  console.log(`propagation: from the end of a drag to the whole new map: ${words(all.map(({ whole }) => whole))}`);
  await page.close();
}

/** Runs in the page: presses "Compute", and returns the time until the first tiles are drawn, ms. */
function notePress() {
  const summary = document.querySelector(".pane [data-field=summary]");
  const compute = document.querySelector("#compute");
  const pressed = performance.now();
  return new Promise((resolve) => {
    if (compute instanceof HTMLElement) compute.click();
    const look = () => {
      if (summary?.textContent?.includes("first seen")) resolve(performance.now() - pressed);
    };
    // A press has taken away the words about the run before.
    if (summary) new MutationObserver(look).observe(summary, { subtree: true, childList: true, characterData: true });
  });
}

/** Runs in the page: waits for the end of a drag, and says when the first tiles and all of the last run were there after it, in ms. */
function noteEnd() {
  const pane = [...document.querySelectorAll(".pane")].find((one) => one instanceof HTMLElement && one.offsetParent !== null);
  const text = (/** @type {string} */ name) => pane?.querySelector(`[data-field=${name}]`)?.textContent ?? "";
  return new Promise((resolve) => {
    let [end, first, whole] = [0, 0, 0];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let settled;
    const look = () => {
      const [now, state] = [performance.now(), text("state")];
      if (state.startsWith("start")) [first, whole] = [0, 0];
      if (first === 0 && text("summary").includes("first seen")) first = now;
      if (whole === 0 && state === "done") whole = now;
      clearTimeout(settled);
      // A wish may wait for the first tiles of the run before.
      if (end > 0 && whole > 0) settled = setTimeout(() => resolve({ first: Math.max(0, first - end), whole: Math.max(0, whole - end) }), SETTLED_MS);
    };
    const SETTLED_MS = 300;
    if (pane) new MutationObserver(look).observe(pane, { subtree: true, childList: true, characterData: true });
    const up = () => {
      end = performance.now();
      look();
    };
    addEventListener("pointerup", up, { capture: true, once: true });
  });
}

/** @param {number[]} values */
function words(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const part = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]?.toFixed(0);
  return `median ${part(0.5)} ms, longest ${part(1)} ms of ${values.length}`;
}
