/** The maze editor: draw on the left board, by keys, or in a text field. */

import { byId, say } from "./dom.js";

const CLEAN = { "#": "X", " ": "." };
const cleaned = (character) => CLEAN[character] ?? character;
const ALLOWED = ".X#SG ";
const LEGEND = ". floor, X or # wall, S start, G goal";
const TOOLS = { x: "X", ".": ".", s: "S", g: "G", Backspace: ".", Delete: "." };
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The reason why these lines are not a maze of at most this size; null if they are. */
export function faultIn(lines, side) {
  if (lines.every((line) => !line)) return "Draw at least one row.";
  const width = lines[0].length;
  const many = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  for (const [row, line] of lines.entries()) {
    const column = [...line].findIndex((character) => !ALLOWED.includes(character.toUpperCase()));
    if (column >= 0) return `Line ${row + 1}, column ${column + 1} is “${[...line][column]}”; allowed are ${LEGEND}.`;
    if (line.length !== width) return `Line ${row + 1} has ${many(line.length, "character")}, line 1 has ${width}.`;
  }
  const size = `${many(lines.length, "row")} and ${many(width, "column")}`;
  const tooLarge = width > side || lines.length > side;
  return tooLarge ? `This one has ${size}; a maze has at most ${side} of each.` : null;
}

/** The editor on a board. `onUse(text)` is called with a maze to open, `onToggle(open)` when it opens or closes. */
export class MazeEditor {
  constructor({ board, canvas, limits, paperMaze, onUse, onToggle }) {
    Object.assign(this, { board, canvas, paperMaze, onUse, onToggle });
    Object.assign(this, { rows: null, cursor: { row: 0, column: 0 }, past: [] });
    this.side = limits?.side ?? 50;
    this.panel = byId("editor");
    for (const id of ["editor-rows", "editor-columns"]) {
      byId(id).max = this.side;
      byId(id).addEventListener("change", () => this.#resize());
    }
    byId("editor-text").addEventListener("input", () => this.#readText());
    byId("editor-text").addEventListener("keydown", (event) => this.#undo(event));
    byId("editor-clear").addEventListener("click", () => this.#clear());
    byId("editor-paper").addEventListener("click", () => this.#load(this.paperMaze));
    byId("editor-use").addEventListener("click", () => this.#readText() && this.onUse(this.text));
    byId("editor-cancel").addEventListener("click", () => this.close());
    canvas.addEventListener("keydown", (event) => this.#key(event), { capture: true });
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  /** Whether a maze is being drawn. */
  get editing() {
    return this.rows !== null;
  }

  /** The maze as text. */
  get text() {
    return this.rows.map((row) => row.join("")).join("\n");
  }

  /** Begin with this maze. */
  open(text) {
    this.panel.hidden = false;
    this.onToggle(true);
    this.#load(text);
    this.canvas.focus({ preventScroll: true });
  }

  /** Leave the editor. */
  close() {
    if (!this.editing) return;
    this.rows = null;
    this.past = [];
    this.panel.hidden = true;
    this.fail(null);
    this.board.setEditing(null);
    this.board.draw();
    this.onToggle(false);
  }

  /** Show what is wrong with the maze, if anything. */
  fail(message) {
    say(byId("editor-error"), message);
  }

  /** Draw with the chosen tool on a cell, numbered row by row. */
  paint(cell) {
    if (!this.editing) return;
    const columns = this.rows[0].length;
    this.cursor = { row: Math.floor(cell / columns), column: cell % columns };
    this.#put(document.querySelector("input[name=tool]:checked").value);
  }

  #put(character) {
    const { row, column } = this.cursor;
    if (this.rows[row]?.[column] === undefined) return;
    this.rows[row][column] = character;
    this.#show();
  }

  #key(event) {
    if (this.#undo(event) || !this.editing || event.ctrlKey || event.metaKey || event.altKey) return;
    const tool = TOOLS[event.key] ?? TOOLS[event.key.toLowerCase()] ?? null;
    const move = MOVES[event.key];
    const chosen = event.key === " " || event.key === "Enter";
    if (!tool && !move && !chosen && event.key !== "Escape") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key === "Escape") this.close();
    else if (move) this.#move(...move);
    else this.#put(tool ?? document.querySelector("input[name=tool]:checked").value);
  }

  #move(down, right) {
    const within = (place, size) => Math.min(size - 1, Math.max(0, place));
    this.cursor.row = within(this.cursor.row + down, this.rows.length);
    this.cursor.column = within(this.cursor.column + right, this.rows[0].length);
    this.#show();
  }

  /** Undo the last change. The browser's own undo covers only typed text, and would corrupt drawn mazes. */
  #undo(event) {
    const key = event.key.toLowerCase();
    const asked = (event.ctrlKey || event.metaKey) && !event.altKey && (key === "z" || key === "y");
    if (!this.editing || !asked) return false;
    event.preventDefault();
    if (key === "y" || event.shiftKey || this.past.length < 2) return true;
    this.past.pop();
    byId("editor-text").value = this.past.at(-1);
    this.#readText();
    return true;
  }

  #load(text) {
    byId("editor-text").value = [...text].map(cleaned).join("").replace(/\n+$/, "");
    this.cursor = { row: 0, column: 0 };
    this.#readText();
  }

  /** Read the maze from the text field; return whether it is valid. */
  #readText() {
    this.#remember();
    const lines = byId("editor-text").value.replace(/\n+$/, "").split("\n");
    const wrong = faultIn(lines, this.side);
    this.fail(wrong);
    if (wrong) return false;
    this.rows = lines.map((line) => [...line.toUpperCase()].map(cleaned));
    this.#show({ keepText: true });
    return true;
  }

  #remember() {
    const text = byId("editor-text").value;
    if (text !== this.past.at(-1)) this.past.push(text);
  }

  #resize() {
    const size = (id) => Math.min(this.side, Math.max(1, Math.round(Number(byId(id).value)) || 1));
    const [height, width] = [size("editor-rows"), size("editor-columns")];
    this.rows = Array.from({ length: height }, (_, row) =>
      Array.from({ length: width }, (__, column) => this.rows[row]?.[column] ?? "."),
    );
    this.#show();
  }

  #clear() {
    this.rows = this.rows.map((row) => row.map(() => "."));
    this.rows.at(-1)[0] = "S";
    this.rows[0][this.rows[0].length - 1] = "G";
    this.#show();
  }

  #show({ keepText = false } = {}) {
    byId("editor-rows").value = this.rows.length;
    byId("editor-columns").value = this.rows[0].length;
    if (!keepText) {
      byId("editor-text").value = this.text;
      this.#remember();
      this.fail(null);
    }
    this.cursor.row = Math.min(this.cursor.row, this.rows.length - 1);
    this.cursor.column = Math.min(this.cursor.column, this.rows[0].length - 1);
    this.board.setEditing({ cells: this.rows, cursor: this.cursor });
    this.board.draw();
  }
}
