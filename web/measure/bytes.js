/**
 * Bytes of HTTP replies, as far as the browser reports them.
 *
 * It reports the body's encoded size, but not the headers: `transferSize` is specified as the body
 * plus a fixed 300, whatever was sent (Resource Timing, "transferSize"), so it is not used here.
 *
 * @typedef {{ url: URL, bodyBytes: number, startedAt: number }} Reply startedAt in ms since the Unix epoch
 */

/**
 * @param {(reply: Reply) => void} onReply
 * @returns {boolean} whether this browser tells anything
 */
export function observeReplies(onReply) {
  if (!globalThis.PerformanceObserver?.supportedEntryTypes?.includes("resource")) return false;
  new PerformanceObserver((list) => {
    for (const entry of /** @type {PerformanceResourceTiming[]} */ (list.getEntries())) {
      onReply({
        url: new URL(entry.name),
        bodyBytes: entry.encodedBodySize,
        startedAt: performance.timeOrigin + entry.startTime,
      });
    }
    performance.clearResourceTimings(); // the browser's own list is bounded, and this page asks forever
  }).observe({ type: "resource" });
  return true;
}
