/** Documents to begin with. Those with the name of a file are also in `examples/computations`. */
import { textOf } from "./document.js";

/** @typedef {import("./document.js").Written} Written */

/**
 * @param {string} id
 * @param {number} size
 * @param {Written} [more]
 * @returns {Written}
 */
const list = (id, size, more = {}) => ({ id, do: "list", size, ...more });

/**
 * @param {string} id
 * @param {string} after
 * @param {string} algorithm
 * @param {Written} [more]
 * @returns {Written}
 */
const sort = (id, after, algorithm, more = {}) => ({ id, after, do: "sort", algorithm, ...more });

const ALGORITHMS = ["quick", "merge", "heap", "shell", "comb", "radix", "tim", "insertion", "selection", "cocktail", "bubble"];
const DISTRIBUTIONS = ["random", "sorted", "reversed", "nearly-sorted", "few-unique"];

/**
 * The examples. `pace` has the changes a second at which a person can follow.
 * @type {{ name: string, file?: string, pace: number, actions: Written[] }[]}
 */
const DOCUMENTS = [
  {
    name: "Three sorts at once, others after them",
    file: "tree.json",
    pace: 200,
    actions: [
      list("list", 200, { distribution: "random", seed: 7 }),
      sort("quick", "list", "quick"),
      sort("heap", "list", "heap"),
      sort("merge", "list", "merge", { criterion: "by-last-digit" }),
      sort("descending", "quick", "tim", { criterion: "descending" }),
      { id: "few", after: "heap", do: "list", size: 200, distribution: "few-unique", seed: 7 },
      sort("radix", "few", "radix"),
    ],
  },
  {
    name: "Four branches of 2,000 elements",
    pace: 2000,
    actions: [list("list", 2000), ...["quick", "heap", "merge", "shell"].map((name) => sort(name, "list", name))],
  },
  {
    name: "All algorithms, one list",
    pace: 200,
    actions: [list("list", 100, { seed: 3 }), ...ALGORITHMS.map((name) => sort(name, "list", name))],
  },
  {
    name: "Insertion sort of each distribution",
    pace: 200,
    actions: DISTRIBUTIONS.flatMap((distribution) => [list(distribution, 80, { distribution }), sort(`${distribution}-sorted`, distribution, "insertion")]),
  },
  {
    name: "Stable or not: by value, then by last digit",
    pace: 100,
    actions: [
      list("list", 150),
      sort("by-value", "list", "quick"),
      sort("stable", "by-value", "merge", { criterion: "by-last-digit" }),
      sort("not-stable", "by-value", "heap", { criterion: "by-last-digit" }),
    ],
  },
  {
    name: "22,479 states",
    file: "22479-states.json",
    pace: 1000,
    actions: [list("list", 300, { distribution: "random", seed: 6205 }), sort("sort", "list", "insertion")],
  },
  {
    name: "The smallest: two states",
    file: "smallest.json",
    pace: 1,
    actions: [list("list", 4, { distribution: "reversed" }), sort("sort", "list", "selection")],
  },
];

export const EXAMPLES = DOCUMENTS.map(({ actions, ...about }) => ({ ...about, text: textOf(actions) }));
