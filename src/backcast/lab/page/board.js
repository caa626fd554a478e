/* A board: one agent in its world. Its static part is a picture in which only changed states are redrawn; moving
   parts are drawn over a copy of it. */

import { onThemeChange, palette, readableOn } from "./colour.js";
import { drawAgent, drawCredit, drawHighlight, drawHub, drawLearned, drawWay, hubOf } from "./credit.js";
import { drawGround } from "./graph.js";
import { Fit, drawEditing, drawPlaces, outline, sceneIn, shading } from "./grid.js";

const TALLEST = 0.7; // of the window
const LEAST_HEIGHT = 160; // pixels: room for arrows above a row of nodes
const SHARPEST = 2; // the most device pixels per pixel
const ARROW_KEYS = { ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowDown: [0, 1], ArrowLeft: [-1, 0] };
const CALM = 250; // ms between frames above which the flow of credit is animated
const FLOW = 350; // ms of the animation
const NO_CREDIT = { arrows: [], origins: [], learned: [] };
const PULSE = 1100; // ms of one wave from the reference state
const PULSES = 3;

export class Board {
  #canvas;
  #context;
  #tell;
  #whole = null; // the scene as it was opened
  #era = 0;
  #scene = null; // the scene in this era
  #frame = null;
  #view = "values";
  #scale = [0, 1];
  #highlight = null;
  #editing = null;
  #fit = null;
  #theme = palette();
  #still = document.createElement("canvas");
  #drawn = null; // the colours (or values) and greedy actions in the still picture; null: redraw it
  #focused = null;
  #painting = null;
  #picking = false; // whether a click changes a state instead of inspecting it
  #arrived = 0;
  #calm = false;
  #request = 0;

