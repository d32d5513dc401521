/** The package: what npm would publish installs, works and has types; and its size. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { folder, remove } from "../e2e/support.js";
import { fake, page } from "./fakes.js";

const run = promisify(execFile);
const ROOT = resolve("clients/js");
/** The most bytes, minified and compressed, of what a page loads to read by WebSocket, and of everything. */
const CORE_BYTES_MAX = 6 * 1024;
const ALL_BYTES_MAX = 13_450;
/** The parts that are loaded only when they are needed: calls, the other transports, the outcome of runs, and sharing among tabs. */
const PARTS = ["call", "http", "outcome", "tabs"];

/** @param {string[]} external */
async function bundled(external) {
  const { outputFiles } = await build({
    entryPoints: [join(ROOT, "src/client.js")],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    external,
    write: false,
  });
  return gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length;
}

test("the client is small", async () => {
  const core = await bundled(PARTS.map((part) => `./${part}.js`));
  const all = await bundled([]);
  const names = (await readdir(join(ROOT, "src"), { recursive: true })).filter((name) => name.endsWith(".js") && !name.endsWith("types.js"));
  let files = 0;
  for (const name of names) files += gzipSync(await readFile(join(ROOT, "src", name)), { level: 9 }).length;
  console.log(`to read by WebSocket: ${core} bytes, minified and compressed; everything: ${all}; ${names.length} files with comments: ${files} compressed`);
  assert.ok(core <= CORE_BYTES_MAX, `${core} bytes`);
  assert.ok(all <= ALL_BYTES_MAX, `${all} bytes`);
});

test("npm's package installs, works, and has types", { timeout: 300_000 }, async () => {
  const directory = await folder("anemone-package-");
  try {
    const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", directory], { cwd: ROOT });
    const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf("[")));
    const paths = files.map((/** @type {{ path: string }} */ { path }) => path);
    for (const path of ["README.md", "package.json", "src/client.js", "types/client.d.ts"]) assert.ok(paths.includes(path), path);
    await writeFile(join(directory, "package.json"), '{"type":"module"}');
    await run("npm", ["install", "--offline", "--no-audit", "--no-fund", join(directory, filename)], { cwd: directory });

    const { origin } = await fake(() => page("e-2", [2]));
    const program = `import { connect } from "@anemone/client";
const client = connect(process.argv[2], { transports: ["poll"] });
for await (const { data } of client.topic("t", { after: "e-1" })) {
  console.log(data.n);
  break;
}
client.close();
`;
    await writeFile(join(directory, "program.js"), program);
    assert.equal((await run("node", ["program.js", origin], { cwd: directory })).stdout, "2\n");

    const typed = `import { AnemoneError, connect } from "@anemone/client";
const client = connect("http://localhost/", { transports: ["mux", "sse"], token: async () => "t" });
for await (const { position, data, gaps } of client.topic("t", { mode: "latest" })) console.log(position.length, data, gaps?.[0]?.missed);
for await (const item of client.items("GET", "/items", undefined, { signal: AbortSignal.timeout(1000) })) console.log(item);
for await (const { data } of client.watch("0").events({ mode: "latest" })) console.log(data);
const { position }: { position: string } = await client.publish("t", 1);
client.onerror = (error: AnemoneError) => console.log(error.code, position);
// @ts-expect-error: there is no such transport
connect("http://localhost/", { transports: ["smoke"] });
`;
    await mkdir(join(directory, "typed"));
    await writeFile(join(directory, "typed/program.ts"), typed);
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"];
    await run(resolve("node_modules/.bin/tsc"), [...options, "typed/program.ts"], { cwd: directory }).catch(({ stdout }) => assert.fail(stdout));
  } finally {
    await remove(directory);
  }
});
