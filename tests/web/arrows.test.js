/** The folders of the pages: no folder needs, by itself or through others, one that needs it. */
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { test } from "node:test";

const WEB = join(import.meta.dirname, "../../web");

test("no two folders of the pages need each other", async () => {
  /** @type {Map<string, Set<string>>} */
  const needed = new Map();
  for (const file of await readdir(WEB, { recursive: true })) {
    if (!file.endsWith(".js")) continue;
    const folder = posix.dirname(file);
    const others = needed.get(folder) ?? new Set();
    needed.set(folder, others);
    for (const [, path = ""] of (await readFile(join(WEB, file), "utf8")).matchAll(/(?:from |import\()"(\.[^"]+)"/g)) {
      const other = dirname(posix.join(folder, path));
      if (other !== folder && !other.startsWith("..") && other !== ".") others.add(other);
    }
  }
  assert.ok(needed.get("home")?.has("page"), "the imports are found");
  while (needed.size > 0) {
    const free = [...needed].filter(([, others]) => [...others].every((other) => !needed.has(other))).map(([folder]) => folder);
    assert.notEqual(free.length, 0, `these need each other: ${[...needed].map(([folder, others]) => `${folder} (${[...others].join(", ")})`).join("; ")}`);
    for (const folder of free) needed.delete(folder);
  }
});
