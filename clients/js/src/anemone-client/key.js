/** Makes a key that nobody else has. A call with a key may be made again. */
export const newKey = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
