/**
 * The pages about the wind and about the transports in a real browser, on the real server, with an emulated sensor on a pseudo-terminal.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium
 * (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as support from "./support.js";
import { becomes, kill, launch, ownAddress, serve, start, until } from "./support.js";

const PANES = ["websocket", "plain-websocket", "sse", "ndjson", "long-polling", "polling"];
const STEP_MS_MAX = 300_000;
const NEW_MESSAGES = 8;

/** @type {string} */ let folder;
/** @type {import("./support.js").Program} */ let emulator;
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;
/** That about the wind. @type {import("playwright-core").Page} */ let page;
/** That about the transports. @type {import("playwright-core").Page} */ let compared;
/** @type {string[]} */ const browserSays = [];
/** @type {string[]} */ const faults = [];

// --- programs ---

/** @param {string[]} [args] */
async function startEmulator(args = []) {
  const link = join(folder, "wind");
  emulator = start(["windsonic", "--link", link, ...args]);
  const { process: child, output } = emulator;
  await until("the emulator's link", () => {
    if (child.exitCode !== null) throw new Error(`the emulator ended:\n${output.join("")}`);
    return existsSync(link);
  });
}

/** @param {string} listen */
async function startServer(listen) {
  server = await serve("--listen", listen, "--serial", join(folder, "wind"), "--configure", "--host");
}

// --- the page ---

/** @param {string} phrase */
async function sensorSays(phrase) {
  await until(`"${phrase}" on the page`, async () => (await page.textContent("#sensor-status")) === phrase);
}

/** How many messages each pane shows. */
async function counts() {
  return await compared.evaluate(
    (names) =>
      names.map((name) => {
        const text = document.querySelector(`#pane-${name} [data-field="messages"]`)?.textContent ?? "";
        return Number(text.replaceAll(",", ""));
      }),
    PANES,
  );
}

/** Each pane gets new messages, is connected and shows a latency. */
async function panesAdvance() {
  const begin = await counts();
  await until(`${NEW_MESSAGES} new messages in each pane (from ${begin})`, async () => {
    const now = await counts();
    return now.every((count, index) => count >= Number(begin[index]) + NEW_MESSAGES);
  });
  for (const name of PANES) {
    await until(`${name} to be connected and measured`, async () => {
      const state = (await compared.textContent(`#pane-${name} [data-field="state"]`)) ?? "";
      const latency = (await compared.textContent(`#pane-${name} [data-field="latency"]`)) ?? "";
      return state.startsWith("connected") && /^-?[\d.]+ ms$/.test(latency);
    });
  }
}

function pixels() {
  return page.evaluate(() => /** @type {HTMLCanvasElement} */ (document.querySelector("#dial")).toDataURL());
}

function direction() {
  return page.evaluate(() => /** @type {HTMLElement} */ (document.querySelector("#dial")).dataset.direction ?? "");
}

async function wasNotReloaded() {
  for (const each of [page, compared]) assert.equal(await each.evaluate(() => Reflect.get(window, "notReloaded")), true, "the page was reloaded");
}

/**
 * A step of the story; when it fails, says what everyone saw.
 * @param {string} name
 * @param {() => Promise<void>} body
 */
function step(name, body) {
  test(name, { timeout: STEP_MS_MAX }, async () => {
    try {
      await body();
      assert.deepEqual(faults, [], "scripts failed on the page");
    } catch (error) {
      const texts = await Promise.all([page, compared].map((each) => each?.evaluate(() => document.body.innerText).catch(() => "(the page is gone)")));
      console.error(`--- pages ---\n${texts.join("\n---\n")}\n--- browser ---\n${browserSays.slice(-30).join("\n")}`);
      console.error(`--- server ---\n${server?.output.join("")}\n--- emulator ---\n${emulator?.output.join("")}`);
      throw error;
    }
  });
}

/**
 * @param {import("playwright-core").BrowserContext} context
 * @param {string} path
 */
async function open(context, path) {
  const opened = await context.newPage();
  opened.on("console", (message) => browserSays.push(`${message.type()}: ${message.text()}`));
  opened.on("pageerror", (error) => faults.push(String(error.stack ?? error)));
  await opened.goto(`${server.origin}/${path}`);
  await opened.evaluate(() => Reflect.set(window, "notReloaded", true));
  return opened;
}

before(async () => {
  folder = await support.folder("anemone-wind-");
  await startEmulator();
  await startServer(await ownAddress());
  browser = await launch();
  const context = await browser.newContext();
  page = await open(context, "wind");
  compared = await open(context, "transports");
});

after(async () => {
  await browser?.close();
  await kill(server);
  await kill(emulator);
  await support.remove(folder);
});

step("the sensor is live and all panes advance", async () => {
  await sensorSays("sensor live");
  await panesAdvance();
});

step("the dial moves", async () => {
  await until("a direction", async () => (await direction()) !== "");
  const [directionBefore, pixelsBefore] = [await direction(), await pixels()];
  await until("another direction", async () => (await direction()) !== directionBefore);
  await until("another picture", async () => (await pixels()) !== pixelsBefore);
});

