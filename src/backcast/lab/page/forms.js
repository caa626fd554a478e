/** The choosers of the world and of both agents, built from what the session says can be chosen. */

import { brief, byId, make, say } from "./dom.js";

const COMMON = {
  agent: ["frame", "alpha", "epsilon"],
  world: ["id", "levels", "n", "slip", "reward_probability", "run.seed"],
};
const COUNTERPARTS = { q: "td", td: "q", "q-lambda": "td-lambda", "td-lambda": "q-lambda", "dyna-plus": "dyna" };
const NAMES = {
  alpha: "step size α",
  alpha_model: "model’s step size αₘ",
  alpha_plan: "planning’s step size αₚ",
  epsilon: "exploration ε",
  learn: "learns from real steps too",
  frame: "plans from",
  lam: "λ",
  lam_by: "λ-model learned by",
  conditioned: "conditioned on the action",
  sample: "samples",
  top: "most likely only",
  importance: "importance weights",
  id: "environment",
  n: "states",
  discount: "discount γ",
  max_steps: "steps at most",
  reward_probability: "reward probability",
  levels: "states of each level",
  "run.seed": "seed",
  "run.episodes": "episodes",
  "world.seed": "chain’s seed",
};
const NARROW = matchMedia("(max-width: 43.99rem)"); // as in style.css
const FRAMES = { previous: "s, the previous", current: "s′, the current" };
const LIST = "\\s*\\d+\\s*(,\\s*\\d+\\s*)*";
const FRACTION = { type: "number", least: 0, most: 1 };
const WHOLE = { type: "whole", least: 0 };
const OF_WORLDS = {
  levels: { type: "list", usual: "500, 50, 5", help: "numbers with commas between them" },
  slip: { ...FRACTION, usual: 0, help: "probability with which the move is a random one" },
  reward_probability: { ...FRACTION, usual: 1, help: "otherwise the goal earns nothing" },
  discount: { ...FRACTION, help: "how much later reward counts" },
  structure: { ...FRACTION, help: "how much of the signals can be predicted" },
  "world.seed": { ...WHOLE, help: "which chain is drawn" },
  "run.seed": { ...WHOLE, help: "which chances both agents meet" },
  "run.episodes": { ...WHOLE, least: 1, help: "of a run" },
};

/** The three choosers. `onChange(config, origin)` hears of every change; origin is "world", "left" or "right". */
export class Forms {
  constructor(hello, onChange) {
    Object.assign(this, { hello, onChange, config: null, shown: {}, opened: new Set() });
    for (const origin of ["world", "left", "right"]) {
      byId(`${origin}-form`).addEventListener("submit", (event) => event.preventDefault());
    }
    NARROW.addEventListener("change", () => this.config && this.show(this.config));
  }

  /** Fill the choosers with a config. Those that show it already are left alone, and so is what one types in them. */
  show(config) {
    this.config = structuredClone(config);
    const purpose = this.#purposeOf(config.world);
    this.#refresh("world", [config.world, config.seed, config.episodes], () => this.#worldForm());
    for (const side of ["left", "right"]) {
      this.#refresh(side, [config[side], purpose], () => this.#agentForm(side, purpose));
    }
  }

  /** Show an error beside a chooser, or none. */
  fail(origin, message) {
    for (const each of ["world", "left", "right"]) {
      const place = byId(`${each}-error`);
      if (place) say(place, each === origin ? message : null);
    }
  }

