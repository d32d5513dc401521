/** The document of a computation, checked in the page by the rules of the server, in the same order. Pure. */
import { formatCount } from "../words.js";
import { JsonError, escaped, placeOf, readJson, unescaped } from "../json.js";

const DOCUMENT_BYTES_MAX = 64 * 1024;
const ACTIONS_MAX = 64;
const DEPTH_MAX = 16;
const SIZE_MAX = 100_000;
const QUADRATIC_SIZE_MAX = 20_000;
const ELEMENTS_MAX = 200_000;
/** The characters of a word that a refusal quotes. */
const QUOTED_CHARS_MAX = 40;
const ID = /^[A-Za-z0-9._-]{1,40}$/;
const WHOLE = /^(0|[1-9]\d*)$/;

const QUADRATIC = ["insertion", "selection", "bubble", "cocktail"];
const WORDS = {
  distribution: ["random", "sorted", "reversed", "nearly-sorted", "few-unique"],
  algorithm: ["quick", "merge", "heap", "shell", "insertion", "selection", "bubble", "cocktail", "comb", "radix", "tim"],
  criterion: ["ascending", "descending", "by-last-digit", "by-digit-sum"],
};
const MEMBERS = {
  list: ["id", "do", "after", "size", "distribution", "seed"],
  sort: ["id", "do", "after", "algorithm", "criterion"],
};

/**
 * An action, as in the plan of a run. The check of a document returns the same form.
 * @typedef {object} Action
 * @property {string} id
 * @property {"list" | "sort"} do
 * @property {number} [after] the index of the action after which it starts
 * @property {number} size
 * @property {string} [distribution]
 * @property {number} [seed]
 * @property {string} [algorithm]
 * @property {string} [criterion]
 * @property {{ unit: "comparisons" | "writes", total: number, rule: string, exact: boolean }} [work]
 *
 * @typedef {object} Misfit the first place that does not fit
 * @property {string | null} pointer null if it is not JSON
 * @property {string} detail
 * @property {import("../json.js").Span} span
 */

/** @typedef {Record<string, unknown>} Members */

/** The error that ends the check at the first misfit. */
class Stop extends Error {
  /**
   * @param {string} pointer
   * @param {string} detail
   * @param {string} [at] the whole pointer, if the other one is cut
   */
  constructor(pointer, detail, at = pointer) {
    super(detail);
    this.pointer = pointer;
    this.at = at;
  }
}

/**
 * Returns the actions, or the reason why the server would refuse the document.
 * @param {string} text
 * @returns {{ actions: Action[], misfit: null } | { actions: null, misfit: Misfit }}
 */
export function check(text) {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > DOCUMENT_BYTES_MAX) {
    const detail = `the document has ${formatCount(bytes)} bytes, at most ${formatCount(DOCUMENT_BYTES_MAX)} allowed`;
    return { actions: null, misfit: { pointer: "", detail, span: [0, text.length] } };
  }
  /** @type {ReturnType<typeof readJson>} */
  let read;
  try {
    read = readJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { actions: null, misfit: { pointer: null, detail: error.message, span: [error.at, error.at + 1] } };
  }
  if (read.twice) {
    const { pointer, span } = read.twice;
    const detail = "is there already: each member must be there once";
    return { actions: null, misfit: { pointer: pointer.split("/").map((step) => escaped(cut(unescaped(step)))).join("/"), detail, span } };
  }
  const raw = (/** @type {string} */ pointer) => text.slice(...(read.places.get(pointer) ?? [0, 0]));
  try {
    return { actions: actionsOf(read.value, raw), misfit: null };
  } catch (stop) {
    if (!(stop instanceof Stop)) throw stop;
    const { pointer, at, message: detail } = stop;
    return { actions: null, misfit: { pointer, detail, span: placeOf(read.places, at) } };
  }
}

/**
 * @param {unknown} document
 * @param {(pointer: string) => string} raw the text of a value
 */
