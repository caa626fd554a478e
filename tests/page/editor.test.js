import assert from "node:assert/strict";
import { test } from "node:test";

import { faultIn } from "../../src/backcast/lab/page/editor.js";

test("a maze is drawn with few characters, large or small", () => {
  assert.equal(faultIn(["S.x#", "s gG"], 50), null);
});

test("what was typed is quoted as it was typed", () => {
  const legend = "allowed are . floor, X or # wall, S start, G goal.";
  assert.equal(faultIn(["S..", "..q"], 50), `Line 2, column 3 is “q”; ${legend}`);
  assert.equal(faultIn(["S.💥G"], 50), `Line 1, column 3 is “💥”; ${legend}`);
});

test("lines are alike, there is one at least, and they are not too many", () => {
  assert.equal(faultIn(["", ""], 50), "Draw at least one row.");
  assert.equal(faultIn(["S.G", "."], 50), "Line 2 has 1 character, line 1 has 3.");
  assert.equal(faultIn(["S.G"], 2), "This one has 1 row and 3 columns; a maze has at most 2 of each.");
});
