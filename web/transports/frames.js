/** Forever-frames: hidden frames that never finish loading, and whose scripts call this page with each event. */

/** The functions that their scripts call, one for each frame. */
const NAME = "windFrames";

export class Frames {
  /** @type {Record<string, (object: unknown) => void>} */
  #called = {};
  /** @type {Map<number, HTMLIFrameElement>} */
  #frames = new Map();
  #onLine;

  /** @param {(id: number, line: string) => void} onLine */
  constructor(onLine) {
    this.#onLine = onLine;
    Reflect.set(globalThis, NAME, this.#called);
  }

  /**
   * @param {number} id
   * @param {string | null} url of the stream; null removes the frame
   */
  show(id, url) {
    this.#frames.get(id)?.remove();
    this.#frames.delete(id);
    delete this.#called[`f${id}`];
    if (url === null) return;
    this.#called[`f${id}`] = (object) => this.#onLine(id, JSON.stringify(object));
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.title = "forever-frame";
    frame.src = `${url}${url.includes("?") ? "&" : "?"}frame=${NAME}.f${id}`;
    this.#frames.set(id, frame);
    document.body.append(frame);
  }
}
