/** Shows the findings about the way to the server, with the settings that mend the faults. */
import { find, part, setText } from "../element.js";
import { examine, reach, readRules } from "./doctor.js";

const MARKS = { good: "ok", fault: "fault", note: "note", unknown: "?" };

/** Makes the section work. @param {HTMLElement} section */
export function offerDoctor(section) {
  const begin = find(section, "#examine", HTMLButtonElement);
  const wait = find(section, "#wait", HTMLSelectElement);
  const said = find(section, "#diagnosis", HTMLElement);
  const list = find(section, "#findings", HTMLElement);
  begin.addEventListener("click", async () => {
    begin.disabled = true;
    list.replaceChildren();
    const ending = new AbortController();
    const leave = () => ending.abort();
    window.addEventListener("pagehide", leave);
    setText(said, `Quiet connections are kept for ${wait.value} s.`);
    try {
      const rules = await readRules();
      const known = await reach(rules);
      const counts = { good: 0, fault: 0, note: 0, unknown: 0, gone: 0, remark: 0 };
      await examine({
        rules,
        known,
        waitMs: Number(wait.value) * 1000,
        signal: ending.signal,
        onFinding: (finding) => {
          counts[finding.state] += 1;
          counts.gone += Number(finding.isGone === true);
          counts.remark += Number(finding.state === "note" && finding.fault !== undefined);
          list.append(itemOf(finding, rules, known.program));
        },
      });
      const behind = known.program ? ` The answers come through ${known.program}.` : "";
      setText(said, conclusion(counts) + behind);
    } catch {
      setText(said, "The server does not answer.");
    } finally {
      window.removeEventListener("pagehide", leave);
      begin.disabled = false;
    }
  });
}

/**
 * Returns a sentence about all findings.
 * @param {{ fault: number, unknown: number, gone: number, remark: number }} counts a remark is a note with settings
 */
export function conclusion({ fault, unknown, gone, remark }) {
  if (gone > 0) return "The server has gone.";
  if (fault > 0) return fault === 1 ? "1 fault." : `${fault} faults.`;
  if (unknown === 0) return remark > 0 ? "Nothing is wrong, but a setting lets events come sooner." : "Nothing is wrong.";
  return `Nothing wrong was found, but ${unknown === 1 ? "1 examination has" : `${unknown} examinations have`} no answer.`;
}

/**
 * @param {import("./way.js").Finding} finding
 * @param {import("./way.js").Rules} rules
 * @param {string | undefined} program the one on the way, if it is known
 */
function itemOf({ id, state, words, fault }, { examinations, faults }, program) {
  const item = document.createElement("li");
  Object.assign(item.dataset, { id, state, ...(fault && { fault }) });
  item.append(part("span", "mark", MARKS[state]), part("strong", "", examinations[id] ?? id), part("span", "", words));
  const own = (fault === undefined ? [] : (faults[fault]?.settings ?? [])).filter((one) => !program || [program, "Anemone"].includes(one.program));
  if (own.length === 0) return item;
  const rows = own.map((one) => {
    const row = part("li", "", `${one.program}: `);
    row.append(part("code", "", one.setting));
    return row;
  });
  const more = document.createElement("ul");
  more.append(...rows);
  item.append(more);
  return item;
}