function actionsOf(document, raw) {
  const { actions } = object(document, "", ["actions"]);
  if (!Array.isArray(actions)) throw new Stop("/actions", "must be an array of actions");
  if (actions.length < 1 || actions.length > ACTIONS_MAX) throw new Stop("/actions", `${actions.length} actions; 1 to ${ACTIONS_MAX} are allowed`);
  const written = actions.map((action, index) => actionOf(action, `/actions/${index}`, raw));
  const all = written.map(({ after, ...action }, index) => {
    const parent = parentOf(written, index);
    return { ...action, ...(parent !== undefined && { after: parent }) };
  });
  return sized(all, order(all));
}

/**
 * @param {unknown} action
 * @param {string} place
 * @param {(pointer: string) => string} raw
 * @returns {Omit<Action, "after"> & { after?: string }}
 */
function actionOf(action, place, raw) {
  const { do: what } = isObject(action) ? action : stop(place, "must be an object: an action");
  if (what !== "list" && what !== "sort") throw new Stop(`${place}/do`, 'must be "list" or "sort"');
  const members = object(action, place, MEMBERS[what]);
  const kind =
    what === "list"
      ? { distribution: word(members, place, "distribution", "random"), seed: number(members, place, "seed", [0, Number.MAX_SAFE_INTEGER], raw, 1) }
      : { algorithm: word(members, place, "algorithm"), criterion: word(members, place, "criterion", "ascending") };
  const size = what === "list" ? number(members, place, "size", [1, SIZE_MAX], raw) : NaN;
  const after = "after" in members ? { after: id(members.after, `${place}/after`) } : {};
  const own = id(members.id, `${place}/id`);
  return { id: own, do: /** @type {"list" | "sort"} */ (what), ...after, ...kind, size };
}

/**
 * Returns the index of the action after which this one starts; undefined if it starts at once.
 * @param {readonly { id: string, after?: string }[]} written
 * @param {number} index
 */
function parentOf(written, index) {
  const { id, after } = written[index] ?? { id: "" };
  const first = written.findIndex((other) => other.id === id);
  if (first < index) throw new Stop(`/actions/${index}/id`, `the id ${quoted(id)} already belongs to /actions/${first}`);
  if (after === undefined) return undefined;
  const parent = written.findIndex((other) => other.id === after);
  return parent < 0 ? stop(`/actions/${index}/after`, `no action has the id ${quoted(after)}`) : parent;
}

/**
 * Returns the indexes of the actions, each parent before its children.
 * @param {readonly { id: string, after?: number }[]} actions
 */
function order(actions) {
  /** @type {{ depth: number, index: number }[]} */
  const found = [];
  for (const index of actions.keys()) {
    /** @type {number[]} */
    const way = [];
    for (let at = /** @type {number | undefined} */ (index); at !== undefined && way.length <= actions.length; at = actions[at]?.after) way.push(at);
    const place = `/actions/${index}/after`;
    if (way.length > actions.length) {
      const length = way.indexOf(index, 1);
      if (length < 0) continue; // It only leads to a cycle, whose members tell it.
      const ids = way.slice(0, length + 1).map((at) => quoted(actions[at]?.id ?? ""));
      throw new Stop(place, `a cycle: each starts after the next, ${ids.join(", ")}`);
    }
    if (way.length > DEPTH_MAX) throw new Stop(place, `${way.length} actions one after the other, at most ${DEPTH_MAX} allowed`);
    found.push({ depth: way.length, index });
  }
  return found.sort((a, b) => a.depth - b.depth || a.index - b.index).map(({ index }) => index);
}

/**
 * Gives each sort the size of the list that it sorts, and checks the rules that depend on the size.
 * @param {Action[]} actions
 * @param {readonly number[]} order
 */
function sized(actions, order) {
  let elements = 0;
  for (const index of order) {
    const action = /** @type {Action} */ (actions[index]);
    const place = `/actions/${index}`;
    if (action.do === "sort") {
      if (action.after === undefined) throw new Stop(place, 'a sort needs "after": an action whose list it sorts');
      action.size = actions[action.after]?.size ?? NaN;
    }
    if (action.size > QUADRATIC_SIZE_MAX && QUADRATIC.includes(action.algorithm ?? "")) {
      throw new Stop(`${place}/algorithm`, `${formatCount(action.size)} elements; this algorithm takes at most ${formatCount(QUADRATIC_SIZE_MAX)}, since its time grows with their square`);
    }
    elements += action.size;
    if (elements > ELEMENTS_MAX) {
      throw new Stop(place, `with this action, the lists of all actions have ${formatCount(elements)} elements, at most ${formatCount(ELEMENTS_MAX)} allowed; each sort has a list of its own`);
    }
  }
  return actions;
}

