/** The controls around the boards: theme, help, notices, and export. */

import { byId, say, whole } from "./dom.js";
import { downloadPicture } from "./picture.js";

const REMEMBERED = "backcast-theme";

/** Light, dark or as the system; stored by the browser if it allows that. */
export function setUpTheme() {
  const select = byId("theme");
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  select.value = recall() ?? "auto";
  apply(select.value);
  select.addEventListener("change", () => {
    apply(select.value);
    remember(select.value);
  });
}

/** The help dialog; returns a function that opens it. */
export function setUpHelp() {
  const dialog = byId("help");
  const open = () => dialog.open || dialog.showModal();
  byId("help-button").addEventListener("click", open);
  for (const each of document.querySelectorAll("dialog")) {
    each.addEventListener("click", (event) => event.target === each && each.close());
  }
  return open;
}

/** Show the state of the connection. */
export function showConnection(state, words) {
  const place = byId("connection");
  place.dataset.state = state;
  place.textContent = words;
}

/** Show that long work is in progress; null: no longer. */
export function showBusy(message) {
  if (message) {
    showConnection("busy", busyWords(message));
  } else if (byId("connection").dataset.state === "busy") {
    showConnection("open", "connected");
  }
}

/** The work in progress, in words. */
function busyWords({ about, at, words }) {
  if (about === "running") return `running… step ${whole(at)}`;
  if (about === "compiling") return words ? `${words}; slower until then` : "starting the agents…";
  return words || "opening…";
}

/** Show a notice above the boards, or none. */
export function notify(words) {
  say(byId("notice-words"), words);
  byId("notice").hidden = !words;
}

/** The buttons that copy and download; `onScreen()` gives what `compose` takes, or null. */
export function setUpSharing(onScreen) {
  byId("notice-close").addEventListener("click", () => notify(null));
  const copies = { "copy-python": ["python", "Python"], "copy-toml": ["toml", "study TOML"] };
  for (const [id, [key, name]] of Object.entries(copies)) {
    byId(id).addEventListener("click", () => onScreen() && copy(onScreen().scene[key], name));
  }
  byId("picture").addEventListener("click", async () => {
    if (!onScreen()) return;
    await downloadPicture(onScreen());
    tell("Downloaded.");
  });
}

async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`Copied as ${name}.`);
  } catch {
    byId("text-title").textContent = `Copy as ${name}`;
    byId("text-area").value = text;
    byId("text-dialog").showModal();
    byId("text-area").focus();
    byId("text-area").select();
  }
}

let fading = null;

function tell(words) {
  byId("told").textContent = words;
  clearTimeout(fading);
  fading = setTimeout(() => (byId("told").textContent = ""), 4000);
}

function recall() {
  try {
    const theme = localStorage.getItem(REMEMBERED);
    return ["auto", "light", "dark"].includes(theme) ? theme : null;
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(REMEMBERED, theme);
  } catch {
    // a browser that stores nothing shows the theme until the page is closed
  }
}
