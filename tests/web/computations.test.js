/** The pure parts of the page about computations: JSON with places, the check of a document, lists from events, the tree, and drawing. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { check, documentOf, textOf } from "../../web/page/computations/document.js";
import { REPRESENTATIONS, huesOf, mix, pixelOf, pixelOfHex } from "../../web/page/computations/draw.js";
import { EXAMPLES } from "../../web/page/computations/examples.js";
import { JsonError, lineOf, placeOf, readJson } from "../../web/page/json.js";
import { Replay } from "../../web/page/computations/replay.js";
import { doneInWords, doneOf, layout, newestOf, sizeInWords, stateOf, widthsWithin } from "../../web/page/computations/tree.js";
import { drawnInWords, drawnValues } from "../../web/page/computations/ranks.js";
import { afterEvent } from "../../web/page/runs/words.js";

/** Numbers that are the same each time. */
function seeded(state = 1) {
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const LIST = { id: "list", do: "list", size: 4 };

/** @param {...Record<string, unknown>} actions */
const written = (...actions) => JSON.stringify({ actions });

test("each value of a JSON text has its place", () => {
  const text = ' {"a/b": [1, {"~": "x\\u00e9"}], "__proto__": null}\n';
  const { value, places } = readJson(text);
  assert.deepEqual(value, JSON.parse(text));
  const found = Object.fromEntries([...places].map(([pointer, [from, to]]) => [pointer, text.slice(from, to)]));
  assert.deepEqual(found, { "": text.trim(), "/a~1b": '[1, {"~": "x\\u00e9"}]', "/a~1b/0": "1", "/a~1b/1": '{"~": "x\\u00e9"}', "/a~1b/1/~0": '"x\\u00e9"', "/__proto__": "null" });
  assert.deepEqual(placeOf(places, "/a~1b/0/more/and/more"), places.get("/a~1b/0"));
  assert.deepEqual(placeOf(places, "/other"), places.get(""));
  assert.deepEqual(lineOf("a\nbc", 3), { line: 2, column: 2 });
});

test("what is not JSON is told with its place, and accepted by no other reader", () => {
  for (const [text, at, words] of /** @type {[string, number, RegExp][]} */ ([
    ["", 0, /a value is expected, but the text ends here/],
    ['{"a":1,}', 7, /a name in quotes is expected, not "}"/],
    ["[1,]", 3, /a value is expected, not "]"/],
    ["[1 2]", 3, /"," or "]" is expected, not "2"/],
    ['{"a" 1}', 5, /":" is expected, not "1"/],
    ["01", 1, /nothing more is expected, not "1"/],
    ['"a\nb"', 0, /a value is expected/],
    ["[".repeat(100_000), 127, /more than 127 levels/],
  ])) {
    assert.throws(() => readJson(text), (/** @type {any} */ error) => error instanceof JsonError && error.at === at && words.test(error.message), text.slice(0, 20));
    assert.throws(() => JSON.parse(text));
  }
  assert.deepEqual(readJson("[".repeat(127) + "]".repeat(127)).places.size, 127);
});

test("what only the server takes for no JSON is told with its place", () => {
  for (const [text, at, words] of /** @type {[string, number, RegExp][]} */ ([
    ["[1, 1e400]", 4, /the number is too large/],
    ['["a", "\\ud800"]', 6, /half of a pair/],
    ['{ "\\udc00": 1}', 2, /half of a pair/],
  ])) {
    assert.throws(() => readJson(text), (/** @type {any} */ error) => error instanceof JsonError && error.at === at && words.test(error.message), text);
  }
});

test("a document is refused at the place that does not fit", () => {
  const sort = (/** @type {string} */ id, /** @type {string} */ after, more = {}) => ({ id, after, do: "sort", algorithm: "quick", ...more });
  const chain = (/** @type {number} */ length) => [LIST, ...Array.from({ length }, (_, at) => sort(`s${at}`, at === 0 ? "list" : `s${at - 1}`))];
  for (const [text, pointer, words] of /** @type {[string, string | null, RegExp][]} */ ([
    ['{"actions":[}', null, /a value is expected/],
    ["[]", "", /must be an object with actions/],
    ["{}", "/actions", /must be an array/],
    [written(), "/actions", /0 actions; 1 to 64/],
    [written(...Array.from({ length: 65 }, (_, at) => ({ ...LIST, id: `l${at}` }))), "/actions", /65 actions/],
    ['{"actions":[7]}', "/actions/0", /must be an object/],
    [written({ ...LIST, do: "shuffle" }), "/actions/0/do", /"list" or "sort"/],
    [written({ ...LIST, "a/b": 1 }), "/actions/0/a~1b", /"a\/b" is unknown here/],
    [written({ ...LIST, id: "a b" }), "/actions/0/id", /must be an id/],
    [written({ ...LIST, size: 100_001 }), "/actions/0/size", /1 to 100000/],
    [written(LIST).replace("4", "4.0"), "/actions/0/size", /a whole number/],
    [written({ ...LIST, seed: 2 ** 53 }), "/actions/0/seed", /0 to 9007199254740991/],
    [written({ ...LIST, distribution: "odd" }), "/actions/0/distribution", /must be one of random/],
    [written(LIST, sort("s", "list", { algorithm: "bogo" })), "/actions/1/algorithm", /must be one of quick/],
    [written(LIST, LIST), "/actions/1/id", /already belongs to \/actions\/0/],
    [written(LIST, sort("s", "lost")), "/actions/1/after", /no action has the id "lost"/],
    [written(LIST, sort("a", "b"), sort("b", "a")), "/actions/1/after", /a cycle: each starts after the next, "a", "b", "a"/],
    [written(...chain(16)), "/actions/16/after", /17 actions one after the other, at most 16/],
    [written({ id: "s", do: "sort", algorithm: "quick" }), "/actions/0", /a sort needs "after"/],
    [written({ ...LIST, size: 20_001 }, sort("s", "list", { algorithm: "bubble" })), "/actions/1/algorithm", /at most 20,000/],
    [written({ ...LIST, size: 100_000 }, sort("s", "list"), sort("t", "list")), "/actions/2", /300,000 elements, at most 200,000/],
    [written(LIST) + " ".repeat(64 * 1024), "", /at most 65,536 allowed/],
  ])) {
    const { misfit } = check(text);
    assert.equal(misfit?.pointer, pointer, text.slice(0, 100));
    assert.match(misfit?.detail ?? "", words);
  }
  const text = written(LIST, sort("s", "lost"));
  assert.equal(text.slice(...(check(text).misfit?.span ?? [0, 0])), '"lost"');
  for (const edge of [written(...chain(15)), written({ ...LIST, size: 100_000 }, sort("s", "list")), written(...Array.from({ length: 64 }, (_, at) => ({ ...LIST, id: `l${at}` })))]) {
    assert.equal(check(edge).misfit, null);
  }
});

/**
 * A document, and the judgement that the service and this page share.
 * @typedef {{ about: string, text: string, spaces?: number, verdict: "fits" | "no JSON" | "unfit", pointer?: string }} Case
 */

// The service judges by rules of its own: crates/services/src/computations/tests/documents.rs reads the same file.
test("each document is judged as the service judges it", async () => {
  const cases = /** @type {Case[]} */ (JSON.parse(await readFile("tests/cases/computations.json", "utf8")));
  for (const { about, text, spaces = 0, verdict, pointer } of cases) {
    const { misfit } = check(text + " ".repeat(spaces));
    const found = misfit === null ? ["fits", undefined] : misfit.pointer === null ? ["no JSON", undefined] : ["unfit", misfit.pointer];
    assert.deepEqual(found, [verdict, pointer], about);
  }
});

test("a name that a refusal cuts is marked as a whole", () => {
  const name = "n".repeat(41);
  const text = `{"actions":[],"${name}":17}`;
  const { misfit } = check(text);
  assert.equal(misfit?.pointer, `/${name.slice(1)}`);
  assert.equal(text.slice(...(misfit?.span ?? [0, 0])), "17");
});

test("the examples fit, and those with a file's name are that file", async () => {
  for (const { text, file, name } of EXAMPLES) {
    const { actions, misfit } = check(text);
    assert.equal(misfit, null, name);
    assert.equal(check(documentOf(actions)).misfit, null);
    assert.deepEqual(check(documentOf(actions)).actions, actions, "the document of a plan is the same tree");
    if (file) assert.deepEqual(JSON.parse(text), JSON.parse(await readFile(`examples/computations/${file}`, "utf8")), file);
  }
  assert.equal(textOf([{ id: "a" }]), '{\n  "actions": [\n    { "id": "a" }\n  ]\n}\n');
});

/** The events of two lists that change at random, with plans in between, as a server tells them. */
function history() {
  const random = seeded(7);
  const plan = [{ id: "a", do: "list", size: 50 }, { id: "b", do: "sort", after: 0, size: 50 }];
  const lists = plan.map(({ size }) => Array.from({ length: size }, (_, at) => size - at));
  const states = [0, 0];
  /** @type {any[]} */
  const events = [];
  const whole = () => events.push({ plan }, ...lists.map((list, action) => ({ action, list: [...list], state: states[action], comparisons: 0, writes: 0 })));
  whole();
  for (let turn = 0; turn < 400; turn += 1) {
    const action = random(2);
    const list = /** @type {number[]} */ (lists[action]);
    const changes = Array.from({ length: 1 + random(3) }, () => {
      const [i, j] = [random(50), random(50)];
      if (random(2) === 0) {
        [list[i], list[j]] = [Number(list[j]), Number(list[i])];
        return ["s", i, j];
      }
      [list[i], list[j]] = [1 + random(50), 1 + random(50)];
      return ["w", i, list[i], j, list[j]];
    });
    states[action] = (states[action] ?? 0) + changes.length;
    events.push({ action, changes, state: states[action], comparisons: turn, writes: turn });
    if (random(20) === 0) whole();
  }
  return { events, lists };
}

/** @param {Replay} replay */
const picture = ({ lists }) => [...lists].sort(([a], [b]) => a - b).map(([action, { values, state }]) => [action, [...values], state]);

test("joining anywhere gives the same lists as watching from the start", () => {
  const { events, lists } = history();
  const watcher = new Replay();
  for (const event of events) watcher.take(event);
  const expected = picture(watcher);
  assert.deepEqual(expected.map(([, values]) => values), lists);
  const lastPlan = events.map(({ plan }) => plan !== undefined).lastIndexOf(true);
  assert.ok(lastPlan > 100, "there are plans in between");
  for (let first = 0; first < events.length; first += 1) {
    const late = new Replay();
    for (const event of events.slice(first)) late.take(event);
    if (first <= lastPlan) assert.deepEqual(picture(late), expected, `from event ${first} on`);
    else assert.equal(late.plan, null);
  }
});

test("after a gap, a watcher waits for the next plan", () => {
  const { events } = history();
  const [whole, cut] = [new Replay(), new Replay()];
  for (const event of events) whole.take(event);
  for (const [index, event] of events.entries()) {
    if (index === 40) cut.lose();
    if (index < 20 || index >= 40) cut.take(event);
    if (index === 40) assert.equal(cut.lists.size, 2, "what is there stays");
  }
  assert.deepEqual(picture(cut), picture(whole));
});

test("events that do not fit change nothing", () => {
  const replay = new Replay();
  for (const event of [null, 7, "x", [], {}, { action: 0, list: [1] }]) replay.take(event);
  assert.equal(replay.plan, null);
  replay.take({ plan: [{ id: "a", do: "list", size: 2 }] });
  replay.take({ action: 0, list: [2, 1], state: 0 });
  for (const event of [{ action: 9, list: [1] }, { action: 0, changes: [["w", 9, 1], ["s", 0, 0], ["?", 1]] }]) replay.take(event);
  assert.deepEqual(picture(replay), [[0, [2, 1], 0]]);
  replay.take({ plan: [{ id: "b", do: "list", size: 2 }] });
  assert.equal(replay.lists.size, 0, "another plan has other lists");
});

test("the newest changes are marked, up to a quarter of the list", () => {
  const replay = new Replay();
  replay.take({ plan: [{ id: "a", do: "list", size: 16 }] });
  replay.take({ action: 0, list: Array.from({ length: 16 }, (_, at) => at + 1) });
  const marked = () => replay.lists.get(0)?.touched;
  replay.take({ action: 0, changes: [["s", 3, 4]] });
  assert.deepEqual(marked(), [3, 4]);
  replay.take({ action: 0, changes: [["w", 1, 9], ["s", 5, 6], ["w", 7, 2, 8, 2]] });
  assert.deepEqual(marked(), [5, 6, 7, 8]);
  replay.take({ action: 0, list: Array.from({ length: 16 }, (_, at) => at + 1) });
  assert.deepEqual(marked(), []);
});

test("a tree has a place for each action, and a branch for each leaf", () => {
  const { actions } = check(EXAMPLES[0]?.text ?? "");
  const { places, branches, depth } = layout(actions ?? []);
  assert.deepEqual(branches, [[0, 1, 4], [2, 5, 6], [3]]);
  assert.deepEqual(places.map(({ depth, row, line }) => [depth, row, line]), [[0, 1, 0], [1, 0, 1], [1, 1, 3], [1, 2, 6], [2, 0, 2], [2, 1, 4], [3, 1, 5]]);
  assert.equal(depth, 4);
  assert.equal(sizeInWords(actions ?? []), "7 actions in 3 branches, at most 4 one after the other, 1,400 elements in all");
  assert.deepEqual(layout([]), { places: [], branches: [], depth: 0 });
});

test("boxes beside each other have room, unless they would be too narrow to read", () => {
  const needed = (/** @type {number} */ depth, /** @type {number} */ room) => {
    const { width, right } = widthsWithin(depth, room);
    return (depth - 1) * right + width;
  };
  assert.deepEqual(widthsWithin(3, 60), { width: 12.5, right: 14.3 });
  for (const [depth, room] of /** @type {const} */ ([[1, 11], [4, 44], [4, 37], [2, 18.5], [16, 152]])) {
    assert.ok(needed(depth, room) <= room + 1e-9, `${depth} in ${room}`);
    assert.ok(widthsWithin(depth, room).width >= 8.5);
  }
  assert.deepEqual(widthsWithin(4, 20), { width: 8.5, right: 9.5 });
  assert.equal(widthsWithin(0, 0).width, 8.5);
});

test("an action is waiting, running or done, and says how far it is", () => {
  const list = { values: new Uint32Array(4), state: 0, comparisons: 3, writes: 0, isDone: false, version: 1, touched: [] };
  /** @type {import("../../web/page/computations/document.js").Action} */
  const action = { id: "s", do: "sort", size: 4, work: { unit: "comparisons", total: 6, rule: "n(n-1)/2", exact: true } };
  assert.deepEqual([stateOf(undefined, false), stateOf(list, false), stateOf({ ...list, isDone: true }, true), stateOf(list, true)], ["queued", "running", "done", "cancelled"]);
  assert.deepEqual([doneOf(action, undefined), doneOf(action, list), doneOf(action, { ...list, comparisons: 9 }), doneOf(action, { ...list, isDone: true })], [0, 0.5, 1, 1]);
  assert.equal(doneInWords(action, list), "50 %");
  assert.equal(doneInWords({ ...action, work: { unit: "comparisons", total: 2, rule: "n", exact: false } }, list), "about 99 %");
  assert.equal(newestOf([0, 1, 4], new Map([[0, list], [1, list]])), 1);
  assert.equal(newestOf([3], new Map()), undefined);
});

test("each representation draws the elements where they are", () => {
  const inks = { ground: 1, ink: 2, pale: 3, mark: 4, line: 5, hues: Uint32Array.of(10, 20, 30, 40) };
  const picture = (/** @type {string} */ name, /** @type {number[]} */ values, width = 8, height = 4, touched = /** @type {number[]} */ ([])) => {
    const pixels = new Uint32Array(width * height);
    REPRESENTATIONS[name]?.draw({ pixels, width, height, ratio: 1 }, { values: Uint32Array.from(values), touched }, inks);
    return Array.from({ length: height }, (_, y) => [...pixels.slice(y * width, (y + 1) * width)]);
  };
  assert.deepEqual(picture("bars", [1, 2, 3, 4], 4), [[1, 1, 1, 2], [1, 1, 2, 2], [1, 2, 2, 2], [2, 2, 2, 2]]);
  assert.deepEqual(picture("bars", [1, 4, 3, 2], 2), [[3, 1], [3, 2], [3, 2], [2, 2]].map(([a, b], y) => [a, y === 1 ? 3 : b]), "several in a column");
  assert.deepEqual(picture("bars", [1, 2, 3, 4, 5, 6, 7, 8], 8, 2), [[1, 1, 1, 1, 1, 2, 2, 2], [2, 2, 2, 2, 2, 2, 2, 2]], "the least is seen, too");
  assert.deepEqual(picture("bars", [1, 2], 8, 2, [1]), [[1, 1, 1, 1, 4, 4, 4, 1], [2, 2, 2, 1, 4, 4, 4, 1]], "marked, with gaps");
  const dots = picture("points", [1, 2, 3, 4], 16, 16);
  assert.deepEqual([dots[12]?.[3], dots[9]?.[6], dots[6]?.[9], dots[3]?.[12]], [10, 20, 30, 40]);
  assert.equal(picture("scatter", [1, 2, 3, 4], 16, 16)[2]?.[2], 2);
  const wheel = picture("circle", [1, 2, 3, 4], 40, 40);
  assert.deepEqual([wheel[8]?.[28], wheel[32]?.[28], wheel[32]?.[12], wheel[8]?.[12], wheel[20]?.[20], wheel[0]?.[0]], [10, 20, 30, 40, 1, 1], "clockwise from the top, with a hole");
});

test("no list makes a drawing fail, whatever its values", () => {
  const inks = { ground: 1, ink: 2, pale: 3, mark: 4, line: 5, hues: huesOf(16, 0.7) };
  for (const { draw } of Object.values(REPRESENTATIONS)) {
    for (const values of [[], [1], [0, 4294967295, 7], Array.from({ length: 5000 }, (_, at) => at + 1)]) {
      for (const [width, height] of /** @type {const} */ ([[1, 1], [7, 3], [300, 100]])) {
        draw({ pixels: new Uint32Array(width * height), width, height, ratio: 2 }, { values: Uint32Array.from(values), touched: [0, 99_999] }, inks);
      }
    }
  }
});

test("colours are opaque, red first", () => {
  assert.equal(pixelOf([1, 2, 3]), 0xff030201);
  assert.equal(pixelOfHex("#010203"), 0xff030201);
  assert.equal(mix(pixelOf([0, 100, 200]), pixelOf([100, 200, 0]), 0.5), pixelOf([50, 150, 100]));
  assert.ok(huesOf(64, 0.66).every((pixel) => pixel >>> 24 === 255));
});

test("the state of a run follows from its events", () => {
  /** @type {import("../../web/page/runs/words.js").RunState} */
  const queued = { key: "", service: "/computations", state: "queued", progress: null, text: null, left: 7, place: 2, created: 1, started: null, ended: null, problem: null };
  const moved = afterEvent(queued, { state: "queued", place: 1 }, 2);
  assert.equal(moved.place, 1);
  const running = afterEvent(moved, { state: "running" }, 3);
  assert.deepEqual([running.state, running.place, running.started], ["running", null, 3]);
  const half = afterEvent(running, { progress: 0.5, text: "half" }, 4);
  assert.deepEqual([half.progress, half.text, half.left], [0.5, "half", null]);
  const done = afterEvent(half, { state: "done", result: 7 }, 5);
  assert.deepEqual([done.state, done.ended, done.result], ["done", 5, 7]);
  assert.equal(afterEvent(done, { progress: 0.1 }, 6), done);
  assert.equal(afterEvent(half, { other: 1 }, 6), half);
});

test("a list that is sorted by digits is drawn by them, so that it looks sorted", () => {
  const all = Uint32Array.from({ length: 25 }, (_, at) => at + 1);
  const sorted = (/** @type {(value: number) => number} */ key) => all.slice().sort((a, b) => key(a) - key(b) || a - b);
  const drawn = (/** @type {string} */ criterion, /** @type {Uint32Array} */ values) => drawnValues(values, { criterion, size: 25 });
  assert.deepEqual(drawn("by-last-digit", sorted((value) => value % 10)), all);
  assert.deepEqual(drawn("by-digit-sum", sorted((value) => Math.floor(value / 10) + (value % 10))), all);
  // The first ones end with 0, the last ones with 9.
  assert.deepEqual([...drawn("by-last-digit", Uint32Array.of(10, 20, 1, 9, 19))], [1, 2, 3, 24, 25]);
  assert.equal(drawn("descending", all), all);
  assert.equal(drawnValues(all, undefined), all);
  assert.deepEqual(["by-last-digit", "ascending"].map((criterion) => drawnInWords({ criterion })), ["drawn in that order", ""]);
});
