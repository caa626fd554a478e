import assert from "node:assert/strict";
import { test } from "node:test";

import { mended, readAddress, withReason, writeAddress } from "../../src/backcast/lab/page/address.js";

const AGENTS = { left: { kind: "forward" }, right: { kind: "backward" } };
const MAZE = { kind: "maze", text: "S.#\n..G" };
const ALL = "world.kind=maze&left.kind=q&right.kind=q";

test("a page is written so that a person can read it", () => {
  const config = { world: MAZE, left: { kind: "forward", alpha: 0.5, learn: false }, right: { kind: "q" }, seed: 3, episodes: 20 };
  assert.equal(
    writeAddress({ config, at: 7, speed: 10, view: "error", further: true, story: "channelling" }),
    "#world.kind=maze&world.text=S.X/..G&left.kind=forward&left.alpha=0.5&left.learn=false&right.kind=q" +
      "&seed=3&episodes=20&at=7&speed=10&view=error&further=true&story=channelling",
  );
});

test("what is the default or missing is left out", () => {
  const config = { world: { kind: "chain", seed: null }, left: { kind: "td", learn: true }, right: { kind: "td" }, seed: 0 };
  const address = "#world.kind=chain&left.kind=td&right.kind=td&seed=0";
  assert.equal(writeAddress({ config, view: "values", further: false }), address);
});

test("what is written is read again", () => {
  const worlds = [
    { ...MAZE, text: "S.X\n..G", slip: 0.25, later: [100, "SX.\n..G"] },
    { kind: "chain", levels: [500, 50, 5] },
    { kind: "chain", levels: [4] },
    { kind: "mine", sizes: [4], Beta_2: 0.5 },
    { kind: "gymnasium", id: "FrozenLake-v1 & more=?#%" },
  ];
  for (const world of worlds) {
    const page = { config: { world, ...AGENTS, seed: 2, episodes: 9 }, at: 4, speed: 0.5, view: "exact", further: true };
    assert.deepEqual(readAddress(writeAddress(page)), page);
  }
});

test("changes of cells are written in short", () => {
  const changes = [[12, 10, 5, "X"], [12, 10, 6, "."], [40, 41, 7, -0.5]];
  const page = { config: { world: MAZE, ...AGENTS, seed: 2, episodes: 9, changes }, at: 4, speed: 1 };
  const address = writeAddress(page);
  assert.match(address, /&changes=12:10:5:X,12:10:6:\.,40:41:7:-0\.5&at=4/);
  assert.deepEqual(readAddress(address).config.changes, changes);
  const { config, wrong } = readAddress(`#${ALL}&changes=1:2:X`);
  assert.equal(config.changes, undefined);
  assert.deepEqual(wrong, ["The address has changes=1:2:X; expected four parts, such as 12:10:5:X."]);
});

test("no fragment is no page", () => {
  assert.equal(readAddress(""), null);
  assert.equal(readAddress("#"), null);
});

test("moments are whole, speeds need not be", () => {
  const page = readAddress(`${writeAddress({ config: { world: MAZE, ...AGENTS } })}&at=3.7&speed=2.5`);
  assert.deepEqual([page.at, page.speed], [3, 2.5]);
});

test("what cannot be read is named, and what can be read is kept", () => {
  const wrong = (fragment) => readAddress(`#${ALL}&${fragment}`).wrong;
  assert.deepEqual(wrong("at=-3"), ["The address has at=-3; a number, 0 or more, is expected."]);
  assert.deepEqual(wrong("seed="), ["The address has seed=; a number, 0 or more, is expected."]);
  assert.deepEqual(wrong("view=nice"), ["The address has view=nice; allowed are values, exact, error."]);
  assert.deepEqual(wrong("story=%E0%A4%A"), ["The address has story=%E0%A4%A, which cannot be read."]);
  for (const name of ["left", "world.of-kind", "world.__proto__", "world.a.b", "__proto__.kind", "colour"]) {
    assert.match(wrong(`${name}=1`)[0], new RegExp(`^The address has “${name}”, which is unknown; allowed are world\\.…`));
  }
  const page = readAddress("#world.kind=maze&left.kind=q&left.alpha=0.5&seed=nine&at=7");
  assert.deepEqual(page.config, { world: { kind: "maze" }, left: { kind: "q", alpha: 0.5 } });
  assert.equal(page.at, 7);
  assert.deepEqual(page.wrong, [
    "The address has seed=nine; a number, 0 or more, is expected.", "The address has no right.kind.",
  ]);
});

test("what is refused of an address is left out, and taken from what works where it is needed", () => {
  const working = { world: { kind: "maze" }, left: { kind: "q" }, right: { kind: "td" }, seed: 1 };
  const config = { world: { kind: "maze", slip: 2 }, left: { kind: "forward", alpha: 9 }, right: { kind: "no" }, seed: -1 };
  assert.deepEqual(mended(config, ["world.slip", "left.alpha", "right.kind", "seed"], working), {
    world: { kind: "maze" }, left: { kind: "forward" }, right: { kind: "td" },
  });
  assert.deepEqual(mended({ world: { kind: "maze" } }, [], working), { world: { kind: "maze" }, left: { kind: "q" }, right: { kind: "td" } });
  const without = mended(config, ["left"], working);
  assert.deepEqual([without.left, mended(without, ["left"], working).left], [{ kind: "forward" }, { kind: "q" }]);
  assert.equal(mended(working, ["left"], working), null);
  assert.equal(mended(working, [], working), null);
});

test("what was refused is introduced once, and each reason given once", () => {
  const first = withReason("The address has foo.", "right.kind: did you mean 'q'?");
  assert.equal(first, "The address has foo. The address cannot be opened as it is. right.kind: did you mean 'q'?");
  const second = withReason(first, "left: no");
  assert.equal(second, `${first} left: no.`);
  assert.equal(withReason(second, "left: no"), second);
  assert.equal(withReason(null, "left: no"), "The address cannot be opened as it is. left: no.");
});