step("a forever-frame begins when it is asked for", async () => {
  const frames = () => compared.locator("iframe").count();
  assert.equal(await frames(), 0);
  await compared.getByRole("button", { name: "Begin: Forever-frame" }).click();
  await until("events of the frame", async () => {
    const [state, messages] = await Promise.all(["state", "messages"].map((field) => compared.textContent(`#pane-forever-frame [data-field="${field}"]`)));
    return String(state).startsWith("connected") && Number(messages) >= NEW_MESSAGES;
  });
  assert.equal(await frames(), 1);
  assert.match((await compared.textContent('#pane-forever-frame [data-field="gaps"]')) ?? "", /^none/);
});

step("older measurements are read back, and the rose shows those in view", async () => {
  const { events, next } = await (await fetch(`${server.origin}/topics/wind?after=earliest&limit=1000`)).json();
  const said = page.locator("#ranges [role=status]");
  const total = async () => Number(await page.locator("#rose").getAttribute("data-total"));
  const offered = () => page.locator("#ranges button:visible").allTextContents();
  assert.deepEqual(await offered(), ["2 min", "All"], "no span that reaches beyond what is kept");
  await page.getByRole("button", { name: "All" }).click();
  await until("all to be shown", async () => /^the server keeps .+, [\d,]+ events$/.test((await said.textContent()) ?? ""));
  await until(`${events.length} measurements up to ${next} in the rose`, async () => (await total()) >= events.length);
  await becomes("the words of the rose", () => page.textContent("#rose-words"), /^[\d,]+ measurements in view, most often from [NESW]{1,3} \d+ %/);
  await page.getByRole("button", { name: "2 min" }).click();
  await becomes("the words of the range", () => said.textContent(), "");
});

step("a second window waits with its streams, and takes its turn", async () => {
  const other = await open(compared.context(), "transports");
  const state = (/** @type {string} */ name) => other.textContent(`#pane-${name} [data-field="state"]`);
  await until("what needs no stream to be connected", async () => String(await state("polling")).startsWith("connected"));
  for (const name of ["sse", "ndjson"]) await becomes(`the reason of ${name}`, () => other.textContent(`#pane-${name} [data-field="how"]`), /^waits until another window/);
  await compared.close();
  await until("the streams of the other window", async () => String(await state("sse")).startsWith("connected"));
  compared = other;
});

step("no event is lost or doubled, and bytes are told", async () => {
  for (const name of PANES) {
    const field = (/** @type {string} */ field) => () => compared.textContent(`#pane-${name} [data-field="${field}"]`);
    await becomes(`the bytes of ${name}`, field("bytes"), /^[\d.]+ k?B$/);
    await becomes(`the gaps of ${name}`, field("gaps"), /^none(, \d+ caught up)?$/);
  }
});

step("the machine's load is shown", async () => {
  await until("each core's load", async () => (await compared.locator("#cores li").count()) > 0);
  await becomes("the memory", () => compared.textContent('#host [data-field="memory"]'), / of /);
});

step("a killed sensor is told, and the panes stay connected", async () => {
  await kill(emulator);
  await sensorSays("sensor lost");
  for (const name of PANES) {
    assert.match((await compared.textContent(`#pane-${name} [data-field="state"]`)) ?? "", /^connected/);
  }
});

step("the sensor's return is told without a reload", async () => {
  await startEmulator();
  await sensorSays("sensor live");
  await panesAdvance();
  await wasNotReloaded();
});

step("an instrument that cannot measure is told, and so is the end of its fault", async () => {
  const recording = join(folder, "recording");
  await writeFile(recording, "Q,,,M,04,\n");
  await kill(emulator);
  await startEmulator(["--replay", recording]);
  await becomes("the wind", () => page.textContent("#readout"), "not measured");
  await becomes("the fault", () => page.textContent("#fault"), "The instrument reports: both axes failed.");
  await becomes("the mood", () => page.locator("#sensor").getAttribute("data-mood"), "doubtful");
  assert.equal(await direction(), "");
  await kill(emulator);
  await startEmulator();
  await becomes("the wind", () => page.textContent("#readout"), /m\/s/);
  await becomes("the fault", () => page.textContent("#fault"), "");
  await becomes("the mood", () => page.locator("#sensor").getAttribute("data-mood"), "good");
});

step("a server that goes is told", async () => {
  await kill(server);
  await sensorSays("server not reached");
  for (const name of PANES) {
    await until(`${name} to say that it is not connected`, async () => {
      const state = (await compared.textContent(`#pane-${name} [data-field="state"]`)) ?? "";
      return /^(reconnecting|connecting)/.test(state);
    });
  }
});

step("everything comes back by itself when the server does", async () => {
  await startServer(new URL(server.origin).host);
  await sensorSays("sensor live");
  await panesAdvance();
  await wasNotReloaded();
});
