/* Where states lie on a canvas, and how one state is drawn: a cell or a node with its value, its mark and the greedy
   actions. */

import { colourOf, divergingColourOf, inkOnColour } from "./colour.js";

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const WITH_NUMBERS = 44;
const WITH_ARROWS = 9;
const MANY_CELLS = 1600;
const ROUNDED = 26;
const MARGIN = 6; // pixels, beside some part of a cell or node: arrows and rings reach beyond them
const TOGETHER = 50;

/** A layout fitted into a rectangle: positions and sizes in pixels. */
export class Fit {
  #actions = [];

  constructor(layout, width, height, ratio = 1, left = 0, top = 0) {
    this.layout = layout;
    this.isGrid = layout.shape === "grid";
    const beyond = 2 * (this.isGrid ? 0.12 : layout.radius);
    const fitted = (pixels, units) => Math.max(1, pixels - 2 * MARGIN) / (units + beyond);
    this.unit = Math.min(fitted(width, layout.width), fitted(height, layout.height));
    this.left = left + (width - this.unit * layout.width) / 2;
    this.top = top + (height - this.unit * layout.height) / 2;
    this.size = this.isGrid ? this.unit : 2 * layout.radius * this.unit;
    this.gap = this.isGrid && this.size >= 9 ? Math.max(1, Math.round(this.size / 40)) : 0;
    this.snap = (length) => Math.round(length * ratio) / ratio;
    this.withNumbers = this.size >= WITH_NUMBERS;
    this.withArrows = this.size >= WITH_ARROWS || layout.x.length <= MANY_CELLS;
    this.ratio = ratio;
    this.boxes = layout.x.map((_, state) => this.#box(state));
    this.rewards = new Map(layout.rewards ?? []);
  }

  /** The pixel at a point of the layout. */
  at(x, y) {
    return { x: this.left + x * this.unit, y: this.top + y * this.unit };
  }

  centre(state) {
    const half = this.isGrid ? 0.5 : 0;
    return this.at(this.layout.x[state] + half, this.layout.y[state] + half);
  }

  /** The rectangle of a cell without the gap to its neighbours, or the one around a node, on whole pixels. */
  #box(state) {
    const { x, y } = this.centre(state);
    const half = this.size / 2;
    const [left, top] = [this.snap(x - half), this.snap(y - half)];
    return { left, top, width: this.snap(x + half) - left - this.gap, height: this.snap(y + half) - top - this.gap };
  }

  /** The actions of a mask of bits. */
  actionsIn(mask) {
    this.#actions[mask] ??= this.layout.actions.filter((_, action) => mask & (1 << action));
    return this.#actions[mask];
  }

  /** The state under a pixel, or null: a cell that holds it, or the nearest node if that is near. */
  stateAt(x, y) {
    const reach = this.isGrid ? this.size / 2 : Math.max(this.size / 2, 11);
    let [found, least] = [null, Infinity];
    for (let state = 0; state < this.layout.x.length; state++) {
      const centre = this.centre(state);
      const [dx, dy] = [Math.abs(x - centre.x), Math.abs(y - centre.y)];
      const distance = this.isGrid ? Math.max(dx, dy) : Math.hypot(dx, dy);
      if (distance <= reach && distance < least) [found, least] = [state, distance];
    }
    return found;
  }
}

/** A number with two or three significant digits. */
export function shortNumber(value) {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "–";
  if (size < 0.0005) return "0";
  const digits = size >= 99.5 ? 0 : size >= 9.95 ? 1 : size >= 0.0995 ? 2 : 3;
  return value.toFixed(digits).replace("-", "−");
}

/** The scene in an agent's era: a world that has changed has other walls and other exact values. */
export function sceneIn(scene, era) {
  if (!era) return scene;
  const { kinds, rewards, truth } = scene.later[era - 1];
  return { ...scene, truth, layout: { ...scene.layout, kinds, rewards } };
}

/** A scale that covers the agents' values, up to three times the range of the exact ones. */
export function widened([low, high], scene, boards) {
  const { range } = scene;
  const room = range[1] - range[0] || 1;
  for (const { values, era } of boards) {
    const { truth, layout } = sceneIn(scene, era);
    values.forEach((value, state) => {
      if (truth[state] === null || "XGT".includes(layout.kinds[state]) || !Number.isFinite(value)) return;
      [low, high] = [Math.min(low, value), Math.max(high, value)];
    });
  }
  return [Math.max(low, range[0] - room), Math.min(high, range[1] + room)];
}

