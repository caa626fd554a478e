/** Time: play and pause, steps and episodes, speed, and a scrubber over the past. */

import { brief, byId, throttled, whole } from "./dom.js";

const SLOWEST = 0.5;
const FASTEST = 100000;

/** Steps per second at a position of the speed slider, 0 … 100. */
export function speedAt(position) {
  const speed = SLOWEST * (FASTEST / SLOWEST) ** (position / 100);
  return Number(speed.toPrecision(2));
}

/** The position of the speed slider for a number of steps per second. */
export function positionOf(speed) {
  const bounded = Math.min(FASTEST, Math.max(SLOWEST, speed));
  return Math.round((100 * Math.log(bounded / SLOWEST)) / Math.log(FASTEST / SLOWEST));
}

/** A moment in words, such as "episode 7 of 50, step 12". */
export function momentWords(frame, episodes) {
  if (frame.at === 0) return `episode 1 of ${whole(episodes)}, before the first step`;
  const episode = `episode ${whole(frame.episode + 1)} of ${whole(episodes)}`;
  return `${episode}, step ${whole(frame.step)}${frame.finished ? ", the end" : ""}`;
}

/** The transport bar; `send` sends a message, `onSpeed` and `onPlay` are called when speed or playing change. */
export class Transport {
  constructor({ send, onSpeed, onPlay }) {
    Object.assign(this, { send, onSpeed, onPlay, frame: null, speed: 10, playing: false, scrubbing: false });
    this.scrubber = byId("scrubber");
    this.slider = byId("speed");
    this.setSpeed(this.speed);
    const clicks = {
      "to-start": () => this.toStart(),
      back: () => this.back(),
      play: () => this.toggle(),
      step: () => this.step(),
      episode: () => this.episode(),
      "to-end": () => this.toEnd(),
    };
    for (const [id, action] of Object.entries(clicks)) byId(id).addEventListener("click", action);
    this.slider.addEventListener("input", () => this.changeSpeed(speedAt(Number(this.slider.value))));
    this.#listenToScrubber();
  }

  /** Play if paused, pause if playing; at the end play from the start again. */
  toggle() {
    if (this.playing) this.pause();
    else {
      if (this.#over) this.send({ do: "seek", at: 0 });
      this.play();
    }
  }

  /** Play on from here. */
  play() {
    this.setPlaying(true);
    this.onPlay(true);
    this.send({ do: "play", speed: this.speed });
  }

  /** Stop here. */
  pause() {
    this.setPlaying(false);
    this.onPlay(false);
    this.send({ do: "pause" });
  }

  /** One tick forward. */
  step() {
    this.#go({ do: "step" });
  }

  /** One tick back. */
  back() {
    if (this.frame?.at > 0) this.#go({ do: "seek", at: this.frame.at - 1 });
  }

  /** To the end of this episode, or of the next. */
  episode() {
    this.#go({ do: "episode" });
  }

  /** To the start. */
  toStart() {
    this.#go({ do: "seek", at: 0 });
  }

  /** To the end of the run. */
  toEnd() {
    this.#go({ do: "end" });
  }

  /** Faster (2) or slower (-2), by positions of the slider. */
  nudge(positions) {
    this.changeSpeed(speedAt(Math.min(100, Math.max(0, positionOf(this.speed) + positions))));
  }

  /** Show this speed and, while playing, use it. */
  changeSpeed(speed) {
    this.setSpeed(speed);
    if (this.playing) this.send({ do: "play", speed });
    this.onSpeed(speed);
  }

  /** Show this speed. */
  setSpeed(speed) {
    this.speed = speed;
    const words = `${brief(speed)} ${speed === 1 ? "step" : "steps"} a second`;
    byId("speed-words").textContent = `${brief(speed)} steps/s`;
    this.slider.value = positionOf(speed);
    this.slider.setAttribute("aria-valuetext", words);
  }

  /** Show no moment until the next frame, which is of another scene. */
  clear() {
    this.frame = null;
    byId("moment").textContent = "starting the agents…";
    this.scrubber.value = 0;
    this.scrubber.style.setProperty("--part", 0);
  }

  /** Show the moment of a frame. */
  show(frame, episodes) {
    this.frame = frame;
    this.setPlaying(frame.playing);
    const words = momentWords(frame, episodes);
    const moment = byId("moment");
    if (moment.textContent !== words) moment.textContent = words;
    this.scrubber.max = Math.max(frame.furthest, 1);
    if (!this.scrubbing) this.scrubber.value = frame.at;
    this.scrubber.style.setProperty("--part", frame.at / Math.max(frame.furthest, 1));
    this.scrubber.setAttribute("aria-valuetext", words);
    for (const id of ["step", "episode", "to-end"]) byId(id).setAttribute("aria-disabled", this.#over);
    for (const id of ["to-start", "back"]) byId(id).setAttribute("aria-disabled", frame.at === 0);
  }

  /** Whether the run is over. */
  get #over() {
    return this.frame !== null && this.frame.finished && this.frame.at >= this.frame.furthest;
  }

  #go(message) {
    if (this.playing) this.pause();
    this.send(message);
  }

  /** Show whether it is playing. */
  setPlaying(playing) {
    this.playing = playing;
    const [label, icon] = playing ? ["Pause", "pause"] : this.#over ? ["Play again", "again"] : ["Play", "play"];
    if (byId("play").getAttribute("aria-label") === label) return;
    byId("play").setAttribute("aria-label", label);
    byId("play").title = `${label} (space)`;
    byId("play-icon").setAttribute("href", `#icon-${icon}`);
  }

  #listenToScrubber() {
    const seek = throttled(() => this.send({ do: "seek", at: Number(this.scrubber.value) }), 40);
    this.scrubber.addEventListener("input", () => {
      if (this.playing) this.pause();
      this.scrubbing = true;
      seek();
    });
    this.scrubber.addEventListener("change", () => {
      this.scrubbing = false;
    });
  }
}

/** Control the transport by keys, except while typing; the question mark calls `onHelp`. */
export function listenForKeys(transport, onHelp) {
  const actions = {
    " ": () => transport.toggle(),
    ArrowLeft: () => transport.back(),
    ArrowRight: () => transport.step(),
    e: () => transport.episode(),
    Home: () => transport.toStart(),
    End: () => transport.toEnd(),
    "+": () => transport.nudge(4),
    "=": () => transport.nudge(4),
    "-": () => transport.nudge(-4),
    "−": () => transport.nudge(-4),
    "?": onHelp,
  };
  document.addEventListener("keydown", (event) => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !actions[key]) return;
    if (belongsToElement(key, event.target)) return;
    event.preventDefault();
    actions[key]();
  });
}

/** Whether the key means something to the element that has the focus. */
function belongsToElement(key, target) {
  if (!(target instanceof Element)) return false;
  if (document.querySelector("dialog[open]")) return true;
  if (target.matches("input[type=range]")) return ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key);
  if (target.matches("input[type=checkbox]")) return key === " ";
  if (target.matches("input, textarea, select")) return true;
  return key === " " && target.closest("button, summary") !== null;
}
