/** A key that nobody else has, under which a call may be made again. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
