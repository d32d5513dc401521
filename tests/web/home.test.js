/** The pure parts of Home. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { servicesIn } from "../../web/page/described.js";
import { runsInWords } from "../../web/home/services.js";

test("services are what a description of the paths has besides the server's own", () => {
  const own = { get: { tags: ["topics"] } };
  const sends = (/** @type {object} */ json) => ({ content: { "application/json": json } });
  const paths = {
    "/topics": own,
    "/clock": { get: { tags: ["server"] } },
    "/runs": { get: { tags: ["runs"] } },
    "/runs/{key}": { get: { tags: ["runs"] } },
    "/slow": { post: { tags: ["runs"], operationId: "start_slow", summary: "Starts a run." } },
    "/sort": { post: { tags: ["runs"], operationId: "start_sort", summary: "Sorts.", requestBody: sends({ example: [2, 1] }) } },
    "/messages": { get: { tags: ["Message"], summary: "Finds records." }, post: { requestBody: sends({ schema: { properties: { id: {}, text: {} } } }) } },
    "/notes": { get: {} },
    "/notes/{id}": { get: {} },
    "/messages/{id}": { parameters: [], get: { summary: "Returns a record." }, delete: {} },
    "/axum": { description: "A service that has not described itself." },
  };
  assert.deepEqual(servicesIn({ paths }), [
    { path: "/axum", about: "A service that has not described itself.", methods: [], startsRuns: false, isRunService: false },
    { path: "/messages", about: "A resource: records (id, text) to find, and to change as its methods allow.", methods: ["GET", "POST", "DELETE"], startsRuns: false, isRunService: false },
    { path: "/notes", about: "A resource: records to find, and to change as its methods allow.", methods: ["GET"], startsRuns: false, isRunService: false },
    { path: "/slow", about: "Starts a run.", methods: ["POST"], startsRuns: true, isRunService: true },
    { path: "/sort", about: "Sorts.", example: "[2,1]", methods: ["POST"], startsRuns: true, isRunService: true },
  ]);
});

test("runs that work are told from those that wait", () => {
  assert.deepEqual([[1, 0], [2, 0], [2, 1], [1, 2], [0, 1], [0, 2]].map(([running = 0, queued = 0]) => runsInWords(running, queued)), [
    ...["is going on.", "are going on.", "are going on, 1 waits.", "is going on, 2 wait.", "waits.", "wait."],
  ]);
});

test("what is no description has no services", () => {
  for (const document of [null, undefined, {}, { paths: null }, { paths: { "/x": null } }]) assert.deepEqual(servicesIn(document), []);
});
