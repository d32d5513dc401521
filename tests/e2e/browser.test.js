/**
 * Chromium reads topics with what it has itself: `EventSource`, `WebSocket` and an iframe. The server is killed again
 * and again meanwhile, and its topics are on the disk.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`) and Chromium
 * (`CHROMIUM`, default `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PATIENCE_MS, folder, kill, launch, numbersTo, ownAddress, publish, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
/** Of each topic; the server is killed while every so many of them are published. */
const EVENTS = 601;
const KILLED_EVERY = 200;
const KILLS = (EVENTS - 1) / KILLED_EVERY;

/** @type {string} */ let data;
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  data = await folder("anemone-browser-");
  await restart(await ownAddress());
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(data);
});

async function restart(listen = new URL(server.origin).host) {
  await kill(server);
  server = await serve("--demo", "--data", data, "--listen", listen);
}

/**
 * A page of the server's origin, with `seen` in its window.
 * @param {string} path
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 */
async function withPage(path, body) {
  const page = await browser.newPage();
  try {
    await page.goto(server.origin + path);
    await page.evaluate(() => Object.assign(window, { seen: { numbers: [], notices: [], opened: 0 } }));
    await body(page);
  } catch (error) {
    console.error(`--- seen ---\n${JSON.stringify(await seen(page).catch(String))}`);
    console.error(`--- server ---\n${server.output.join("")}`);
    throw error;
  } finally {
    await page.close();
  }
}

/**
 * @param {import("playwright-core").Page} page
 * @returns {Promise<{ numbers: number[], notices: unknown[], opened: number }>}
 */
function seen(page) {
  return page.evaluate(() => Reflect.get(window, "seen"));
}

/**
 * Publishes while the page reads, and kills the server and starts it again meanwhile; the page has seen every event once.
 * @param {string} topic
 * @param {import("playwright-core").Page} page
 */
async function everythingComesOnce(topic, page) {
  const url = `${server.origin}${topic}`;
  const hasSeen = (/** @type {number} */ count) =>
    until(`${count} events`, async () => (await page.evaluate(() => Reflect.get(window, "seen").numbers.length)) >= count);
  for (let begun = 1; begun <= EVENTS - KILLED_EVERY; begun += KILLED_EVERY) {
    const end = begun + KILLED_EVERY;
    const published = publish(url, begun, end - 1);
    await hasSeen(begun + KILLED_EVERY / 4);
    await restart();
    await published;
    // Comes after the restart in any case, so the page has to be there again.
    await publish(url, end, end);
    await hasSeen(end);
  }
  const { numbers, notices, opened } = await seen(page);
  assert.deepEqual(numbers, numbersTo(EVENTS));
  assert.deepEqual(notices, []);
  assert.ok(opened > KILLS, `opened ${opened} times`);
}

/**
 * @param {string} name
 * @param {(topic: string, page: import("playwright-core").Page) => Promise<void>} open
 */
function survives(name, open) {
  test(name, { timeout: STEP_MS_MAX }, async () => {
    const topic = `/topics/scratch-${name.replaceAll(/[^a-z]+/gi, "-").toLowerCase()}`;
    // It is made by its first event.
    await publish(`${server.origin}${topic}`, 1, 1);
    await withPage("/clock", async (page) => {
      await open(topic, page);
      await everythingComesOnce(topic, page);
    });
  });
}

survives("an EventSource goes on by itself", async (topic, page) => {
  await page.evaluate((topic) => {
    const seen = Reflect.get(window, "seen");
    const source = new EventSource(`${topic}?after=earliest`);
    source.onopen = () => (seen.opened += 1);
    source.onmessage = ({ data }) => seen.numbers.push(JSON.parse(data).n);
    for (const name of ["gap", "skipped", "end"]) {
      source.addEventListener(name, ({ data }) => seen.notices.push(data));
    }
  }, topic);
});

