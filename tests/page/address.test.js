import assert from "node:assert/strict";
import { test } from "node:test";

import { readAddress, writeAddress } from "../../src/backcast/lab/page/address.js";

const AGENTS = { left: { kind: "forward" }, right: { kind: "backward" } };
const MAZE = { kind: "maze", text: "S.#\n..G" };
const wrong = (fragment, words) => assert.throws(() => readAddress(fragment), { message: words });

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

test("no fragment is no page", () => {
  assert.equal(readAddress(""), null);
  assert.equal(readAddress("#"), null);
});

test("moments are whole, speeds need not be", () => {
  const page = readAddress(`${writeAddress({ config: { world: MAZE, ...AGENTS } })}&at=3.7&speed=2.5`);
  assert.deepEqual([page.at, page.speed], [3, 2.5]);
});

test("what cannot be read is named", () => {
  wrong("#world.kind=maze&left.kind=q", "The address has no right.kind.");
  wrong("#at=-3", "The address has at=-3; a number, 0 or more, is expected.");
  wrong("#seed=", "The address has seed=; a number, 0 or more, is expected.");
  wrong("#view=nice", "The address has view=nice; allowed are values, exact, error.");
  wrong("#story=%E0%A4%A", "The address has story=%E0%A4%A, which cannot be read.");
  for (const name of ["left", "world.of-kind", "world.__proto__", "world.a.b", "__proto__.kind", "colour"]) {
    wrong(`#${name}=1`, new RegExp(`^The address has “${name}”, which is not known; allowed are world\\.…`));
  }
});
