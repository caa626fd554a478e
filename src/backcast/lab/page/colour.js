/* Colours: the scale of values, the scale of errors, ink that can be read on them, and the theme's own colours. */

// Viridis, 33 even stops of matplotlib's map (public domain, CC0): its steps look even, also to colour-blind eyes, and
// it has neither the grey of walls nor the orange of arrows.
const VIRIDIS = `440154 470d60 48186a 482374 472d7b 453781 424086 3e4989 3b528b 375b8d 33638d 2f6b8e 2c728e 297a8e
  26828e 23898e 21918c 1f988b 1fa088 22a785 28ae80 32b67a 3fbc73 4ec36b 5ec962 70cf57 84d44b 98d83e addc30 c2df23
  d8e219 ece51b fde725`;
const BLUE_TO_ORANGE = "174a86 3f78b5 86b0da c9dcec f6f5f2 fadbb8 f0ab63 d2761f 9c4a00";
const SHADES = 256;
const UNKNOWN = "rgb(154, 160, 166)";
const DARK_INK = "#000000"; // with white, one of both can be read on any colour: contrast 4.58 or more
const LIGHT = {
  ink: "#1d2832", muted: "#5a6772", faint: "#dfe4e9", surface: "#ffffff", page: "#f5f7f9", accent: "#0b6bb5",
  forward: "#0072b2", backward: "#d55e00", wall: "#aab4bd", focus: "#b0106e",
};

/** The colour of a value on the scale from low to high; grey if it is not a number. */
export function colourOf(value, low, high) {
  return Number.isFinite(value) ? VALUES[shade(value, low, high)] : UNKNOWN;
}

/** The colour of an error: blue below the truth, white at it, orange above. */
export function divergingColourOf(value, largest) {
  return Number.isFinite(value) ? ERRORS[shade(value, -largest, largest)] : UNKNOWN;
}

/** n colours of the scale of values, evenly from low (at 0) to high (at 1). */
export function legendStops(n) {
  return evenly(n, (at) => ({ at, colour: VALUES[shade(at, 0, 1)] }));
}

/** The same for the scale of errors, from −largest (at 0) to largest (at 1). */
export function divergingStops(n) {
  return evenly(n, (at) => ({ at, colour: ERRORS[shade(at, 0, 1)] }));
}

/** The colours of the theme, as the style sheet has them at this moment. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of Object.keys(LIGHT)) colours[name] = style.getPropertyValue(`--${name}`).trim() || LIGHT[name];
  return colours;
}

/** Calls back whenever the theme may have changed, by the system or by the document's class or data-theme. */
export function onThemeChange(callback) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
  new MutationObserver(callback).observe(document.documentElement, { attributeFilter: ["class", "data-theme"] });
}

const inks = new Map();

/** White or dark ink for a background "rgb(r, g, b)". */
export function inkOnColour(background) {
  let ink = inks.get(background);
  if (ink === undefined) {
    const behind = parse(background);
    ink = contrast(behind, [255, 255, 255]) >= contrast(behind, parse(DARK_INK)) ? "#fff" : DARK_INK;
    inks.set(background, ink);
  }
  return ink;
}

const readable = new Map();

/** A colour, moved towards white or black until it stands out from a background: on a dark one it must shine. */
export function readableOn(colour, background) {
  const key = `${colour} ${background}`;
  if (!readable.has(key)) {
    const behind = parse(background);
    const ink = inkOnColour(background);
    const [towards, enough] = [parse(ink), ink === "#fff" ? 6 : 3.5];
    let seen = parse(colour);
    for (let share = 0; share < 1 && contrast(seen, behind) < enough; share += 0.05) {
      seen = mix(parse(colour), towards, share);
    }
    readable.set(key, rgb(seen));
  }
  return readable.get(key);
}

/** A colour "#rrggbb" or "rgb(r, g, b)" with an opacity. */
export function faded(colour, opacity) {
  return `rgba(${parse(colour).join(", ")}, ${opacity})`;
}

function shade(value, low, high) {
  if (!(high > low)) return value < low ? 0 : value > high ? SHADES - 1 : SHADES / 2;
  return Math.round((SHADES - 1) * Math.min(1, Math.max(0, (value - low) / (high - low))));
}

function evenly(n, make) {
  return Array.from({ length: n }, (_, i) => make(n > 1 ? i / (n - 1) : 0.5));
}

function scale(stops) {
  const colours = stops.trim().split(/\s+/).map((digits) => parse(`#${digits}`));
  return evenly(SHADES, (at) => {
    const position = at * (colours.length - 1);
    const before = Math.min(colours.length - 2, Math.floor(position));
    return rgb(mix(colours[before], colours[before + 1], position - before));
  });
}

function parse(colour) {
  if (colour.startsWith("rgb")) return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const digits = colour.length < 6 ? [...colour.slice(1)].map((d) => d + d).join("") : colour.slice(1);
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}

function rgb(parts) {
  return `rgb(${parts.map(Math.round).join(", ")})`;
}

function mix(first, second, share) {
  return first.map((part, i) => part + share * (second[i] - part));
}

function luminance(parts) {
  const [r, g, b] = parts.map((part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(first, second) {
  const [dark, light] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const VALUES = scale(VIRIDIS);
const ERRORS = scale(BLUE_TO_ORANGE);
