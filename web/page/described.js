/**
 * The services in a server's description of its paths (OpenAPI). Pure.
 *
 * @typedef {{ name: string, description?: string, required?: boolean, schema?: Record<string, any> }} Parameter one of a query
 *
 * @typedef {object} DescribedService
 * @property {string} path
 * @property {string} about one sentence
 * @property {string} [example] the JSON that a first call may send
 * @property {Parameter[]} [parameters] of the query of a POST, besides those that every run has
 * @property {string[]} methods in capitals; none if the service has not described itself
 * @property {boolean} startsRuns
 * @property {boolean} isRunService each POST starts a run
 */

const METHODS = ["get", "put", "post", "patch", "delete"];
/** The tags of the paths that every server has. */
const OWN_TAGS = ["topics", "server"];
/** The parameters of the query that every start of a run has. */
const START_PARAMETERS = ["attach", "name"];

/**
 * Returns the services: each at its shortest path, with the methods there and below.
 * @param {any} document
 * @returns {DescribedService[]} in the order of their paths
 */
export function servicesIn(document) {
  /** @type {Map<string, DescribedService>} */
  const found = new Map();
  for (const [path, item] of Object.entries(document?.paths ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (typeof item !== "object" || item === null || isOwn(path, item)) continue;
    const base = path.replace(/\/\{.*$/, "");
    const service = found.get(base) ?? { path: base, about: "", methods: [], startsRuns: false, isRunService: false };
    found.set(base, service);
    const operations = METHODS.filter((method) => method in item);
    service.methods.push(...operations.map((method) => method.toUpperCase()).filter((method) => !service.methods.includes(method)));
    service.startsRuns ||= operations.some((method) => item[method].tags?.includes("runs"));
    service.isRunService ||= operations.some((method) => item[method].operationId?.startsWith("start_"));
    const { example } = sentTo(item);
    if (example !== undefined) service.example = JSON.stringify(example);
    const parameters = parametersOf(item);
    if (parameters.length > 0) service.parameters = parameters;
    if (path !== base) service.about = resourceInWords(document.paths[base]);
    service.about ||= String(item.summary ?? item.description ?? item[operations[0] ?? ""]?.summary ?? "");
  }
  return [...found.values()];
}

/**
 * Returns the description of the JSON that a POST to a path sends.
 * @param {any} item
 * @returns {{ example?: unknown, schema?: any }}
 */
const sentTo = (item) => item?.post?.requestBody?.content?.["application/json"] ?? {};

/** @param {any} item */
function parametersOf(item) {
  /** @type {any[]} */
  const all = Array.isArray(item.post?.parameters) ? item.post.parameters : [];
  return all.filter((parameter) => parameter?.in === "query" && typeof parameter.name === "string" && !START_PARAMETERS.includes(parameter.name));
}

/** @param {any} item that of the path with all records */
function resourceInWords(item) {
  const fields = Object.keys(sentTo(item).schema?.properties ?? {});
  return `A resource: records ${fields.length > 0 ? `(${fields.join(", ")}) ` : ""}to find, and to change as its methods allow.`;
}

/**
 * @param {string} path
 * @param {Record<string, any>} item
 */
function isOwn(path, item) {
  if (/^\/runs(\/|$)/.test(path)) return true;
  return METHODS.some((method) => item[method]?.tags?.some((/** @type {string} */ tag) => OWN_TAGS.includes(tag)));
}
