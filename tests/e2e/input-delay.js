/**
 * Measures how long the page of a topic lets a hand wait: 100 events a second, on a processor that Chromium slows down to a quarter.
 * A page without events, in turn with it, shows what is the machine's own.
 * Not a test, since the figures are the machine's, too: `node tests/e2e/input-delay.js [trace.json]`; the trace shows
 * what the time goes to, in Chromium's performance panel.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { kill, launch, serve } from "./support.js";

const EVENTS_PER_SECOND = 100;
const SLOWDOWN = 4;
const ROUNDS = 6;
const KEYS = 40;
const KEY_EVERY_MS = 130;
const WARM_UP_MS = 6000;

const [traceFile] = process.argv.slice(2);
/** Prints as many events as have to be there by now. */
const SOURCE = `let n = 0; const begun = Date.now(); setInterval(() => { for (; n < (Date.now() - begun) / ${1000 / EVENTS_PER_SECOND}; n += 1) console.log(JSON.stringify({ n, a: (n % 50) / 2, b: { c: n % 7 }, text: "some words of an event" })); }, 5)`;
const server = await serve("--exec", `busy=exec '${process.execPath}' -e '${SOURCE}'`, "--exec", "quiet=echo '{\"n\":1}'; sleep 600", "--listen", "127.0.0.1:0");

/** Runs in the page, before its scripts: notes for each key when the page heard of it, and when the next frame was there. */
function noteKeys() {
  const keys = /** @type {Map<number, { delay: number, duration: number }>} */ (new Map());
  Object.assign(window, { keys });
  addEventListener("keydown", ({ timeStamp }) => keys.set(Math.round(timeStamp), { delay: performance.now() - timeStamp, duration: 0 }), { capture: true });
  // Chromium tells none that took less than 16 ms.
  new PerformanceObserver((list) => {
    for (const { name, startTime, duration } of list.getEntries()) {
      const key = keys.get(Math.round(startTime));
      if (name === "keydown" && key) key.duration = duration;
    }
  }).observe(/** @type {any} */ ({ type: "event", durationThreshold: 16, buffered: true }));
}

/**
 * A page of a topic in a browser of its own.
 * @param {string} topic
 */
async function open(topic) {
  const browser = await launch("--no-proxy-server");
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(noteKeys);
  await page.goto(`${server.origin}/topics/${topic}`);
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  await page.locator("#filter").focus();
  await sleep(WARM_UP_MS);
  const press = async () => {
    for (let n = 0; n < KEYS; n += 1) {
      await session.send("Input.dispatchKeyEvent", { type: "keyDown", key: "Shift", code: "ShiftLeft" });
      await session.send("Input.dispatchKeyEvent", { type: "keyUp", key: "Shift", code: "ShiftLeft" });
      await sleep(KEY_EVERY_MS);
    }
  };
  const count = () => page.evaluate(() => Number(document.querySelector("[data-field=count]")?.textContent?.replaceAll(",", "")));
  /** @type {() => Promise<{ delay: number, duration: number }[]>} */
  const keys = () => page.evaluate(() => [...Reflect.get(window, "keys").values()]);
  return { topic, browser, page, press, count, keys };
}

const [busy, quiet] = [await open("busy"), await open("quiet")];
try {
  const [first, begun] = [await busy.count(), performance.now()];
  if (traceFile) await busy.browser.startTracing(busy.page, { path: traceFile, categories: ["devtools.timeline", "disabled-by-default-v8.cpu_profiler"] });
  for (let round = 0; round < ROUNDS; round += 1) for (const { press } of [busy, quiet]) await press();
  if (traceFile) await busy.browser.stopTracing();
  const perSecond = ((await busy.count()) - first) / ((performance.now() - begun) / 1000);
  console.log(`${perSecond.toFixed(0)} of ${EVENTS_PER_SECOND} events a second; ${ROUNDS * KEYS} keys on each page`);
  for (const { topic, keys } of [busy, quiet]) {
    const all = await keys();
    console.log(`${topic}: until the page hears of a key: ${words(all.map(({ delay }) => delay))}`);
    console.log(`${topic}: until the next frame after it: ${words(all.map(({ duration }) => duration))}`);
  }
} finally {
  for (const { browser } of [busy, quiet]) await browser.close();
  await kill(server);
}

/** @param {number[]} values */
function words(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const part = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]?.toFixed(0);
  return `median ${part(0.5)} ms, p95 ${part(0.95)} ms, longest ${part(1)} ms`;
}
