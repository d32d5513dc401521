/** Shows what was found on the way to the server, with the settings that mend it. */
import { find, part, setText } from "../element.js";
import { at } from "../site.js";
import { examine, programOf } from "./doctor.js";

/** @typedef {{ programs: { name: string, mark: string }[], settings: Record<string, { program: string, setting: string }[]> }} Remedies */

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
      /** @type {Remedies} */
      const remedies = await (await fetch(at("page/lab/remedies.json"))).json();
      const program = await programOf(remedies.programs);
      let faults = 0;
      await examine({
        waitMs: Number(wait.value) * 1000,
        signal: ending.signal,
        onFinding: (finding) => {
          if (finding.state === "fault") faults += 1;
          list.append(itemOf(finding, remedies, program));
        },
      });
      const behind = program ? ` The answers come through ${program}.` : "";
      setText(said, (faults === 0 ? "Nothing is wrong." : faults === 1 ? "1 fault." : `${faults} faults.`) + behind);
    } catch {
      setText(said, "The server does not answer.");
    } finally {
      window.removeEventListener("pagehide", leave);
      begin.disabled = false;
    }
  });
}

/**
 * @param {import("./doctor.js").Finding} finding
 * @param {Remedies} remedies
 * @param {string | undefined} program the one on the way, if it is known
 */
function itemOf({ name, state, words, fault }, { settings }, program) {
  const item = document.createElement("li");
  item.dataset.state = state;
  item.append(part("span", "mark", MARKS[state]), part("strong", "", name), part("span", "", words));
  const own = (fault === undefined ? [] : (settings[fault] ?? [])).filter((one) => !program || [program, "Anemone"].includes(one.program));
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
