/** The kinds of agents that the session describes: their settings, and their counterparts. */

import { capital } from "./dom.js";

/** The settings that make a difference to a kind in a world of this purpose: [name, description] of each. */
export function settingsOf(kind, purpose) {
  return Object.entries(kind.settings).filter(([, { only }]) => !only || only === purpose);
}

/**
 * The requested kind if it works for the purpose, else its counterpart; if it has none, the first that works everywhere.
 * The notice says what replaced it.
 */
export function fitting(kinds, wanted, purpose) {
  const find = (name) => kinds.find((each) => each.name === name);
  const { only, label, counterpart } = find(wanted);
  if (!only || only === purpose) return { kind: find(wanted), notice: null };
  const kind = find(counterpart) ?? kinds.find((each) => !each.only);
  return { kind, notice: capital(`${label} works only in ${only}; it was replaced by ${kind.label}.`) };
}

/** The given settings of an agent or a world, in words: "α 0.1, ε 0.5, learning off"; `table` describes its settings. */
export function inWords({ kind, text, learn, ...settings }, table) {
  const named = (name) => table[name]?.symbol || name.replaceAll("_", " ");
  const told = Object.entries(settings).map(([name, value]) => `${named(name)} ${value}`);
  return [...told, ...(learn === false ? ["learning off"] : [])].join(", ");
}

/** A message about "left.alpha" or "world.slip" with the labels of the form; `table` has its fields. */
export function asInForm(message, table) {
  return message.replace(/(^|; )(?:left|right|world)\.(\w+)(?=:)/g, (whole, before, name) => {
    return table[name]?.label ? before + (before ? table[name].label : capital(table[name].label)) : whole;
  });
}