  #refresh(origin, shown, build) {
    const key = JSON.stringify([shown, NARROW.matches]);
    if (this.shown[origin] === key) return;
    this.shown[origin] = key;
    const focused = document.activeElement?.id;
    const error = make("p", { id: `${origin}-error`, class: "error", role: "alert", hidden: true });
    byId(`${origin}-form`).replaceChildren(...build(), error);
    if (focused?.startsWith(`${origin}-`)) byId(focused)?.focus({ preventScroll: true });
  }

  #worldForm() {
    const { config, hello } = this;
    const world = hello.worlds.find(({ kind }) => kind === config.world.kind);
    const title = this.#title("world", hello.worlds.map(({ kind, label }) => [kind, label]), world.kind, "World");
    const keys = [...world.keys.filter((key) => key !== "text"), "discount", "run.seed", "run.episodes"];
    const fields = [...new Set(keys)].map((key) => {
      const name = key === "seed" ? "world.seed" : key;
      const choices = world.choices?.[key];
      const limits = name === "run.episodes" ? { most: hello.limits?.episodes } : {};
      const usual = OF_WORLDS[name] ?? { ...WHOLE, least: 1 };
      const spec = choices ? { type: "choice", choices } : { ...usual, ...limits };
      if (name.startsWith("run.")) return [name, this.#field("world", name, spec, (all) => all, name.slice(4))];
      return [name, this.#field("world", name, spec, (all) => all.world, key)];
    });
    return [title, ...this.#arranged("world", fields, COMMON.world)];
  }

  #agentForm(side, purpose) {
    const { hello } = this;
    const settings = this.config[side];
    const kinds = hello.kinds.filter(({ only }) => !only || only === purpose);
    const kind = hello.kinds.find(({ name }) => name === settings.kind);
    const choices = kinds.map(({ name, label }) => [name, label]);
    const title = this.#title(side, choices, kind.name, side === "left" ? "Left agent" : "Right agent");
    const fields = this.#settingsOf(kind, purpose).map((name) => {
      const spec = name === "frame" ? { ...hello.settings.frame, usual: kind.frame } : hello.settings[name];
      return [name, this.#field(side, name, spec, (all) => all[side], name)];
    });
    return [title, ...this.#arranged(side, fields, COMMON.agent, make("p", { class: "summary" }, kind.summary))];
  }

  /** The names of the settings that a kind takes in a world of this purpose. */
  #settingsOf(kind, purpose) {
    const learning = ["alpha", ...(purpose === "control" ? ["epsilon"] : []), "schedule"];
    const framed = kind.frame === "previous" || kind.frame === "current";
    const planning = kind.plans ? [...(framed ? ["frame", "learn"] : []), "alpha_model", "alpha_plan"] : [];
    const own = kind.settings.filter((name) => this.hello.settings[name]);
    return [...new Set([...planning.slice(0, 1), ...learning, ...planning.slice(1), ...own])];
  }

  #title(origin, choices, chosen, words) {
    const select = make("select", { id: `${origin}-kind`, class: "title", "aria-label": words });
    select.append(...choices.map(([value, label]) => make("option", { value, selected: value === chosen }, label)));
    select.addEventListener("change", () => this.#choose(origin, select.value));
    return make("div", { class: "who" }, origin === "world" ? "" : make("span", { class: "dot" }), select);
  }

  /** Another kind: of the settings those stay that it takes as well. */
  #choose(origin, kind) {
    if (origin === "world") {
      this.config.world = { kind, ...(kind === "gymnasium" ? { id: this.#world(kind).choices.id[0] } : {}) };
      const purpose = this.#purposeOf(this.config.world);
      for (const side of ["left", "right"]) this.#fit(side, this.config[side].kind, purpose);
    } else {
      this.#fit(origin, kind, this.#purposeOf(this.config.world));
    }
    this.#tell(origin);
  }

  #fit(side, wanted, purpose) {
    const find = (wantedKind) => this.hello.kinds.find(({ name }) => name === wantedKind);
    const fits = ({ only }) => !only || only === purpose;
    const kind = fits(find(wanted)) ? find(wanted) : find(COUNTERPARTS[wanted] ?? "backward");
    const taken = new Set(this.#settingsOf(kind, purpose));
    if (kind.name !== this.config[side].kind) taken.delete("frame"); // each kind has its own usual one
    const kept = Object.entries(this.config[side]).filter(([name]) => taken.has(name));
    this.config[side] = { kind: kind.name, ...Object.fromEntries(kept) };
  }

  #world(kind) {
    return this.hello.worlds.find((world) => world.kind === kind);
  }

  #purposeOf(world) {
    return this.#world(world.kind).purpose;
  }

  /** Common fields in a row, the others in a part that is opened on demand; on a narrow screen all are there. */
  #arranged(origin, fields, common, summary = null) {
    const isCommon = ([name]) => !NARROW.matches && common.includes(name);
    const first = fields.filter(isCommon).sort(([a], [b]) => common.indexOf(a) - common.indexOf(b));
    const rest = fields.filter((field) => !isCommon(field));
    const row = (some) => make("div", { class: "fields" }, ...some.map(([, field]) => field));
    const more = make("details", { class: "more", open: this.opened.has(origin) });
    more.append(make("summary", { id: `${origin}-more` }, NARROW.matches ? "settings" : "more settings"));
    more.append(...(NARROW.matches && summary ? [summary] : []), row(rest));
    more.addEventListener("toggle", () => this.opened[more.open ? "add" : "delete"](origin));
    if (NARROW.matches) return [more];
    return [row(first), more, ...(summary ? [summary] : [])];
  }

  /** A labelled field for one key of what `holder` finds in a config. */
  #field(origin, name, spec, holder, key) {
    const id = `${origin}-${name.replace(".", "-")}`;
    const input = (INPUTS[spec.type] ?? INPUTS.text)(id, name, spec, holder(this.config)[key]);
    input.addEventListener("change", () => {
      if (!input.reportValidity()) return;
      const value = valueOf(input, spec);
      if (value === undefined) delete holder(this.config)[key];
      else holder(this.config)[key] = value;
      this.#tell(origin);
    });
    const label = make("span", {}, NAMES[name] ?? name.replaceAll("_", " "));
    const parts = spec.type === "switch" ? [input, label] : [label, input];
    return make("label", { class: `field ${spec.type}`, title: spec.help }, ...parts);
  }

  #tell(origin) {
    const config = structuredClone(this.config);
    this.show(config);
    this.onChange(config, origin);
  }
}

const INPUTS = {
  choice: (id, name, spec, value) => {
    const select = make("select", { id });
    const chosen = value ?? spec.usual ?? null;
    if (chosen === null) select.append(make("option", { value: "" }, "usual"));
    const words = (choice) => (name === "frame" ? FRAMES[choice] ?? choice : choice);
    const option = (choice) => make("option", { value: choice, selected: choice === chosen }, words(choice));
    select.append(...spec.choices.map(option));
    return select;
  },
  switch: (id, name, spec, value) => make("input", { id, type: "checkbox", checked: value ?? spec.usual ?? false }),
  text: (id, name, spec, value) => {
    const placeholder = typeof spec.usual === "number" ? brief(spec.usual) : spec.usual ?? "usual";
    if (spec.type === "list") {
      return make("input", { id, type: "text", pattern: LIST, value: value?.join(", "), placeholder });
    }
    const limits = { min: spec.least, max: spec.most, step: spec.type === "whole" ? 1 : "any" };
    return make("input", { id, type: "number", inputmode: "decimal", value, placeholder, ...limits });
  },
};

/** What was chosen, undefined for the usual. */
function valueOf(input, spec) {
  if (spec.type === "switch") return input.checked === (spec.usual ?? false) ? undefined : input.checked;
  if (input.value.trim() === "") return undefined;
  if (spec.type === "choice") return input.value;
  return spec.type === "list" ? input.value.split(",").map(Number) : Number(input.value);
}
