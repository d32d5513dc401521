/**
 * The page with the runs, and the page of one run, on the real binary: starting, watching, cancelling, the end in words, and what
 * programs print is only text.
 *
 * Needs the `anemone` binary (`TEST_ANEMONE_BIN`, default `target/debug/anemone`), python3, curl and Chromium (`CHROMIUM`, default
 * `/usr/bin/chromium`). Waits on conditions, never for a fixed time.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { output } from "./programs.js";
import { BIN, PATIENCE_MS, becomes, folder, kill, launch, remove, serve, until } from "./support.js";

const STEP_MS_MAX = 300_000;
const HTML = { Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
const EVIL = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

/**
 * Prints a result and a progress for each line that is appended to the file that its input names, or as many results as a line "many" says;
 * ends at the line "end".
 */
const STEPS = `
import json, sys, time
n, path = 0, json.load(sys.stdin)
while True:
    lines = open(path).read().split("\\n")
    for line in lines[n:-1]:
        n += 1
        if line == "end": sys.exit(0)
        if line.startswith("many "):
            for i in range(int(line[5:])): print(json.dumps({"many": i}))
            continue
        print(json.dumps({"step": n, "words": line}), flush=True)
        print(f"progress {n}/10 step {n}", flush=True)
    sys.stdout.flush()
    time.sleep(0.02)
`;

/** @type {string} */ let directory;
/** @type {import("./support.js").Server} */ let server;
/** @type {import("playwright-core").Browser} */ let browser;

before(async () => {
  directory = await folder("anemone-runs-");
  const steps = join(directory, "steps.py");
  await writeFile(steps, STEPS);
  await writeFile(join(directory, "fails.sh"), `echo 'a result'; echo 'first line' >&2; echo '${EVIL}' >&2; exit 3\n`);
  const wide = join(directory, "wide.sh");
  await writeFile(wide, `awk 'BEGIN { pad = sprintf("%2000s", ""); gsub(" ", "x", pad); print "i,twice,pad"; for (i = 0; i < 4500; i++) print i "," 2 * i "," pad }'\n`);
  const programs = [`steps=python3 -u '${steps}'`, `fails=sh '${join(directory, "fails.sh")}'`, "waits=sleep 600", "says=cat", "counts=seq 1 2262", `wide=sh '${wide}'`];
  const config = join(directory, "anemone.toml");
  await writeFile(config, "[limits]\nruns_running_max = 2\n");
  server = await serve("--config", config, "--listen", "127.0.0.1:0", ...programs.flatMap((program) => ["--run", program]));
  browser = await launch("--no-proxy-server");
});

after(async () => {
  await browser?.close();
  await kill(server);
  await remove(directory);
});

/**
 * Opens a page; it must have no fault.
 * @param {string} path
 * @param {(page: import("playwright-core").Page) => Promise<void>} body
 */
async function withPage(path, body) {
  const page = await browser.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => faults.push(`dialog: ${dialog.message()}`));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  try {
    await page.goto(server.origin + path);
    await body(page);
    assert.deepEqual(faults, []);
  } finally {
    await page.close();
  }
}

/**
 * Starts a run; returns its key.
 * @param {string} path
 * @param {unknown} [input]
 */
async function start(path, input) {
  const headers = { Prefer: "respond-async", "Content-Type": "application/json" };
  const reply = await fetch(server.origin + path, { method: "POST", headers, body: JSON.stringify(input) ?? "" });
  assert.equal(reply.status, 202);
  return String((await reply.json()).key);
}

/** @param {string} key */
async function stateOf(key) {
  return await (await fetch(`${server.origin}/runs/${key}?state`)).json();
}

/** @param {string} key */
async function stop(key) {
  await fetch(`${server.origin}/runs/${key}`, { method: "DELETE" });
}

/** Starts a run that goes as far as it is told. */
async function steps() {
  const path = join(directory, `steps-${crypto.randomUUID()}`);
  let text = "";
  const say = async (/** @type {string[]} */ ...lines) => writeFile(path, (text += lines.map((line) => `${line}\n`).join("")));
  await say();
  return { key: await start("/steps", path), say };
}

/**
 * @param {import("playwright-core").Page | import("playwright-core").Locator} place
 * @param {string} field
 * @param {RegExp} expected
 */
async function says(place, field, expected) {
  await place.locator(`[data-field=${field}]`, { hasText: expected }).waitFor({ timeout: PATIENCE_MS });
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} key
 */
