/** Fields of a form: a label, an input and an error message. */

import { brief, capital, make, say } from "./dom.js";

const LIST = "\\s*\\d+\\s*(,\\s*\\d+\\s*)*";

/**
 * A labelled field for a setting with this description. `onChange(value)` is called with a valid value, undefined for the
 * default; for an invalid one, the field shows what is allowed.
 */
export function labelled({ id, spec, value }, onChange) {
  const input = (INPUTS[spec.type] ?? number)(id, spec, value);
  input.setAttribute("aria-describedby", `${id}-wrong`);
  const wrong = make("p", { id: `${id}-wrong`, class: "error", role: "alert", hidden: true });
  input.addEventListener("change", () => {
    const valid = input.checkValidity();
    say(wrong, valid ? null : capital(`${allowed(spec)}.`));
    input.setAttribute("aria-invalid", !valid);
    if (valid) onChange(valueOf(input, spec));
  });
  const named = make("label", { for: id }, spec.label);
  const parts = spec.type === "switch" ? [input, named] : [named, input];
  return make("div", { class: `field ${spec.type}`, title: spec.help }, ...parts, wrong);
}

const INPUTS = {
  choice: (id, { choices, usual }, value) => {
    const select = make("select", { id });
    const chosen = value ?? usual ?? null;
    if (chosen === null) select.append(make("option", { value: "" }, "default"));
    const option = ([choice, words]) => make("option", { value: choice, selected: choice === chosen }, words);
    select.append(...choices.map(option));
    return select;
  },
  switch: (id, { usual }, value) => make("input", { id, type: "checkbox", checked: value ?? usual ?? false }),
  list: (id, { usual }, value) =>
    make("input", { id, type: "text", pattern: LIST, value: value?.join(", "), placeholder: usual?.join(", ") }),
};

function number(id, { type, least, most, usual }, value) {
  const placeholder = typeof usual === "number" ? brief(usual) : null;
  const bounds = { min: least, max: most, step: type === "whole" ? 1 : "any" };
  return make("input", { id, type: "number", inputmode: "decimal", value, placeholder, ...bounds });
}

/** The initial value of a required field: its first choice, its default or the smallest value allowed. */
export function startOf({ choices, usual, least }) {
  return choices?.[0][0] ?? usual ?? least;
}

/** The allowed values of a field, in words. */
function allowed({ type, least, most }) {
  if (type === "list") return "whole numbers separated by commas";
  const what = type === "whole" ? "a whole number" : "a number";
  if (most === undefined) return least === undefined ? what : `${what}, ${brief(least)} or more`;
  return `${what} from ${brief(least)} to ${brief(most)}`;
}

/** The chosen value, undefined for the default. */
function valueOf(input, { type, usual }) {
  if (type === "switch") return input.checked === (usual ?? false) ? undefined : input.checked;
  if (input.value.trim() === "") return undefined;
  if (type === "choice") return input.value;
  return type === "list" ? input.value.split(",").map(Number) : Number(input.value);
}
