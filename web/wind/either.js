import { reader } from "../transport/reader.js";

/** The best transport that works, for a reader that does not care which one it is. */
export const read = reader();
