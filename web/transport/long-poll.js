import { reader } from "./reader.js";

/** Long polling: sends a request that the server holds until there are events, and the next one at once. */
export const read = reader("long-poll");
