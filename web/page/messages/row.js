/** A message in the list. It can be edited in place and deleted. If somebody else has changed it meanwhile, the user chooses a version. */
import { ask } from "../ask.js";
import { fieldsOf, find, setText } from "../element.js";
import { newKey, sendOnEnter } from "../sending.js";
import { failureInWords, isGone, serverNow } from "../server.js";
import { formatDuration } from "../words.js";
import { change, create, current, isAbsent, isConflict, remove } from "./calls.js";
import { isSame } from "./records.js";

const ASKED_CHARS_MAX = 120;

/** @typedef {import("./records.js").Version} Version */
/** @typedef {{ text: string, from: string }} Content */

export class Row {
  element;
  /** @type {Version} the newest that is known here */
  #version;
  /** @type {Version | null} the one that is being edited */
  #base = null;
  /** @type {Content | null} what this window wants, while there is a conflict */
  #mine = null;
  #isGone = false;
  #field;
  #onLeft;

  /**
   * @param {HTMLTemplateElement} template
   * @param {Version} version
   * @param {(row: Row) => void} onLeft called when a deleted message is no longer needed here
   */
  constructor(template, version, onLeft) {
    const item = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
    this.element = find(item, "li", HTMLElement);
    this.#field = fieldsOf(this.element);
    this.#version = version;
    this.#onLeft = onLeft;
    this.#button("edit").addEventListener("click", () => this.#edit());
    this.#field("editor").addEventListener("keydown", ({ key }) => key === "Escape" && this.#close());
    this.#button("delete").addEventListener("click", () => void this.#delete());
    this.show(version);
  }

  get isEdited() {
    return this.#base !== null;
  }

