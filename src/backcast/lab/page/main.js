/** The page: it shows what the session sends, and sends what the user does. */

import { mended, readAddress, withReason, writeAddress } from "./address.js";
import { Board } from "./board.js";
import { byId, throttled, typeset } from "./dom.js";
import { MazeEditor } from "./editor.js";
import { Forms } from "./forms.js";
import { widened } from "./grid.js";
import { Inspector } from "./inspector.js";
import { Charts, keepBoardsInView, nameAgents, showScale, showWords } from "./panels.js";
import { Connection } from "./socket.js";
import { Story } from "./story.js";
import { notify, setUpHelp, setUpSharing, setUpTheme, showBusy, showConnection } from "./toolbar.js";
import { Transport, listenForKeys } from "./transport.js";

const BETWEEN_ADDRESSES = 400;
const FORMS = { world: "world", seed: "world", episodes: "world", left: "left", right: "right" };

/** The state of the page; `wanted` is the last requested config, with its current moment. */
const page = {
  hello: null, scene: null, frame: null, values: null, scale: null,
  view: "values", further: false, story: null, wanted: null, asking: false, notice: null,
};
let forms, story, editor;
let framesDrawn = 0;
let reached = history.state;  // where the page is in the tab's history

const socket = new Connection({ onText: hear, onFrame: showFrame, onState: showConnection });
const send = (message) => socket.send(message);
const transport = new Transport({
  send,
  onSpeed: () => keepAddress(),
  onPlay: (play) => page.wanted && Object.assign(page.wanted, { play }),
});
const inspector = new Inspector({ ask: (state) => send({ do: "ask", state }), onAnswer: highlight });
const boards = ["left-board", "right-board"].map((id, agent) => new Board(byId(id), {
  agent,
  onHover: (state) => editor?.editing || inspector.hover(state),
  onFocus: (state) => editor?.editing || inspector.focus(state),
  onPaint: (cell) => agent === 0 && editor?.paint(cell),
  onPick: (cell) => changeCell(agent, cell),
}));
const charts = new Charts();

const addressOf = ({ scene, frame, view, further, story: told }) =>
  writeAddress({ config: scene.config, at: frame.at, speed: transport.speed, view, further, story: told });

/**
 * Write the state of the page into the address. Another scene makes an entry in the history, another moment does not. If
 * the history is elsewhere, the user has just gone back or forward, and writing would undo that.
 */
const keepAddress = throttled(() => {
  if (page.asking || !page.frame || history.state !== reached) return;
  const address = addressOf(page);
  const shown = JSON.stringify([page.scene.config, page.story]);
  const same = history.state === shown;
  const keep = same || history.state === null ? "replaceState" : "pushState";
  if (!same || address !== location.hash) history[keep](shown, "", address);
  reached = shown;
}, BETWEEN_ADDRESSES);

/**
 * Request a scene; errors are shown at the origin of the request, and the notice above the boards. A scene that was on the
 * screen when the connection was lost is opened again.
 */
function open(config, options) {
  const { at = 0, play = transport.playing, origin = "address", story: name = null, notice = null } = options;
  const { again = false } = options;
  page.wanted = { config, at, play, origin, story: name };
  page.notice = notice;
  setAsking(true);
  notify(notice);
  story?.mark(name);
  transport.setPlaying(play);
  send({ do: "open", config, at, again });
}

/** Dim the boards, which show the previous scene, while another is being opened. */
function setAsking(asking) {
  page.asking = asking;
  byId("sides").toggleAttribute("data-waiting", asking);
}

function openPreset({ name, config, at, speed }, options) {
  transport.setSpeed(speed);
  open(config, { at, origin: "story", story: name, ...options });
}

/** Open the first panel of the story if there is nothing else to show; a notice says why. */
function openFirst(notice = null) {
  openPreset(page.hello.presets[0], { play: false, notice });
}

/** Open the scene of the address, else the first panel of the story; report invalid parts and keep the rest. */
function openAddress() {
  const held = readAddress(location.hash);
  if (!held) {
    if (!page.scene) openFirst();
    return;
  }
  const notice = held.wrong?.join(" ") ?? null;
  if (!held.config.world && !held.config.left && !held.config.right) {
    if (page.scene) notify(notice);
    else openFirst(notice);
    return;
  }
  if (held.speed) transport.setSpeed(held.speed);
  setView(held.view ?? "values");
  setFurther(held.further ?? false);
  const config = mended(held.config, [], workingLike(held.config)) ?? held.config;
  open(config, { at: held.at, story: held.story, notice });
}

