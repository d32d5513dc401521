/** The pure parts of the client. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, encode, kept } from "../../clients/js/src/anemone-client/body.js";
import { refusal } from "../../clients/js/src/anemone-client/error.js";
import { Sequence } from "../../clients/js/src/anemone-client/position.js";
import { Backoff, OPEN_MS_MAX } from "../../clients/js/src/anemone-client/time.js";

test("each event is next, repeated, or after a gap", () => {
  const sequence = new Sequence("e-4");
  assert.equal(sequence.accept("e-5"), "next");
  assert.equal(sequence.accept("e-5"), "repeated");
  assert.equal(sequence.accept("e-3"), "repeated");
  assert.deepEqual(sequence.accept("e-8"), { reason: "unannounced", after: "e-5", missed: 2, resume: "e-8" });
  assert.deepEqual(sequence.accept("f-1"), { reason: "unannounced", after: "e-8", missed: null, resume: "f-1" });
  assert.equal(sequence.position, "f-1");
});

test("an epoch may contain a hyphen", () => {
  const sequence = new Sequence("a-b-4");
  assert.equal(sequence.accept("a-b-5"), "next");
});

test("a reader without a place takes whatever comes first", () => {
  for (const after of [undefined, "latest", "earliest", "-10"]) {
    const sequence = new Sequence(after);
    assert.equal(sequence.accept("e-9"), "next");
  }
});

test("what the server has skipped is no gap", () => {
  const sequence = new Sequence("e-4");
  sequence.skipped = 3;
  assert.equal(sequence.accept("e-8"), "next");
  assert.equal(sequence.accept("e-9"), "next");
  sequence.skipped = 3;
  assert.deepEqual(sequence.accept("e-14"), { reason: "unannounced", after: "e-9", missed: 1, resume: "e-14" });
});

test("a place ahead is a gap, and one behind is nothing", () => {
  const sequence = new Sequence("e-4");
  assert.equal(sequence.accept("e-4", 0), "repeated");
  assert.equal(sequence.accept("e-3", 0), "repeated");
  assert.equal(sequence.position, "e-4");
  assert.deepEqual(sequence.accept("e-6", 0), { reason: "unannounced", after: "e-4", missed: 2, resume: "e-6" });
});

test("waits double up to 10 s, with full jitter, and begin anew after success", () => {
  const most = new Backoff(() => 1);
  assert.deepEqual(Array.from({ length: 7 }, () => most.next()), [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  most.failures = 0;
  assert.equal(most.next(), 500);
  assert.equal(new Backoff(() => 0).next(), 0);
});

test("a transport that does not open is left within 3 s", () => {
  assert.ok(OPEN_MS_MAX <= 3000);
});

test("a refusal has the words of the problem, or says that there is none", () => {
  const problem = '{"type":"/problems/unknown-topic","title":"Unknown","detail":"there is no topic"}';
  assert.deepEqual(pick(refusal(404, problem)), ["unknown-topic", "there is no topic", 404, 0]);
  assert.deepEqual(pick(refusal(503, '{"type":"/problems/overloaded","title":"Busy"}', "3")), ["overloaded", "Busy", 503, 3000]);
  assert.deepEqual(pick(refusal(400, '{"type":{"toString":1},"detail":{"toString":1},"title":"Bad"}')), ["foreign", "Bad", 400, 0]);
  for (const text of ["<html>", "null", "{}", '{"type":7}', '{"type":"/problems/<b>"}']) {
    assert.equal(refusal(404, text).code, "foreign", text);
    assert.equal(refusal(502, text).code, "unavailable", text);
  }
});

/** @param {import("../../clients/js/src/client.js").AnemoneError} error */
function pick({ code, message, status, retryMs }) {
  return [code, message, status, retryMs];
}

test("a body is JSON, unless it is bytes or has a type of its own", () => {
  const sent = (/** @type {unknown} */ body, /** @type {HeadersInit} */ fields = {}) => {
    const headers = new Headers(fields);
    return [encode(kept(body), headers), headers.get("content-type")];
  };
  assert.deepEqual(sent(undefined), [undefined, null]);
  assert.deepEqual(sent("hi"), ['"hi"', "application/json"]);
  assert.deepEqual(sent(null), ["null", "application/json"]);
  assert.deepEqual(sent("hi", { "content-type": "text/plain" }), ["hi", "text/plain"]);
  assert.deepEqual(sent(new Uint8Array([1]).buffer), [new Uint8Array([1]), "application/octet-stream"]);
});

test("a reply is a value, an array of items, text or bytes, in whatever parts it comes", () => {
  const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
  assert.deepEqual(decode([bytes('{"a":"'), "ü", bytes('"}')], "application/problem+json"), { a: "ü" });
  assert.deepEqual(decode(["1\n\n", "2\n"], "application/x-ndjson"), [1, 2]);
  assert.equal(decode(["<p>"], "text/html; charset=utf-8"), "<p>");
  assert.deepEqual(decode([bytes("ab")], "application/octet-stream"), bytes("ab"));
  assert.equal(decode([], "application/json"), undefined);
  assert.throws(() => decode(["{"], "application/json"), { code: "protocol" });
});
