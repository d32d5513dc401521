/** Programs that read a topic and print what they get, cut off again and again and started anew from where they were. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { PATIENCE_MS } from "./support.js";

/** Most events that are read before a program is killed. */
const EVENTS_MAX = 25;

/** @typedef {{ position: string, n?: number }} Told where a reader stands, and the event that took it there */
/** @typedef {(chunk: Buffer) => Told[]} Parser */

/**
 * The numbers that a program tells until it has told `last`. It is killed after some, and started again; that it ends by
 * itself is no harm, as long as there is progress.
 * @param {(after: string) => { command: string, args: string[], input?: string }} run what to run from a position
 * @param {() => Parser} parser
 * @param {number} last
 */
export async function readOn(run, parser, last) {
  /** @type {number[]} */
  const numbers = [];
  let [after, runs, progress] = ["earliest", 0, Date.now()];
  while (numbers.length < last) {
    const enough = Math.min(last, numbers.length + 1 + Math.floor(Math.random() * EVENTS_MAX));
    const { command, args, input } = run(after);
    const program = start(command, args);
    const parse = parser();
    // Nothing more is said: one whose input stays open outlives the connection, as Debian's nc does.
    program.child.stdin.end(input);
    for await (const chunk of program.child.stdout) {
      // What comes after enough is read again: a slow program would have all in one piece, and never be cut off.
      for (const { position, n } of parse(chunk)) {
        after = position;
        if (n !== undefined) [progress] = [Date.now(), numbers.push(n)];
        if (numbers.length >= enough) break;
      }
      if (numbers.length >= enough) break;
    }
    await program.kill();
    runs += 1;
    if (Date.now() - progress > PATIENCE_MS) {
      throw new Error(`${command} ${args.join(" ")}: nothing after ${after}: ${program.errors.join("")}`);
    }
    // Whatever it could not do, it need not be tried again at once.
    if (numbers.length < enough) await sleep(50);
  }
  return { numbers, runs };
}

/**
 * What a program prints, all of it.
 * @param {string} command
 * @param {string[]} args
 */
export async function output(command, args) {
  const program = start(command, args);
  let text = "";
  program.child.stdin.end();
  for await (const chunk of program.child.stdout) text += chunk;
  await program.ended;
  return { text, status: program.child.exitCode, errors: program.errors.join("") };
}

/**
 * What a line for the shell prints up to what matches; it is ended then. Everything if nothing matches.
 * @param {string} line
 * @param {RegExp} pattern
 */
export async function firstOutput(line, pattern) {
  const program = start("sh", ["-c", line]);
  let text = "";
  program.child.stdin.end();
  for await (const chunk of program.child.stdout.setEncoding("utf8")) {
    text += chunk;
    if (pattern.test(text)) break;
  }
  await program.kill();
  return text;
}

/**
 * @param {string} command
 * @param {string[]} args
 */
function start(command, args) {
  // In a group of its own, so that what a shell has started goes with it.
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], detached: true });
  const group = () => process.kill(-Number(child.pid), "SIGKILL");
  const watchdog = setTimeout(group, PATIENCE_MS);
  const ended = once(child, "close").finally(() => clearTimeout(watchdog));
  /** @type {string[]} */
  const errors = [];
  child.stderr.setEncoding("utf8").on("data", (text) => errors.push(text));
  child.stdin.on("error", (error) => errors.push(String(error)));
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null) group();
    child.stdout.destroy();
    await ended;
  };
  return { child, errors, ended, kill };
}

/**
 * Whole lines, without their ends; what is cut off is none.
 * @param {(line: string) => Told[]} parse
 * @returns {Parser}
 */
export function lines(parse) {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    const bytes = Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf("\n") + 1;
    rest = bytes.subarray(end);
    return bytes.subarray(0, end).toString("utf8").split("\n").slice(0, -1).flatMap(parse);
  };
}

/**
 * A line of NDJSON.
 * @param {string} line
 * @returns {Told[]}
 */
export function told(line) {
  const { position, data, ...rest } = JSON.parse(line);
  if (!position) throw new Error(`unexpected ${line}`);
  if (Object.keys(rest).some((name) => name !== "time")) throw new Error(`unexpected ${line}`);
  return [{ position, ...(data && { n: data.n }) }];
}