function row(page, key) {
  return page.locator("#runs li", { hasText: key.slice(0, 6) });
}

test("a browser gets the pages, and programs get JSON", { timeout: STEP_MS_MAX }, async () => {
  const key = await start("/fails");
  const type = async (/** @type {string} */ path, /** @type {Record<string, string>} */ headers) => {
    const reply = await fetch(server.origin + path, { headers });
    return `${reply.status} ${reply.headers.get("content-type")}`;
  };
  for (const path of ["/runs", `/runs/${key}`]) {
    assert.equal(await type(path, HTML), "200 text/html; charset=utf-8", path);
    assert.equal(await type(path, { Accept: "*/*" }), "200 application/json", path);
  }
  assert.equal(await type(`/runs/${key}?state`, HTML), "200 application/json");
  assert.equal(await type(`/runs/${"0".repeat(32)}`, HTML), "404 text/html; charset=utf-8");
  assert.equal(await type(`/runs/${"0".repeat(32)}`, {}), "404 application/problem+json");
});

test("a run is started in the page, shown as it goes, and cancelled with the keyboard", { timeout: STEP_MS_MAX }, async () => {
  await withPage("/runs", async (page) => {
    await page.getByLabel("What to run").selectOption("/waits");
    const input = page.getByLabel(/^Its input/);
    await input.fill("it's text");
    await becomes("the command", () => page.locator("#start [data-program=anemone]").textContent(), `anemone run '${server.origin}/waits' 'it'\\''s text' --type text`);
    await input.press("Control+Enter");
    const location = page.locator("#start [role=status] a");
    await location.waitFor({ timeout: PATIENCE_MS });
    assert.equal(await location.textContent(), "watch it");
    const key = String(await location.getAttribute("href")).replace(`${server.origin}/runs/`, "");
    assert.match(key, /^[0-9a-f]{32}$/);
    const shown = row(page, key);
    await says(shown, "state", /^running$/);
    assert.equal(await shown.getByRole("link").getAttribute("href"), `${server.origin}/runs/${key}`);
    await page.getByLabel("Find a run").fill(`WAITS`);
    await shown.waitFor({ timeout: PATIENCE_MS });
    await page.getByLabel("Find a run").fill("nothing like this");
    await shown.waitFor({ state: "hidden", timeout: PATIENCE_MS });
    await page.getByLabel("Find a run").fill("");

    // Escape means no, and so does Enter at first: the focus is on the harmless answer, and then where it was.
    const cancel = shown.getByRole("button", { name: /^Cancel/ });
    for (const answer of ["Escape", "Enter"]) {
      await cancel.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog", { name: "Cancel this run?" }).waitFor({ timeout: PATIENCE_MS });
      await becomes("the focus", () => page.evaluate(() => document.activeElement?.textContent), "Let it go on");
      await page.keyboard.press(answer);
      await page.getByRole("dialog").waitFor({ state: "detached", timeout: PATIENCE_MS });
      await becomes("the focus to be back", () => cancel.evaluate((button) => button === document.activeElement), true);
    }
    assert.equal((await stateOf(key)).state, "running");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await says(shown, "state", /^cancelled$/);
    assert.equal((await stateOf(key)).state, "cancelled");
    await becomes("the button to be gone", () => cancel.isVisible(), false);
  });
});

test("the commands in the page send what is in the form, whatever it begins with", { timeout: STEP_MS_MAX }, async () => {
  await withPage("/runs", async (page) => {
    await page.getByLabel("What to run").selectOption("/says");
    for (const text of ["@file", "-", "--help", "-5", "it's 100 %"]) {
      await page.getByLabel(/^Its input/).fill(text);
      const line = String(await page.locator("#start [data-program=anemone]").textContent());
      const said = await output("sh", ["-c", line.replace("anemone run", `'${BIN}' run -o line`)]);
      assert.equal(said.text, `${text}\n`, `${line}: ${said.errors}`);
      const curl = String(await page.locator("#start [data-program=curl]").textContent());
      const events = await output("sh", ["-c", `${curl} --noproxy '*'`]);
      assert.ok(events.text.includes(`{"partial":${JSON.stringify(text === "-5" ? -5 : text)}}`), `${curl}: ${events.text} ${events.errors}`);
    }
  });
});

