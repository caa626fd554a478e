/** The connection to the session: text messages, binary frames, and reconnection. */

const SOONEST = 400;
const LATEST = 8000;
const TOO_MANY = 1013;
const IDLE = 4000;

/** A binary frame taken apart: its header, and per agent its values and the mask of its greedy actions. */
export function readFrame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const start = Math.ceil((4 + length) / 4) * 4;
  const states = (buffer.byteLength - start) / 10;
  const values = [0, 1].map((side) => new Float32Array(buffer, start + 4 * states * side, states));
  const greedy = [0, 1].map((side) => new Uint8Array(buffer, start + (8 + side) * states, states));
  return { header, values, greedy };
}

/** A WebSocket that reconnects: it waits longer after each failure, and less when the browser is online again. */
export class Connection {
  /** `onState(state, words)` is called with "connecting", "open", "lost", "refused" or "idle". */
  constructor({ onText, onFrame, onState }) {
    Object.assign(this, { onText, onFrame, onState, failures: 0, idle: false, socket: null, timer: null });
    addEventListener("online", () => this.connect());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => event.persisted && this.connect());
    for (const sign of ["pointerdown", "keydown"]) addEventListener(sign, () => this.idle && this.connect());
    this.connect();
  }

  /** Connect now, unless there is a connection. */
  connect() {
    if (this.socket && this.socket.readyState <= WebSocket.OPEN) return;
    clearTimeout(this.timer);
    this.idle = false;
    if (this.failures === 0) this.onState("connecting", "connecting…");
    const address = new URL("ws", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event) => this.#hear(event.data);
    socket.onclose = (event) => this.socket === socket && this.#lose(event);
    this.socket = socket;
  }

  /** Send a message; false if there is no connection. */
  send(message) {
    if (!this.connected) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Whether messages can be sent. */
  get connected() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Close the connection permanently. */
  close() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  /** Close the connection as a network failure would. */
  drop() {
    this.socket?.close();
  }

  #hear(data) {
    if (typeof data !== "string") {
      this.onFrame(readFrame(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.is === "hello") {
      this.failures = 0;
      this.onState("open", "connected");
    }
    this.onText(message);
  }

  #lose(event) {
    if (event.code === IDLE) {
      this.idle = true;
      this.onState("idle", "paused: click or press a key to continue");
      return;
    }
    const wait = Math.min(LATEST, SOONEST * 1.8 ** this.failures) * (0.8 + 0.4 * Math.random());
    this.failures += 1;
    if (event.code === TOO_MANY) {
      this.onState("refused", `too many sessions: ${event.reason || "close another tab"}; trying again…`);
    } else {
      this.onState("lost", `connection lost${event.reason ? ` (${event.reason})` : ""}, trying again…`);
    }
    this.timer = setTimeout(() => this.connect(), event.code === TOO_MANY ? LATEST : wait);
  }
}
