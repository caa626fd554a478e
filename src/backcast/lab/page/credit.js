/* What is drawn over the states: the trajectory, the agent, the credit of a step, and the links of a state. */

import { outline } from "./grid.js";

const STRIDE = 10; // steps of a trajectory with the same opacity
const PIECE = 3; // pixels of a curve that are drawn straight
const DASH = 6;
const [BRIGHT, DARK] = ["#ffffff", "#0d141b"]; // over colours that are the same in every theme

/** The one state that was planned from: all credit comes from it (backward) or goes to it (forward); null if none. */
export function hubOf({ arrows, origins }) {
  return arrows.length && origins.length === 1 ? origins[0] : null;
}

/** The trajectory of this episode: dots (a line if cells are small) that fade into the past. */
export function drawWay(context, fit, way) {
  const dot = Math.max(1.4, Math.min(2.4, fit.size * 0.04));
  context.lineCap = context.lineJoin = "round";
  for (let end = way.length - 1, strength = 0.85; end > 0; end -= STRIDE, strength *= 0.78) {
    const path = new Path2D();
    for (let i = Math.max(0, end - STRIDE); i <= end; i++) {
      const { x, y } = fit.centre(way[i]);
      path.lineTo(x, y);
    }
    context.globalAlpha = Math.max(0.12, strength);
    context.setLineDash(fit.size < 20 ? [] : [0, dot * 2.4]);
    for (const [colour, width] of [[DARK, dot + 1.4], [BRIGHT, dot]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke(path);
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

/** The agent: a ring and a dot, visible on any colour; in a terminal state, beside the mark. */
export function drawAgent(context, fit, theme, state, colour) {
  const radius = Math.max(4.5, Math.min(12, fit.size * 0.2));
  const aside = Math.max(0, Math.min(0.28 * fit.size, fit.size / 2 - radius - 4));
  const away = "GT".includes(fit.layout.kinds[state]) ? aside : 0;
  const centre = fit.centre(state);
  const [x, y] = [centre.x + away, centre.y + away];
  disc(context, x, y, radius + 1.8, theme.surface);
  disc(context, x, y, radius, theme.ink);
  disc(context, x, y, radius * 0.74, theme.surface);
  disc(context, x, y, radius * 0.46, colour);
}

/** Rings around the states that learning itself changed; dashed where the value fell. */
export function drawLearned(context, fit, theme, learned, colour) {
  const width = Math.max(1.2, Math.min(2.5, fit.size / 26));
  for (const [state, amount] of learned) {
    outline(context, fit, theme, state, colour, { width, dash: amount < 0 ? [4, 3] : [] });
  }
}

/** The halo of the state that was planned from; `pulse` in 0…1 is a wave that leaves it, 0 for none. */
export function drawHub(context, fit, theme, state, colour, pulse) {
  const { x, y } = fit.centre(state);
  const radius = hubRadius(fit);
  const rings = [[radius, 0.9]];
  if (pulse > 0 && pulse < 1) rings.push([radius * (1 + 0.9 * pulse), 0.8 * (1 - pulse)]);
  for (const [size, opacity] of rings) {
    context.globalAlpha = opacity;
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    stroke(context, theme.surface, 4.5);
    stroke(context, colour, 2);
  }
  context.globalAlpha = 1;
}

function hubRadius(fit) {
  return fit.isGrid ? Math.max(6.5, fit.size * 0.34) : fit.size / 2 + 3;
}

/**
 * The credit of a step: an arrow from each informing state to the state whose value changed. It is thin at its start, and
 * its width at the head shows the change; it is solid if the value rose, and dashed with a hollow head if it fell.
 * `grown` in 0…1 is the animated part of the arrows.
 */
export function drawCredit(context, fit, theme, credit, colour, { grown = 1, strength = 1, range = 1 } = {}) {
  const isPlace = (state) => fit.layout.kinds[state] !== "X";
  const moved = credit.arrows.filter(([from, to, amount]) => amount !== 0 && isPlace(from) && isPlace(to));
  const hub = hubOf(credit);
  moved.sort((one, other) => Math.abs(one[2]) - Math.abs(other[2]));
  for (const [from, to, amount] of moved) {
    const look = arrowLook(amount, range, fit.size);
    const { width } = look;
    context.globalAlpha = strength * look.strength;
    const halo = width > 2 ? 2.4 : 0;
    drawArrow(context, theme, curveOf(fit, from, to, hub), { width, colour, whole: amount > 0, grown, halo });
  }
  context.globalAlpha = 1;
}

/**
 * The width and the opacity of an arrow, on one scale for the whole run: the widest is a change by the whole range of the
 * exact values. Widths grow with the square root, so that a hundredth of that is still visible.
 */
export function arrowLook(amount, range, size) {
  const share = Math.min(1, Math.abs(amount) / (range || 1)) || 0;
  const widest = Math.max(5, Math.min(10, size * 0.16));
  return { width: Math.max(0.8, widest * Math.sqrt(share)), strength: 0.3 + 0.7 * Math.min(1, Math.sqrt(4 * share)) };
}

/** The links of a state: thin arrows from its predecessors and to its successors, fainter if less likely. */
export function drawHighlight(context, fit, theme, { state, predecessors = [], successors = [] }) {
  const width = Math.max(1.6, Math.min(3.5, fit.size * 0.06));
  const links = [
    ...predecessors.map(([from, likely]) => [from, state, likely, theme.backward]),
    ...successors.map(([to, likely]) => [state, to, likely, theme.forward]),
  ];
  links.sort((one, other) => one[2] - other[2]);
  for (const [from, to, likely, colour] of links) {
    context.globalAlpha = 0.2 + 0.8 * Math.min(1, likely);
    drawArrow(context, theme, curveOf(fit, from, to, null), { width, colour, whole: true, grown: 1, halo: 2 });
  }
  context.globalAlpha = 1;
  outline(context, fit, theme, state, theme.focus);
}

/** The curve of an arrow, {at(t in 0…1) → {x, y}, length}; at the hub it ends outside the ring. */
function curveOf(fit, from, to, hub) {
  if (from === to) return loop(fit, from);
  const atHub = hubRadius(fit) + 1;
  const near = (state, usual) => (state === hub ? atHub : fit.isGrid ? usual * fit.size : fit.size / 2 + 1);
  return bow(fit, from, to, near(from, 0.12), near(to, 0.17));
}

/** A curve from one state to another, bent to the left, so that the two directions do not overlap. */
function bow(fit, from, to, before, after) {
  const [start, end] = [fit.centre(from), fit.centre(to)];
  const [dx, dy] = [end.x - start.x, end.y - start.y];
  const length = Math.hypot(dx, dy) || 1;
  const bend = Math.min(fit.isGrid ? 0.2 : 0.14, (2.5 * fit.size) / length + 0.05);
  const middle = { x: (start.x + end.x) / 2 + dy * bend, y: (start.y + end.y) / 2 - dx * bend };
  const [least, most] = [Math.min(0.4, before / length), 1 - Math.min(0.4, after / length)];
  const at = (t) => {
    const along = least + t * (most - least);
    const [a, b, c] = [(1 - along) ** 2, 2 * along * (1 - along), along ** 2];
    return { x: a * start.x + b * middle.x + c * end.x, y: a * start.y + b * middle.y + c * end.y };
  };
  return { at, length: length * (most - least) * (1 + bend * bend) };
}

/** A small loop at the upper right of a state, for credit from a state to itself. */
function loop(fit, state) {
  const { x, y } = fit.centre(state);
  const radius = Math.max(3.5, Math.min(13, fit.size * 0.17));
  const away = fit.size * 0.27;
  const at = (t) => {
    const angle = Math.PI * (1 + 1.6 * t);
    return { x: x + away + radius * Math.cos(angle), y: y - away + radius * Math.sin(angle) };
  };
  return { at, length: 1.6 * Math.PI * radius };
}

function drawArrow(context, theme, curve, { width, colour, whole, grown, halo }) {
  const length = curve.length * grown;
  const head = Math.min(length * 0.6, width + 5);
  const pieces = Math.max(4, Math.ceil((length - head) / PIECE));
  const neck = grown * (1 - head / length);
  const points = Array.from({ length: pieces + 1 }, (_, i) => curve.at((neck * i) / pieces));
  const half = (i) => 0.4 + (0.5 * width - 0.4) * (i / pieces);
  const shafts = new Path2D();
  const step = whole ? pieces : Math.max(1, Math.round(DASH / PIECE));
  for (let i = pieces; i > 0; i -= whole ? step : 2 * step) shaft(shafts, points, Math.max(0, i - step), i, half);
  const tip = new Path2D();
  arrowHead(tip, points[pieces], curve.at(grown), width * 0.5 + 2.6);
  context.lineJoin = "round";
  if (halo) {
    context.strokeStyle = theme.surface;
    context.lineWidth = halo;
    context.stroke(shafts);
    context.stroke(tip);
  }
  context.fillStyle = colour;
  context.fill(shafts);
  context.fillStyle = whole ? colour : theme.surface;
  context.fill(tip);
  if (whole) return;
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.stroke(tip);
}

/** A piece of the shaft between two points of the curve, as wide as `half` says on both sides. */
function shaft(path, points, first, last, half) {
  const sides = [[], []];
  for (let i = first; i <= last; i++) {
    const [before, after] = [points[Math.max(0, i - 1)], points[Math.min(points.length - 1, i + 1)]];
    const length = Math.hypot(after.x - before.x, after.y - before.y) || 1;
    const [nx, ny] = [((after.y - before.y) / length) * half(i), (-(after.x - before.x) / length) * half(i)];
    sides[0].push([points[i].x + nx, points[i].y + ny]);
    sides[1].unshift([points[i].x - nx, points[i].y - ny]);
  }
  sides.flat().forEach(([x, y], i) => (i ? path.lineTo(x, y) : path.moveTo(x, y)));
  path.closePath();
}

function arrowHead(path, base, tip, half) {
  const length = Math.hypot(tip.x - base.x, tip.y - base.y) || 1;
  const [nx, ny] = [((tip.y - base.y) / length) * half, (-(tip.x - base.x) / length) * half];
  path.moveTo(tip.x, tip.y);
  path.lineTo(base.x + nx, base.y + ny);
  path.lineTo(base.x - nx, base.y - ny);
  path.closePath();
}

function stroke(context, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke();
}

function disc(context, x, y, radius, colour) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = colour;
  context.fill();
}
