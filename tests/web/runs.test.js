/** The pure parts of the pages about runs and messages: words, and records from events. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { waysTo } from "../../web/page/events/ways.js";
import { Records, isSame } from "../../web/page/messages/records.js";
import { commandFor, curlFor } from "../../web/page/runs/calls.js";
import { csvOf, ndjsonOf } from "../../web/page/runs/download.js";
import { aboutInWords, queryOf, wordsOf } from "../../web/page/runs/parameters.js";
import { STATES, countInWords, countsInWords, drawnAt, hasText, inOrder, inputInWords, keptInWords, nameOf, partInWords, progressInWords, reasonOf, statesIn, targetOf, timesInWords, unknownInWords } from "../../web/page/runs/words.js";

/** @type {import("../../web/page/runs/words.js").RunState} */
const RUN = { key: "0123456789abcdef0123456789abcdef", service: "/primes", state: "running", progress: null, text: null, left: null, place: null, created: 1000, started: 2000, ended: null, problem: null };

test("how far a run is", () => {
  const words = (/** @type {Partial<typeof RUN>} */ run, sinceMs = 0) => progressInWords({ ...RUN, ...run }, sinceMs);
  assert.equal(words({}), "no progress told yet");
  assert.equal(words({ state: "failed" }), "");
  assert.equal(words({ progress: 0.999 }), "99 %");
  assert.equal(words({ progress: 0.42, left: 75 }), "42 %, about 1 min 15 s left");
  assert.equal(words({ progress: 0.42, left: 75 }, 70_000), "42 %, about 5 s left");
  assert.equal(words({ progress: 0.42, left: 75 }, 74_500), "42 %, less than 1 s left");
  assert.equal(words({ progress: 0.42, left: 75 }, 75_000), "42 %");
  assert.equal(words({ progress: 0.42, left: 75, state: "failed" }), "42 %");
  assert.deepEqual([0, 1, 2].map((place) => words({ state: "queued", place })), ["starts next", "1 run starts before it", "2 runs start before it"]);
});

test("since when a run goes, and how long it took", () => {
  const words = (/** @type {Partial<typeof RUN>} */ run) => timesInWords({ ...RUN, ...run }, 65_000);
  assert.match(words({}), /^started \d\d:\d\d:\d\d, runs for 1 min 3 s$/);
  assert.equal(words({ state: "queued", started: null }), "waits for 1 min 4 s");
  assert.match(words({ state: "done", ended: 5240 }), /^started \d\d:\d\d:\d\d, took 3.2 s, ended 59 s ago$/);
  for (const [ended, took] of [[2000, "less than 1 ms"], [2097.4, "97 ms"]]) assert.match(words({ state: "done", ended: Number(ended) }), new RegExp(`, took ${took}, `));
  assert.match(words({ state: "done", ended: 62_000 }), /^started \d\d:\d\d:\d\d, took 1 min 0 s, ended 3 s ago$/);
  assert.match(timesInWords(RUN, 3 * 86_400_000), /^started \d+ \w+,? \d\d:\d\d, runs for 2 d 23 h$/);
  assert.equal(words({ state: "cancelled", started: null, ended: 5000 }), "never ran, ended 1 min 0 s ago");
});

test("runs are counted, named and found", () => {
  const states = /** @type {const} */ (["running", "queued", "running", "done", "failed", "cancelled"]);
  assert.equal(countsInWords(states.map((state) => ({ state }))), "2 running, 1 waiting, 3 ended");
  assert.equal(countsInWords([]), "");
  assert.deepEqual(inOrder(states.map((state, at) => ({ state, at }))).map(({ at }) => at), [0, 2, 1, 3, 4, 5]);
  const part = { results: 996, first: 1272, events: 2271 };
  assert.equal(partInWords({ ...part, isAllKept: false }), "The last 996 results are here: events 1,272 to 2,271 of 2,271. Earlier ones are not loaded.");
  assert.equal(partInWords({ ...part, isAllKept: true }), "The last 996 results are here: events 1,272 to 2,271 of 2,271. The server keeps no earlier ones.");
  assert.equal(nameOf(RUN), "/primes 012345");
  assert.equal(drawnAt(RUN), null);
  assert.equal(drawnAt({ service: "/computations", key: "0".repeat(32) }), `computations#run=${"0".repeat(32)}`);
  const failed = { ...RUN, problem: { title: "The run failed", detail: "No Such File" } };
  assert.equal(reasonOf(failed.problem), "No Such File");
  assert.equal(reasonOf(null), "");
  assert.deepEqual(["primes", "0123", "such", "running", "other"].map((wanted) => hasText(failed, wanted)), [true, true, true, true, false]);
});

