/** The paper's story: a strip of numbered cards, each a link to its scene. */

import { writeAddress } from "./address.js";
import { byId, make, typeset } from "./dom.js";

/** The strip of presets; `kinds` of agents have labels, and `onOpen(preset)` is called with the chosen preset. */
export class Story {
  constructor(presets, kinds, onOpen) {
    this.presets = presets;
    this.labels = new Map(kinds.map(({ name, label }) => [name, label]));
    this.cards = new Map();
    byId("story").replaceChildren(...presets.map((preset, index) => this.#card(preset, index + 1, onOpen)));
  }

  /** Mark the card of the preset with this name and show its words; none if there is no such preset. */
  mark(name) {
    const preset = this.presets.find((each) => each.name === name);
    byId("story-words").replaceChildren(...(preset ? wordsOf(preset, this.labels) : []));
    byId("story-words").hidden = !preset;
    for (const [each, card] of this.cards) {
      if (each === name) card.setAttribute("aria-current", "true");
      else card.removeAttribute("aria-current");
    }
    this.cards.get(name)?.parentElement.parentElement.scrollTo({
      left: this.cards.get(name).offsetLeft - 16,
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
  }

  #card(preset, number, onOpen) {
    const address = writeAddress({ ...preset, at: preset.at ?? 0, story: preset.name });
    const card = make(
      "a",
      { href: address, class: "card", title: typeset(preset.sentence) },
      make("span", { class: "number", "aria-hidden": "true" }, String(number)),
      make("span", { class: "title" }, preset.title),
    );
    card.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      onOpen(preset);
    });
    this.cards.set(preset.name, card);
    return make("li", {}, card);
  }
}

/** The main point, where to look, a link to the same scene with a baseline on the left, and the measurements. */
function wordsOf(preset, labels) {
  const { sentence, look, measured } = preset;
  const toSee = make("span", { class: "look" }, typeset(` Look at ${look.replace(/(?<![.?!])$/, ".")}`));
  const summary = make("summary", {}, "measurements");
  const details = make("details", { class: "more" }, summary, make("p", { class: "note" }, typeset(`${measured}.`)));
  const main = make("p", {}, typeset(sentence), toSee);
  return preset.baseline ? [main, withBaseline(preset, labels), details] : [main, details];
}

function withBaseline({ name, config, at, speed, baseline }, labels) {
  const href = writeAddress({ config: { ...config, left: baseline }, at, speed, story: name });
  return make("a", { href, class: "baseline" }, `put ${labels.get(baseline.kind)} on the left`);
}