/**
 * @param {string} pointer
 * @param {string} detail
 * @returns {never}
 */
function stop(pointer, detail) {
  throw new Stop(pointer, detail);
}

/**
 * @param {unknown} value
 * @returns {value is Members}
 */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns the members of an object. It may have no others than the allowed ones.
 * @param {unknown} value
 * @param {string} pointer
 * @param {readonly string[]} allowed
 */
function object(value, pointer, allowed) {
  const members = isObject(value) ? value : stop(pointer, `must be an object with ${allowed.join(", ")}`);
  const other = Object.keys(members).sort().find((name) => !allowed.includes(name));
  if (other !== undefined) {
    const detail = `${quoted(other)} is unknown here; allowed are ${allowed.join(", ")}`;
    throw new Stop(`${pointer}/${escaped(cut(other))}`, detail, `${pointer}/${escaped(other)}`);
  }
  return members;
}

/**
 * @param {Members} members
 * @param {string} place
 * @param {string} name
 * @param {[min: number, max: number]} range
 * @param {(pointer: string) => string} raw
 * @param {number} [missing]
 */
function number(members, place, name, [min, max], raw, missing) {
  const value = members[name] === undefined ? missing : members[name];
  // 10.0 and 1e1 are no whole numbers to the server.
  const isWhole = members[name] === undefined || WHOLE.test(raw(`${place}/${name}`));
  if (typeof value === "number" && isWhole && value >= min && value <= max) return value;
  return stop(`${place}/${name}`, `must be a whole number from ${min} to ${max}`);
}

/**
 * @param {Members} members
 * @param {string} place
 * @param {keyof typeof WORDS} name
 * @param {string} [missing]
 */
function word(members, place, name, missing) {
  const value = members[name] === undefined ? missing : members[name];
  if (typeof value === "string" && WORDS[name].includes(value)) return value;
  return stop(`${place}/${name}`, `must be one of ${WORDS[name].join(", ")}`);
}

/**
 * @param {unknown} value
 * @param {string} pointer
 */
function id(value, pointer) {
  if (typeof value === "string" && ID.test(value)) return value;
  return stop(pointer, "must be an id: 1 to 40 of the characters A-Z, a-z, 0-9, -, _ and .");
}

/** @param {string} word as a refusal quotes it */
function quoted(word) {
  return JSON.stringify(cut(word));
}

/** @param {string} word */
function cut(word) {
  return [...word].slice(0, QUOTED_CHARS_MAX).join("");
}

// --- text ---

/**
 * The members of an action in a document.
 * @typedef {Record<string, string | number>} Written
 */

/**
 * Returns the text of a document with an action in each line.
 * @param {readonly Written[]} actions
 */
export function textOf(actions) {
  const line = (/** @type {Written} */ action) => {
    const members = Object.entries(action).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
    return `    { ${members.join(", ")} }`;
  };
  return `{\n  "actions": [\n${actions.map(line).join(",\n")}\n  ]\n}\n`;
}

const DEFAULTS = { distribution: "random", seed: 1, criterion: "ascending" };

/**
 * Returns the document of a run, made from its plan, without the defaults.
 * @param {readonly Action[]} actions
 */
export function documentOf(actions) {
  return textOf(
    actions.map(({ id, after, do: what, ...rest }) => {
      const parent = after === undefined ? {} : { after: actions[after]?.id ?? "" };
      const own = MEMBERS[what].filter((name) => name in rest).map((name) => [name, Reflect.get(rest, name)]);
      const isOwn = (/** @type {[string, unknown]} */ [name, value]) => (what === "list" || name !== "size") && value !== Reflect.get(DEFAULTS, name);
      return { id, ...parent, do: what, ...Object.fromEntries(own.filter(([name, value]) => isOwn([name, value]))) };
    }),
  );
}