test("the page says how long runs are kept", { timeout: STEP_MS_MAX }, async () => {
  await withPage("/runs", async (page) => {
    await becomes("the time", () => page.locator("#kept").textContent(), "A run and its results are kept for 10 min after its end, in memory. ");
  });
});

test("the list shows the place in the queue, and how a run has ended", { timeout: STEP_MS_MAX }, async () => {
  const failed = await start("/fails");
  await until("it to fail", async () => (await stateOf(failed)).state === "failed");
  /** @type {string[]} */
  const waiting = [];
  for (let n = 0; n < 4; n += 1) waiting.push(await start("/waits"));
  await withPage("/runs", async (page) => {
    await says(row(page, waiting[2] ?? ""), "progress", /^starts next$/);
    await says(row(page, waiting[3] ?? ""), "progress", /^1 run starts before it$/);
    await page.locator("#count", { hasText: /^2 running, 2 waiting, \d+ ended$/ }).waitFor({ timeout: PATIENCE_MS });
    for (const key of waiting) await stop(key);
    await page.locator("#count", { hasText: /^\d+ ended$/ }).waitFor({ timeout: PATIENCE_MS });
    const shown = row(page, failed);
    await says(shown, "text", /exit status: 3/);
    await shown.locator("summary").click();
    await becomes("standard error", () => shown.getByRole("group", { name: "Standard error" }).textContent(), `first line\n${EVIL}\n`);
    assert.equal(await page.locator("main img, main script").count(), 0);
  });
});

test("the page of a run shows results, progress and numbers as they come, and goes on after a reload", { timeout: STEP_MS_MAX }, async () => {
  const { key, say } = await steps();
  await withPage(`/runs/${key}`, async (page) => {
    const shown = () => page.locator("#list code").allTextContents();
    const steps = async () => (await shown()).map((text) => JSON.parse(text).step);
    await says(page, "run-state", /^running$/);
    await say("one", EVIL, "three");
    await until("three results", async () => (await shown()).length === 3);
    assert.deepEqual(JSON.parse(String((await shown())[1])), { step: 2, words: EVIL });
    assert.equal(await page.locator("img:not(.brand img), main script").count(), 0);
    await says(page, "progress", /^30 %/);
    await says(page, "text", /^step 3$/);
    const bar = page.getByRole("progressbar", { name: "Progress" });
    await becomes("the bar", () => bar.evaluate((bar) => /** @type {HTMLProgressElement} */ (bar).value), 0.3);
    await becomes("the title", () => page.title(), `30 % /steps ${key.slice(0, 6)} · Anemone`);
    await becomes("the fields", () => page.locator("#fields label").allTextContents(), ["step"]);
    await page.getByRole("searchbox").fill("THREE");
    await until("one result", async () => (await shown()).length === 1);

    await page.reload();
    await until("the same results", async () => (await shown()).length === 3);
    await say("four");
    await becomes("the results", steps, [4, 3, 2, 1]);

    // Paused, the results wait, and the progress goes on.
    await page.getByRole("button", { name: "Pause" }).click();
    await says(page, "state", /^paused/);
    await say("five", "six");
    await says(page, "progress", /^60 %/);
    assert.equal((await shown()).length, 4);
    await page.getByRole("button", { name: "Continue" }).click();
    await becomes("what came meanwhile", steps, [6, 5, 4, 3, 2, 1]);

    await say("end");
    await says(page, "run-state", /^done$/);
    await says(page, "state", /^all of the run is here$/);
    await page.locator("#end", { hasText: "It is done" }).waitFor({ timeout: PATIENCE_MS });
    await becomes("the button to be gone", () => page.getByRole("button", { name: "Cancel" }).isVisible(), false);
    await page.reload();
    await says(page, "state", /^all of the run is here$/);
    await becomes("the results", steps, [6, 5, 4, 3, 2, 1]);
  });
});

test("the state of a run is shown before its events are there", { timeout: STEP_MS_MAX }, async () => {
  const { key } = await steps();
  const page = await browser.newPage();
  await page.routeWebSocket(/.*/, () => {}); // no answer
  await page.route(`${server.origin}/runs/${key}*`, (route) => (route.request().isNavigationRequest() || /[?]state$/.test(route.request().url()) ? route.continue() : undefined));
  await page.goto(`${server.origin}/runs/${key}`);
  await page.getByRole("button", { name: "Cancel" }).waitFor({ timeout: PATIENCE_MS });
  await says(page, "run-state", /^running$/);
  assert.ok(!(await page.locator("#events").isVisible()), "its events come at once");
  await page.close();
  await stop(key);
});

