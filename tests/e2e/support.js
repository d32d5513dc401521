/** What every test in a browser needs: the binary, Chromium and how it is started. */
import { resolve } from "node:path";

export const BIN = resolve(process.env.TEST_ANEMONE_BIN ?? "target/debug/anemone");
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const CHROMIUM_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
export const PATIENCE_MS = 45_000;
