/** What is shown about a scene beside the boards: the colour scale, the sentences, and the charts over the episodes. */

import { Chart } from "./charts.js";
import { divergingStops, legendStops, onThemeChange, palette, readableOn } from "./colour.js";
import { brief, byId, make, throttled, typeset } from "./dom.js";

const SIDES = ["left", "right"];
const CURVES = ["steps", "reward", "error", "updates"];
const JUDGED_BY = { steps: "steps", reward: "reward", rmsve_inner: "error" }; // the chart of each metric
const RECENT = 10; // episodes over which the line of rewards is a mean, because single rewards are often 0 or 1
const BETWEEN_CHARTS = 100;
const BELOW = 16; // pixels between boards, transport and the edge of the window
const WIDE = matchMedia("(min-width: 75rem)"); // as in style.css

/** The scale of colours beneath the boards, with its numbers. */
export function showScale([low, high], view) {
  const width = high - low || 1;
  const error = view === "error";
  const stops = (error ? divergingStops : legendStops)(17).map(({ at, colour }) => `${colour} ${100 * at}%`);
  byId("ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ends = error ? [-width, width] : [low, high];
  byId("scale-low").textContent = brief(ends[0]);
  byId("scale-high").textContent = brief(ends[1]);
  const what = { values: "learned values", exact: "exact values", error: "learned minus exact values" }[view];
  byId("scale").setAttribute("aria-label", `Colour scale: ${what} from ${brief(ends[0])} to ${brief(ends[1])}`);
}

/** One sentence for each agent on its last planning. Announced to screen readers only while paused. */
export function showWords(frame) {
  frame.agents.forEach(({ credit }, side) => {
    const place = byId(`${SIDES[side]}-words`);
    place.setAttribute("aria-live", frame.playing ? "off" : "polite");
    const words = frame.at === 0 ? "Nothing has happened yet: press play." : typeset(credit.words);
    if (place.textContent !== words) place.textContent = words;
  });
}

/** Keep `--room` at the height left for boards beside their sentences and the transport. */
export function keepBoardsInView() {
  const sides = byId("sides");
  const measure = () => {
    const [board, whole] = [byId("left-board").getBoundingClientRect(), sides.getBoundingClientRect()];
    const taken = board.top + scrollY + whole.bottom - board.bottom + byId("transport").offsetHeight;
    sides.style.setProperty("--room", `${Math.floor(innerHeight - taken - BELOW)}px`);
  };
  const observer = new ResizeObserver(measure);
  const around = ["story-words", "notice", "world-form", "left-form", "right-form", "left-words", "right-words"];
  for (const id of around) observer.observe(byId(id));
  addEventListener("resize", measure);
}

/** Give both agents short, distinct names. */
export function nameAgents({ agents, config }, kinds) {
  const frames = { previous: " from s", current: " from s′" };
  const labels = [config.left, config.right].map(({ kind, frame }) => {
    const { label } = kinds.find((each) => each.name === kind);
    return label + (frames[frame] ?? "");
  });
  const names = agents.map(({ name }) => name);
  const [left, right] = [labels, names, ["left", "right"]].find(([one, other]) => one !== other);
  Object.assign(agents[0], { label: left });
  Object.assign(agents[1], { label: right });
}

/** Give both sides the colours of their agents, readable in the theme. */
export function showColours(agents) {
  const { surface } = palette();
  agents.forEach(({ colour }, side) => {
    document.documentElement.style.setProperty(`--${SIDES[side]}`, readableOn(colour, surface));
  });
}

/** The charts, and the episodes they show. */
export class Charts {
  constructor() {
    this.charts = [
      new Chart(byId("chart-steps"), { title: "Steps per episode", unit: "logarithmic scale", logarithmic: true }),
      new Chart(byId("chart-reward"), { title: "Reward per episode", recent: RECENT }),
      new Chart(byId("chart-error"), { title: "Error", unit: "against the exact values" }),
      new Chart(byId("chart-updates"), { title: "Value updates used", unit: "since the start" }),
    ];
    this.draw = throttled(() => this.#draw(), BETWEEN_CHARTS);
    this.#forget();
    onThemeChange(() => this.scene && showColours(this.scene.agents));
    WIDE.addEventListener("change", () => this.scene && this.#arrange());
  }

  /** Reset for another scene. */
  setScene(scene) {
    this.#forget();
    this.scene = scene;
    this.charts[CURVES.indexOf("error")].setOptions({ unit: scene.error });
    byId("judged").textContent = scene.judged;
    showColours(scene.agents);
    const names = scene.agents.map(({ label }, side) =>
      make("li", { "data-side": SIDES[side] }, make("span", { class: "line" }), label),
    );
    byId("key").replaceChildren(...names);
    this.#arrange();
    this.showFurther(null);
  }

  /** The chart that matters in this world comes first: beside the boards if there is room. */
  #arrange() {
    const others = CURVES.filter((name) => name !== this.#first);
    const figures = [this.#first, ...others].map((name) => byId(`chart-${name}`).parentElement);
    byId("charts").append(...figures);
    if (WIDE.matches) byId("beside").append(figures[0]);
  }

  get #first() {
    return JUDGED_BY[this.scene.metric];
  }

  /** Add the episodes that a frame brings, and move the cursor to its moment. */
  add(frame, cursor) {
    frame.agents.forEach(({ curves }, side) => {
      for (const name of CURVES) {
        curves?.[name]?.forEach((value, index) => {
          this.curves[side][name][curves.from + index] = value;
        });
      }
    });
    this.cursor = cursor;
    this.still = !frame.playing;
    this.draw();
  }

  /** Show the mean of further seeds, {done, of, agents}; null: not. */
  showFurther(further) {
    this.further = further;
    const some = further && further.done < further.of;
    byId("further-words").textContent = some ? `${further.done} of ${further.of}` : "";
    if (this.scene) this.draw();
  }

  #forget() {
    this.curves = SIDES.map(() => Object.fromEntries(CURVES.map((name) => [name, []])));
    this.cursor = null;
    this.further = null;
  }

  #draw() {
    CURVES.forEach((name, index) => {
      const series = this.scene.agents.map(({ label, colour }, side) => {
        const band = name === this.#first && this.further?.done ? this.further.agents[side] : null;
        return { name: label, colour, values: this.curves[side][name], band };
      });
      this.charts[index].setData({ series, cursor: this.cursor, length: this.scene.config.episodes });
    });
    if (!this.still) return;
    this.charts.forEach((chart, index) => {
      byId(`chart-${CURVES[index]}`).setAttribute("aria-label", chart.summary());
    });
  }
}
