/** The state of the page in the fragment of the address, in a form that people can read and change. */

const PARTS = ["world", "left", "right"];
const NUMBERS = ["seed", "episodes", "at", "speed"];
const USUAL = { learn: true };
const VIEWS = ["values", "exact", "error"];
const ALLOWED = "world.…, left.…, right.…, seed, episodes, changes, at, speed, view, further and story";
const REFUSED = "The address cannot be opened as it is.";
const CHANGE = /^\d+:\d+:\d+:(X|\.|-?\d+(\.\d+)?)$/; // steps of the left and of the right agent, cell, what it becomes

/** The fragment for the state of a page, {config, at, speed, view, further, story}; missing parts are left out. */
export function writeAddress({ config, at, speed, view, further, story }) {
  const pairs = [];
  for (const part of PARTS) {
    for (const [name, value] of Object.entries(config[part] ?? {})) {
      const said = value !== null && value !== undefined && value !== USUAL[name];
      if (said) pairs.push([`${part}.${name}`, written(name, value)]);
    }
  }
  const changes = config.changes?.map((change) => change.join(":")).join(",");
  pairs.push(["seed", config.seed], ["episodes", config.episodes], ["changes", changes || null]);
  pairs.push(["at", at], ["speed", speed]);
  pairs.push(["view", view === "values" ? null : view], ["further", further ? "true" : null], ["story", story]);
  const kept = pairs.filter(([, value]) => value !== null && value !== undefined);
  return `#${kept.map(([name, value]) => `${name}=${readable(String(value))}`).join("&")}`;
}

/**
 * The state of a page in a fragment; null if there is none. Invalid parts are left out; if there are any, `wrong` lists
 * them in sentences.
 */
export function readAddress(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text) return null;
  const page = { config: {} };
  const wrong = [];
  for (const pair of text.split("&").filter(Boolean)) {
    const [name, ...rest] = pair.split("=");
    try {
      place(page, name, decoded(name, rest.join("=")));
    } catch (error) {
      wrong.push(error.message);
    }
  }
  const missing = PARTS.filter((part) => !page.config[part]?.kind).map((part) => `no ${part}.kind`);
  if (missing.length) wrong.push(`The address has ${missing.join(" and ")}.`);
  return wrong.length ? { ...page, wrong } : page;
}

/**
 * A config whose missing or refused parts (such as "left.alpha" or "world") are taken from another, valid one; null if no
 * refused part can be replaced.
 */
export function mended(config, refused, working) {
  const result = structuredClone(config);
  for (const part of PARTS) if (!result[part]?.kind) result[part] = structuredClone(working[part]);
  for (const name of refused) {
    const [part, key] = name.split(".");
    if (PARTS.includes(part) && key && key !== "kind" && key in result[part]) delete result[part][key];
    else if (PARTS.includes(part)) result[part] = key ? structuredClone(working[part]) : plainer(result[part], working[part]);
    else delete result[part];
  }
  return JSON.stringify(result) === JSON.stringify(config) ? null : result;
}

/** A refused world or agent without its settings; if it had none, the working one. */
function plainer({ kind, ...settings }, working) {
  return Object.keys(settings).length ? { kind } : structuredClone(working);
}

/** A notice with one more reason why an address cannot be opened; the introduction and each reason are given once. */
export function withReason(notice, reason) {
  const sentence = /[.?!]$/.test(reason) ? reason : `${reason}.`;
  if (notice?.includes(sentence)) return notice;
  return [notice, notice?.includes(REFUSED) ? sentence : `${REFUSED} ${sentence}`].filter(Boolean).join(" ");
}

function place(page, name, text) {
  const [part, key] = name.split(".");
  if (PARTS.includes(part) && /^[A-Za-z]\w*$/.test(key ?? "") && name.split(".").length === 2) {
    page.config[part] = { ...page.config[part], [key]: read(key, text) };
  } else if (NUMBERS.includes(name)) {
    (name === "seed" || name === "episodes" ? page.config : page)[name] = number(name, text);
  } else if (name === "changes") {
    page.config.changes = text.split(",").map(readChange);
  } else if (name === "view") {
    if (!VIEWS.includes(text)) throw new Error(`The address has view=${text}; allowed are ${VIEWS.join(", ")}.`);
    page.view = text;
  } else if (name === "further") {
    page.further = text === "true";
  } else if (name === "story") {
    page.story = text;
  } else {
    throw new Error(`The address has “${name}”, which is unknown; allowed are ${ALLOWED}.`);
  }
}

function number(name, text) {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0) {
    throw new Error(`The address has ${name}=${text}; a number, 0 or more, is expected.`);
  }
  return name === "speed" ? value : Math.floor(value);
}

function readChange(text) {
  if (!CHANGE.test(text)) throw new Error(`The address has changes=${text}; expected four parts, such as 12:10:5:X.`);
  const [left, right, cell, to] = text.split(":");
  return [Number(left), Number(right), Number(cell), "X.".includes(to) ? to : Number(to)];
}

function decoded(name, text) {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`The address has ${name}=${text}, which cannot be read.`);
  }
}

const drawn = (maze) => maze.trimEnd().replaceAll("#", "X").replaceAll(" ", ".").replaceAll("\n", "/");

/** A maze is written with one slash between its rows, a list with commas (one number: "4,"); a change is a step and a maze. */
function written(name, value) {
  if (name === "text") return drawn(value);
  if (name === "later") return `${value[0]},${drawn(value[1])}`;
  if (Array.isArray(value)) return value.length === 1 ? `${value[0]},` : value.join(",");
  return value;
}

function read(name, text) {
  if (name === "text") return text.replaceAll("/", "\n");
  if (name === "later") {
    const [step, ...maze] = text.split(",");
    return [Number(step), maze.join(",").replaceAll("/", "\n")];
  }
  if (/^[^,]+(,[^,]+)*,$/.test(text)) return text.slice(0, -1).split(",").map(Number);
  if (name === "levels" || /^[^,]+(,[^,]+)+$/.test(text)) return text.split(",").map(Number);
  if (text === "true" || text === "false") return text === "true";
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function readable(text) {
  return encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3A", ":");
}
