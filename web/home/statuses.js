/**
 * The topics with the status of a source, and the topics of those sources. They come from the list of the server, not from their names:
 * anybody may choose a name. Pure.
 */
export class Statuses {
  /** From a status topic to the topic of its source. @type {ReadonlyMap<string, string>} */
  #topics = new Map();
  /** From a topic to the status topic of its source. @type {ReadonlyMap<string, string>} */
  #statuses = new Map();

  /** @param {readonly { name: string, status_of?: string }[]} topics all that the server has */
  list(topics) {
    const names = new Set(topics.map(({ name }) => name));
    const pairs = topics.flatMap(({ name, status_of: topic }) => (topic !== undefined && names.has(topic) ? [{ name, topic }] : []));
    this.#topics = new Map(pairs.map(({ name, topic }) => [name, topic]));
    this.#statuses = new Map(pairs.map(({ name, topic }) => [topic, name]));
  }

  /** Returns the topic of the source that has its status in this topic; null if this is not a status topic. @param {string} name */
  topicOf(name) {
    return this.#topics.get(name) ?? null;
  }

  /** Returns true if the server has a status of the source of this topic. @param {string} topic */
  hasStatus(topic) {
    return this.#statuses.has(topic);
  }

  /** Returns a topic, and the status topic of its source if there is one. @param {string} topic */
  withStatus(topic) {
    const status = this.#statuses.get(topic);
    return status === undefined ? [topic] : [topic, status];
  }
}