  /** @param {{onHover?, onFocus?, onPaint?, onPick?, agent?: 0|1}} tell whom to tell; which agent of the scene is shown. */
  constructor(canvas, tell = {}) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#tell = { onHover() {}, onFocus() {}, onPaint() {}, onPick() {}, agent: 0, ...tell };
    canvas.style.display = "block";
    canvas.style.width = "100%";
    new ResizeObserver(() => this.#resize()).observe(canvas);
    addEventListener("resize", () => this.#resize());
    onThemeChange(() => this.#redraw());
    this.#listen();
  }

  setScene(scene) {
    this.#whole = this.#scene = scene;
    this.#era = 0;
    this.#frame = this.#highlight = this.#focused = null;
    this.#resize();
  }

  setFrame(agent, values, greedy, moment) {
    const now = performance.now();
    this.#calm = now - this.#arrived > CALM && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#arrived = now;
    this.#frame = { agent, values, greedy, moment };
    if (agent.era !== this.#era) this.#enter(agent.era);
    this.draw();
  }

  /** Show another era: the world has changed, or time went back to before it did. */
  #enter(era) {
    this.#era = era;
    this.#scene = sceneIn(this.#whole, era);
    this.#resize();
  }

  setView(view) {
    this.#view = view;
    this.#redraw();
  }

  /** The values at both ends of the colours. */
  setScale(scale) {
    this.#scale = scale;
    this.#redraw();
  }

  setHighlight(highlight) {
    this.#highlight = highlight;
    this.draw();
  }

  setEditing(editing) {
    this.#editing = editing;
    this.#canvas.style.touchAction = editing ? "none" : "";
    this.#resize();
  }

  /** Set whether a click, or Enter, changes a state (walls included) instead of inspecting it. */
  setPicking(picking) {
    this.#picking = picking;
    this.#canvas.style.cursor = picking ? "crosshair" : "";
  }

  /** The scene in the current era of this board's agent. */
  get scene() {
    return this.#scene;
  }

  /** Schedule one drawing in the next animation frame. */
  draw() {
    if (this.#request) return;
    this.#request = requestAnimationFrame((now) => {
      this.#request = 0;
      this.#paint(now);
    });
  }

  /** Draws the board as it is now into a rectangle of another canvas, without waiting. */
  renderTo(context, x, y, width, height) {
    if (!this.#scene) return;
    this.#theme = palette();
    const fit = new Fit(this.#layout(), width, height, 2, x, y);
    this.#drawStill(context, fit, null);
    this.#drawMoving(context, fit, 1, 0);
  }

  /** What the colours show: "values", "exact" or "error". */
  get view() {
    return this.#view;
  }

  /** Height over width of what is drawn. */
  get aspect() {
    const layout = this.#layout();
    return layout ? layout.height / layout.width : 0.75;
  }

  /** The state (while editing: row × columns + column) at a point of the window, or null. */
  stateAt(clientX, clientY) {
    if (!this.#fit) return null;
    const edge = this.#canvas.getBoundingClientRect();
    const state = this.#fit.stateAt(clientX - edge.left, clientY - edge.top);
    const isOpen = this.#editing || this.#picking;
    return state !== null && !isOpen && this.#scene.layout.kinds[state] === "X" ? null : state;
  }

  /** The middle of a state in pixels from the upper left corner of the canvas. */
  centreOf(state) {
    return this.#fit.centre(state);
  }

  #layout() {
    if (!this.#editing) return this.#scene?.layout;
    const { cells } = this.#editing;
    const [rows, columns] = [cells.length, cells[0].length];
    const every = Array.from({ length: rows * columns }, (_, cell) => cell);
    const [x, y] = [every.map((cell) => cell % columns), every.map((cell) => Math.floor(cell / columns))];
    return { shape: "grid", width: columns, height: rows, x, y, groups: [], actions: [] };
  }

  #resize() {
    const width = this.#canvas.clientWidth;
    if (!this.#layout() || !width) return;
    const height = Math.max(LEAST_HEIGHT, Math.round(Math.min(width * this.aspect, innerHeight * TALLEST)));
    const ratio = Math.min(SHARPEST, devicePixelRatio || 1);
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== across || this.#canvas.height !== down) {
      this.#canvas.style.height = `${height}px`;
      this.#canvas.width = this.#still.width = across;
      this.#canvas.height = this.#still.height = down;
    }
    this.#fit = new Fit(this.#layout(), width, height, ratio);
    this.#redraw();
  }

  #redraw() {
    this.#drawn = null;
    this.#theme = palette();
    this.draw();
  }

  #paint(now) {
    if (!this.#fit) return;
    const still = this.#still.getContext("2d");
    const { ratio } = this.#fit;
    if (!this.#drawn) {
      still.setTransform(1, 0, 0, 1, 0, 0);
      still.clearRect(0, 0, this.#still.width, this.#still.height);
      still.scale(ratio, ratio);
    }
    this.#drawn = this.#drawStill(still, this.#fit, this.#drawn);
    const context = this.#context;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.drawImage(this.#still, 0, 0);
    context.scale(ratio, ratio);
    const age = this.#calm ? now - this.#arrived : Infinity;
    const grown = Math.min(1, Math.max(0.05, age / FLOW));
    this.#drawMoving(context, this.#fit, 1 - (1 - grown) ** 2, age < PULSES * PULSE ? (age % PULSE) / PULSE : 0);
    if (age < PULSES * PULSE && this.#frame?.agent.credit?.arrows.length) this.draw();
  }

  /** Draw what has changed since `drawn` (null: everything), and return what is now drawn. */
  #drawStill(context, fit, drawn) {
    if (this.#editing) {
      drawEditing(context, fit, this.#theme, this.#editing.cells, this.#editing.cursor);
      return null;
    }
    if (!drawn) drawGround(context, fit, this.#theme);
    const n = fit.layout.x.length;
    const learned = this.#frame?.values ?? new Float32Array(n).fill(NaN);
    const { values, colour } = shading(this.#view, this.#scene.truth, this.#scale, learned);
    const greedy = this.#view === "exact" || !this.#frame ? new Uint8Array(n) : this.#frame.greedy.slice();
    const looks = fit.withNumbers ? values : Array.from(values, colour);
    const changed = (_, state) => !Object.is(drawn.looks[state], looks[state]) || drawn.greedy[state] !== greedy[state];
    const every = Array.from({ length: n }, (_, state) => state);
    drawPlaces(context, fit, this.#theme, drawn ? every.filter(changed) : every, { values, greedy, colour });
    return { looks, greedy };
  }

  #drawMoving(context, fit, grown, pulse) {
    const theme = this.#theme;
    const agent = this.#frame?.agent;
    if (agent && !this.#editing) {
      const colour = readableOn(this.#scene.agents[this.#tell.agent].colour, theme.surface);
      const credit = this.#view === "exact" ? NO_CREDIT : agent.credit;
      const [low, high] = this.#scene.range;
      const hub = hubOf(credit);
      drawWay(context, fit, agent.way);
      drawLearned(context, fit, theme, credit.learned, theme.ink);
      if (hub !== null) drawHub(context, fit, theme, hub, colour, pulse);
      if (agent.state !== null) drawAgent(context, fit, theme, agent.state, colour);
      const strength = this.#highlight ? 0.3 : 1;
      drawCredit(context, fit, theme, credit, colour, { grown, range: high - low, strength });
    }
    if (this.#highlight && !this.#editing) drawHighlight(context, fit, theme, this.#highlight);
    else if (this.#focused !== null && document.activeElement === this.#canvas && !this.#editing) {
      outline(context, fit, theme, this.#focused, theme.focus);
    }
  }

  #listen() {
    const canvas = this.#canvas;
    let hovered = null;
    canvas.addEventListener("pointermove", (event) => {
      const state = this.stateAt(event.clientX, event.clientY);
      if (this.#painting !== null) {
        if (state !== null && state !== this.#painting) this.#tell.onPaint((this.#painting = state), "move");
      } else if (!this.#editing && state !== hovered) this.#tell.onHover((hovered = state));
    });
    canvas.addEventListener("pointerleave", () => {
      if (hovered !== null) this.#tell.onHover((hovered = null));
    });
    canvas.addEventListener("pointerdown", (event) => {
      const state = this.stateAt(event.clientX, event.clientY);
      if (state === null) return;
      if (this.#picking && !this.#editing) return this.#tell.onPick(state);
      if (!this.#editing) return this.#focus(state);
      canvas.setPointerCapture(event.pointerId);
      this.#tell.onPaint((this.#painting = state), "down");
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => {
        if (this.#painting !== null) this.#tell.onPaint(this.#painting, "up");
        this.#painting = null;
      });
    }
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("blur", () => this.draw());
  }

  #key(event) {
    if (this.#editing || !this.#fit || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = this.#focused ?? this.#frame?.agent.state ?? 0;
    const way = ARROW_KEYS[event.key];
    if (way) this.#focus(this.#focused === null ? here : this.#neighbour(here, way));
    else if (event.key === "Enter" && this.#picking) this.#tell.onPick(here);
    else if (event.key === "Enter") this.#focus(here);
    else if (event.key === "Escape") this.#focus(null);
    else return;
    event.preventDefault();
  }

  #focus(state) {
    this.#focused = state;
    this.#tell.onFocus(state);
    this.draw();
  }

  /** The nearest state that lies rather in this direction than across it; the same state if there is none. */
  #neighbour(from, [dx, dy]) {
    const { x, y, kinds } = this.#scene.layout;
    let [nearest, least] = [from, Infinity];
    for (let state = 0; state < x.length; state++) {
      const [right, down] = [x[state] - x[from], y[state] - y[from]];
      const [along, across] = [right * dx + down * dy, Math.abs(right * dy) + Math.abs(down * dx)];
      if ((kinds[state] === "X" && !this.#picking) || along <= 1e-6 || across > along) continue;
      if (along + 2 * across < least) [nearest, least] = [state, along + 2 * across];
    }
    return nearest;
  }
}
