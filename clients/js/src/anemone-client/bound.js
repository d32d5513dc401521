/** The limit on a reply: one without an end would fill the memory. */
import { foreign } from "./error.js";

/** The most bytes or characters of a reply, and of a line. The result of a run may be as large as the run itself, 16 MiB by default. */
export const REPLY_MAX = 2 ** 25;

export const tooLong = () => foreign("a reply that is too long");
