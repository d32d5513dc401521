import { reader } from "./reader.js";

/** Polling: requests the new events, and again after a fixed time from the reply. */
export const read = reader("poll");