test("a run has the name that it was given, and is found by it and by its input", () => {
  const named = { ...RUN, name: "up to a million", input: { path: "/primes", query: "to=1000000", type: "application/json", body: '{"n":7}', bytes: 7 } };
  assert.equal(nameOf(named), "up to a million (/primes 012345)");
  assert.deepEqual(["million", "to=1000", '"n":7', "other"].map((wanted) => hasText(named, wanted)), [true, true, true, false]);
  assert.equal(inputInWords(named.input), '/primes?to=1000000, application/json, 7 bytes\n{"n":7}');
  assert.equal(inputInWords({ ...named.input, cut: true, bytes: 20_000 }), '/primes?to=1000000, application/json, 20,000 bytes, of which this is the beginning\n{"n":7}');
  assert.equal(inputInWords({ ...named.input, type: "image/png", body: null, cut: true }), "/primes?to=1000000, image/png, 7 bytes");
  assert.equal(inputInWords({ ...named.input, body: null, type: null, bytes: 0 }), "/primes?to=1000000");
  assert.deepEqual([inputInWords(null), inputInWords({ path: "/primes", query: null, type: null, body: null, bytes: 0 })], ["", ""]);
});

test("what starts a run starts it again, with its name", () => {
  const input = { path: "/primes", query: "to=7", type: null, body: null, name: "a & b" };
  assert.deepEqual([targetOf(input), targetOf({ ...input, name: null }), targetOf({ ...input, query: null }), targetOf({ ...input, query: null, name: null })], ["/primes?to=7&name=a%20%26%20b", "/primes?to=7", "/primes?name=a%20%26%20b", "/primes"]);
});

test("a run is saved as the lines of its events, and as a table of its partial results", () => {
  const events = [{ state: "running" }, { partial: { n: 2, words: 'say "so", twice' } }, { progress: 0.5 }, { partial: { n: 3, list: [1, 2], none: null } }, { partial: "a\nb" }, { partial: false }].map((data, at) => ({ offset: at + 1, time: 1000 * at, data }));
  assert.match(csvOf([{ offset: 1, time: 0, data: { partial: { n: Infinity } } }]), /,Infinity\s*$/);
  const gap = '{"gap":{"reason":"retention","after":"e-0","missed":7,"resume":"e-7"}}';
  assert.equal(ndjsonOf({ epoch: "e", missed: 7, events: [] }), `${gap}\n`);
  assert.equal(ndjsonOf({ epoch: "e", missed: 0, events: events.slice(0, 2) }), '{"position":"e-1","time":0,"data":{"state":"running"}}\n{"position":"e-2","time":1000,"data":{"partial":{"n":2,"words":"say \\"so\\", twice"}}}\n');
  const lines = ["time,n,words,list,none,value", '1970-01-01T00:00:01.000Z,2,"say ""so"", twice",,,', '1970-01-01T00:00:03.000Z,3,,"[1,2]",,', '1970-01-01T00:00:04.000Z,,,,,"a\nb"', "1970-01-01T00:00:05.000Z,,,,,false"];
  assert.equal(csvOf(events), `\ufeff${lines.map((line) => `${line}\r\n`).join("")}`);
  assert.equal(csvOf([]), "\ufefftime\r\n", "by the mark, Excel knows UTF-8");
});