test("a run is cancelled, although the answer to that was lost", { timeout: STEP_MS_MAX }, async () => {
  const { key } = await steps();
  const page = await browser.newPage();
  await page.routeWebSocket(/.*/, (socket) => void socket.close());
  let deletes = 0;
  await page.route(`${server.origin}/runs/${key}`, async (route) => {
    if (route.request().method() !== "DELETE" || (deletes += 1) > 1) return route.continue();
    await route.fetch();
    await route.abort("connectionreset");
  });
  await page.goto(`${server.origin}/runs/${key}`);
  await page.getByRole("button", { name: "Cancel" }).click({ timeout: PATIENCE_MS });
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await says(page, "run-state", /^cancelled$/);
  await becomes("what is said", () => page.locator("#said").textContent(), `/steps ${key.slice(0, 6)} is cancelled.`);
  assert.equal(deletes, 2);
  await page.close();
});

test("a run that ended at once is charted as a whole, by the numbers of its results, and says what is not loaded", { timeout: STEP_MS_MAX }, async () => {
  const key = await start("/counts");
  await until("its end", async () => (await stateOf(key)).state === "done");
  await withPage(`/runs/${key}`, async (page) => {
    await says(page, "state", /^the end of the run is here$/);
    await says(page, "part", /^The last 999 results are here: events 1,265 to 2,264 of 2,264\. Earlier ones are not loaded\.$/);
    const chart = page.getByRole("slider", { name: "Chart of the partial results" });
    const reading = () => chart.getAttribute("aria-valuetext");
    await becomes("the chart", reading, "all values; the arrow keys read them one by one");
    assert.equal(await page.getByRole("button", { name: "Live" }).isVisible(), false);
    await chart.press("Home");
    await becomes("the first value", reading, "#1265: value 1,264");
    await chart.press("End");
    await becomes("the last value", reading, "#2263: value 2,262");
    assert.equal(await page.getByRole("button", { name: "All" }).isVisible(), false);

    await page.getByRole("button", { name: "Load earlier" }).click();
    await says(page, "state", /^all of the run is here$/);
    await says(page, "count", /^2,262 results; the list has the newest 1,000$/);
    assert.equal(await page.locator("#part").isVisible(), false);
    await becomes("the first value of all", async () => {
      await chart.press("Home"); // the chart may not have all values yet
      return reading();
    }, "#2: value 1");
    // The list reaches the first ones, too, a part at a time.
    const rows = () => page.locator("#list .offset").evaluateAll((all) => [all.length, all.at(0)?.textContent, all.at(-1)?.textContent]);
    const [earlier, later] = [page.getByRole("button", { name: "Earlier results" }), page.getByRole("button", { name: "Later results" })];
    await page.locator("#events").scrollIntoViewIfNeeded();
    await becomes("the newest", rows, [1000, "#2263", "#1264"]);
    assert.equal(await later.isVisible(), false);
    await earlier.press("Enter");
    await becomes("those before", rows, [1000, "#1263", "#264"]);
    await says(page, "count", /^2,262 results; the list has events 264 to 1,263$/);
    await earlier.press("Enter");
    await becomes("the first ones", rows, [262, "#263", "#2"]);
    assert.equal(await earlier.isVisible(), false);
    await becomes("the focus", () => page.evaluate(() => document.activeElement?.textContent), "Later results");
    await page.keyboard.press("Enter");
    await becomes("those after", rows, [1000, "#1263", "#264"]);
    await page.getByRole("searchbox").fill("226");
    await becomes("what is found in all", rows, [6, "#2263", "#227"]);
    assert.equal(await page.locator("[data-field=count]").textContent(), "2,262 results; 6 fit the filter");
    assert.ok(!(await later.isVisible()) && !(await earlier.isVisible()));
    await page.getByRole("searchbox").fill("");
    await becomes("the newest", rows, [1000, "#2263", "#1264"]);
    await page.getByRole("button", { name: "Show less time" }).click();
    await page.getByRole("button", { name: "All" }).click();
    await becomes("all of it", reading, "all values; the arrow keys read them one by one");
  });
});

