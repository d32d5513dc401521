/**
 * Topics that share a stream, because a browser has six connections for each server. When a topic joins or leaves, the stream begins again,
 * with each topic after its own position. So nothing is lost. A run has a stream of its own.
 */
import { JSON_TYPE } from "./body.js";
import { AnemoneError, foreign, refusal, typed } from "./error.js";
import { Fan, PAGE_EVENTS } from "./fan.js";
import { parsePosition } from "./position.js";
import { ask } from "./request.js";
import { isRefusal, MOVE } from "./topic.js";
import { TRANSPORTS } from "./transports.js";

/** The statuses for a URL that is too long for the server or a proxy. */
const LONG = /414|431/;

/**
 * The streams of a client, and what they share. `topicsMax` is the most topics on one stream: the default limit of a server, until the
 * server refuses as many.
 * @typedef {{ all: Set<Stream>, fans: Map<string, Fan>, topicsMax: number }} Shared
 */
/** @type {WeakMap<import("./link.js").Link, Shared>} */
const clients = new WeakMap();

/** @typedef {import("./types.js").Reading} Reading */
/** @typedef {import("./types.js").Item} Item */
/** @typedef {Map<string, { reading: Reading, fail: (cause: unknown) => void }>} Members by name */

/**
 * Reads over HTTP, together with others of the same path if it can.
 * @param {Reading} reading
 * @param {string} via
 */
export async function read(reading, via) {
  const { link, path } = reading;
  const shared = clients.get(link) ?? { all: new Set(), fans: new Map(), topicsMax: 64 };
  clients.set(link, shared);
  const { after, since, mode } = reading.options();
  if (!after || since || mode) return request(shared, reading, via);
  const { fans } = shared;
  const key = `${via} ${path}`;
  const mayJoin = (/** @type {Fan} */ fan) => fan.takes(reading.options().after);
  for (;;) {
    const fan = fans.get(key);
    if (!fan) {
      const first = new Fan((all) => request(shared, all, via), () => fans.get(key) === first && fans.delete(key));
      fans.set(key, first);
      return first.add(reading);
    }
    try {
      if (mayJoin(fan) && !(await fan.catchUp(reading, (/** @type {object} */ more) => target(reading, more)))) return;
    } catch (error) {
      if (/** @type {any} */ (error).code !== "too-slow") throw error; // a stream begins with a gap
      return request(shared, reading, via);
    }
    reading.signal.throwIfAborted();
    if (fans.get(key) !== fan) continue; // the others have ended meanwhile
    // One that is far behind would hold up the others.
    return mayJoin(fan) && !fan.isAhead(reading, PAGE_EVENTS) ? fan.add(reading) : request(shared, reading, via);
  }
}

/**
 * Makes a request, together with those of other topics if it can.
 * @param {Shared} shared
 * @param {Reading} reading
 * @param {string} via
 */
async function request(shared, reading, via) {
  const name = nameOf(reading.path);
  const { after, since, ...others } = reading.options();
  if (!name || since) return alone(reading, via, reading.signal);
  const key = `${via}?${new URLSearchParams(others)}`;
  const { link } = reading;
  const found = [...shared.all].find(({ key: other, members }) => other === key && members.size < shared.topicsMax && !members.has(name));
  return (found ?? new Stream(link, shared, via, key, others)).read(name, reading);
}

/**
 * Returns the name of the topic at this path, if it is the path of one.
 * @param {string} path
 */