/** @param {readonly unknown[]} partials @returns {string[][]} the cells of each line; none may have a comma or a line break */
function cellsOf(...partials) {
  const text = csvOf(partials.map((partial, at) => ({ offset: at + 1, time: 0, data: { partial } })));
  return text.slice(1).trimEnd().split("\r\n").map((line) => line.split(","));
}

test("no text in a CSV is a formula for a spreadsheet, and numbers stay numbers", () => {
  const texts = ["=1+1", "+a", "-a", "@SUM(A1)", "\tx", "-", "＝1+1", "-1e"];
  for (const text of texts) assert.equal(cellsOf({ text })[1]?.[1], `'${text}`);
  assert.equal(csvOf([{ offset: 1, time: 0, data: { partial: '=a,"b"' } }]).split("\r\n")[1], `1970-01-01T00:00:00.000Z,"'=a,""b"""`);
  for (const text of ["\rx", "\nx"]) assert.ok(csvOf([{ offset: 1, time: 0, data: { partial: text } }]).includes(`,"'${text}"`));
  for (const value of [-3.5, 0, true, "-3.5", "+5", "-.5e-3", "a=b", "", "'a"]) assert.equal(cellsOf({ value })[1]?.[1], String(value));
  assert.deepEqual(cellsOf({ "=a": 1, "-b": 2, "-1": 3 })[0], ["time", "'=a", "'-b", "-1"]);
});