  /**
   * Shows a version. A text that is being edited stays, with a note about the new version.
   * @param {Version} version
   */
  show(version) {
    const isOther = version.tag !== this.#version.tag;
    this.#version = version;
    if (this.#isGone) this.#say(""); // it is there again
    this.#isGone = false;
    const { record } = version;
    setText(this.#field("text"), record.text ?? "");
    setText(this.#field("from"), record.from ? `from ${record.from}` : "");
    setText(this.#field("id"), `id ${record.id}`);
    this.#button("edit").setAttribute("aria-label", `Edit message ${record.id}`);
    this.#button("delete").setAttribute("aria-label", `Delete message ${record.id}`);
    this.showAge();
    if (!isOther) return;
    if (this.#mine) this.#showConflict(version);
    else if (this.#base && version.tag !== this.#base.tag) this.#say("Somebody has changed this message meanwhile. If you save, you see both versions.");
  }

  showAge() {
    const { time } = this.#version;
    setText(this.#field("when"), time === null ? "" : `${formatDuration(serverNow() - time)} ago`);
  }

  /** Marks the row for a moment, since its message is new or changed. */
  mark() {
    this.element.classList.remove("fresh");
    void this.element.offsetWidth; // the animation begins anew
    this.element.classList.add("fresh");
  }

  /** Call this if the message was deleted. Removes the row, unless the user edits it. */
  leave() {
    this.#isGone = true;
    if (this.#mine) this.#showConflict(null);
    else if (this.#base) this.#say("Somebody has deleted this message meanwhile. If you save, you may write it again.");
    else this.#onLeft(this);
  }

  // --- editing ---

  #edit() {
    if (this.#base) return;
    this.#base = this.#version;
    const { text = "", from = "" } = this.#version.record;
    const editor = this.#fill("editor");
    const [textBox, fromBox] = [find(editor, "textarea", HTMLTextAreaElement), find(editor, "input", HTMLInputElement)];
    textBox.value = text;
    fromBox.value = from;
    const save = () => this.#save({ text: textBox.value, from: fromBox.value });
    const [saveButton, leaveButton] = editor.querySelectorAll("button");
    saveButton?.addEventListener("click", () => void save());
    leaveButton?.addEventListener("click", () => this.#close());
    for (const box of [textBox, fromBox]) sendOnEnter(box, save);
    textBox.focus();
  }

  /** @param {Content} mine */
  async #save(mine) {
    const base = this.#base;
    if (!base) return;
    if (!this.#isGone && isSame(mine, base.record) && base.tag === this.#version.tag) return this.#close();
    this.#say("saving");
    try {
      this.#saved(await change(base, mine));
    } catch (error) {
      if (isConflict(error)) await this.#resolve(mine);
      else this.#say(isGone(error) ? `${failureInWords(error)} What you wrote is still here: save it again.` : failureInWords(error));
    }
  }

  /** @param {Version} version */
  #saved(version) {
    this.show({ ...version, time: serverNow() });
    this.#close();
    this.#say("saved");
  }

  #close() {
    this.#base = this.#mine = null;
    this.#field("editor").hidden = true;
    this.#field("editor").replaceChildren();
    this.element.classList.remove("edited");
    this.#say("");
    if (this.#isGone) this.#onLeft(this);
    else this.#button("edit").focus();
  }

  // --- conflicts ---

  /**
   * Handles a refused change, since the server has another version.
   * @param {Content} mine
   */
  async #resolve(mine) {
    try {
      const theirs = await current(this.#version.record.id);
      // The answer to an earlier try may have got lost.
      if (theirs && isSame(theirs.record, mine)) return this.#saved(theirs);
      this.#mine = mine;
      this.#isGone = theirs === null;
      this.#showConflict(theirs);
    } catch (error) {
      this.#say(failureInWords(error));
    }
  }

  /** @param {Version | null} theirs null if the message was deleted */
  #showConflict(theirs) {
    const mine = this.#mine;
    if (!mine) return;
    const panel = this.#fill("conflict");
    const heading = find(panel, "h2", HTMLElement);
    setText(heading, theirs ? "Somebody has changed this message meanwhile" : "Somebody has deleted this message meanwhile");
    setText(find(panel, ".lead", HTMLElement), "Nothing is saved yet. Which version shall it be?");
    const [ours, other] = panel.querySelectorAll("section");
    showVersion(ours, mine, theirs ? "Save yours" : "Write it again", () => void (theirs ? this.#keepMine(theirs, mine) : this.#createAgain(mine)));
    showVersion(other, theirs?.record ?? { text: "deleted" }, theirs ? "Keep the server's" : "Let it go", () => this.#close());
    this.#say("");
    heading.tabIndex = -1;
    heading.focus();
  }

  /**
   * @param {Version} theirs the version that is overwritten, and no other
   * @param {Content} mine
   */
  async #keepMine(theirs, mine) {
    this.#base = theirs;
    this.#mine = null;
    await this.#save(mine);
  }

  /** @param {Content} mine */
  async #createAgain(mine) {
    try {
      await create(mine, newKey());
      this.#close();
    } catch (error) {
      this.#say(failureInWords(error));
    }
  }

  // --- deleting ---

  async #delete() {
    const version = this.#version;
    const about = (version.record.text ?? "").slice(0, ASKED_CHARS_MAX);
    if (!(await ask({ title: "Delete this message?", about, yes: "Delete it", no: "Keep it" }))) return;
    try {
      await remove(version);
      this.leave();
    } catch (error) {
      if (isAbsent(error)) this.leave();
      else if (isConflict(error)) this.#say("Nothing is deleted: somebody has just changed this message. Look at it, and delete it again.");
      else this.#say(failureInWords(error));
    }
  }

  // --- parts ---

  /** @param {string} name */
  #button(name) {
    return this.#field(name);
  }

  /** @param {string} words */
  #say(words) {
    setText(this.#field("said"), words);
  }

  /** @param {string} name of a template */
  #fill(name) {
    const parent = this.#field("editor");
    parent.replaceChildren(find(document, `#${name}`, HTMLTemplateElement).content.cloneNode(true));
    parent.hidden = false;
    this.element.classList.add("edited");
    return parent;
  }
}

/**
 * @param {Element | undefined} section
 * @param {{ text?: string, from?: string }} content
 * @param {string} choice
 * @param {() => void} choose
 */
function showVersion(section, { text = "", from = "" }, choice, choose) {
  if (!section) return;
  setText(find(section, ".text", HTMLElement), text);
  setText(find(section, "p.small", HTMLElement), from === "" ? "" : `from ${from}`);
  const button = find(section, "button", HTMLButtonElement);
  button.textContent = choice;
  button.addEventListener("click", choose);
}
