/**
 * The page about a topic, at the topic's own URL: its events as they come, whatever they hold, the chart of its numbers, gaps in words,
 * how to read it, and the box to publish.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), curl and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { firstOutput, output } from "./programs.js";
import { BIN, PATIENCE_MS, becomes, folder, kill, launch, ownAddress, publish, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const HTML = { Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-topic-");
  const config = join(directory, "anemone.toml");
  const topics = [["open", "anyone", ""], ["closed", "nobody", ""], ["small", "anyone", "events_max = 5\n"], ["kept", "anyone", "events_max = 600\n"], ["text", "anyone", ""], ["long", "anyone", ""], ["busy", "anyone", ""], ["published", "anyone", ""], ["young", "anyone", ""], ["wide", "anyone", ""], ["past", "anyone", `units = { n = "m/s" }\n`], ["much", "anyone", ""], ["late", "anyone", ""]];
  await writeFile(config, topics.map(([name, who, more]) => `[[topic]]\nname = "${name}"\npublish = "${who}"\n${more}`).join(""));
  server = await serve("--config", config, "--listen", await ownAddress());
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(directory);
});

/** @param {string} name */
const at = (name) => `${server.origin}/topics/${name}`;

/**
 * @param {string} name
 * @param {unknown} data
 */
async function post(name, data) {
  const reply = await fetch(at(name), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });
  assert.equal(reply.status, 201);
}

/**
 * Opens the page of a topic; it must have no fault.
 * @param {string} name
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 */
async function withPage(name, body) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => faults.push(`dialog: ${dialog.message()}`));
  try {
    await page.goto(at(name));
    await body(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.close();
  }
}

/**
 * The `n` of each event that is shown.
 * @param {import("playwright-core").Page} page
 */
async function shownBy(page) {
  return (await page.locator("#list code").allTextContents()).map((text) => JSON.parse(text).n);
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} field
 * @param {RegExp} expected
 */
async function says(page, field, expected) {
  await page.locator(`[data-field=${field}]`, { hasText: expected }).waitFor({ timeout: PATIENCE_MS });
}

test("a browser gets the page, and all others the events", { timeout: STEP_MS_MAX }, async () => {
  const type = async (/** @type {Record<string, string>} */ headers, query = "") => {
    const reply = await fetch(at("closed") + query, { headers, method: "HEAD" });
    return `${reply.status} ${reply.headers.get("content-type")}, ${reply.headers.get("vary")}, ${reply.headers.get("allow")}`;
  };
  assert.equal(await type(HTML), "200 text/html; charset=utf-8, accept-encoding, sec-fetch-site, accept, sec-fetch-mode, GET, HEAD");
  for (const accept of ["*/*", "application/json", "text/html, application/json"]) {
    assert.equal(await type({ Accept: accept }), "200 application/json, accept, sec-fetch-mode, null", accept);
  }
  assert.equal(await type(HTML, "-none").catch(String), "404 text/html; charset=utf-8, accept-encoding, sec-fetch-site, accept, sec-fetch-mode, null");
  assert.equal((await fetch(at("open"), { headers: HTML })).headers.get("allow"), "GET, HEAD, POST");
  const stream = new AbortController();
  const events = await fetch(at("closed"), { headers: { Accept: "text/event-stream, text/html;q=0.5" }, signal: stream.signal });
  assert.equal(events.headers.get("content-type"), "text/event-stream");
  stream.abort();
});

test("a topic that does not exist is said in words, and shown once it is there", { timeout: STEP_MS_MAX }, async () => {
  const name = "wanted";
  const problem = await fetch(at(name));
  assert.deepEqual([problem.status, problem.headers.get("content-type")], [404, "application/problem+json"]);
  const page = await browser.newPage();
  const reply = await page.goto(at(name));
  assert.equal(reply?.status(), 404);
  await page.getByRole("heading", { level: 1, name: `There is no topic ${name} here` }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.title(), `No topic ${name} · Anemone`);
  for (const line of [`anemone serve --exec ${name}='vmstat 1'`, `curl --json '{"value":1}' '${at(name)}'`]) {
    await until(line, async () => (await page.locator("main pre").allTextContents()).includes(line));
  }
  await page.locator("#watching", { hasText: /as soon as it is there/ }).waitFor({ timeout: PATIENCE_MS });
  const { origin } = server;
  await kill(server);
  server = await serve("--exec", `${name}=echo 1`, "--config", join(directory, "anemone.toml"), "--listen", new URL(origin).host);
  await page.locator("#list code", { hasText: /^1$/ }).first().waitFor({ timeout: PATIENCE_MS });
  await page.close();
  // The words are there without the script, too.
  const context = await browser.newContext({ javaScriptEnabled: false });
  const plain = await context.newPage();
  await plain.goto(at("other"));
  assert.match(await plain.innerText("main"), /There is no such topic here[^]*anemone serve --exec NAME=/);
  await context.close();
});

