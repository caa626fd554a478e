/** The inspector of a state: its values, predecessors and successors, learned and true. */

import { brief, byId, capital, make, throttled, typeset } from "./dom.js";

const SIDES = ["left", "right"];
const ROWS = 6;
const ROWS_EACH = 3; // of each action
const LEAST = 0.0005;
const WHILE_PLAYING = 250;
const WHILE_POINTING = 60;

/** The inspector. `ask(state)` asks the session; `onAnswer(highlights)` is called with the highlights of both boards. */
export class Inspector {
  constructor({ ask, onAnswer }) {
    Object.assign(this, { onAnswer, scene: null, hovered: null, focused: null, wanted: null, at: null });
    this.askSoon = throttled(ask, WHILE_POINTING);
    this.askSlowly = throttled(ask, WHILE_PLAYING);
    this.place = byId("inspector");
    this.clear();
  }

  /** Show another scene; the inspected state stays if the world has not changed. */
  setScene(scene) {
    const same = this.scene?.layout.names.length === scene.layout.names.length && this.scene.name === scene.name;
    this.scene = scene;
    if (!same) this.clear();
  }

  /** Inspect no state. */
  clear() {
    Object.assign(this, { hovered: null, focused: null, wanted: null });
    byId("inspector-title").textContent = "How to read the boards";
    this.place.replaceChildren(byId("reading").content.cloneNode(true));
  }

  /** The pointer is over a state, or over none. */
  hover(state) {
    this.hovered = state;
    this.#look();
  }

  /** A state was selected by keys or by touch, or deselected. */
  focus(state) {
    if (state === null) this.clear();
    this.focused = state;
    this.hovered = null;
    this.#look();
  }

  /** Time has moved: ask again about the state that is shown. */
  follow(frame) {
    if (this.wanted === null || frame.at === this.at) return;
    this.at = frame.at;
    (frame.playing ? this.askSlowly : this.askSoon)(this.wanted);
  }

  /** The session's answer. */
  show(answer) {
    if (!this.scene || answer.state !== this.wanted) return;
    this.at = answer.at;
    byId("inspector-title").textContent = capital(answer.name);
    this.place.replaceChildren(
      this.#values(answer),
      this.#predecessors(answer),
      this.#successors(answer),
    );
    const shown = this.hovered ?? this.focused;
    this.onAnswer(shown === null ? [null, null] : answer.agents.map((agent) => highlight(answer.state, agent)));
  }

  #look() {
    const state = this.hovered ?? this.focused;
    if (state === null) this.onAnswer([null, null]);
    if (state === null || state === this.wanted) return;
    this.wanted = state;
    this.askSoon(state);
  }

  #values(answer) {
    const { layout, agents } = this.scene;
    const choices = layout.actions.length;
    const rows = answer.agents[0].values.map((_, action) => {
      const name = choices > 1 ? layout.actions[action].name : "learned";
      const cells = answer.agents.map(({ values }) =>
        make("td", { class: isBest(values, action) ? "best" : null }, brief(values[action])),
      );
      return make("tr", {}, make("th", { scope: "row" }, name), ...cells);
    });
    const exact = make("tr", { class: "exact" });
    exact.append(make("th", { scope: "row" }, choices > 1 ? "exact, of the best" : "exact"));
    const truths = answer.agents.map((agent) => agent.exact);
    if (truths[0] === truths[1]) exact.append(make("td", { colspan: 2 }, brief(truths[0])));
    else exact.append(...truths.map((value) => make("td", {}, brief(value)))); // one is in a world that has changed
    const head = make("tr", {}, make("td", {}), ...agents.map(({ label }, side) => heading(label, side)));
    const caption = make("caption", {}, choices > 1 ? "Values of the actions" : "Value");
    return make("table", { class: "values" }, caption, make("thead", {}, head), make("tbody", {}, ...rows, exact));
  }

  /** One table, or one for each agent if their policies, and so the true probabilities, differ. */
  #predecessors(answer) {
    const truths = answer.agents.map((agent) => agent.true_predecessors);
    const agree = JSON.stringify(truths[0]) === JSON.stringify(truths[1]);
    const knowing = [0, 1].filter((side) => answer.agents[side].predecessors);
    const groups = agree || knowing.length < 2 ? [knowing] : knowing.map((side) => [side]);
    const tables = groups.map((sides) => this.#precede(answer, sides, truths[sides[0] ?? 0]));
    const about = answer.agents[knowing[0] ?? 0].about;
    const known = truths.some(Boolean);
    if (about) tables.push(make("p", { class: "note" }, known ? `True: ${about}.` : typeset(capital(about))));
    return make("div", {}, ...tables);
  }

  #precede(answer, sides, truth) {
    const columns = sides.map((side) => ({
      heading: heading(this.scene.agents[side].label, side), entries: answer.agents[side].predecessors, side,
    }));
    if (truth) columns.push({ heading: heading("true", null), entries: truth, side: null });
    const rows = merged(columns);
    const shown = rows.slice(0, rows.length > ROWS + 1 ? ROWS : rows.length);
    const { actions } = this.scene.layout;
    const body = shown.map((row) => this.#row(row, columns, actions.length > 1 ? actionMark(actions[row.action]) : ""));
    const others = columns.map(({ side }) => (side === null ? 0 : unseenShare(answer.agents[side])));
    if (others.some((chance) => chance >= LEAST)) {
      const name = make("th", { scope: "row" }, "all others, never seen together");
      body.push(make("tr", { class: "others" }, name, ...chanceCells(others, columns)));
    }
    return table("What leads here", columns, body, rows.length - shown.length);
  }

  /** One table, or one for each agent where only one of them is in a world that has changed. */
  #successors(answer) {
    const truths = answer.agents.map((agent) => agent.true_successors);
    const agree = JSON.stringify(truths[0]) === JSON.stringify(truths[1]);
    const groups = agree ? [[0, 1]] : [[0], [1]];
    return make("div", {}, ...groups.map((sides) => this.#follow(answer, sides, truths[sides[0]])));
  }

  /** Grouped by action, where there are several. */
  #follow(answer, sides, truth) {
    if (truth.every(({ to }) => !to.length)) {
      return table("What follows", [], [], 0, { nothing: "Nothing: the episode ends here." });
    }
    const flat = (all) => all.flatMap(({ action, to }) => to.map(([state, chance]) => [state, action, chance]));
    const columns = sides.flatMap((side) => {
      const { successors } = answer.agents[side];
      const named = heading(this.scene.agents[side].label, side);
      return successors ? [{ heading: named, entries: flat(successors), side }] : [];
    });
    columns.push({ heading: heading("true", null), entries: flat(truth), side: null });
    const { actions } = this.scene.layout;
    const every = merged(columns);
    const groups = actions.map((_, action) => every.filter((row) => row.action === action));
    const several = actions.length > 1;
    const most = several ? ROWS_EACH : ROWS;
    const body = groups.flatMap((rows, action) => {
      const cells = rows.slice(0, most).map((row) => this.#row(row, columns));
      const span = { scope: "rowgroup", rowspan: cells.length, class: "group" };
      if (several) cells[0]?.prepend(make("th", span, actionMark(actions[action])));
      return cells;
    });
    const left = groups.reduce((sum, rows) => sum + Math.max(0, rows.length - most), 0);
    return table("What follows", columns, body, left, { grouped: several });
  }

  #row({ state, chances }, columns, mark = "") {
    const name = make("th", { scope: "row" }, this.scene.layout.names[state], mark && "\u00a0", mark);
    return make("tr", {}, name, ...chanceCells(chances, columns));
  }
}

