/** Small helpers for making and finding elements. Words are always set as text, never as HTML. */

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** A new element with attributes and children; `null` children and attributes that are null or false are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Show text in an element, or hide the element if there is none. */
export function say(element, words) {
  element.textContent = words ?? "";
  element.hidden = !words;
}

/** A throttled function: it runs at most once in this time, finally with the last arguments. */
export function throttled(action, milliseconds) {
  let last = -Infinity;
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    const wait = last + milliseconds - performance.now();
    const run = () => {
      last = performance.now();
      action(...given);
    };
    if (wait <= 0) run();
    else timer = setTimeout(run, wait);
  };
}

/** A number in few characters: three significant digits, thousands in groups. */
export function brief(number) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  if (Math.abs(number) >= 1000) return whole(Math.round(number));
  if (number === 0) return "0";
  const tiny = Math.abs(number) < 0.001;
  return typeset(tiny ? number.toExponential(1) : String(Number(number.toPrecision(3))));
}

/** A whole number with its thousands in groups. */
export const whole = (number) => typeset(number.toLocaleString("en"));

/** Plain text with typographic apostrophes and minus signs. */
export function typeset(words) {
  return words.replace(/(?<=\w)'(?=\w)/g, "’").replace(/(?<!\w)-(?=\d)|(?<=\de)-(?=\d)/g, "−");
}

export const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
