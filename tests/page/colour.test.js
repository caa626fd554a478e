import assert from "node:assert/strict";
import { test } from "node:test";

import * as colour from "../../src/backcast/lab/page/colour.js";

/** Contrast as WCAG 2 defines it, of two colours "rgb(r, g, b)" or "#rrggbb". */
function contrast(...colours) {
  const [dark, light] = colours.map(luminance).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(text) {
  const parts = text.startsWith("#") ? text.slice(1).match(/../g).map((digits) => parseInt(digits, 16)) : text.match(/\d+/g);
  const [r, g, b] = parts.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const stops = Array.from({ length: 41 }, (_, i) => i / 40);

test("values go from viridis' first colour to its last, and beyond the scale nothing changes", () => {
  assert.equal(colour.colourOf(-1, -1, 3), "rgb(68, 1, 84)");
  assert.equal(colour.colourOf(3, -1, 3), "rgb(253, 231, 37)");
  assert.equal(colour.colourOf(-9, -1, 3), colour.colourOf(-1, -1, 3));
  assert.equal(colour.colourOf(9, -1, 3), colour.colourOf(3, -1, 3));
});

test("larger values are lighter", () => {
  const lights = stops.map((value) => luminance(colour.colourOf(value, 0, 1)));
  for (let i = 1; i < lights.length; i++) assert.ok(lights[i] > lights[i - 1], `at ${stops[i]}`);
});

test("errors below the truth are blue, above it orange, and the same size is equally far from the middle", () => {
  assert.equal(colour.divergingColourOf(-2, 2), "rgb(23, 74, 134)");
  assert.equal(colour.divergingColourOf(2, 2), "rgb(156, 74, 0)");
  const [red, , blue] = colour.divergingColourOf(0, 2).match(/\d+/g).map(Number);
  assert.ok(Math.abs(red - blue) < 6);
});

test("what is no number is grey, and a scale of one value has one colour", () => {
  for (const value of [NaN, Infinity, -Infinity]) assert.equal(colour.colourOf(value, 0, 1), "rgb(154, 160, 166)");
  assert.equal(colour.divergingColourOf(NaN, 1), "rgb(154, 160, 166)");
  assert.equal(colour.colourOf(5, 5, 5), colour.colourOf(0.502, 0, 1));
  assert.equal(colour.colourOf(4, 5, 5), colour.colourOf(0, 0, 1));
  assert.equal(colour.colourOf(6, 5, 5), colour.colourOf(1, 0, 1));
});

test("a legend has the colours of the values beside it", () => {
  for (const { at, colour: shown } of colour.legendStops(9)) assert.equal(shown, colour.colourOf(at, 0, 1));
  for (const { at, colour: shown } of colour.divergingStops(9)) assert.equal(shown, colour.divergingColourOf(2 * at - 1, 1));
  assert.deepEqual(colour.legendStops(3).map(({ at }) => at), [0, 0.5, 1]);
});

test("ink can be read on every colour of both scales", () => {
  for (const value of stops) {
    for (const behind of [colour.colourOf(value, 0, 1), colour.divergingColourOf(2 * value - 1, 1)]) {
      const ink = colour.inkOnColour(behind).replace(/^#fff$/, "#ffffff");
      assert.ok(contrast(ink, behind) >= 4.5, `${ink} on ${behind}: ${contrast(ink, behind)}`);
    }
  }
});

test("a colour is moved only as far as the background asks for", () => {
  assert.equal(colour.readableOn("#0072b2", "#ffffff"), "rgb(0, 114, 178)");
  for (const [name, behind, enough] of [["#0072b2", "#10161c", 6], ["#d55e00", "#10161c", 6], ["#f0e442", "#ffffff", 3.5]]) {
    const seen = colour.readableOn(name, behind);
    assert.ok(contrast(seen, behind) >= enough - 0.05, `${seen} on ${behind}`);
    assert.ok(contrast(seen, behind) < enough + 1.5, `${seen} on ${behind} is further than needed`);
  }
});

test("colours fade whichever way they are written", () => {
  assert.equal(colour.faded("#0a141e", 0.5), "rgba(10, 20, 30, 0.5)");
  assert.equal(colour.faded("#abc", 1), "rgba(170, 187, 204, 1)");
  assert.equal(colour.faded("rgb(1, 2, 3)", 0), "rgba(1, 2, 3, 0)");
});