/** A table of probabilities with a note on omitted rows; without rows, the given words. */
function table(title, columns, body, left, { nothing = "Nothing.", grouped = false } = {}) {
  const note = (words) => make("p", { class: "note" }, words);
  if (!body.length) return make("div", {}, make("p", { class: "caption" }, title), note(nothing));
  const empty = Array.from({ length: grouped ? 2 : 1 }, () => make("td"));
  const head = make("tr", {}, ...empty, ...columns.map((column) => column.heading));
  const all = make("table", { class: "chances" }, make("caption", {}, title));
  all.append(make("thead", {}, head), make("tbody", {}, ...body));
  return make("div", {}, all, left ? note(`and ${left} more`) : null);
}

function chanceCells(chances, columns) {
  return chances.map((chance, column) => {
    const { side } = columns[column];
    const cell = make("td", { "data-side": side === null ? null : SIDES[side] }, percent(chance));
    cell.style.setProperty("--chance", chance);
    return cell;
  });
}

/** The probability that a softmax model gives to all pairs that were never observed to lead here. */
const unseenShare = ({ other, unseen }) => (other ?? 0) * (unseen ?? 0);

/** The rows of all columns together, the likeliest first. */
function merged(columns) {
  const rows = new Map();
  columns.forEach(({ entries }, column) => {
    for (const [state, action, chance] of entries) {
      const key = `${state} ${action}`;
      if (!rows.has(key)) rows.set(key, { state, action, chances: columns.map(() => 0) });
      rows.get(key).chances[column] = chance;
    }
  });
  const weight = ({ chances }) => Math.max(...chances);
  return [...rows.values()].filter((row) => weight(row) >= LEAST).sort((a, b) => weight(b) - weight(a));
}

/** An action as an arrow where it has a direction, else its name. */
function actionMark({ name, dx, dy }) {
  const arrow = { "0,-1": "↑", "1,0": "→", "0,1": "↓", "-1,0": "←" }[`${dx},${dy}`];
  if (!arrow) return make("span", { class: "action" }, name);
  return make("span", { class: "action", role: "img", "aria-label": name, title: name }, arrow);
}

function heading(label, side) {
  if (side === null) return make("th", { scope: "col" }, label);
  const dot = make("span", { class: "mark", "aria-hidden": "true" }, "●○"[side]);
  return make("th", { scope: "col", "data-side": SIDES[side] }, dot, "\u00a0", label);
}

/** The highlights of a board: predecessors and successors, with their probabilities over all actions. */
function highlight(state, { predecessors, successors }) {
  const before = (predecessors ?? []).map(([other, , chance]) => [other, chance]);
  const share = ([other, chance]) => [other, chance / successors.length];
  const after = (successors ?? []).flatMap(({ to }) => to.map(share));
  return { state, predecessors: summed(before), successors: summed(after) };
}

function summed(entries) {
  const totals = new Map();
  for (const [state, chance] of entries) totals.set(state, (totals.get(state) ?? 0) + chance);
  return [...totals].filter(([, chance]) => chance >= LEAST);
}

const isBest = (values, action) => values.every((v) => v <= values[action]) && values.some((v) => v < values[action]);
const percent = (chance) => (chance > 0 && chance < 0.005 ? "<1" : Math.round(100 * chance).toString()) + "\u202f%";
