import assert from "node:assert/strict";
import { test } from "node:test";

import { colourOf, divergingColourOf } from "../../src/backcast/lab/page/colour.js";
import { hubOf } from "../../src/backcast/lab/page/credit.js";
import { Fit, sceneIn, shading, shortNumber, widened } from "../../src/backcast/lab/page/grid.js";

const GRID = { shape: "grid", width: 3, height: 2, x: [0, 1, 2, 0, 1, 2], y: [0, 0, 0, 1, 1, 1], actions: ["up", "down", "left"] };
const NODES = { shape: "graph", width: 4, height: 1, radius: 0.1, x: [0, 2, 4], y: [0, 1, 0], actions: [] };

test("a layout lies in the middle of its rectangle and does not leave it", () => {
  for (const [width, height] of [[300, 200], [900, 100], [50, 700]]) {
    const fit = new Fit(GRID, width, height);
    const [first, last] = [fit.at(0, 0), fit.at(3, 2)];
    assert.ok(first.x >= 0 && first.y >= 0 && last.x <= width && last.y <= height);
    assert.ok(Math.abs(first.x - (width - last.x)) < 1e-9 && Math.abs(first.y - (height - last.y)) < 1e-9);
  }
});

test("every state is found at its own centre, in every size and beside the corner of the canvas", () => {
  for (const layout of [GRID, NODES]) {
    const fit = new Fit(layout, 400, 300, 2, 30, 40);
    layout.x.forEach((_, state) => {
      const { x, y } = fit.centre(state);
      assert.equal(fit.stateAt(x, y), state);
    });
    assert.equal(fit.stateAt(0, 0), null);
  }
});

test("cells are squares on whole pixels of the screen that do not overlap", () => {
  const fit = new Fit(GRID, 311, 207, 2);
  for (const { left, top, width, height } of fit.boxes) {
    for (const length of [left, top, width, height]) assert.ok(Number.isInteger(length * 2));
    assert.ok(Math.abs(width - height) <= 0.5);
  }
  assert.ok(fit.boxes[0].left + fit.boxes[0].width <= fit.boxes[1].left);
});

test("a mask of bits names actions", () => {
  const fit = new Fit(GRID, 300, 200);
  assert.deepEqual([0, 1, 5, 7].map((mask) => fit.actionsIn(mask)), [[], ["up"], ["up", "left"], ["up", "down", "left"]]);
});

test("numbers are short", () => {
  const written = { "-": NaN, 0: 0.0004, "0.001": 0.0006, "0.12": 0.1234, "−1.50": -1.5, "12.3": 12.34, 100: 99.6, 1235: 1234.6 };
  for (const [words, value] of Object.entries(written)) assert.equal(shortNumber(value), words.replace(/^-$/, "–"));
});

test("a world that has changed has its later walls, rewards and truth", () => {
  const scene = { truth: [1], layout: { kinds: ".", x: [0] }, later: [{ kinds: "X", rewards: [[0, 1]], truth: [null] }] };
  assert.equal(sceneIn(scene, 0), scene);
  const layout = { kinds: "X", x: [0], rewards: [[0, 1]] };
  assert.deepEqual(sceneIn(scene, 1), { ...scene, truth: [null], layout });
  assert.deepEqual(scene.truth, [1]);
});

test("a scale widens to what was learned, up to three times the exact range, and not for walls and goals", () => {
  const scene = { range: [0, 1], truth: [0.5, 1, null, 0], layout: { kinds: "S..G" } };
  const boards = (...values) => [{ values, era: 0 }];
  assert.deepEqual(widened([0, 1], scene, boards(-0.5, 1.5, 9, 9)), [-0.5, 1.5]);
  assert.deepEqual(widened([0, 1], scene, boards(-7, 7, 0, 0)), [-1, 2]);
  assert.deepEqual(widened([0, 1], scene, boards(NaN, 0.5, 0, 0)), [0, 1]);
});

test("a view shows values, exact ones or their difference", () => {
  const [truth, learned] = [[1, null, 2], [1.5, 7, 1]];
  const shown = (view) => [...shading(view, truth, [0, 4], learned).values];
  assert.deepEqual(shown("values"), [1.5, NaN, 1]);
  assert.deepEqual(shown("exact"), [1, NaN, 2]);
  assert.deepEqual(shown("error"), [0.5, NaN, -1]);
  assert.equal(shading("values", truth, [0, 4], learned).colour(1), colourOf(1, 0, 4));
  assert.equal(shading("error", truth, [0, 4], learned).colour(1), divergingColourOf(1, 4));
});

test("credit has a hub if one state was planned from", () => {
  assert.equal(hubOf({ arrows: [{}], origins: [0] }), 0);
  assert.equal(hubOf({ arrows: [{}], origins: [0, 1] }), null);
  assert.equal(hubOf({ arrows: [], origins: [0] }), null);
});