test("events are shown as they come, and their data is only text", { timeout: STEP_MS_MAX }, async () => {
  const evil = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
  await post("open", { [evil]: 1.5, units: "m/s", text: evil });
  await withPage("open", async (page) => {
    await says(page, "count", /^1$/);
    await post("open", { [evil]: 2.5, units: "m/s", text: "second" });
    await says(page, "count", /^2$/);
    const first = page.locator("#list li").last();
    await first.locator("summary").click();
    await becomes("the whole event", () => first.locator("pre").textContent(), JSON.stringify({ [evil]: 1.5, units: "m/s", text: evil }, null, 2));
    await becomes("the fields", () => page.locator("#fields label").allTextContents(), [evil]);
    assert.equal(await page.locator("img:not(.brand img), main script").count(), 0);
    await page.getByRole("searchbox").fill("SECOND");
    const rows = () => page.locator("#list li").count();
    await becomes("the rows with the text", rows, 1);
    await page.getByRole("searchbox").fill("");
    await becomes("all rows", rows, 2);
    // The chart reads its values to the keyboard.
    const chart = page.getByRole("slider", { name: "Chart of open" });
    await becomes("the first value", async () => {
      await chart.focus();
      await page.keyboard.press("Home"); // the chart may not have both values yet
      return chart.getAttribute("aria-valuetext");
    }, / 1\.5 m\/s$/);
    await page.locator("#summary", { hasText: / 1\.5 to 2\.5 m\/s, mean 2 m\/s$/ }).waitFor({ timeout: PATIENCE_MS });
  });
});

test("a page that is paused continues where it stopped", { timeout: STEP_MS_MAX }, async () => {
  await publish(at("long"), 1, 3);
  await withPage("long", async (page) => {
    await says(page, "count", /^3$/);
    await page.getByRole("button", { name: "Pause" }).click();
    await says(page, "state", /^paused/);
    await publish(at("long"), 4, 6);
    await page.getByRole("button", { name: "Continue" }).click();
    await says(page, "count", /^6$/);
    await becomes("the events", () => shownBy(page), [6, 5, 4, 3, 2, 1]);
  });
});

test("one can jump to an event, and back to now", { timeout: STEP_MS_MAX }, async () => {
  await withPage("long", async (page) => {
    await says(page, "count", /^\d+$/);
    await says(page, "rate", /^quiet$/);
    const place = page.getByRole("textbox", { name: "Jump to" });
    await place.fill("4");
    await place.press("Enter");
    await says(page, "state", /^not following/);
    await says(page, "count", /^3$/);
    await becomes("the events from there", () => shownBy(page), [6, 5, 4]);
    await says(page, "rate", /^–$/);
    // Where nothing is, what is there stays.
    await place.fill("7");
    await place.press("Enter");
    await page.locator("#jumped", { hasText: /^There is nothing after this/ }).waitFor({ timeout: PATIENCE_MS });
    assert.deepEqual(await shownBy(page), [6, 5, 4]);
    for (const nonsense of ["nonsense", "25:00", "12:60"]) {
      await place.fill("4");
      await place.press("Enter");
      await page.locator("#jumped", { hasText: /^3 events from here on/ }).waitFor({ timeout: PATIENCE_MS });
      await place.fill(nonsense);
      await page.getByRole("button", { name: "Go" }).click();
      await page.locator("#jumped", { hasText: /^Type the number of an event/ }).waitFor({ timeout: PATIENCE_MS });
    }
    const filter = page.getByRole("searchbox");
    const none = page.getByText("None of the events here has this in it.");
    await filter.fill("nowhere");
    await none.waitFor({ timeout: PATIENCE_MS });
    assert.ok((await page.locator(".scroll").evaluate((box) => box.clientHeight)) < 30, "a box with nothing in it");
    await filter.fill("");
    await none.waitFor({ state: "hidden", timeout: PATIENCE_MS });
    await page.getByRole("button", { name: "Follow" }).click();
    await says(page, "count", /^6$/);
    await says(page, "state", /^connected/);
  });
});

