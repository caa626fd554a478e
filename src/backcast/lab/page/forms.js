/** The forms for the world and both agents, built from the descriptions that the session sends. */

import { byId, make, say, typeset } from "./dom.js";
import { labelled, startOf } from "./fields.js";
import { asInForm, fitting, settingsOf } from "./kinds.js";

const COMMON = {
  agent: ["frame", "alpha", "epsilon"],
  world: [
    ...["id", "levels", "n", "states", "actions", "branching", "size", "walls", "step", "slip", "reward_probability"],
    "run.seed",
  ],
};
const NARROW = matchMedia("(max-width: 43.99rem)"); // as in style.css
const OF_RUNS = {
  seed: { label: "seed", type: "whole", least: 0, help: "seed of the random numbers of both agents" },
  episodes: { label: "episodes", type: "whole", least: 1, help: "episodes in a run" },
};

/**
 * The three forms. `onChange(config, origin, notice)` is called on every change. `origin` is "world", "left" or "right";
 * `notice` says what else had to change, if anything.
 */
export class Forms {
  constructor(hello, onChange) {
    Object.assign(this, { hello, onChange, config: null, shown: {}, opened: new Set(), worlds: new Map() });
    for (const origin of ["world", "left", "right"]) {
      byId(`${origin}-form`).addEventListener("submit", (event) => event.preventDefault());
    }
    NARROW.addEventListener("change", () => this.config && this.#fill(this.config));
  }

  /** Fill the forms with a config. Forms that show it already keep what is being typed. */
  show(config) {
    this.worlds.set(config.world.kind, config.world);
    this.#fill(config);
  }

  #fill(config) {
    this.config = structuredClone(config);
    const purpose = this.#purposeOf(config.world);
    this.#refresh("world", [config.world, config.seed, config.episodes], () => this.#worldForm());
    for (const side of ["left", "right"]) {
      this.#refresh(side, [config[side], purpose], () => this.#agentForm(side, purpose));
    }
  }

