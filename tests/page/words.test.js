import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { brief, capital, throttled, typeset, whole } from "../../src/backcast/lab/page/dom.js";
import { readFrame } from "../../src/backcast/lab/page/socket.js";
import { momentWords, positionOf, speedAt } from "../../src/backcast/lab/page/transport.js";

test("numbers in few characters", () => {
  const written = [[null, "–"], [NaN, "–"], [0, "0"], [0.12345, "0.123"], [-2.5, "−2.5"], [999.4, "999"], [1234.5, "1,235"],
    [-1234567, "−1,234,567"], [0.00012, "1.2e−4"]];
  for (const [number, words] of written) assert.equal(brief(number), words);
  assert.equal(whole(1000000), "1,000,000");
});

test("words as they are printed", () => {
  assert.equal(typeset("it's -3, from 1-2 to 1e-4; a-b"), "it’s −3, from 1-2 to 1e−4; a-b");
  assert.equal(capital("a number."), "A number.");
});

test("a throttled action runs at once, and the last time with the last arguments", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const [heard, start] = [[], performance.now()];
  let now = start;
  mock.method(performance, "now", () => now);
  const pass = (milliseconds) => {
    now += milliseconds;
    mock.timers.tick(milliseconds);
  };
  const tell = throttled((word) => heard.push(word), 100);
  tell("first");
  assert.deepEqual(heard, ["first"]);
  pass(10);
  tell("second");
  tell("third");
  pass(89);
  assert.deepEqual(heard, ["first"]);
  pass(2);
  assert.deepEqual(heard, ["first", "third"]);
  mock.reset();
  mock.timers.reset();
});

test("the speed slider reaches from slow to fast, and its positions are those of its speeds", () => {
  assert.deepEqual([speedAt(0), speedAt(100)], [0.5, 100000]);
  for (let position = 0; position <= 100; position++) assert.equal(positionOf(speedAt(position)), position);
  assert.deepEqual([positionOf(0), positionOf(1e9)], [0, 100]);
});

test("moments in words", () => {
  assert.equal(momentWords({ at: 0, episode: 0, step: 0 }, 50), "episode 1 of 50, before the first step");
  assert.equal(momentWords({ at: 9, episode: 6, step: 1200 }, 5000), "episode 7 of 5,000, step 1,200");
  assert.equal(momentWords({ at: 9, episode: 49, step: 3, finished: true }, 50), "episode 50 of 50, step 3, the end");
});

/** A frame as lab/frames.py packs it. */
function packed(header, values, masks) {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = Math.ceil((4 + text.length) / 4) * 4;
  const frame = new Uint8Array(start + 10 * values[0].length);
  new DataView(frame.buffer).setUint32(0, text.length, true);
  frame.set(text, 4);
  frame.set(new Uint8Array(Float32Array.from(values.flat()).buffer), start);
  frame.set(masks.flat(), start + 8 * values[0].length);
  return frame.buffer;
}

test("frames are taken apart, however long their header is", () => {
  const [values, masks] = [[[1, -0.5, 0], [0.25, 8, 2]], [[1, 2, 3], [4, 15, 0]]];
  for (const name of ["", "a", "ab", "abc", "é"]) {
    const { header, values: read, greedy } = readFrame(packed({ at: 3, name }, values, masks));
    assert.deepEqual(header, { at: 3, name });
    assert.deepEqual(read.map((side) => [...side]), values);
    assert.deepEqual(greedy.map((side) => [...side]), masks);
  }
});