survives("a WebSocket that counts", async (topic, page) => {
  await page.evaluate(async (topic) => {
    const seen = Reflect.get(window, "seen");
    // Its messages have no positions: each event is one further than the one before.
    const { epoch } = await (await fetch(topic)).json();
    const open = () => {
      const socket = new WebSocket(`ws://${location.host}${topic}?after=${epoch}-${seen.numbers.length}`);
      socket.onopen = () => (seen.opened += 1);
      socket.onmessage = ({ data }) => {
        const event = JSON.parse(data);
        if ("n" in event) seen.numbers.push(event.n);
        else seen.notices.push(data);
      };
      socket.onclose = () => setTimeout(open, 100);
    };
    open();
  }, topic);
});

survives("a WebSocket with positions", async (topic, page) => {
  await page.evaluate((topic) => {
    const seen = Reflect.get(window, "seen");
    let after = "earliest";
    const open = () => {
      const socket = new WebSocket(`ws://${location.host}${topic}?after=${after}`, "anemone.events");
      socket.onopen = () => (seen.opened += 1);
      socket.onmessage = ({ data: text }) => {
        const { position, data, ...notice } = JSON.parse(text);
        if (position) after = position;
        if (data) seen.numbers.push(data.n);
        if (Object.keys(notice).some((name) => name !== "time")) seen.notices.push(text);
      };
      socket.onclose = () => setTimeout(open, 100);
    };
    open();
  }, topic);
});

/**
 * A forever-frame in the page, and another one in its place when it has been silent for a while. What one that was given up
 * still says counts no more: each calls a function of its own.
 * @param {import("playwright-core").Page} page
 * @param {string} target
 * @param {string} begin
 */
async function frame(page, target, begin) {
  await page.evaluate(
    ([target, begin]) => {
      const seen = Reflect.get(window, "seen");
      const iframe = document.createElement("iframe");
      let [after, count] = [begin, 0];
      const app = {};
      /** @type {ReturnType<typeof setTimeout>} */ let silent;
      const open = () => {
        const mine = `receive${(count += 1)}`;
        Object.assign(app, { [mine]: (/** @type {any} */ item) => mine === `receive${count}` && receive(item) });
        iframe.src = `${target}?frame=app.${mine}&after=${after}`;
        silent = setTimeout(open, 3000);
      };
      const receive = (/** @type {any} */ { position, data, time, ...notice }) => {
        clearTimeout(silent);
        silent = setTimeout(open, 3000);
        if (position) after = position;
        if (data) seen.numbers.push(data.n);
        else if (position) seen.opened += 1;
        else seen.notices.push(notice);
        seen.state = iframe.contentDocument?.readyState;
      };
      Object.assign(window, { app });
      iframe.hidden = true;
      open();
      document.body.append(iframe);
    },
    /** @type {[string, string]} */ ([target, begin]),
  );
}

survives("a forever-frame in the place of one that fell silent", (topic, page) => frame(page, topic, "earliest"));

test("a forever-frame tells while it loads", { timeout: STEP_MS_MAX }, async () => {
  const topic = "/topics/scratch-loading";
  await publish(`${server.origin}${topic}`, 1, 3);
  // The server's own page, too, may have one, though it is isolated from other origins.
  for (const path of ["/clock", "/"]) {
    await withPage(path, async (page) => {
      await frame(page, topic, "zz-7");
      await page.waitForFunction(() => Reflect.get(window, "seen").numbers.length >= 3, null, { timeout: PATIENCE_MS });
      const { numbers, notices, ...rest } = await seen(page);
      assert.deepEqual(numbers, [1, 2, 3], path);
      assert.equal(Reflect.get(rest, "state"), "loading", path);
      const [{ gap }] = /** @type {[{ gap: Record<string, unknown> }]} */ (notices);
      assert.deepEqual([notices.length, gap.reason, gap.after, gap.missed], [1, "epoch", "zz-7", null], path);
    });
  }
});
