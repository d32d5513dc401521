/** Positions, as the client has them. */
export { formatPosition, parsePosition } from "../client.js";
