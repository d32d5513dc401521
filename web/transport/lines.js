/**
 * Ways to get the lines of a stream that the client does not have: a plain WebSocket and a forever-frame. Both carry the objects of
 * NDJSON, so to the client each of them is a `fetch` of NDJSON, and positions, retries and gaps are the client's.
 */

/** @typedef {{ push: (line: string) => void, end: () => void }} Lines */

/**
 * Returns a `fetch` over WebSockets of their own, with the subprotocol that has positions.
 * @param {typeof WebSocket} Socket
 * @returns {typeof fetch}
 */
export function overWebSocket(Socket) {
  return (input, init) =>
    new Promise((resolve, reject) => {
      const socket = new Socket(String(input).replace(/^http/, "ws"), "anemone.events");
      const { reply, lines } = streamOf(() => socket.close());
      init?.signal?.addEventListener("abort", () => socket.close());
      socket.onopen = () => resolve(reply);
      socket.onmessage = ({ data }) => lines.push(data);
      socket.onclose = () => {
        reject(new TypeError("the WebSocket does not open"));
        lines.end();
      };
    });
}

/**
 * Returns a `fetch` over forever-frames, which only a document can have.
 * @param {(url: string, lines: Lines) => () => void} open opens a frame, and returns what removes it
 * @returns {typeof fetch}
 */
export function overFrame(open) {
  return (input, init) =>
    new Promise((resolve, reject) => {
      /** @type {() => void} */
      let remove = () => {};
      const { reply, lines } = streamOf(() => remove());
      init?.signal?.addEventListener("abort", () => {
        remove();
        reject(new TypeError("the frame does not load"));
      });
      // It is there once its first line is.
      remove = open(String(input), { ...lines, push: (line) => (resolve(reply), lines.push(line)) });
    });
}

/** @param {() => void} cancel */
function streamOf(cancel) {
  const encoder = new TextEncoder();
  /** @type {ReadableStreamDefaultController<Uint8Array>} */
  let controller;
  let isOver = false;
  const body = new ReadableStream({
    start: (given) => void (controller = given),
    cancel: () => {
      isOver = true;
      cancel();
    },
  });
  /** @type {Lines} */
  const lines = {
    push: (line) => void (isOver || controller.enqueue(encoder.encode(`${line}\n`))),
    end: () => {
      if (!isOver) controller.close();
      isOver = true;
    },
  };
  return { reply: new Response(body, { headers: { "content-type": "application/x-ndjson" } }), lines };
}
