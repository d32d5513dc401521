/** The sizes of files and functions: what is longer has a seam. */
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import ts from "typescript";

const ROOT = new URL("../../", import.meta.url);
const FILE_LINES_MAX = 600;
const FUNCTION_LINES_MAX = 70;

/**
 * Tells each function of a file that is longer than one may be, without the comment before it.
 * @param {ts.SourceFile} file
 * @returns {string[]}
 */
function longFunctionsOf(file) {
  /** @type {string[]} */
  const found = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    ts.forEachChild(node, visit);
    if (!ts.isFunctionLike(node)) return;
    const line = (/** @type {number} */ at) => file.getLineAndCharacterOfPosition(at).line;
    const first = line(node.getStart(file));
    const lines = line(node.getEnd()) - first + 1;
    if (lines > FUNCTION_LINES_MAX) found.push(`${file.fileName}:${first + 1} has a function of ${lines} lines`);
  };
  visit(file);
  return found;
}

test("no file and no function of the pages and the client is too long", async () => {
  const files = [];
  for (const folder of ["web/", "clients/js/"]) {
    const names = await readdir(new URL(folder, ROOT), { recursive: true });
    files.push(...names.filter((name) => name.endsWith(".js") && !name.includes("node_modules")).map((name) => folder + name));
  }
  assert.ok(files.length > 100, "the files are found");
  const long = [];
  for (const name of files) {
    const text = await readFile(new URL(name, ROOT), "utf8");
    const lines = text.split("\n").length - 1;
    if (lines > FILE_LINES_MAX) long.push(`${name} has ${lines} lines`);
    long.push(...longFunctionsOf(ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)));
  }
  assert.deepEqual(long, []);
});