  /** Show an error beside a form, or none. */
  fail(origin, message) {
    for (const each of ["world", "left", "right"]) {
      const place = byId(`${each}-error`);
      if (place) say(place, each === origin && message ? asInForm(message, this.#table(origin)) : null);
    }
  }

  /** The settings of a form, by name. */
  #table(origin) {
    if (origin === "world") return { ...this.#world(this.config.world.kind).keys, ...OF_RUNS };
    return this.hello.kinds.find(({ name }) => name === this.config[origin].kind).settings;
  }

  /** Rebuild a form unless it already shows these values; errors in its fields are removed. */
  #refresh(origin, shown, build) {
    const key = JSON.stringify([shown, NARROW.matches]);
    const isWrong = byId(`${origin}-form`).querySelector("[aria-invalid=true]") !== null;
    if (this.shown[origin] === key && !isWrong) return;
    this.shown[origin] = key;
    const focused = document.activeElement?.id;
    const error = make("p", { id: `${origin}-error`, class: "error", role: "alert", hidden: true });
    byId(`${origin}-form`).replaceChildren(...build(), error);
    if (focused?.startsWith(`${origin}-`)) byId(focused)?.focus({ preventScroll: true });
  }

  #worldForm() {
    const { config, hello } = this;
    const world = hello.worlds.find(({ kind }) => kind === config.world.kind);
    const kinds = hello.worlds.map(({ kind, label }) => [kind, typeset(label)]);
    const title = this.#title("world", kinds, world.kind, "World");
    const ofWorld = Object.entries(world.keys).map(([key, spec]) => {
      const name = key === "seed" ? "world.seed" : key;
      return [name, this.#field("world", name, spec, (all) => all.world, key)];
    });
    const ofRun = Object.entries(OF_RUNS).map(([key, spec]) => {
      const name = `run.${key}`;
      return [name, this.#field("world", name, { ...spec, most: hello.limits[key] }, (all) => all, key)];
    });
    const needed = Object.keys(world.keys).filter((key) => world.keys[key].needed && !COMMON.world.includes(key));
    return [title, ...this.#arranged("world", [...ofWorld, ...ofRun], [...needed, ...COMMON.world])];
  }

  #agentForm(side, purpose) {
    const { hello } = this;
    const settings = this.config[side];
    const kinds = hello.kinds.filter(({ only }) => !only || only === purpose);
    const kind = hello.kinds.find(({ name }) => name === settings.kind);
    const choices = kinds.map(({ name, label }) => [name, label]);
    const summary = typeset(kind.summary);
    const title = this.#title(side, choices, kind.name, side === "left" ? "Left agent" : "Right agent", summary);
    if (settings.learn === false) title.append(make("span", { class: "tag" }, "learning off"));
    const fields = settingsOf(kind, purpose).map(([name, spec]) => {
      return [name, this.#field(side, name, spec, (all) => all[side], name)];
    });
    return [title, ...this.#arranged(side, fields, COMMON.agent, make("p", { class: "note" }, summary))];
  }

  #title(origin, choices, chosen, words, summary = null) {
    const select = make("select", { id: `${origin}-kind`, class: "title", "aria-label": words, title: summary });
    select.append(...choices.map(([value, label]) => make("option", { value, selected: value === chosen }, label)));
    select.addEventListener("change", () => this.#choose(origin, select.value));
    const dot = origin === "world" ? null : make("span", { class: "dot" });
    return make("div", { class: "who", "data-place": origin }, dot, select);
  }

  /** Switch to another kind: a world with its last settings; an agent with the settings that both kinds have. */
  #choose(origin, kind) {
    let notice = null;
    if (origin === "world") {
      const keys = Object.entries(this.#world(kind).keys).filter(([, { needed }]) => needed);
      const fresh = Object.fromEntries(keys.map(([key, spec]) => [key, startOf(spec)]));
      this.config.world = structuredClone(this.worlds.get(kind) ?? { kind, ...fresh });
      notice = this.#fitBoth();
    } else {
      this.#fit(origin, kind, this.#purposeOf(this.config.world));
    }
    this.#tell(origin, notice);
  }

  /** Give both sides a kind that works in the world; return a sentence on what had to change, if anything. */
  #fitBoth() {
    const purpose = this.#purposeOf(this.config.world);
    const notices = ["left", "right"].map((side) => this.#fit(side, this.config[side].kind, purpose));
    return [...new Set(notices.filter(Boolean))].join(" ") || null;
  }

  /** Give a side the requested kind, or one that works for the purpose; then return a sentence that says so. */
  #fit(side, wanted, purpose) {
    const { kind, notice } = fitting(this.hello.kinds, wanted, purpose);
    const taken = new Set(settingsOf(kind, purpose).map(([name]) => name));
    if (kind.name !== this.config[side].kind) taken.delete("frame"); // each kind has its own default
    const kept = Object.entries(this.config[side]).filter(([name]) => taken.has(name));
    this.config[side] = { kind: kind.name, ...Object.fromEntries(kept) };
    return notice;
  }

  #world(kind) {
    return this.hello.worlds.find((world) => world.kind === kind);
  }

  /** The purpose of a world; if its number of actions can be set, prediction for 1 and control for more. */
  #purposeOf(world) {
    const { purpose, keys } = this.#world(world.kind);
    const actions = world.actions ?? keys.actions?.usual;
    if (actions === undefined) return purpose;
    return actions === 1 ? "prediction" : "control";
  }

  /** Common fields in a row, the others in a part that can be opened; on a narrow screen, all of them there. */
  #arranged(origin, fields, common, summary = null) {
    const isCommon = ([name]) => !NARROW.matches && common.includes(name);
    const first = fields.filter(isCommon).sort(([a], [b]) => common.indexOf(a) - common.indexOf(b));
    const rest = fields.filter((field) => !isCommon(field));
    const row = (some) => make("div", { class: "fields" }, ...some.map(([, field]) => field));
    const more = make("details", { class: "more", open: this.opened.has(origin) });
    more.append(make("summary", { id: `${origin}-more` }, NARROW.matches ? "settings" : "more settings"));
    more.append(...(summary ? [summary] : []), row(rest));
    more.addEventListener("toggle", () => this.opened[more.open ? "add" : "delete"](origin));
    return NARROW.matches ? [more] : [row(first), more];
  }

  /** A field for one key of what `holder` finds in a config. */
  #field(origin, name, spec, holder, key) {
    const id = `${origin}-${name.replace(".", "-")}`;
    return labelled({ id, spec, value: holder(this.config)[key] }, (value) => {
      const purpose = this.#purposeOf(this.config.world);
      if (value === undefined) delete holder(this.config)[key];
      else holder(this.config)[key] = value;
      this.#tell(origin, purpose === this.#purposeOf(this.config.world) ? null : this.#fitBoth());
    });
  }

  #tell(origin, notice = null) {
    const { kind, ...settings } = this.config.world;
    const { kind: before, ...had } = this.worlds.get(kind) ?? {};
    if (kind !== before || JSON.stringify(settings) !== JSON.stringify(had)) delete this.config.changes; // of another world
    const config = structuredClone(this.config);
    this.#fill(config);
    this.onChange(config, origin, notice);
  }
}