/**
 * Publishes `{"n":1}` and so on up to a number.
 * @param {string} name
 * @param {number} count
 */
async function postMany(name, count) {
  for (let done = 0; done < count; done += 1000) {
    const body = Array.from({ length: Math.min(1000, count - done) }, (_, index) => JSON.stringify({ n: done + index + 1 })).join("\n");
    const reply = await fetch(at(name), { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body });
    assert.equal(reply.status, 201);
  }
}

/**
 * The values that the chart has, as its keys read them.
 * @param {import("playwright-core").Page} page
 * @param {string} name
 * @param {"Home" | "End"} key
 */
async function readsAt(page, name, key) {
  const chart = page.getByRole("slider", { name: `Chart of ${name}` });
  await chart.focus();
  await page.keyboard.press(key);
  return await chart.getAttribute("aria-valuetext");
}

test("a range reads back what is kept, stays live, and is saved as it is shown", { timeout: STEP_MS_MAX }, async () => {
  await postMany("past", 3000);
  await withPage("past", async (page) => {
    await says(page, "count", /^1,000$/);
    await page.locator("#keeps", { hasText: /^The server keeps 3,000 events of the last \d+ s, [\d.]+ kB in memory\. Its limit: what fits in .+\.$/ }).waitFor({ timeout: PATIENCE_MS });
    const range = page.getByRole("group", { name: "Time in the chart" });
    await becomes("the spans that what is kept fills", () => range.locator("button:visible").allTextContents(), ["1 min", "All"]);
    await becomes("the one that is shown", () => range.locator("[aria-pressed=true]").allTextContents(), ["1 min"]);
    await becomes("the first value here", () => readsAt(page, "past", "Home"), / n 2,001 m\/s$/);
    await range.getByRole("button", { name: "All" }).click();
    await page.locator("#ranges [role=status]", { hasText: /^the server keeps \d+ s, 3,000 events$/ }).waitFor({ timeout: PATIENCE_MS });
    await becomes("the first value of all", () => readsAt(page, "past", "Home"), / n 1 m\/s$/);
    await post("past", { n: 5000 });
    await becomes("a value that comes later", () => readsAt(page, "past", "End"), / n 5,000 m\/s$/);
    await page.keyboard.press("Escape");
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as CSV" }).click();
    const file = await (await saved).createReadStream();
    const lines = (await file.toArray()).join("").split("\r\n");
    assert.deepEqual([lines.length, lines[0]], [3003, "\ufefftime,n"]);
    assert.deepEqual([lines[1], lines[3001]].map((line) => /^\d{4}-\d\d-\d\dT[\d:.]+Z,(\d+)$/.exec(String(line))?.[1]), ["1", "5000"]);
    await page.locator("#saved", { hasText: /^3,001 events of \d\d:\d\d:\d\d/ }).waitFor({ timeout: PATIENCE_MS });
    // While it reads, its button stops it.
    await page.route(/since=\d+\.\d/, () => {});
    await page.getByRole("button", { name: "Save as CSV" }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator("#saved", { hasText: /^Stopped; nothing is saved\.$/ }).waitFor({ timeout: PATIENCE_MS });
    await page.getByRole("button", { name: "Save as CSV" }).waitFor({ timeout: PATIENCE_MS });
    // From old events, a range leads back to now.
    await page.getByRole("textbox", { name: "Jump to" }).fill("4");
    await page.getByRole("button", { name: "Go" }).click();
    await says(page, "state", /^not following/);
    await becomes("no span", () => range.locator("[aria-pressed=true]").count(), 0);
    await range.getByRole("button", { name: "All" }).click();
    await says(page, "state", /^connected/);
    await becomes("the first value of all", () => readsAt(page, "past", "Home"), / n 1 m\/s$/);
  });
});

test("the spans that are offered follow the clock of the server", { timeout: STEP_MS_MAX }, async () => {
  await postMany("late", 10);
  const page = await browser.newPage();
  await page.addInitScript(() => {
    const { now } = Date;
    Date.now = () => now() + 3 * 86_400_000;
  });
  await page.goto(at("late"));
  await page.locator("#keeps", { hasText: /^The server keeps 10 events of the last \d+ s,/ }).waitFor({ timeout: PATIENCE_MS });
  await becomes("the spans", () => page.locator("#ranges button:visible").allTextContents(), ["1 min", "All"]);
  await page.close();
});

test("of very many events, evenly spaced ones are shown", { timeout: STEP_MS_MAX }, async () => {
  const EVENTS = 60_000;
  await postMany("much", EVENTS);
  await withPage("much", async (page) => {
    await says(page, "count", /^1,000$/);
    let requests = 0;
    page.on("request", () => (requests += 1));
    await page.getByRole("button", { name: "All" }).click();
    const said = page.locator("#ranges [role=status]", { hasText: /60,000 events; [\d,]+ are shown, evenly spaced$/ });
    await said.waitFor({ timeout: PATIENCE_MS });
    const shown = Number(/([\d,]+) are shown/.exec((await said.textContent()) ?? "")?.[1]?.replaceAll(",", ""));
    assert.ok(shown > 20_000 && shown <= 30_000, `${shown} are shown`);
    assert.ok(requests < 320, `${requests} requests`);
    await becomes("the first value", () => readsAt(page, "much", "Home"), / n 1$/);
    await post("much", { n: EVENTS + 1 });
    await becomes("a value that comes later", () => readsAt(page, "much", "End"), / n 60,001$/);
  });
});

test("the list is one stop of the Tab key, and the arrow keys go through it", { timeout: STEP_MS_MAX }, async () => {
  await withPage("long", async (page) => {
    await becomes("the events", () => shownBy(page), [6, 5, 4, 3, 2, 1]);
    const isFocused = (/** @type {string} */ selector) => page.locator(selector).evaluate((element) => element === document.activeElement);
    await page.getByRole("searchbox").focus();
    await page.keyboard.press("Tab");
    assert.ok(await isFocused(".scroll"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.ok(await isFocused("#list li:nth-child(2) summary"));
    await page.keyboard.press("Enter");
    await page.locator("#list li:nth-child(2) pre", { hasText: "5" }).waitFor({ timeout: PATIENCE_MS });
    await page.keyboard.press("End");
    assert.ok(await isFocused("#list li:last-child summary"));
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowUp");
    assert.ok(await isFocused(".scroll"));
    await page.keyboard.press("Tab");
    assert.ok(await isFocused("#newest"));
  });
});

test("what is missing is said in words", { timeout: STEP_MS_MAX }, async () => {
  await publish(at("small"), 1, 2);
  await withPage("small", async (page) => {
    await says(page, "count", /^2$/);
    await page.getByRole("button", { name: "Pause" }).click();
    await publish(at("small"), 3, 12);
    await page.getByRole("button", { name: "Continue" }).click();
    await says(page, "count", /^7$/);
    await becomes("the notice", () => page.locator("#list .notice-line").allTextContents(), ["5 events are missing here: the topic no longer keeps them."]);
  });
});

test("a busy topic changes few rows in a frame, and keeps few", { timeout: STEP_MS_MAX }, async () => {
  await withPage("busy", async (page) => {
    await says(page, "state", /^connected/);
    await page.evaluate(() => {
      const seen = { added: 0, most: 0, rows: 0, made: 0 };
      Object.assign(window, { seen });
      const list = /** @type {Element} */ (document.querySelector("#list"));
      const known = new WeakSet();
      new MutationObserver((records) => {
        for (const { addedNodes } of records) {
          seen.added += addedNodes.length;
          for (const node of addedNodes) if (!known.has(node)) known.add(node), (seen.made += 1);
        }
        seen.rows = Math.max(seen.rows, list.children.length);
      }).observe(list, { childList: true });
      const frame = () => {
        seen.most = Math.max(seen.most, seen.added);
        seen.added = 0;
        requestAnimationFrame(frame);
      };
      frame();
    });
    const EVENTS = 5000;
    for (let n = 0; n < EVENTS; n += 500) {
      const body = Array.from({ length: 500 }, (_, index) => JSON.stringify({ n: n + index })).join("\n");
      const reply = await fetch(at("busy"), { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body });
      assert.equal(reply.status, 201);
    }
    await says(page, "count", /^5,000$/);
    await page.locator("#list code", { hasText: /^\{"n":4999\}$/ }).waitFor({ timeout: PATIENCE_MS });
    const newest = Array.from({ length: 60 }, (_, index) => EVENTS - 1 - index);
    await becomes("the newest events", () => shownBy(page), newest);
    const { most, rows, made } = await page.evaluate(() => Reflect.get(window, "seen"));
    assert.ok(most > 0 && most <= 60, `${most} rows were put in within a frame`);
    assert.ok(rows <= 60, `${rows} rows`);
    assert.equal(made, 60, "later events take the rows of older ones");
    // A row that was opened is not taken for another event.
    await page.locator("#list li").last().locator("summary").click();
    await page.locator("#list li pre").waitFor({ timeout: PATIENCE_MS });
    await post("busy", { n: "next" });
    await page.locator("#list li:first-child code", { hasText: /^\{"n":"next"\}$/ }).waitFor({ timeout: PATIENCE_MS });
    await becomes("the open rows", () => page.locator("#list li pre").count(), 0);
    await says(page, "count", /^5,001$/);
    // Nor is the row that has the focus, however many come at once.
    await page.locator("#list summary").nth(2).focus();
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    const before = await focused();
    const body = Array.from({ length: 20 }, (_, index) => JSON.stringify({ later: index })).join("\n");
    await fetch(at("busy"), { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body });
    await page.locator("#list li:first-child code", { hasText: /^\{"later":19\}$/ }).waitFor({ timeout: PATIENCE_MS });
    assert.ok(before?.includes("4998"), before ?? "nothing has the focus");
    assert.equal(await focused(), before);
    // Nor does a row move to which the list was scrolled.
    const read = () =>
      page.evaluate(() => {
        const box = /** @type {Element} */ (document.querySelector("#events .scroll"));
        const row = [...box.querySelectorAll("li")].find((each) => each.getBoundingClientRect().top >= box.getBoundingClientRect().top);
        return row?.querySelector("code")?.textContent;
      });
    await page.evaluate(() => {
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      getSelection()?.removeAllRanges();
      document.querySelector("#events .scroll")?.scrollTo(0, 600);
    });
    const inView = await read();
    assert.match(String(inView), /^\{"n":49\d\d\}$/);
    await fetch(at("busy"), { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body });
    await says(page, "count", /^5,041$/);
    await becomes("the newest row", () => page.locator("#list li:first-child .offset").textContent(), "#5041");
    assert.equal(await read(), inView);
    // What is jumped to is in view.
    const place = page.getByRole("textbox", { name: "Jump to" });
    await place.fill("42");
    await place.press("Enter");
    await becomes("the event", () => page.locator("#list li:last-child .offset").textContent(), "#42");
    await becomes("the rows", () => page.locator("#list li").count(), 500);
    await becomes("the row of #42 to be in the box", () => isOldestInBox(page), true);
    await page.getByRole("button", { name: "Follow" }).click();
    await becomes("the rows", () => page.locator("#list li").count(), 60);
  });
  // So it is by the address, when the list is seen.
  await withPage("busy?after=-300", async (page) => {
    await page.setViewportSize({ width: 390, height: 300 });
    await page.reload();
    await says(page, "count", /^300$/);
    await page.locator("#events").scrollIntoViewIfNeeded();
    await becomes("the event", () => page.locator("#list li:last-child .offset").textContent(), "#4742");
    await becomes("its row to be in the box", () => isOldestInBox(page), true);
  });
});

/** @param {import("playwright-core").Page} page */
function isOldestInBox(page) {
  return page.locator("#list li:last-child").evaluate((row) => {
    const [inner, box] = [row, row.closest(".scroll")].map((each) => /** @type {Element} */ (each).getBoundingClientRect());
    return inner !== undefined && box !== undefined && inner.top >= box.top && inner.bottom <= box.bottom + 1;
  });
}

test("a jump to what is no longer kept says so", { timeout: STEP_MS_MAX }, async () => {
  const body = Array.from({ length: 900 }, (_, n) => JSON.stringify({ n })).join("\n");
  assert.equal((await fetch(at("kept"), { method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body })).status, 201);
  await withPage("kept", async (page) => {
    await says(page, "count", /^600$/);
    const place = page.getByRole("textbox", { name: "Jump to" });
    await place.fill("1");
    await place.press("Enter");
    await becomes("the rows", () => page.locator("#list li").count(), 501);
    await becomes("the last of them", () => page.locator("#list li:last-child.notice-line").textContent(), "300 events are missing here: the topic no longer keeps them.");
  });
});

test("lines of columns become a table and a chart", { timeout: STEP_MS_MAX }, async () => {
  for (const line of ["cpu  load", " 1  0.5", " 2  0.75", " 3  1.25", "done"]) await post("text", line);
  await withPage("text", async (page) => {
    await page.locator("#table thead th", { hasText: "load" }).waitFor({ timeout: PATIENCE_MS });
    const texts = (/** @type {string} */ selector) => () => page.locator(selector).allTextContents();
    await becomes("the head", texts("#table thead th"), ["time", "cpu", "load"]);
    await becomes("the cells", texts("#table tbody td"), ["done", "3", "1.25", "2", "0.75", "1", "0.5", "cpu  load"]);
    await becomes("the fields", texts("#fields label"), ["cpu", "load"]);
    await page.getByLabel("as a table").uncheck();
    await becomes("the newest line", () => page.locator("#list code").first().textContent(), "done");
  });
});

test("the chart of a wide table shows the columns that move, and on a phone the table is scrolled to them", { timeout: STEP_MS_MAX }, async () => {
  const LOOK_MS = 10_500;
  await post("wide", ["r", "b", "swpd", "free-memory", "buffered-memory", "cached-memory", "us", "sy", "id"].join(" "));
  const LINES = 12;
  let begun = Infinity;
  let n = 0;
  await until("enough lines", async () => {
    const asked = Date.now();
    await post("wide", `1 0 0 18653712 33552 4392200 ${60 + (n % 2)} ${30 - (n % 3)} ${10 - (n % 2) + (n % 3)}`);
    n += 1;
    // The third row makes a table, whose time begins.
    if (n === 3) begun = Date.now();
    return n >= LINES && asked - begun > LOOK_MS;
  });
  await withPage("wide", async (page) => {
    // The table of a wide window is not scrolled, and stays so.
    await page.setViewportSize({ width: 390, height: 800 });
    await page.reload();
    await becomes("the fields", () => page.locator("#fields input:checked").evaluateAll((all) => all.map((box) => box.getAttribute("value"))), ["us", "sy", "id"]);
    await page.locator("#events").scrollIntoViewIfNeeded();
    const right = async () => page.locator(".scroll").evaluate((box) => Math.round(box.getBoundingClientRect().right - Number(box.querySelector("th:last-child")?.getBoundingClientRect().right)));
    await until("the last column in view", async () => {
      await post("wide", "1 0 0 18653712 33552 4392200 60 30 10");
      return Math.abs(await right()) < 10;
    });
    await page.setViewportSize({ width: 1280, height: 800 });
    await until("all columns in view", async () => page.locator(".scroll").evaluate((box) => box.scrollWidth === box.clientWidth));
  });
});

test("events that come leave the box to publish where it is, while a hand is at it", { timeout: STEP_MS_MAX }, async () => {
  await withPage("published", async (page) => {
    await page.locator("#nothing").waitFor({ timeout: PATIENCE_MS });
    const box = page.locator("#text");
    await box.click({ timeout: PATIENCE_MS });
    const top = () => box.evaluate((element) => Math.round(element.getBoundingClientRect().top));
    const before = await top();
    for (let n = 1; n <= 4; n += 1) {
      await post("published", { n, m: 2 * n });
      await page.locator("#list li").nth(n - 1).waitFor({ timeout: PATIENCE_MS });
      // The chart comes with the first event.
      await page.locator("#plot #fields label").nth(1).waitFor({ timeout: PATIENCE_MS });
      await becomes("the place of the box", top, before);
    }
  });
});

test("whoever may publish has a box for it, and others have none", { timeout: STEP_MS_MAX }, async () => {
  await withPage("closed", async (page) => {
    await says(page, "state", /^connected/);
    assert.ok(!(await page.locator("#publish").isVisible()));
    await page.locator("#nothing").waitFor({ timeout: PATIENCE_MS });
  });
  await withPage("open", async (page) => {
    const box = page.getByRole("textbox", { name: /JSON, or any text/ });
    await box.fill('{"published":1}');
    await box.press("Control+Enter");
    await page.locator("#publish [role=status]", { hasText: /^Published at \w+-\d+\.$/ }).waitFor({ timeout: PATIENCE_MS });
    await page.locator("#list code", { hasText: '{"published":1}' }).first().waitFor({ timeout: PATIENCE_MS });
    const said = () => page.locator("#publish [role=status]").textContent();
    const publishing = page.getByRole("button", { name: "Publish", exact: true });
    const count = async () => (await (await fetch(`${at("open")}?after=earliest`)).json()).events.length;
    const before = await count();
    await box.fill("");
    await publishing.click();
    await becomes("why not", said, "Nothing is written, so nothing was published.");
    assert.ok(!(await page.getByRole("button", { name: "Publish as text" }).isVisible()));
    await box.fill("{bad");
    await publishing.click();
    await becomes("why not", said, 'This looks like JSON but is not valid, so it was not published. Line 1, column 2: a name in quotes is expected, not "b".');
    assert.equal(await count(), before);
    await page.reload();
    await page.route("**/page/json.js", (route) => route.abort());
    await box.fill("{bad");
    await publishing.click();
    await becomes("why not, without the part that tells the place", said, "This looks like JSON but is not valid, so it was not published.");
    await page.getByRole("button", { name: "Publish as text" }).click();
    await becomes("the end", said, /^Published at \w+-\d+, as text\.$/);
    assert.equal(await count(), before + 1);
    await box.fill("x".repeat(70_000));
    await publishing.click();
    await page.locator("#publish [role=status]", { hasText: /at most|limit|64/ }).waitFor({ timeout: PATIENCE_MS });
  });
});

test("each way to read is a line that works, with its bytes beside", { timeout: STEP_MS_MAX }, async () => {
  await withPage("open", async (page) => {
    const choice = page.getByRole("combobox", { name: "Transport" });
    const bytes = page.locator("#bytes");
    await bytes.scrollIntoViewIfNeeded();
    let n = 0;
    for (const way of await choice.locator("option").evaluateAll((all) => all.map((option) => /** @type {HTMLOptionElement} */ (option).value))) {
      await choice.selectOption(way);
      const [terminal, , , own] = await page.locator("#how .commands code").allTextContents();
      await until(`the bytes of ${way}`, async () => {
        n += 1;
        await post("open", { way, n });
        await bytes.scrollIntoViewIfNeeded(); // what is above may have grown
        return ((await bytes.textContent()) ?? "").includes(`{"way":"${way}","n":`);
      });
      const publishing = setInterval(() => void post("open", { way, n }).catch(() => {}), 200);
      try {
        if (way === "long-poll") await until("the next request", async () => /after=[0-9a-z]+-\d+&wait=30/.test((await bytes.textContent()) ?? ""));
        if (terminal?.startsWith("curl")) {
          assert.match(await firstOutput(`${terminal} --noproxy '*' --max-time 40 2>/dev/null`, /"way"/), /"way"/, terminal);
        }
        const said = await output("sh", ["-c", String(own).replace("anemone sub", `'${BIN}' sub --count 1`)]);
        assert.match(said.text, /"way"/, `${own}: ${said.errors}`);
      } finally {
        clearInterval(publishing);
      }
    }
  });
});

test("the chart grows with a young topic, and stands still while the server is away", { timeout: STEP_MS_MAX }, async () => {
  // The chart begins with 10 seconds, and its words may be 2 s old.
  const OLD_MS = 14_000;
  await withPage("young", async (page) => {
    await post("young", { n: 1 });
    await says(page, "count", /^1$/);
    const begun = Date.now();
    await until("the first value to be old", async () => {
      await post("young", { n: 2 });
      return Date.now() - begun > OLD_MS;
    });
    await becomes("the words of the chart", () => page.locator("#summary").textContent(), /^n 1 to 2, /);
    // The notice comes, and stays while the page tries again.
    await page.locator("#notice-no-server").evaluate((notice) => {
      const seen = { changes: 0 };
      Object.assign(window, { seen });
      // A page that is connected hides what is hidden.
      const isChange = (/** @type {MutationRecord} */ { oldValue }) => oldValue !== notice.getAttribute("hidden");
      new MutationObserver((records) => (seen.changes += records.filter(isChange).length)).observe(notice, { attributeFilter: ["hidden"], attributeOldValue: true });
    });
    await kill(server);
    await page.getByRole("heading", { name: "The server cannot be reached" }).waitFor({ timeout: PATIENCE_MS });
    const chart = page.getByRole("slider", { name: "Chart of young" });
    /** The age of the first value. */
    const age = async () => {
      await chart.press("Home");
      return await chart.getAttribute("aria-valuenow");
    };
    const before = await age();
    await page.locator("[data-field=state]", { hasText: /^reconnecting in [2-9] s$/ }).waitFor({ timeout: PATIENCE_MS });
    assert.equal(await age(), before);
    assert.equal(await page.evaluate(() => Reflect.get(window, "seen").changes), 1);
  });
});
