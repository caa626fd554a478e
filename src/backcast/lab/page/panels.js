/** What is shown about a scene beside the boards: the colour scale, the sentences, and the charts over the episodes. */

import { Chart } from "./charts.js";
import { divergingStops, legendStops, onThemeChange, palette, readableOn } from "./colour.js";
import { brief, byId, make, throttled } from "./dom.js";

const SIDES = ["left", "right"];
const CURVES = ["steps", "error", "updates"];
const BETWEEN_CHARTS = 100;

/** The scale of colours beneath the boards, with its numbers. */
export function showScale(scene, view) {
  const [low, high] = scene.range;
  const width = high - low || 1;
  const error = view === "error";
  const stops = (error ? divergingStops : legendStops)(17).map(({ at, colour }) => `${colour} ${100 * at}%`);
  byId("ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ends = error ? [-width, width] : [low, high];
  byId("scale-low").textContent = brief(ends[0]).replace("-", "−");
  byId("scale-high").textContent = brief(ends[1]).replace("-", "−");
  const what = { values: "learned values", exact: "exact values", error: "learned minus exact values" }[view];
  byId("scale").setAttribute("aria-label", `Colour scale: ${what} from ${brief(ends[0])} to ${brief(ends[1])}`);
}

/** One sentence for each agent: what its planning just did. Read aloud only while time stands still. */
export function showWords(frame) {
  frame.agents.forEach(({ credit }, side) => {
    const place = byId(`${SIDES[side]}-words`);
    place.setAttribute("aria-live", frame.playing ? "off" : "polite");
    const words = frame.at === 0 ? "Nothing has happened yet: press play." : credit.words;
    if (place.textContent !== words) place.textContent = words;
  });
}

/** Give both agents names that tell them apart in few words. */
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

/** The three charts, and the episodes they show. */
export class Charts {
  constructor() {
    this.charts = [
      new Chart(byId("chart-steps"), { title: "Steps per episode", logarithmic: true }),
      new Chart(byId("chart-error"), { title: "Error", unit: "against the exact values" }),
      new Chart(byId("chart-updates"), { title: "Value updates used", unit: "since the start" }),
    ];
    this.draw = throttled(() => this.#draw(), BETWEEN_CHARTS);
    this.#forget();
    onThemeChange(() => this.scene && showColours(this.scene.agents));
  }

  /** Begin anew, with another scene. */
  setScene(scene) {
    this.#forget();
    this.scene = scene;
    this.charts[1].setOptions({ unit: scene.error });
    showColours(scene.agents);
    const names = scene.agents.map(({ label }, side) =>
      make("li", { "data-side": SIDES[side] }, make("span", { class: "line" }), label),
    );
    byId("key").replaceChildren(...names);
    this.showFurther(null);
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
    const metric = this.scene.metric === "steps" ? "steps" : "error";
    CURVES.forEach((name, index) => {
      const series = this.scene.agents.map(({ label, colour }, side) => {
        const band = name === metric && this.further?.done ? this.further.agents[side] : null;
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
