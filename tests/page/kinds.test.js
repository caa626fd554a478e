import assert from "node:assert/strict";
import { test } from "node:test";

import { startOf } from "../../src/backcast/lab/page/fields.js";
import { asInForm, fitting, inWords, settingsOf } from "../../src/backcast/lab/page/kinds.js";

const KINDS = [
  { name: "td", label: "TD", only: "prediction", counterpart: "q", settings: { alpha: { symbol: "α" } } },
  { name: "q", label: "Q-learning", only: "control", counterpart: "td", settings: {} },
  { name: "mine", label: "mine", only: "control", counterpart: null, settings: {} },
  { name: "theirs", label: "theirs", only: "prediction", counterpart: "not there", settings: {} },
  { name: "forward", label: "forward", only: null, settings: { alpha: {}, epsilon: { only: "control" } } },
];
const taken = (wanted, purpose) => {
  const { kind, notice } = fitting(KINDS, wanted, purpose);
  return [kind.name, notice];
};

test("a kind that works stays, and its counterpart takes the place of one that does not", () => {
  assert.deepEqual(taken("td", "prediction"), ["td", null]);
  assert.deepEqual(taken("forward", "control"), ["forward", null]);
  assert.deepEqual(taken("q", "prediction"), ["td", "Q-learning works only in control; it was replaced by TD."]);
});

test("where there is no counterpart, the first kind that works everywhere takes its place", () => {
  assert.deepEqual(taken("mine", "prediction"), ["forward", "Mine works only in control; it was replaced by forward."]);
  assert.deepEqual(taken("theirs", "control"), ["forward", "Theirs works only in prediction; it was replaced by forward."]);
});

test("settings are those that make a difference in a world of this purpose", () => {
  const names = (purpose) => settingsOf(KINDS[4], purpose).map(([name]) => name);
  assert.deepEqual(names("control"), ["alpha", "epsilon"]);
  assert.deepEqual(names("prediction"), ["alpha"]);
});

test("what was set is said by symbols where there are some", () => {
  const given = { kind: "td", learn: false, alpha: 0.1, alpha_model: 0.5, text: "S.G" };
  assert.equal(inWords(given, KINDS[0].settings), "α 0.1, alpha model 0.5, learning off");
  assert.equal(inWords({ kind: "chain", levels: [3, 2] }, {}), "levels 3,2");
});

test("what has to be given begins with what is allowed", () => {
  assert.equal(startOf({ choices: [["a", "the first"], ["b", "b"]], usual: null }), "a");
  assert.equal(startOf({ usual: 7, least: 2 }), 7);
  assert.equal(startOf({ usual: null, least: 2 }), 2);
});

test("messages speak of fields as the form does", () => {
  const table = { alpha: { label: "step size α" }, odd: {} };
  assert.equal(asInForm("left.alpha: 0 given, expected more than 0", table), "Step size α: 0 given, expected more than 0");
  assert.equal(asInForm("world.odd: 1 given; right.alpha: 2", table), "world.odd: 1 given; step size α: 2");
  assert.equal(asInForm("left: nothing fits", table), "left: nothing fits");
});
