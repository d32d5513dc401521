/** Lets Node find the modules of the client where the server has them: beside the pages. */
import { register } from "node:module";

const PAGES = new URL("../../web/", import.meta.url);
const CLIENT = new URL("../../clients/js/src/", import.meta.url);

register(
  `data:text/javascript,${encodeURIComponent(`export function resolve(specifier, context, next) {
  const url = context.parentURL && specifier.startsWith(".") ? new URL(specifier, context.parentURL).href : specifier;
  const ours = url === "${PAGES}client.js" || url.startsWith("${PAGES}anemone-client/");
  return next(ours ? url.replace("${PAGES}", "${CLIENT}") : specifier, context);
}`)}`,
);
