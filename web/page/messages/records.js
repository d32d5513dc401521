/** The records of a resource, from the events of its topic. Pure. */

/**
 * @typedef {{ id: string, text?: string, from?: string }} Message
 * @typedef {object} Version
 * @property {Message} record
 * @property {string} tag the position of its last change, which `If-Match` takes
 * @property {number | null} time of its last change; null if nobody knows it any more
 */

export class Records {
  /** @type {Map<string, Version>} */
  #all = new Map();

  get size() {
    return this.#all.size;
  }

  /** @returns {Version[]} those with the greatest ids first, which are the newest unless clients choose ids */
  get newest() {
    return [...this.#all.values()].sort((a, b) => compare(b.record.id, a.record.id));
  }

  /** @param {string} id */
  get(id) {
    return this.#all.get(id);
  }

  clear() {
    this.#all.clear();
  }

  /**
   * Takes an event of the topic. Returns the change and the id of its record; null if nothing has changed.
   * @param {any} data
   * @param {string} position
   * @param {number} time
   * @returns {{ what: "created" | "changed" | "removed", id: string } | null}
   */
  take({ created, updated, patched, removed, kept, of }, position, time) {
    if (removed) return this.#all.delete(removed.id) ? { what: "removed", id: removed.id } : null;
    const record = created ?? updated ?? patched ?? kept;
    if (!record) return null;
    const isKnown = this.#all.has(record.id);
    // What is kept was published again, and not changed.
    if (kept && isKnown) return null;
    this.#all.set(record.id, kept ? { record, tag: of, time: null } : { record, tag: position, time });
    return { what: isKnown ? "changed" : "created", id: record.id };
  }
}

/**
 * Compares two ids in the server's order: shorter ids first.
 * @param {string} a
 * @param {string} b
 */
function compare(a, b) {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}

/**
 * Returns true if two messages have the same content.
 * @param {{ text?: string, from?: string }} a
 * @param {{ text?: string, from?: string }} b
 */
export function isSame(a, b) {
  return (a.text ?? "") === (b.text ?? "") && (a.from ?? "") === (b.from ?? "");
}
