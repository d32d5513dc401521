/**
 * Which topic has the status of which one's source. Only the list of the server says so: a name with the same ending may be anybody's. Pure.
 */
export class Statuses {
  /** The topic for each with a status. @type {ReadonlyMap<string, string>} */
  #topics = new Map();
  /** The one with the status for each topic. @type {ReadonlyMap<string, string>} */
  #statuses = new Map();

  /** @param {readonly { name: string, status_of?: string }[]} topics all that the server has */
  list(topics) {
    const names = new Set(topics.map(({ name }) => name));
    const pairs = topics.flatMap(({ name, status_of: topic }) => (topic !== undefined && names.has(topic) ? [{ name, topic }] : []));
    this.#topics = new Map(pairs.map(({ name, topic }) => [name, topic]));
    this.#statuses = new Map(pairs.map(({ name, topic }) => [topic, name]));
  }

  /** Returns the topic whose source has its status in this one; null if this is no such topic. @param {string} name */
  topicOf(name) {
    return this.#topics.get(name) ?? null;
  }

  /** Returns a topic, and the one with the status of its source. @param {string} topic */
  withStatus(topic) {
    const status = this.#statuses.get(topic);
    return status === undefined ? [topic] : [topic, status];
  }
}