function nameOf(path) {
  try {
    return decodeURIComponent(/^topics\/([^/?#]+)$/.exec(path)?.[1] ?? "");
  } catch {
    return "";
  }
}

/**
 * @param {Reading} reading
 * @param {string} via
 * @param {AbortSignal} signal
 */
function alone(reading, via, signal) {
  return TRANSPORTS[via]?.({
    ...reading,
    signal,
    target: (more) => target(reading, more),
    take: (item, received) => signal.aborted || reading.take(item, received),
  });
}

/**
 * @param {Reading} reading
 * @param {object} more
 */
const target = ({ path, options }, more) => `${path}?${new URLSearchParams({ ...options(), ...more })}`.replace(/\?$/, "");

export class Stream {
  /** @type {Members} */
  members = new Map();
  #round = new AbortController();
  #link;
  #shared;
  #via;
  #others;

  /**
   * @param {import("./link.js").Link} link
   * @param {Shared} shared
   * @param {string} via
   * @param {string} key what only the topics of this stream have in common
   * @param {object} others the parameters that are the same for all
   */
  constructor(link, shared, via, key, others) {
    this.#link = link;
    this.#shared = shared;
    this.#via = via;
    this.key = key;
    this.#others = others;
    shared.all.add(this);
    void this.#run();
  }

  /**
   * @param {string} name
   * @param {Reading} reading
   * @returns {Promise<void>} which fails with the stream, if it is not left before
   */
  read(name, reading) {
    return new Promise((_, reject) => {
      const leave = () => {
        if (this.members.get(name)?.reading !== reading) return;
        this.members.delete(name);
        this.#round.abort();
      };
      const fail = (/** @type {unknown} */ cause) => {
        leave();
        reject(cause);
      };
      this.members.set(name, { reading, fail });
      this.#round.abort();
      reading.signal.addEventListener("abort", leave);
    });
  }

  /** Makes one request after the other, each for all current topics, until there are none. */
  async #run() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve)); // those that come or go at the same time do so together
      if (this.members.size === 0) break;
      const { signal } = (this.#round = new AbortController());
      const members = new Map(this.members);
      const error = await this.#request(members, signal).then(() => new AnemoneError("lost", "the reply has ended"), (cause) => typed(cause, this.#link));
      if (signal.aborted) continue;
      if (members.size > 1 && (isRefusal(error) || LONG.test(`${error.status}`))) await this.#findRefused(members);
      else for (const { fail } of members.values()) fail(error);
    }
    this.#shared.all.delete(this);
  }

  /**
   * Makes one request for all topics. Returns or throws the reason for its end.
   * @param {Members} members
   * @param {AbortSignal} signal
   */
  async #request(members, signal) {
    const [first] = members.values();
    if (members.size === 1 && first) return void (await alone(first.reading, this.#via, signal));
    /** @type {import("./error.js").AnemoneError | undefined} */
    let failure;
    const ended = TRANSPORTS[this.#via]?.({
      link: this.#link,
      isOfMany: true,
      signal,
      losses: () => Math.max(...[...members.values()].map(({ reading }) => reading.losses())),
      target: (more) => targetOfMany(members, this.#via, { ...this.#others, ...more }),
      take: (item, received) => {
        if (signal.aborted) return;
        try {
          const problem = item.end?.problem;
          if (problem && item.topic === undefined) failure = refusal(problem.status, JSON.stringify(problem));
          else share(members, item, received);
        } catch {
          throw foreign("what was said of the topic");
        }
      },
    });
    await ended?.catch((cause) => Promise.reject(failure ?? cause));
  }

  /**
   * Finds the topic that made the server refuse a request. If there is none, the topics are too many.
   * @param {Members} members
   */
  async #findRefused(members) {
    let isFound = false;
    const asked = [...members.values()].map(async ({ reading, fail }) => {
      try {
        const reply = await ask(this.#link, { target: target(reading, { limit: 1 }), fields: { accept: JSON_TYPE } }, reading.signal);
        await reply.arrayBuffer();
      } catch (cause) {
        isFound = true;
        fail(cause);
      }
    });
    await Promise.all(asked);
    if (isFound) return;
    this.#shared.topicsMax = Math.ceil(members.size / 2);
    for (const { fail } of [...members.values()].slice(this.#shared.topicsMax)) fail(MOVE);
  }
}

/**
 * Returns the path and query of a request for several topics, with the token of their places.
 * @param {Members} members
 * @param {string} via
 * @param {object} more
 */
function targetOfMany(members, via, more) {
  let epoch = "";
  const places = [...members].map(([name, { reading }]) => {
    const { after = via.includes("poll") ? "-1" : "latest" } = reading.options();
    const position = parsePosition(after);
    const isSame = position && position.epoch === epoch;
    epoch = position?.epoch ?? epoch;
    return `${name}:${isSame ? position.offset : after}`;
  });
  const query = new URLSearchParams({ after: places.join(), ...more });
  for (const name of members.keys()) query.append("topic", name);
  return `topics?${query}`;
}

/**
 * Passes an item on to the topics for which it is. A position without a topic is a token.
 * @param {Members} members
 * @param {Item} item
 * @param {number} received
 */
function share(members, { topic, ...item }, received) {
  if (topic !== undefined) return members.get(topic)?.reading.take(item, received);
  if (item.position === undefined) for (const { reading } of members.values()) reading.take(item, received);
  let epoch = "";
  for (const place of item.position?.split(",") ?? []) {
    const [name = "", where = ""] = place.split(":");
    const position = /^\d+$/.test(where) ? `${epoch}-${where}` : where;
    epoch = parsePosition(position)?.epoch ?? epoch;
    members.get(name)?.reading.take({ position }, received);
  }
}