/** The values of a view, NaN in unreachable states, and their colours: {values, colour(value)}. */
export function shading(view, truth, [low, high], values) {
  const inScale = (v) => colourOf(v, low, high);
  const shown = (value) => Float32Array.from(truth, (v, state) => (v === null ? NaN : value(v, state)));
  if (view === "exact") return { values: shown((v) => v), colour: inScale };
  if (view === "values") return { values: shown((_, state) => values[state]), colour: inScale };
  return { values: shown((v, state) => values[state] - v), colour: (v) => divergingColourOf(v, high - low) };
}

/** Draws states over whatever was there: their colours, marks, values and greedy actions. */
export function drawPlaces(context, fit, theme, states, { values, greedy, colour }) {
  const pointing = new Map();
  for (const state of states) {
    const [kind, box, value] = [fit.layout.kinds[state], fit.boxes[state], values[state]];
    if (kind === "X") {
      drawWall(context, fit, theme, box);
      continue;
    }
    const isEnd = kind === "G" || kind === "T";
    const fill = isEnd ? theme.surface : Number.isFinite(value) ? colour(value) : theme.faint;
    const ink = isEnd ? theme.ink : inkOnColour(fill);
    fillBox(context, fit, theme, box, fill, isEnd);
    if (kind !== ".") drawMark(context, fit, box, kind, ink);
    if (fit.rewards.has(state)) drawReward(context, fit, box, fit.rewards.get(state), ink);
    if (isEnd || !Number.isFinite(value)) continue;
    if (fit.withNumbers) drawNumber(context, fit, box, value, ink);
    if (!greedy[state] || !fit.withArrows) continue;
    if (!pointing.has(ink)) pointing.set(ink, []);
    pointing.get(ink).push(state);
  }
  for (const [ink, those] of pointing) drawGreedy(context, fit, those, greedy, ink);
}

/** Draws the cells of a maze that is being edited, and the cursor. */
export function drawEditing(context, fit, theme, cells, cursor) {
  const columns = cells[0].length;
  cells.forEach((row, r) => [...row].forEach((character, c) => {
    const box = fit.boxes[r * columns + c];
    if (character === "X" || character === "#") return drawWall(context, fit, theme, box);
    fillBox(context, fit, theme, box, character === "G" ? theme.surface : theme.faint, character === "G");
    if ("SG".includes(character)) drawMark(context, fit, box, character, theme.ink);
    return undefined;
  }));
  if (cursor) outline(context, fit, theme, cursor.row * columns + cursor.column, theme.focus);
}

/** A line around a state, in a colour with a halo. */
export function outline(context, fit, theme, state, colour, { width = fit.size / 30 + 1.5, dash = [] } = {}) {
  const box = fit.boxes[state];
  for (const [style, thick, dashes] of [[theme.surface, width + 2.5, []], [colour, Math.min(4, width), dash]]) {
    context.beginPath();
    if (fit.isGrid) context.roundRect(box.left, box.top, box.width, box.height, corner(fit));
    else context.arc(box.left + box.width / 2, box.top + box.height / 2, box.width / 2 + 1.5, 0, 2 * Math.PI);
    context.strokeStyle = style;
    context.lineWidth = thick;
    context.setLineDash(dashes);
    context.stroke();
  }
  context.setLineDash([]);
}

function corner(fit) {
  return fit.size >= ROUNDED ? Math.min(6, fit.size / 12) : 0;
}

function fillBox(context, fit, theme, box, fill, framed) {
  if (!fit.isGrid) {
    context.beginPath();
    context.arc(box.left + box.width / 2, box.top + box.height / 2, box.width / 2, 0, 2 * Math.PI);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = framed ? theme.ink : theme.muted;
    context.lineWidth = framed ? 1.2 : 0.8;
    context.stroke();
    return;
  }
  const rounded = fit.size >= ROUNDED;
  context.fillStyle = rounded ? theme.surface : fill;
  context.fillRect(box.left, box.top, box.width, box.height);
  if (rounded) {
    context.fillStyle = fill;
    context.beginPath();
    context.roundRect(box.left, box.top, box.width, box.height, corner(fit));
    context.fill();
  }
  if (!framed) return;
  const inset = rounded ? 1 : 0.5;
  context.strokeStyle = theme.ink;
  context.lineWidth = 2 * inset;
  context.strokeRect(box.left + inset, box.top + inset, box.width - 2 * inset, box.height - 2 * inset);
}