/** A valid config, from a panel with the same kind of world if there is one, or else with a world for these agents. */
function workingLike({ world, left, right }) {
  const { presets, worlds, kinds } = page.hello;
  const needs = [left, right].map((agent) => kinds.find(({ name }) => name === agent?.kind)?.only).find(Boolean);
  const purposeOf = (kind) => worlds.find((each) => each.kind === kind)?.purpose;
  const purpose = purposeOf(world?.kind) ?? needs;
  const like = presets.find(({ config }) => config.world.kind === world?.kind);
  const fitting = presets.find(({ config }) => purposeOf(config.world.kind) === purpose);
  return (like ?? fitting ?? presets[0]).config;
}

function hear(message) {
  const look = (answer) => inspector.show(answer);
  const heard = { hello, scene: showScene, answer: look, further: showFurther, busy: showBusy, error: fail };
  heard[message.is]?.(message);
}

function hello(message) {
  page.hello = message;
  if (!forms) {
    forms = new Forms(message, (config, origin, notice) => open(config, { origin, notice }));
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    story = new Story(message.presets, message.kinds, (preset) => openPreset(preset, { play: !still.matches }));
    editor = new MazeEditor({
      board: boards[0], canvas: byId("left-board"), limits: message.limits, paperMaze: message.maze,
      onUse: useMaze, onToggle: showEditing,
    });
    byId("version").textContent = `Backcast ${message.version}`;
  }
  if (page.wanted) open(page.wanted.config, { ...page.wanted, again: !page.asking });
  else openAddress();
}

/** Change a cell from this moment on, given by the number of real steps of each agent. */
function changeCell(side, cell) {
  const { scene, frame } = page;
  if (!frame || page.asking) return;
  const kind = boards[side].scene.layout.kinds[cell];
  const reward = byId("pick-reward").valueAsNumber;
  const to = byId("pick").value === "reward" ? reward : kind === "X" ? "." : "X";
  if (to === "X" && kind !== ".") return notify("A start or a goal cannot become a wall.");
  if (Number.isNaN(to)) return notify("Enter a reward for the cell beside “Click”.");
  if (byId("pick").value === "reward" && kind === "X") return notify("A wall cannot have a reward, because no agent can enter it.");
  const [left, right] = frame.agents.map(({ taken }) => taken);
  const earlier = (scene.config.changes ?? []).filter((each) => each[0] <= left && each[1] <= right);
  const config = { ...scene.config, changes: [...earlier, [left, right, cell, to]] };
  return open(config, { at: frame.at, origin: "click" });
}

/** Show the effect of a click on a board. */
function showPicking() {
  const what = byId("picking").hidden ? "look" : byId("pick").value;
  byId("pick-reward").hidden = what !== "reward";
  boards.forEach((board) => board.setPicking(what !== "look"));
}

/** Open a drawn maze, with the settings of the previous world that it also has. */
function useMaze(text) {
  const { config } = page.scene;
  const { keys } = page.hello.worlds.find(({ kind }) => kind === "maze");
  const kept = Object.fromEntries(Object.entries(config.world).filter(([key]) => key in keys));
  open({ ...config, changes: undefined, world: { ...kept, kind: "maze", text } }, { origin: "editor" });
}

/** The maze on the screen as text. */
function mazeText() {
  const { config, layout } = page.scene;
  const row = (_, k) => layout.kinds.slice(k * layout.width, (k + 1) * layout.width);
  return config.world.text ?? Array.from({ length: layout.height }, row).join("\n");
}

function showScene(scene) {
  nameAgents(scene, page.hello.kinds);
  page.scene = scene;
  page.frame = page.values = null;
  setAsking(false);
  page.story = page.wanted?.story ?? null;
  editor.close();
  forms.fail(null);
  forms.show(scene.config);
  transport.clear();
  story.mark(page.story);
  boards.forEach((board) => board.setScene(scene));
  charts.setScene(scene);
  inspector.setScene(scene);
  setScale(scene.range);
  byId("sides").style.setProperty("--tall", scene.layout.height / scene.layout.width);
  byId("draw-maze").hidden = !scene.layout.editable;
  byId("picking").hidden = !scene.changeable;
  showPicking();
  document.title = `${scene.agents[0].label} and ${scene.agents[1].label} in ${scene.name} · Backcast lab`;
  scene.agents.forEach(({ label }, side) => {
    const words = `${label} in ${scene.name}: values as colours. Arrow keys move from state to state.`;
    byId(["left-board", "right-board"][side]).setAttribute("aria-label", words);
  });
  if (page.wanted?.play) transport.play();
  if (page.further) send({ do: "further", on: true });
}

