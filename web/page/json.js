/** Reads JSON as the server does, and notes the place of each value in the text. Pure. */
import { withoutMark } from "./mark.js";

/** The deepest nesting of arrays and objects, as the server has it. A document needs four levels. */
const LEVELS_MAX = 127;

const BLANKS = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const PLAIN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const HALF_PAIR = /[\ud800-\udfff]/u;

/** @typedef {[from: number, to: number]} Span offsets in the text */

export class JsonError extends Error {
  /**
   * @param {string} message
   * @param {number} at the offset of the first character that does not fit
   */
  constructor(message, at) {
    super(message);
    this.at = at;
  }
}

/**
 * Returns the value, the place of each of its parts by JSON Pointer (RFC 6901), and the first member whose name occurs twice in its object.
 * @param {string} text
 * @returns {{ value: unknown, places: Map<string, Span>, twice: { pointer: string, span: Span } | null }}
 * @throws {JsonError}
 */
export function readJson(text) {
  const { places, twice } = new Reading(text);
  return { value: JSON.parse(withoutMark(text)), places, twice };
}

/** A text that is read once, from beginning to end. */
class Reading {
  /** @type {Map<string, Span>} */
  places = new Map();
  /** @type {{ pointer: string, span: Span } | null} */
  twice = null;
  #text;
  #at = 0;

  /** @param {string} text */
  constructor(text) {
    this.#text = text;
    this.#at = text.length - withoutMark(text).length;
    this.#value("", 1);
    this.#take(BLANKS);
    if (this.#at < text.length) this.#fail("nothing more");
  }

  /**
   * @param {string} pointer
   * @param {number} level
   */
  #value(pointer, level) {
    this.#take(BLANKS);
    const from = this.#at;
    if (level > LEVELS_MAX) throw new JsonError(`more than ${LEVELS_MAX} levels of arrays and objects`, from);
    if (this.#isAt("[")) this.#array(pointer, level);
    else if (this.#isAt("{")) this.#object(pointer, level);
    else scalar(this.#take(STRING) ?? this.#take(PLAIN) ?? this.#fail("a value"), from);
    this.places.set(pointer, [from, this.#at]);
  }

  /**
   * @param {string} pointer
   * @param {number} level
   */
  #array(pointer, level) {
    let index = 0;
    this.#parts("]", () => this.#value(`${pointer}/${index++}`, level + 1));
  }

  /**
   * @param {string} pointer
   * @param {number} level
   */
  #object(pointer, level) {
    const names = new Set();
    this.#parts("}", () => {
      this.#take(BLANKS);
      const from = this.#at;
      const name = String(scalar(this.#take(STRING) ?? this.#fail("a name in quotes"), from));
      if (names.has(name)) this.twice ??= { pointer: `${pointer}/${escaped(name)}`, span: [from, this.#at] };
      names.add(name);
      if (!this.#isAt(":")) this.#fail('":"');
      this.#value(`${pointer}/${escaped(name)}`, level + 1);
    });
  }

  /**
   * Reads the parts of an array or an object up to its end.
   * @param {string} end
   * @param {() => void} part
   */
  #parts(end, part) {
    if (this.#isAt(end)) return;
    do part();
    while (this.#isAt(","));
    if (!this.#isAt(end)) this.#fail(`"," or "${end}"`);
  }

  /** @param {string} mark */
  #isAt(mark) {
    this.#take(BLANKS);
    if (this.#text[this.#at] !== mark) return false;
    this.#at += 1;
    return true;
  }

  /** @param {RegExp} pattern */
  #take(pattern) {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    this.#at += found?.length ?? 0;
    return found;
  }

  /**
   * @param {string} expected
   * @returns {never}
   */
  #fail(expected) {
    const found = this.#at < this.#text.length ? `not ${JSON.stringify(this.#text.slice(this.#at, this.#at + 1))}` : "but the text ends here";
    throw new JsonError(`${expected} is expected, ${found}`, this.#at);
  }
}

/**
 * Returns a text, a number, a truth value or null. Fails if the server would refuse it.
 * @param {string} text
 * @param {number} at
 * @returns {unknown}
 */
function scalar(text, at) {
  const value = JSON.parse(text);
  if (typeof value === "number" && !Number.isFinite(value)) throw new JsonError("the number is too large", at);
  if (typeof value === "string" && HALF_PAIR.test(value)) throw new JsonError("a \\u escape is half of a pair, without the other half", at);
  return value;
}

/** @param {string} name as a part of a JSON Pointer */
export function escaped(name) {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** @param {string} step of a JSON Pointer */
export function unescaped(step) {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

/**
 * Returns the place of a value; if it is missing, that of the closest value around it.
 * @param {Map<string, Span>} places
 * @param {string} pointer
 * @returns {Span}
 */
export function placeOf(places, pointer) {
  for (let near = pointer; near !== ""; near = near.slice(0, near.lastIndexOf("/"))) {
    const place = places.get(near);
    if (place) return place;
  }
  return places.get("") ?? [0, 0];
}

/**
 * Returns the line and the column of an offset; both count from 1.
 * @param {string} text
 * @param {number} at
 */
export function lineOf(text, at) {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, column: at - before.lastIndexOf("\n") };
}