function drawWall(context, fit, theme, { left, top, width, height }) {
  context.fillStyle = theme.wall;
  context.fillRect(left, top, width, height);
  const step = Math.max(4, fit.size / 6);
  context.beginPath();
  for (let sum = step / 2; sum < width + height; sum += step) {
    context.moveTo(left + Math.max(0, sum - height), top + Math.min(sum, height));
    context.lineTo(left + Math.min(sum, width), top + Math.max(0, sum - width));
  }
  context.globalAlpha = 0.35;
  context.strokeStyle = theme.surface;
  context.lineWidth = Math.max(0.75, step / 7);
  context.stroke();
  context.globalAlpha = 1;
}

function drawMark(context, fit, box, kind, ink) {
  const isEnd = kind !== "S";
  const beside = !isEnd && (fit.withNumbers || fit.size >= 24);
  const height = beside ? Math.min(15, Math.max(9, fit.size * 0.24)) : Math.min(34, fit.size * (isEnd ? 0.6 : 0.75));
  if (height < 5) return;
  context.fillStyle = ink;
  context.font = `700 ${height}px ${FONT}`;
  const inset = corner(fit) + 1 + height / 2;
  const [x, y] = beside && fit.isGrid ? [box.width - inset, inset] : [box.width / 2, box.height / 2];
  centred(context, kind === "T" ? "×" : kind, box.left + x, box.top + y + height * 0.04);
}

function drawNumber(context, fit, box, value, ink) {
  context.fillStyle = ink;
  context.font = `500 ${Math.min(13, Math.max(9, fit.size * 0.16))}px ${FONT}`;
  context.textAlign = "left";
  context.textBaseline = "top";
  const inset = Math.max(4, fit.size * 0.08);
  context.fillText(shortNumber(value).replace(/^(−?)0\./, "$1."), box.left + inset, box.top + inset);
}

/** What is earned by entering a cell, in its lower right corner. */
function drawReward(context, fit, box, reward, ink) {
  const height = Math.min(13, Math.max(8, fit.size * 0.2));
  context.fillStyle = ink;
  context.font = `700 ${height}px ${FONT}`;
  context.textAlign = "right";
  context.textBaseline = "bottom";
  const words = (reward < 0 ? "" : "+") + shortNumber(reward).replace(/^(−?)0\./, "$1.");
  context.fillText(words, box.left + box.width - 3, box.top + box.height - 2, box.width - 4);
}

function centred(context, text, x, y) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, x, y);
}

/** Little arrows in one ink, many in a path; where cells are many, one device pixel wide: several times faster. */
function drawGreedy(context, fit, states, greedy, ink) {
  context.strokeStyle = context.fillStyle = ink;
  const crowded = fit.layout.x.length > MANY_CELLS;
  context.lineWidth = crowded ? 1 / fit.ratio : Math.max(1, Math.min(1.8, fit.size * 0.03));
  context.lineCap = "butt";
  context.lineJoin = "miter";
  context.setLineDash([]);
  for (let first = 0; first < states.length; first += TOGETHER) {
    context.beginPath();
    for (const state of states.slice(first, first + TOGETHER)) addGreedy(context, fit, state, greedy[state]);
    context.stroke();
  }
}

function addGreedy(context, fit, state, mask) {
  const { left, top, width, height } = fit.boxes[state];
  const [x, y] = [left + width / 2, top + height / 2];
  const best = fit.actionsIn(mask);
  const behind = best.length === 1 ? 0.13 * fit.size : 0;
  const [tip, tail] = [0.34 * fit.size - behind, -1.4 * behind];
  const barb = Math.max(2, Math.min(0.09 * fit.size, 6));
  for (const { dx, dy } of best) {
    if (!dx && !dy) context.fillRect(x - barb / 2, y - barb / 2, barb, barb);
    const tipX = x + dx * tip;
    const tipY = y + dy * tip;
    const backX = tipX - dx * barb;
    const backY = tipY - dy * barb;
    context.moveTo(x + dx * tail, y + dy * tail);
    context.lineTo(tipX, tipY);
    context.moveTo(backX - dy * barb, backY + dx * barb);
    context.lineTo(tipX, tipY);
    context.lineTo(backX + dy * barb, backY - dx * barb);
  }
}
