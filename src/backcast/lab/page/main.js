/** The page: what the session sends is shown, what one does is sent to the session. */

import { readAddress, writeAddress } from "./address.js";
import { Board } from "./board.js";
import { byId, throttled } from "./dom.js";
import { MazeEditor } from "./editor.js";
import { Forms } from "./forms.js";
import { Inspector } from "./inspector.js";
import { Charts, showScale, showWords } from "./panels.js";
import { Connection } from "./socket.js";
import { Story } from "./story.js";
import { notify, setUpHelp, setUpSharing, setUpTheme } from "./toolbar.js";
import { Transport, listenForKeys } from "./transport.js";

const BETWEEN_ADDRESSES = 400;

/** What is on the screen, and what should be: `wanted` is the last config asked for, with the moment it has come to. */
const page = { hello: null, scene: null, frame: null, values: null, view: "values", further: false, story: null, wanted: null, asking: false };
let forms, story, editor;
let framesDrawn = 0;

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
}));
const charts = new Charts();

const keepAddress = throttled(() => {
  if (!page.scene || !page.frame) return;
  const { view, further, frame, scene } = page;
  const address = writeAddress({ config: scene.config, at: frame.at, speed: transport.speed, view, further, story: page.story });
  if (address !== location.hash) history.replaceState(null, "", address);
}, BETWEEN_ADDRESSES);

/** Ask for a scene; whoever asked (origin) is told if it cannot be. */
function open(config, { at = 0, play = transport.playing, origin = "address", story: name = null } = {}) {
  page.wanted = { config, at, play, origin, story: name };
  page.asking = true;
  transport.setPlaying(play);
  send({ do: "open", config, at });
}

function openPreset(preset, play) {
  if (preset.speed) transport.setSpeed(preset.speed);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  open(preset.config, { at: preset.at ?? 0, play: play && !still, origin: "story", story: preset.name });
}

/** Open what the address holds, else the first panel of the story. */
function openAddress() {
  try {
    const held = readAddress(location.hash);
    if (held) {
      if (held.speed) transport.setSpeed(held.speed);
      setView(held.view ?? "values");
      setFurther(held.further ?? false);
      open(held.config, { at: held.at, story: held.story });
      return;
    }
  } catch (error) {
    notify(error.message);
  }
  if (!page.scene) openPreset(page.hello.presets[0], false);
}

function hear(message) {
  const heard = { hello, scene: showScene, answer: (answer) => inspector.show(answer), further: showFurther, busy, error: fail };
  heard[message.is]?.(message);
}

function hello(message) {
  page.hello = message;
  if (!forms) {
    forms = new Forms(message, (config, origin) => open(config, { origin }));
    story = new Story(message.presets, (preset) => openPreset(preset, true));
    const use = (text) => open({ ...page.scene.config, world: { ...page.scene.config.world, text } }, { origin: "editor" });
    editor = new MazeEditor({
      board: boards[0], canvas: byId("left-board"), limits: message.limits, paperMaze: message.maze, onUse: use, onToggle: showEditing,
    });
    byId("version").textContent = `Backcast ${message.version}`;
  }
  if (page.wanted) open(page.wanted.config, page.wanted);
  else openAddress();
}

function showScene(scene) {
  for (const agent of scene.agents) agent.label ??= agent.name;
  page.scene = scene;
  page.frame = page.values = null;
  page.asking = false;
  page.story = page.wanted?.story ?? null;
  if (page.wanted?.origin !== "fallback") notify(null);
  editor.close();
  forms.fail(null);
  forms.show(scene.config);
  story.mark(page.story);
  boards.forEach((board) => board.setScene(scene));
  charts.setScene(scene);
  inspector.setScene(scene);
  showScale(scene, page.view);
  byId("sides").style.setProperty("--tall", scene.layout.height / scene.layout.width);
  byId("draw-maze").hidden = !scene.layout.editable;
  document.title = `${scene.agents[0].label} and ${scene.agents[1].label} in ${scene.name} · Backcast lab`;
  scene.agents.forEach(({ label }, side) => {
    const words = `${label} in ${scene.name}: the values of the states as colours. Arrow keys move from state to state.`;
    byId(["left-board", "right-board"][side]).setAttribute("aria-label", words);
  });
  if (page.wanted?.play) transport.play();
  if (page.further) send({ do: "further", on: true });
}

/** Show a frame and say so once it is drawn; a page that nobody sees draws nothing, and is sent nothing more. */
function showFrame({ header, values, greedy }) {
  if (!page.scene) return;
  page.frame = header;
  page.values = values;
  busy(null);
  boards.forEach((board, side) => board.setFrame(header.agents[side], values[side], greedy[side], header));
  requestAnimationFrame(() => {
    framesDrawn += 1;
    send({ do: "drawn", frame: header.frame });
  });
  transport.show(page.asking ? { ...header, playing: page.wanted.play } : header, page.scene.config.episodes);
  showWords(header);
  charts.add(header, header.episode);
  inspector.follow(header);
  if (!page.asking) Object.assign(page.wanted, { at: header.at, play: header.playing });
  keepAddress();
}

function showFurther(further) {
  if (page.further) charts.showFurther(further);
}

function busy(message) {
  const place = byId("connection");
  if (message) {
    const words = { compiling: "compiling…", running: message.at === undefined ? "running…" : `running… step ${message.at.toLocaleString("en")}` };
    place.dataset.state = "busy";
    place.textContent = words[message.about] ?? "working…";
  } else if (place.dataset.state === "busy") {
    showConnection("open", "connected");
  }
}

function showConnection(state, words) {
  const place = byId("connection");
  place.dataset.state = state;
  place.textContent = words;
}

/** Show an error where it was caused. What cannot be opened at first is replaced by the first panel of the story. */
function fail({ message, about }) {
  const origin = about === "open" ? page.wanted?.origin : null;
  busy(null);
  if (origin === "editor") editor.fail(message);
  else if (["world", "left", "right"].includes(origin)) forms.fail(origin, message);
  else notify(origin === "address" ? `The address cannot be opened. ${message}` : message);
  if (about !== "open") return;
  page.asking = false;
  transport.setPlaying(page.frame?.playing ?? false);
  if (page.scene) page.wanted = { ...page.wanted, config: page.scene.config, at: page.frame?.at ?? 0, story: page.story };
  else if (origin === "address") open(page.hello.presets[0].config, { origin: "fallback", story: page.hello.presets[0].name });
}

function highlight(both) {
  boards.forEach((board, side) => board.setHighlight(both[side]));
}

function setView(view) {
  page.view = view;
  byId("view").value = view;
  boards.forEach((board) => board.setView(view));
  if (page.scene) showScale(page.scene, view);
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
byId("draw-maze").addEventListener("click", () => editor.open(page.scene.config.world.text ?? page.hello.maze));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("stage").focus();
});
addEventListener("hashchange", () => page.hello && openAddress());
setUpTheme();
listenForKeys(transport, setUpHelp());
setUpSharing(() => page.frame && {
  scene: page.scene, boards, charts: charts.charts, moment: page.frame, words: page.frame.agents.map(({ credit }) => credit.words),
});

/** For tests and for the curious: what is on the screen. */
window.lab = {
  get scene() { return page.scene; },
  get frame() { return page.frame; },
  get framesDrawn() { return framesDrawn; },
  values: (side) => (page.values ? Array.from(page.values[side]) : null),
  boards,
  charts: charts.charts,
  socket,
};
