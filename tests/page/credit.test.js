import assert from "node:assert/strict";
import { test } from "node:test";

import { arrowLook } from "../../src/backcast/lab/page/credit.js";

test("arrows have one scale: what others there are, and when, makes no difference", () => {
  const [whole, half, little, nothing] = [1, -0.5, 0.01, 1e-9].map((amount) => arrowLook(amount, 1, 40));
  assert.deepEqual(whole, { width: 6.4, strength: 1 });
  assert.equal(half.width, whole.width * Math.SQRT1_2);
  assert.ok(Math.abs(little.width - 0.8) < 1e-12 && nothing.width === 0.8);
  assert.ok(whole.strength >= half.strength && half.strength > little.strength && little.strength > nothing.strength);
});

test("what is beyond the range is as wide as the range, and a world without one has arrows", () => {
  assert.deepEqual(arrowLook(7, 2, 100), arrowLook(2, 2, 100));
  assert.equal(arrowLook(2, 2, 100).width, 10);
  assert.ok(Number.isFinite(arrowLook(1, 0, 40).width));
});
