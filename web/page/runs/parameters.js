/** The fields of a form, from the parameters that a run service describes (OpenAPI). */
import { part } from "../element.js";
import { formatCount } from "../words.js";

/** @typedef {import("../described.js").Parameter} Parameter */

/**
 * Creates a field with its label and words for each parameter.
 * @param {readonly Parameter[]} parameters
 */
export function fieldsFor(parameters) {
  return parameters.map((parameter) => {
    const field = part("p", "parameter", "");
    const label = part("label", "small", wordsOf(parameter.name));
    const box = boxFor(parameter);
    const about = part("span", "small", aboutInWords(parameter));
    [box.id, box.name, about.id] = [`parameter-${parameter.name}`, parameter.name, `about-${parameter.name}`];
    box.required = parameter.required === true;
    label.htmlFor = box.id;
    box.setAttribute("aria-describedby", about.id);
    field.append(label, box, about);
    return field;
  });
}

/** @param {Parameter} parameter */
function boxFor({ schema = {} }) {
  const choices = schema["type"] === "boolean" ? ["true", "false"] : schema["enum"];
  if (Array.isArray(choices)) {
    const box = document.createElement("select");
    box.append(new Option("", ""), ...choices.map((choice) => new Option(String(choice))));
    return box;
  }
  const box = document.createElement("input");
  const isNumber = schema["type"] === "integer" || schema["type"] === "number";
  box.type = isNumber ? "number" : "text";
  if (isNumber) {
    box.step = schema["type"] === "integer" ? "1" : "any";
    box.min = String(schema["minimum"] ?? "");
    box.max = String(schema["maximum"] ?? "");
  }
  if (typeof schema["pattern"] === "string" && !isNumber) box.pattern = schema["pattern"];
  box.placeholder = String(schema["default"] ?? "");
  return box;
}

/**
 * Returns the query of the fields that are filled in; null if none is.
 * @param {Iterable<{ name: string, value: string }>} boxes
 */
export function queryOf(boxes) {
  const filled = [...boxes].filter(({ value }) => value !== "").map(({ name, value }) => [name, value]);
  return filled.length === 0 ? null : new URLSearchParams(filled).toString();
}

/** @param {string} name */
export function wordsOf(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Returns the description of a parameter, with its limits and its default.
 * @param {Parameter} parameter
 */
export function aboutInWords({ description = "", schema = {} }) {
  const { minimum, maximum, default: usual } = schema;
  const [least, most] = [minimum, maximum].map((limit) => (typeof limit !== "number" ? "" : Number.isInteger(limit) ? formatCount(limit) : String(limit)));
  const limits = least && most ? `${least} to ${most}.` : least ? `At least ${least}.` : most ? `At most ${most}.` : "";
  return [description, limits, usual === undefined ? "" : `Without it: ${usual}.`].filter(Boolean).join(" ");
}
