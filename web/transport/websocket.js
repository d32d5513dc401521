import { reader } from "./reader.js";

/** WebSocket: one connection, on which the server sends each event as it comes. */
export const read = reader("mux");