/** Draw a frame, then acknowledge it; a hidden page draws nothing and gets no more frames. */
function showFrame({ header, values, greedy }) {
  if (!page.scene) return;
  page.frame = header;
  page.values = values;
  showBusy(header.waits ? { about: "compiling", words: header.waits } : null);
  setScale(widened(page.scale, page.scene, header.agents.map(({ era }, side) => ({ era, values: values[side] }))));
  boards.forEach((board, side) => board.setFrame(header.agents[side], values[side], greedy[side], header));
  requestAnimationFrame(() => {
    framesDrawn += 1;
    send({ do: "drawn", frame: header.frame });
  });
  const playing = page.asking ? page.wanted.play : header.playing;
  transport.show({ ...header, playing }, page.scene.config.episodes);
  showWords(header);
  charts.add(header, header.episode);
  inspector.follow(header);
  if (page.asking || header.reaching) return;
  Object.assign(page.wanted, { at: header.at, play: header.playing });
  keepAddress();
}

function showFurther(further) {
  if (page.further) charts.showFurther(further);
}

/** Show an error where it was caused. Refused parts of an address are removed from it and reported. */
function fail({ message, about, fields = [] }) {
  const origin = about === "open" ? page.wanted?.origin : null;
  const words = origin === "address" ? withReason(page.notice, message) : message;
  showBusy(null);
  if (origin === "address") {
    const config = mended(page.wanted.config, fields, workingLike(page.wanted.config));
    if (config) {
      open(config, { ...page.wanted, notice: words });
      return;
    }
  }
  if (origin === "editor") editor.fail(message);
  else if (FORMS[origin]) forms.fail(FORMS[fields[0]?.split(".")[0]] ?? origin, message);
  else notify(words);
  if (about !== "open") return;
  setAsking(false);
  story.mark(page.story);
  transport.setPlaying(page.frame?.playing ?? false);
  const { scene: shown, frame, story: told } = page;
  if (shown) page.wanted = { ...page.wanted, config: shown.config, at: frame?.at ?? 0, story: told };
  else if (origin === "address") openFirst(words);
}

function highlight(both) {
  boards.forEach((board, side) => board.setHighlight(both[side]));
}

function setView(view) {
  page.view = view;
  byId("view").value = view;
  boards.forEach((board) => board.setView(view));
  if (page.scale) showScale(page.scale, view);
}

/** The ends of the colour scale: the range of the exact values, extended to those of the agents. */
function setScale(scale) {
  if (page.scale?.join() === scale.join()) return;
  page.scale = scale;
  boards.forEach((board) => board.setScale(scale));
  showScale(scale, page.view);
}

function setFurther(on) {
  page.further = on;
  byId("further").checked = on;
}

function showEditing(editing) {
  byId("sides").toggleAttribute("data-editing", editing);
  if (editing && transport.playing) transport.pause();
  if (!editing) byId("draw-maze").focus({ preventScroll: true });
}

byId("view").addEventListener("change", () => {
  setView(byId("view").value);
  keepAddress();
});
byId("further").addEventListener("change", () => {
  setFurther(byId("further").checked);
  send({ do: "further", on: page.further });
  charts.showFurther(null);
  keepAddress();
});
byId("pick").addEventListener("change", showPicking);
byId("draw-maze").addEventListener("click", () => editor.open(mazeText()));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("stage").focus();
});
addEventListener("popstate", () => {
  reached = history.state;
  if (page.hello) openAddress();
});
setUpTheme();
keepBoardsInView();
listenForKeys(transport, setUpHelp());
setUpSharing(() => {
  const { scene, frame } = page;
  if (!frame) return null;
  const words = frame.agents.map(({ credit }) => typeset(credit.words));
  const address = addressOf(page);
  const { hello: told, scale } = page;
  return { scene, hello: told, scale, boards, charts: charts.charts, moment: frame, words, address };
});

/** The state of the page, for tests and debugging. */
window.lab = {
  get scene() { return page.scene; },
  get frame() { return page.frame; },
  get framesDrawn() { return framesDrawn; },
  values: (side) => (page.values ? Array.from(page.values[side]) : null),
  boards,
  charts: charts.charts,
  socket,
};
