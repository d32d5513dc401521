/** The rhythm in which a page shows new events. */

const SHOW_EVERY_MS = 100;
const REST_FACTOR = 4;

/**
 * Shows new events again and again, and leaves most of the time for the user's input. On a slow machine, it shows them less often.
 * @param {readonly (() => void)[]} parts each has a frame of its own, so that an input waits for at most one of them
 * @param {() => boolean} takeNews returns true if something has come since the last time
 */
export async function keepShowing(parts, takeNews) {
  const { port1, port2 } = new MessageChannel();
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  /** Resolves when layout and painting are over. A message waits for them, and does not request a frame of its own. */
  const painted = () =>
    new Promise((resolve) => {
      port1.onmessage = resolve;
      port2.postMessage(null);
    });
  for (;;) {
    let spent = 0;
    for (const part of takeNews() ? parts : []) {
      await frame();
      const begun = performance.now();
      part();
      await painted();
      spent += performance.now() - begun;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(SHOW_EVERY_MS, spent * REST_FACTOR)));
  }
}