test("the list of a run that was watched reaches its first result, and its end moves nothing", { timeout: STEP_MS_MAX }, async () => {
  const { key, say } = await steps();
  await withPage(`/runs/${key}`, async (page) => {
    await says(page, "run-state", /^running$/);
    const rows = () => page.locator("#list .offset").evaluateAll((all) => [all.length, all.at(0)?.textContent, all.at(-1)?.textContent]);
    const [earlier, newest] = [page.getByRole("button", { name: "Earlier results" }), page.getByRole("button", { name: "Newest results" })];
    await say("many 1500");
    await says(page, "count", /^1,500 results; the list has the newest 60$/);
    await page.locator("#events").scrollIntoViewIfNeeded();
    await becomes("the newest", rows, [60, "#1501", "#1442"]);
    for (const at of [1, 2]) {
      await earlier.click();
      await becomes("those before", rows, [60, `#${1501 - 60 * at}`, `#${1442 - 60 * at}`]);
    }
    await say("many 100");
    await newest.click();
    await becomes("the newest", rows, [60, "#1601", "#1542"]);
    assert.equal(await newest.isVisible(), false);
    await earlier.click();
    const opened = page.locator("#list summary").nth(8);
    await opened.click();
    const read = () => page.locator("#list details[open]").evaluateAll((all) => [all.length, all[0]?.querySelector(".offset")?.textContent, all[0]?.contains(document.activeElement)]);
    await becomes("what is read", read, [1, "#1533", true]);
    await say("end");
    await says(page, "state", /^all of the run is here$/);
    await becomes("the longer list", rows, [1000, "#1541", "#542"]);
    assert.deepEqual(await read(), [1, "#1533", true]);
    await says(page, "count", /^1,600 results; the list has events 542 to 1,541$/);
    await earlier.click();
    await becomes("the first ones", rows, [540, "#541", "#2"]);
  });
});

test("the table of a run of wide lines reaches the first line, with the names of its columns", { timeout: STEP_MS_MAX }, async () => {
  const key = await start("/wide");
  await until("its end", async () => (await stateOf(key)).state === "done");
  await withPage(`/runs/${key}`, async (page) => {
    await says(page, "state", /^the end of the run is here$/);
    const heads = () => page.locator("#table thead th").allTextContents();
    await page.locator("#events").scrollIntoViewIfNeeded();
    await becomes("no names", heads, ["time", "column 1", "column 2", "column 3"]);
    await page.getByRole("button", { name: "Load earlier" }).click();
    await says(page, "state", /^all of the run is here$/);
    await page.locator("#events").scrollIntoViewIfNeeded();
    await becomes("the names", heads, ["time", "i", "twice", "pad"]);
    await says(page, "count", /^4,501 results; the list has the newest 1,000$/);
    const earlier = page.getByRole("button", { name: "Earlier results" });
    for (let page = 0; page < 4; page += 1) await earlier.press("Enter");
    await becomes("the first lines", () => page.locator("#table tbody tr").evaluateAll((all) => [all.length, all.at(-2)?.children[1]?.textContent]), [501, "0"]);
    assert.equal(await earlier.isVisible(), false);
  });
});

test("what the server no longer keeps of a run is not offered", { timeout: STEP_MS_MAX }, async () => {
  const config = join(directory, "few.toml");
  await writeFile(config, "[limits]\nrun_events_max = 500\n");
  const other = await serve("--config", config, "--listen", "127.0.0.1:0", "--run", "counts=seq 1 2262");
  const { key } = await (await fetch(`${other.origin}/counts`, { method: "POST", headers: { Prefer: "respond-async" } })).json();
  await becomes("the end", async () => (await (await fetch(`${other.origin}/runs/${key}?state`)).json()).state, "done");
  const page = await browser.newPage();
  await page.goto(`${other.origin}/runs/${key}`);
  await says(page, "part", /^The last 499 results are here: events 1,765 to 2,264 of 2,264\. The server keeps no earlier ones\.$/);
  assert.equal(await page.getByRole("button", { name: "Load earlier" }).isVisible(), false);
  await page.close();
  await kill(other);
});

test("a browser that opens the URL of a service gets the form that starts its runs", { timeout: STEP_MS_MAX }, async () => {
  const reply = await fetch(`${server.origin}/steps`);
  assert.deepEqual([reply.status, reply.headers.get("content-type")], [405, "application/problem+json"]);
  await withPage("/steps", async (page) => {
    await becomes("the page", () => page.url(), `${server.origin}/runs#start=/steps`);
    await becomes("the service", () => page.getByLabel("What to run").inputValue(), "/steps");
  });
});