test("no text in a CSV is a formula where semicolons or tabs part the cells, or in a line of its own", () => {
  const value = "x;=1+1;y\t@a\n+b\r-c; =d;\"=e\";a=b;-3;\t＝f";
  const safe = "x;'=1+1;y\t'@a\n'+b\r'-c;' =d;'\"=e\";a=b;-3;\t'＝f";
  assert.equal(csvOf([{ offset: 1, time: 0, data: { partial: value } }]).split("Z,")[1], `"${safe.replaceAll('"', '""')}"\r\n`);
  assert.equal(cellsOf({ "a;=1": 0 })[0]?.[1], "a;'=1");
  assert.equal(cellsOf({ list: ["x;=1+1"] })[1]?.[1], `"[""x;'=1+1""]"`);
  for (const partial of [{ a: { "b;=1+1;": "c;-d" } }, { "e;\t=f": [";+g"] }]) assert.doesNotMatch(csvOf([{ offset: 1, time: 0, data: { partial } }]), /(^|[;\t\r\n])[ "]*[=+\-@]/);
});

test("a member of a result called as a column of ours has another heading", () => {
  assert.deepEqual(cellsOf({ time: 7, others: 8 }), [["time", "partial.time", "others"], ["1970-01-01T00:00:00.000Z", "7", "8"]]);
  assert.deepEqual(cellsOf({ "time": 7, "partial.time": 8 })[0], ["time", "partial.partial.time", "partial.time"]);
});

test("a run with thousands of different members has a thousand columns, and one for all others", { timeout: 60_000 }, () => {
  const member = (/** @type {number} */ at) => `m${at}`;
  const partials = Array.from({ length: 20_000 }, (_, at) => ({ [member(at)]: at }));
  const text = csvOf(partials.map((partial, at) => ({ offset: at + 1, time: 0, data: { partial } })));
  assert.ok(text.length < 30_000_000, `${text.length} characters`);
  const lines = text.split("\r\n");
  assert.equal(lines[0], ["\ufefftime", ...Array.from({ length: 1000 }, (_, at) => member(at)), "others"].join(","));
  assert.equal(lines[1000], `1970-01-01T00:00:00.000Z${",".repeat(1000)}999,`);
  assert.equal(lines[1001], `1970-01-01T00:00:00.000Z${",".repeat(1001)}"{""m1000"":1000}"`);
  // Our own column is distinct here, too, and names of the language are members like others.
  const wide = Object.fromEntries([["others", 1], ...Array.from({ length: 1000 }, (_, at) => [member(at), 0]), ["__proto__", 5]]);
  const [head, row] = csvOf([{ offset: 1, time: 0, data: { partial: wide } }]).split("\r\n");
  assert.match(String(head), /^\ufefftime,partial\.others,m0,.*,m998,others$/);
  assert.ok(row?.endsWith('"{""m999"":0,""__proto__"":5}"'));
});

test("a field that few rows have is among the others where its column would be a file of commas", { timeout: 60_000 }, () => {
  const wide = Object.fromEntries(Array.from({ length: 999 }, (_, at) => [`m${at}`, at]));
  const all = Array.from({ length: 100_000 }, (_, at) => ({ time: 0, data: { partial: at === 0 ? { ...wide, last: 0 } : { last: at } } }));
  const text = csvOf(all.map((each, at) => ({ offset: at + 1, ...each })));
  assert.ok(text.length < 30_000_000, `${text.length} characters`);
  const [head, first, second] = text.split("\r\n");
  assert.match(String(head), /^\ufefftime,m0,.*,m199,last,others$/);
  assert.match(String(first), /,199,0,"\{""m200"":200,.*""m998"":998\}"$/);
  assert.ok(second?.endsWith(",,1,"));
});

test("the states of an address are those that the server knows, each once", () => {
  for (const [text, states] of [["", ""], ["done", "done"], ["failed,done,failed", "failed,done"], ["odd", ""], ["done,", ""], ["toString", ""], ["running,odd", ""]]) assert.equal(statesIn(String(text)), states, text);
  assert.deepEqual(STATES.map(([states]) => statesIn(states)), STATES.map(([states]) => states));
});

test("the count says which results the list has, and how many fit the filter", () => {
  const all = { results: 2262, count: 1000, first: 1264, last: 2263, isNewest: true, fitting: 2262, isFiltered: false, keptFrom: null };
  const words = (/** @type {Partial<Parameters<typeof countInWords>[0]>} */ list) => countInWords({ ...all, ...list });
  assert.equal(words({}), "2,262 results; the list has the newest 1,000");
  assert.equal(words({ count: 2262, first: 2 }), "2,262 results");
  assert.equal(words({ isNewest: false, first: 264, last: 1263 }), "2,262 results; the list has events 264 to 1,263");
  assert.equal(words({ isFiltered: true, fitting: 111, count: 111 }), "2,262 results; 111 fit the filter");
  assert.equal(words({ isFiltered: true, fitting: 1, count: 1 }), "2,262 results; 1 fits the filter");
  assert.equal(words({ isFiltered: true, fitting: 1200 }), "2,262 results; 1,200 fit the filter; the list has the newest 1,000");
  assert.equal(words({ fitting: 2000, keptFrom: 264 }), "2,262 results; this page keeps those from event 264 on; the list has the newest 1,000");
  assert.equal(words({ results: 0 }), "");
});

test("what a list cannot be asked for is said", () => {
  assert.deepEqual([["", ""], ["/gone", "done,failed"]].map(([service = "", states = ""]) => unknownInWords(service, states)), ["", ""]);
  assert.equal(unknownInWords("quick", "odd"), 'There is no service "quick": a service is a path, such as /primes. There is no state "odd".');
});

test("each way to read a run begins at its first event, and ends", () => {
  const url = "https://example.org/below/runs/0123456789abcdef0123456789abcdef";
  const ways = waysTo(url);
  const codes = (/** @type {string} */ id) => ways.find((way) => way.id === id)?.lines.map(({ code }) => code) ?? [];
  assert.match(String(codes("long-poll")[0]), /after=earliest/);
  assert.match(String(codes("long-poll")[1]), /if \(page\.end\) break;/);
  assert.match(String(codes("long-poll")[2]), /if "end" in page:\n {8}break\n {4}after/);
  assert.match(String(codes("mux")[0]), /GET 1 \/runs\/0123456789abcdef0123456789abcdef\\n.*'wss:\/\/example\.org\/below\/ws'$/);
  assert.match(String(waysTo("http://localhost/topics/wind").find(({ id }) => id === "long-poll")?.lines[1]?.code), /^for \(let after = "latest"; ; \) (?!.*page\.end)/s);
});

test("records follow from the events of their topic", () => {
  const records = new Records();
  assert.deepEqual(records.take({ created: { id: "1", text: "a" } }, "e-1", 10), { what: "created", id: "1" });
  assert.deepEqual(records.take({ kept: { id: "old", text: "o" }, of: "e-0" }, "e-2", 20), { what: "created", id: "old" });
  assert.equal(records.take({ kept: { id: "1", text: "a" }, of: "e-1" }, "e-3", 30), null);
  assert.deepEqual(records.get("1"), { record: { id: "1", text: "a" }, tag: "e-1", time: 10 });
  assert.deepEqual(records.get("old"), { record: { id: "old", text: "o" }, tag: "e-0", time: null });
  assert.deepEqual(records.take({ patched: { id: "1", text: "b" } }, "e-4", 40), { what: "changed", id: "1" });
  assert.deepEqual(records.take({ updated: { id: "1", text: "c" } }, "e-5", 50), { what: "changed", id: "1" });
  assert.deepEqual(records.get("1"), { record: { id: "1", text: "c" }, tag: "e-5", time: 50 });
  records.take({ created: { id: "10", text: "d" } }, "e-6", 60);
  records.take({ created: { id: "9", text: "e" } }, "e-7", 70);
  assert.deepEqual(records.newest.map(({ record }) => record.id), ["old", "10", "9", "1"]);
  assert.deepEqual(records.take({ removed: { id: "9", text: "e" } }, "e-8", 80), { what: "removed", id: "9" });
  assert.equal(records.take({ removed: { id: "9", text: "e" } }, "e-9", 90), null);
  assert.equal(records.take({ other: 1 }, "e-10", 100), null);
  assert.equal(records.size, 3);
  records.clear();
  assert.equal(records.size, 0);
});

test("two messages are the same if their text and sender are", () => {
  assert.ok(isSame({ text: "a" }, { text: "a", from: "" }));
  assert.ok(!isSame({ text: "a" }, { text: "b" }));
  assert.ok(!isSame({ text: "a", from: "x" }, { text: "a" }));
});

test("how long runs are kept", () => {
  const words = (/** @type {unknown} */ ms) => /for (.+) after/.exec(keptInWords(ms))?.[1] ?? "";
  assert.deepEqual([600_000, 90_000, 7_200_000, 86_400_000, 0, undefined].map(words), ["10 min", "1 min 30 s", "2 h", "1 d", "0 s", ""]);
});

test("a form has what its parameters say, and sends what is filled in", () => {
  assert.deepEqual(["pace", "step_m"].map(wordsOf), ["Pace", "Step m"]);
  const about = (/** @type {Record<string, any>} */ schema) => aboutInWords({ name: "n", description: "How many.", schema });
  assert.deepEqual([{}, { minimum: 1, maximum: 9, default: 5 }, { minimum: 0 }, { maximum: 9 }].map(about), ["How many.", "How many. 1 to 9. Without it: 5.", "How many. At least 0.", "How many. At most 9."]);
  assert.equal(queryOf([{ name: "a", value: "" }]), null);
  assert.equal(queryOf([{ name: "a", value: "1 2" }, { name: "b", value: "" }, { name: "c", value: "&" }]), "a=1+2&c=%26");
});

test("the commands of a form have its query, its text and its name", () => {
  const filled = { path: "/primes", query: "a=1", text: "it's", name: "my run" };
  assert.match(commandFor(filled), /^anemone run '\S+\/primes\?a=1' 'it'\\''s' --type text --name='my run'$/);
  assert.match(curlFor(filled), /^curl -gN '\S+\/primes\?a=1&name=my%20run' --data-raw 'it'\\''s' -H 'Content-Type: text\/plain'$/);
  assert.match(curlFor({ path: "/primes", query: null, text: "20", name: "" }), /\/primes' --data-raw '20' -H 'Content-Type: application\/json'$/);
  assert.match(curlFor({ path: "/primes", query: null, text: "", name: "" }), /^curl -gN '\S+\/primes' -X POST$/);
});
