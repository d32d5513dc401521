/**
 * The computation of one map: a run of the service. A new run replaces the old one, which is cancelled if this window has started it. A run
 * that this window only watches goes on, since others may watch it too.
 */
import { AnemoneError } from "../../client.js";
import { client } from "../server.js";

export const PATH = "propagation";
/** The item of the session storage with the keys of the runs that this window has started. They are its own after a reload, too. */
const OWN_KEYS = "propagation-runs";
/**
 * The most keys that are kept. The newest are those of the current maps, which get new runs together. If the key of an earlier run is
 * forgotten, the run goes on.
 */
const OWN_KEYS_MAX = 16;

/**
 * @typedef {object} Plan what a run computes
 * @property {{ coordinates: string, columns: number, rows: number, step_m: number, width_m: number, height_m: number, west?: number, south?: number, x_m?: number, y_m?: number,
 *   lon_m?: number, lat_m?: number }} area
 * @property {number} tiles
 * @property {number} levels
 * @property {string[]} quantities
 * @property {import("./document.js").Transmitter[]} transmitters
 * @property {{ height_m: number, gain_dbi: number }} receiver
 * @property {{ columns: number, rows: number, heights_m: string } | null} terrain
 * @property {Warning[]} warnings
 *
 * @typedef {{ transmitter: number | null, detail: string }} Warning
 * @typedef {{ tile: import("./tiles.js").Tile, server?: string } & Record<string, unknown>} TileEvent
 * @typedef {{ points: number, warnings: Warning[], outputs?: Record<string, unknown> }} Result
 *
 * @typedef {object} Listener
 * @property {(key: string) => void} started the run has this key
 * @property {(place: number | null) => void} waits for so many runs
 * @property {(plan: Plan, document: unknown) => void} planned the first event of the run has come, with the document that asked for it
 * @property {(event: TileEvent) => void} refined
 * @property {(progress: { progress: number, left?: number }) => void} progressed
 * @property {(result: Result) => void} done
 * @property {(why: "cancelled" | Error) => void} ended otherwise
 */

/** @typedef {{ cancel: () => void, isOwn: boolean, topic?: import("../../anemone-client/topic.js").Topic }} Turn a run, whether this window has begun it, and its events */
/** Whether the computation goes on without this page, or ends with its connection. @typedef {"kept" | "held"} Bond */

export class Computation {
  #listener;
  /** The turn whose events count. @type {Turn | null} */
  #turn = null;
  #isPlanned = false;

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
  }

  /**
   * Starts a run. Leaves the run before, whose events no longer count.
   * @param {import("./document.js").Coverage} document
   * @param {Bond} bond
   */
  begin(document, bond) {
    this.leave();
    if (bond === "held") {
      const end = new AbortController();
      const turn = (this.#turn = { cancel: () => end.abort(), isOwn: true });
      const items = client.items("POST", `${PATH}?attach`, document, { signal: end.signal });
      void this.#read(turn, items).finally(() => end.abort());
    } else this.#follow(client.run(PATH, document), true);
  }

  /** Watches a run that was started before. @param {string} key */
  watch(key) {
    this.leave();
    this.#follow(client.watch(key), ownKeys().includes(key), mustBeOfService(key));
  }

  /** Cancels the run, and reports that. */
  cancel() {
    const turn = this.#turn;
    this.#turn = null;
    turn?.cancel();
    turn?.topic?.close(); // the run may say nothing for long, if it goes on
    if (turn) this.#listener.ended("cancelled");
  }

  get isRunning() {
    return this.#turn !== null;
  }

  /** Leaves the run, and cancels it if this window has started it. */
  leave() {
    const turn = this.#turn;
    this.#turn = null;
    if (turn?.isOwn) turn.cancel();
    turn?.topic?.close(); // the run may say nothing for long
  }

  /**
   * @param {import("../../anemone-client/run.js").Run} run
   * @param {boolean} isOwn
   * @param {Promise<void>} [checked] fails if the run is of another service, whose events mean something else
   */
  #follow(run, isOwn, checked) {
    /** @type {Turn} */
    const turn = (this.#turn = { cancel: () => void run.cancel().catch(() => {}), isOwn });
    const told = run.key.then((key) => {
      if (isOwn) keepOwn(key);
      if (this.#turn === turn) this.#listener.started(key);
    });
    void told.catch(() => {}); // reading fails for the same reason
    void this.#read(turn, this.#events(turn, run, checked));
  }

  /**
   * Returns the events of a run; none if it is left before its key is known and checked.
   * @param {Turn} turn
   * @param {import("../../anemone-client/run.js").Run} run
   * @param {Promise<void>} [checked]
   */
  async *#events(turn, run, checked) {
    const key = await run.key;
    await checked;
    if (this.#turn === turn) yield* (turn.topic = client.read(`runs/${encodeURIComponent(key)}`));
  }

  /**
   * @param {Turn} turn
   * @param {AsyncIterable<{ data?: any }>} events
   */
  async #read(turn, events) {
    this.#isPlanned = false;
    try {
      for await (const { data } of events) {
        if (this.#turn !== turn) return;
        if (data && this.#take(data)) return;
      }
      throw new AnemoneError("lost", "the computation has ended without its result");
    } catch (error) {
      if (this.#turn !== turn) return;
      this.#turn = null;
      this.#listener.ended(/** @type {Error} */ (error));
    }
  }

  /** @param {any} data an event; returns true at the last one */
  #take(data) {
    const { state, partial } = data;
    if (partial?.coverage) {
      this.#isPlanned = true;
      this.#listener.planned(partial.coverage, partial.document);
    } else if (!this.#isPlanned && (partial || state === "done")) throw new AnemoneError("no-map", "this run has no map: its first events are no longer kept");
    else if (partial?.tile) this.#listener.refined(partial);
    else if ("progress" in data) this.#listener.progressed(data);
    else if (state === "queued") this.#listener.waits(data.place ?? null);
    if (!["done", "failed", "cancelled"].includes(state)) return false;
    this.#turn = null;
    if (state === "done") this.#listener.done(data.result);
    else this.#listener.ended(state === "cancelled" ? state : new AnemoneError("run-failed", data.problem?.detail ?? data.problem?.title ?? "the run has failed"));
    return true;
  }
}

/** Returns the keys of the runs that this window has started; none if the browser has no storage for pages. */
function ownKeys() {
  try {
    return sessionStorage.getItem(OWN_KEYS)?.split(" ") ?? [];
  } catch {
    return [];
  }
}

/** @param {string} key */
function keepOwn(key) {
  try {
    sessionStorage.setItem(OWN_KEYS, [...ownKeys().filter((own) => own !== key), key].slice(-OWN_KEYS_MAX).join(" "));
  } catch {
    // After a reload, the run counts as one of others, and goes on.
  }
}

/** @param {string} key */
async function mustBeOfService(key) {
  const { data } = await client.call("GET", `runs/${encodeURIComponent(key)}?state`);
  if (/** @type {{ service?: unknown }} */ (data).service !== `/${PATH}`) throw new AnemoneError("no-map", "this run has no map: it is of another service");
}

/** @param {unknown} error */
export function isOfUnknownRun(error) {
  return error instanceof AnemoneError && error.code === "unknown-run";
}

/**
 * Returns the place in the document that the service refuses; null if it names none.
 * @param {unknown} error
 * @returns {string | null}
 */
export function placeOf(error) {
  const problem = error instanceof AnemoneError ? Reflect.get(error, "problem") : undefined;
  return typeof problem?.pointer === "string" ? problem.pointer : null;
}