test("two windows see the same run, and one of them cancels it", { timeout: STEP_MS_MAX }, async () => {
  const { key, say } = await steps();
  const context = await browser.newContext();
  const [first, second] = [await context.newPage(), await context.newPage()];
  for (const page of [first, second]) await page.goto(`${server.origin}/runs/${key}`);
  await say("one");
  for (const page of [first, second]) await page.locator("#list code", { hasText: '"step":1' }).waitFor({ timeout: PATIENCE_MS });
  await second.getByRole("button", { name: "Cancel" }).click();
  await second.getByRole("button", { name: "Cancel the run" }).click();
  for (const page of [first, second]) {
    await says(page, "run-state", /^cancelled$/);
    await page.locator("#end", { hasText: "It was cancelled." }).waitFor({ timeout: PATIENCE_MS });
  }
  await context.close();
});

test("each way to read a run is a line that works", { timeout: STEP_MS_MAX }, async () => {
  const { key, say } = await steps();
  await say("one", "end");
  await until("its end", async () => (await stateOf(key)).state === "done");
  await withPage(`/runs/${key}`, async (page) => {
    const choice = page.getByRole("combobox", { name: "Transport" });
    const bytes = page.locator("#bytes");
    await bytes.scrollIntoViewIfNeeded();
    for (const way of await choice.locator("option").evaluateAll((all) => all.map((option) => /** @type {HTMLOptionElement} */ (option).value))) {
      await choice.selectOption(way);
      await until(`the bytes of ${way}`, async () => {
        await bytes.scrollIntoViewIfNeeded(); // what is above may have grown
        return ((await bytes.textContent()) ?? "").includes('"words": "one"');
      });
      const [terminal, , python, own] = await page.locator("#how .commands code").allTextContents();
      if (terminal?.startsWith("curl")) {
        const said = await output("sh", ["-c", `${terminal} --noproxy '*' --max-time 40`]);
        assert.match(said.text, /"words": "one"/, terminal);
      }
      if (!python?.includes("websockets")) {
        const said = await output("python3", ["-c", String(python)]);
        assert.match(said.text, /"?words"?/, `${way}: ${said.errors}`);
      }
      const said = await output("sh", ["-c", String(own).replace("anemone sub", `'${BIN}' sub`)]);
      assert.match(said.text, /"words": ?"one"/, `${own}: ${said.errors}`);
    }
  });
});

test("more runs than 200 are shown when they are asked for", { timeout: STEP_MS_MAX }, async () => {
  const config = join(directory, "many.toml");
  await writeFile(config, "[limits]\nruns_running_max = 1\nruns_queued_max = 300\n");
  const other = await serve("--config", config, "--listen", "127.0.0.1:0", "--run", "waits=sleep 600");
  const headers = { Prefer: "respond-async" };
  for (let n = 0; n < 205; n += 1) assert.equal((await fetch(`${other.origin}/waits`, { method: "POST", headers })).status, 202);
  const page = await browser.newPage();
  await page.goto(`${other.origin}/runs`);
  const [count, rows] = [() => page.locator("#count").textContent(), () => page.locator("#runs li").count()];
  // The server lists the newest first, and the oldest is the one that works.
  await becomes("the count", count, "200 waiting; these are the first 200 of 205");
  assert.equal(await rows(), 200);
  await page.getByRole("button", { name: "Show more runs" }).press("Enter");
  await becomes("the count", count, "1 running, 204 waiting");
  await becomes("the rows", rows, 205);
  assert.ok(!(await page.locator("#more").isVisible()));
  const focused = () => page.evaluate(() => document.activeElement?.tagName);
  assert.equal(await focused(), "UL");

  // A run that is cancelled leaves the list of those that work.
  await page.getByLabel("State", { exact: true }).selectOption("running");
  await becomes("the count", count, "1 running");
  const first = String(await page.locator("#runs li a").textContent());
  await page.locator("#runs li").getByRole("button", { name: /^Cancel/ }).press("Enter");
  await page.getByRole("button", { name: "Cancel the run" }).press("Enter");
  await page.locator("#runs li", { hasText: first }).waitFor({ state: "detached", timeout: PATIENCE_MS });
  await becomes("the focus", focused, "UL");
  await page.close();
  await kill(other);
});

