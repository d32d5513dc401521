/**
 * Measures how long the page of a topic lets a hand wait: 100 events a second, on a processor that Chromium slows down to a quarter.
 * Not a test, since the figure is the machine's, too: `node tests/e2e/input-delay.js [trace.json]`; the trace shows
 * what the time goes to, in Chromium's performance panel.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { kill, launch, serve } from "./support.js";

const EVENTS_PER_SECOND = 100;
const SLOWDOWN = 4;
const KEYS = 150;
const KEY_EVERY_MS = 130;
const WARM_UP_MS = 6000;

const [traceFile] = process.argv.slice(2);
/** Prints as many events as have to be there by now. */
const SOURCE = `let n = 0; const begun = Date.now(); setInterval(() => { for (; n < (Date.now() - begun) / ${1000 / EVENTS_PER_SECOND}; n += 1) console.log(JSON.stringify({ n, a: (n % 50) / 2, b: { c: n % 7 }, text: "some words of an event" })); }, 5)`;
const server = await serve("--exec", `busy=exec '${process.execPath}' -e '${SOURCE}'`, "--listen", "127.0.0.1:0");
const browser = await launch("--no-proxy-server");
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => {
    const entries = /** @type {any[]} */ ([]);
    Object.assign(window, { entries });
    new PerformanceObserver((list) => entries.push(...list.getEntries())).observe(/** @type {any} */ ({ type: "event", durationThreshold: 16, buffered: true }));
    Object.assign(window, { delays: [], longest: 0 });
    addEventListener("keydown", ({ timeStamp }) => Reflect.get(window, "delays").push(performance.now() - timeStamp), { capture: true });
  });
  await page.goto(`${server.origin}/topics/busy`);
  const session = await page.context().newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  await page.locator("#filter").focus();
  await sleep(WARM_UP_MS);
  const count = () => page.evaluate(() => Number(document.querySelector("[data-field=count]")?.textContent?.replaceAll(",", "")));
  const [first, begun] = [await count(), performance.now()];
  if (traceFile) await browser.startTracing(page, { path: traceFile, categories: ["devtools.timeline", "disabled-by-default-v8.cpu_profiler"] });
  for (let n = 0; n < KEYS; n += 1) {
    await session.send("Input.dispatchKeyEvent", { type: "keyDown", key: "Shift", code: "ShiftLeft" });
    await session.send("Input.dispatchKeyEvent", { type: "keyUp", key: "Shift", code: "ShiftLeft" });
    await sleep(KEY_EVERY_MS);
  }
  if (traceFile) await browser.stopTracing();
  const perSecond = ((await count()) - first) / ((performance.now() - begun) / 1000);
  const { delays, durations } = await page.evaluate(() => ({
    delays: Reflect.get(window, "delays"),
    durations: Reflect.get(window, "entries").filter((/** @type {any} */ { name }) => name === "keydown").map((/** @type {any} */ { duration }) => duration),
  }));
  console.log(`${perSecond.toFixed(0)} of ${EVENTS_PER_SECOND} events a second; ${delays.length} keys`);
  console.log(`until the page hears of a key: ${words(delays)}`);
  // Chromium tells none that took less than 16 ms.
  const all = delays.map((/** @type {number} */ _, /** @type {number} */ index) => durations[index] ?? 0);
  console.log(`until the next frame after it: ${words(all)}; ${delays.length - durations.length} of them took less than 16 ms`);
} finally {
  await browser.close();
  await kill(server);
}

/** @param {number[]} values */
function words(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const part = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]?.toFixed(0);
  return `median ${part(0.5)} ms, p95 ${part(0.95)} ms, longest ${part(1)} ms`;
}
