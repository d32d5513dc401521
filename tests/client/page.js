/** A server with a page that is empty but for the client. It is there for the tests of the file that imports it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before } from "node:test";
import { OPEN_MS_MAX } from "../../clients/js/src/anemone-client/time.js";
import { folder, kill, remove, serve, until } from "../e2e/support.js";

/** @type {string} */ let directory;
/** @type {import("../e2e/support.js").Server} */ export let server;

before(async () => {
  directory = await folder("anemone-client-");
  await writeFile(join(directory, "index.html"), "<!doctype html><link rel=icon href=data:,><title>Client</title>");
  server = await serve("--demo", "--listen", "127.0.0.1:0", "--static", directory);
});

after(async () => {
  await kill(server);
  await remove(directory);
});

/**
 * Lets the connections of a page take as long to open as a busy machine needs, and also to answer whether they are alive. For tests of
 * something else.
 * @param {import("playwright-core").Page} page
 */
export async function patient(page) {
  await page.addInitScript((openMsMax) => {
    const { setTimeout } = globalThis;
    const later = (/** @type {() => void} */ run, /** @type {number} */ ms, /** @type {unknown[]} */ ...more) => setTimeout(run, ms === openMsMax ? 60_000 : ms, ...more);
    Object.assign(globalThis, { setTimeout: later });
  }, OPEN_MS_MAX);
  return page;
}

/** @typedef {{ numbers: number[], gaps: unknown[], opened: string[], errors: string[], closed: string[], position?: string, diagnosis?: any }} Told */

/**
 * Reads a topic from its start in a page, and returns the ways to ask what its reader was told.
 * @param {import("playwright-core").Page} page
 * @param {string} origin
 * @param {string} name
 * @param {Record<string, any>} [options] of the client; `random` is a constant, without which it waits no time between tries, and `tokenFrom` the path where it gets its tokens
 * @param {string[]} [others] more topics, of which the numbers are kept
 */
export async function read(page, origin, name, options, others = []) {
  await page.goto(origin);
  await page.evaluate(
    async ([name, options, more]) => {
      /** @type {typeof import("../../clients/js/src/client.js")} */
      const { connect } = await import(String("/client.js"));
      const { tokenFrom, random = 0, ...others } = options ?? {};
      const token = tokenFrom && (async () => await (await fetch(tokenFrom)).text());
      const client = connect("/", options && { ...others, token, random: () => random });
      const topic = client.topic(name, { after: "earliest" });
      /** @type {Told} */
      const told = { numbers: [], gaps: [], opened: [], errors: [], closed: [] };
      topic.onmessage = ({ data }) => told.numbers.push(data.n);
      topic.ongap = (gap) => told.gaps.push(gap);
      topic.onopen = ({ transport }) => told.opened.push(transport);
      topic.onerror = ({ code, message }) => told.errors.push(`${code}: ${message}`);
      topic.onclose = (error) => told.closed.push(String(error?.code));
      const numbersOfOthers = more.map((name) => {
        /** @type {number[]} */ const numbers = [];
        client.topic(name, { after: "earliest" }).onmessage = ({ data }) => numbers.push(data.n);
        return numbers;
      });
      Object.assign(globalThis, { others: () => numbersOfOthers, newest: () => told.numbers.at(-1), told: () => ({ ...told, position: topic.position, diagnosis: client.diagnosis }), end: () => client.close() });
    },
    /** @type {const} */ ([name, options, others]),
  );
  /** @type {() => Promise<Told>} */
  const told = () => page.evaluate("told()");
  /** @type {() => Promise<number | undefined>} */
  const newest = () => page.evaluate("newest()");
  const has = async (/** @type {number} */ last) => {
    await until(`event ${last}`, async () => (await newest()) === last).catch(async (error) => {
      throw new Error(`${error.message}: ${JSON.stringify(await told())}`);
    });
    return await told();
  };
  /** @type {() => Promise<number[][]>} */
  const ofOthers = () => page.evaluate("others()");
  return { told, newest, has, ofOthers };
}