test("runs are chosen by their service and their state, with the keyboard, and a link leads to the same ones", { timeout: STEP_MS_MAX }, async () => {
  const config = join(directory, "chosen.toml");
  await writeFile(config, "[limits]\nruns_running_max = 1\nruns_queued_max = 300\n");
  const other = await serve("--config", config, "--listen", "127.0.0.1:0", "--run", "waits=sleep 600", "--run", "says=cat");
  const begin = async (/** @type {string} */ path) => assert.equal((await fetch(other.origin + path, { method: "POST", headers: { Prefer: "respond-async" } })).status, 202);
  await begin("/waits");
  await begin("/says");
  for (let n = 0; n < 201; n += 1) await begin("/waits");
  const page = await browser.newPage();
  await page.goto(`${other.origin}/runs`);
  const service = page.getByLabel("Runs of", { exact: true });
  const state = page.getByLabel("State", { exact: true });
  const count = () => page.locator("#count").textContent();
  const shown = () => page.locator("#runs li:visible").count();
  const address = () => page.evaluate(() => location.href.slice(location.origin.length));
  await becomes("the services", () => service.locator("option").allTextContents(), ["all services", "/says", "/waits"]);
  await becomes("all", count, "200 waiting; these are the first 200 of 203");
  await page.getByLabel("Find a run").fill("says");
  await becomes("what is found", count, "0 of the first 200");
  assert.equal(await address(), "/runs#find=says");
  await page.getByLabel("Find a run").fill("");

  // The oldest but one is not among the first 200 of all.
  await service.focus();
  await page.keyboard.press("ArrowDown");
  await becomes("the runs of the service", count, "1 waiting");
  assert.equal(await address(), "/runs?service=/says");
  assert.equal(await shown(), 1);
  await state.selectOption("running");
  await becomes("none", count, "No run is of this service and in this state.");
  assert.equal(await page.locator("#none").isVisible(), false);
  await service.selectOption("/waits");
  await becomes("the one that works", count, "1 running");
  assert.equal(await address(), "/runs?service=/waits&state=running");

  await page.goto(`${other.origin}/runs?service=/waits&state=done,queued#find=/waits`);
  await becomes("what is found", count, "200 of the first 200");
  assert.equal(await state.locator("option:checked").textContent(), "done or queued");
  await page.getByRole("button", { name: "Show more runs" }).click();
  await becomes("all of it", count, "201 of 201");
  await page.goto(`${other.origin}/runs?service=/gone&state=odd`);
  await becomes("none", count, "No run is of this service.");
  await becomes("what is said", () => page.locator("#said").textContent(), 'There is no state "odd".');
  assert.equal(await service.inputValue(), "/gone");
  assert.equal(await state.inputValue(), "");

  // What a server that is away is asked for is not what it said before.
  await service.selectOption("/waits");
  await becomes("the runs of the service", count, "200 waiting; these are the first 200 of 202");
  await kill(other);
  await service.selectOption("/says");
  await page.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
  await becomes("no runs", shown, 0);
  assert.equal(await count(), "");
  await page.close();
});

test("a run that is not there is told in words", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage();
  await page.goto(`${server.origin}/runs/${"0".repeat(32)}`);
  await page.locator("#gone", { hasText: /^There is no run with this key/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator("#events").isVisible(), false);
  assert.equal(await page.locator("#gone a").getAttribute("href"), `${server.origin}/runs`);
  await page.close();
});

test("a server without programs for runs says how to have one, and one that is gone is told", { timeout: STEP_MS_MAX }, async () => {
  const other = await serve("--listen", "127.0.0.1:0");
  const page = await browser.newPage();
  await page.goto(`${other.origin}/runs#find=x`);
  await page.locator("#no-service", { hasText: "anemone serve --run primes='python3 -u examples/primes.py'" }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator("#start").isVisible(), false);
  await page.getByText("No run yet.").waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator("#count").textContent(), "");
  await kill(other);
  await page.locator("#notice-no-server").waitFor({ timeout: PATIENCE_MS });
  await page.close();
});

test("who may not see the list is told so", { timeout: STEP_MS_MAX }, async () => {
  const page = await browser.newPage({ extraHTTPHeaders: { Via: "1.1 proxy.example" } });
  await page.addInitScript(() => Reflect.deleteProperty(window, "WebSocket")); // it would have no such field
  await page.goto(`${server.origin}/runs`);
  await page.locator("#refused", { hasText: /^Only clients on the server's own machine may see the runs/ }).waitFor({ timeout: PATIENCE_MS });
  assert.equal(await page.locator("#runs").isVisible(), false);
  await page.close();
});
