/** The bound on what a server may say at once: an answer without an end would fill the memory. */
import { foreign } from "./error.js";

/** Bytes or characters of the longest reply and the longest line: the result of a run may be as large as the run itself, 16 MiB by default. */
export const REPLY_MAX = 2 ** 25;

export const tooLong = () => foreign("a reply that is too long");
