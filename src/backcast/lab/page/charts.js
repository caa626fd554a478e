/* A chart that grows while the agents run: one line per agent over the episodes. */

import { faded, onThemeChange, palette, readableOn } from "./colour.js";
import { FONT } from "./grid.js";

const LEFT = 44;
const TOP = 30;
const BOTTOM = 24;
const DASHES = [[], [6, 3]]; // the second line is dashed: colour alone does not tell them apart
const SHARPEST = 2;
const DOT = 1.4;
const LINE = 14;

export class Chart {
  #canvas;
  #context;
  #title;
  #unit;
  #logarithmic;
  #recent;
  #data = { series: [], cursor: null, length: 1 };
  #request = 0;

  /** With `recent`, lines are means over this number of episodes, and single episodes are dots. */
  constructor(canvas, { title, unit = "", logarithmic = false, recent = 1 }) {
    [this.#canvas, this.#context] = [canvas, canvas.getContext("2d")];
    [this.#title, this.#unit, this.#logarithmic] = [title, unit, logarithmic];
    this.#recent = recent;
    if (recent > 1) this.#unit = `mean of the last ${recent}`;
    canvas.style.display = "block";
    canvas.style.width = "100%";
    canvas.setAttribute("role", "img");
    new ResizeObserver(() => this.draw()).observe(canvas);
    onThemeChange(() => this.draw());
  }

  setData(data) {
    const smooth = ({ values, ...line }) => ({ ...line, values: means(values, this.#recent), single: values });
    this.#data = this.#recent > 1 ? { ...data, series: data.series.map(smooth) } : data;
    this.draw();
  }

  /** Change the words or the scale of the chart. */
  setOptions({ title = this.#title, unit = this.#unit, logarithmic = this.#logarithmic }) {
    [this.#title, this.#unit, this.#logarithmic] = [title, unit, logarithmic];
    this.draw();
  }

  draw() {
    if (this.#request) return;
    this.#request = requestAnimationFrame(() => {
      this.#request = 0;
      this.#paint();
    });
  }

  /** The chart in words, for screen readers. */
  summary() {
    const parts = this.#data.series.filter(({ values }) => values.length).map(({ name, values }) => {
      const told = (i) => `${Number.isFinite(values[i]) ? tickText(values[i]) : "nothing"} in episode ${i + 1}`;
      return `${name}: ${values.length > 1 ? `${told(0)}, ` : ""}${told(values.length - 1)}`;
    });
    const about = [this.#title, this.#unit].filter(Boolean).join(", ");
    return `${about}. ${parts.length ? parts.join("; ") : "Nothing yet"}.`;
  }

  renderTo(context, x, y, width, height) {
    const theme = palette();
    const plot = this.#plot(x, y, width, height);
    drawTitle(context, theme, plot, x, y, this.#title, this.#unit);
    drawAxes(context, theme, plot, this.#data.length);
    if (this.#data.series.every(({ values, band }) => !values.length && !band)) {
      drawNothing(context, theme, plot);
      return;
    }
    const lines = this.#data.series.map((line, i) => {
      return { ...line, dash: DASHES[i % 2], colour: readableOn(line.colour, theme.surface) };
    });
    lines.forEach((line) => line.band && drawBand(context, plot, line));
    drawCursor(context, theme, plot, this.#data.cursor);
    lines.forEach((line) => line.single && drawDots(context, plot, line));
    lines.forEach((line) => drawLine(context, plot, line.values, line, 1.8));
    drawNames(context, theme, plot, lines, x + width);
  }

  #paint() {
    const width = this.#canvas.clientWidth;
    if (!width) return;
    const height = Math.round(Math.max(150, Math.min(230, width * 0.5)));
    const ratio = Math.min(SHARPEST, devicePixelRatio || 1);
    this.#canvas.style.height = `${height}px`;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(height * ratio);
    this.#context.scale(ratio, ratio);
    this.renderTo(this.#context, 0, 0, width, height);
    const words = this.summary();
    if (this.#canvas.getAttribute("aria-label") !== words) this.#canvas.setAttribute("aria-label", words);
  }

  /** The axes: x(episode from 1), y(value), and the ticks of y. */
  #plot(left, top, width, height) {
    const area = { left: left + LEFT, top: top + TOP, width: width - LEFT - 12, height: height - TOP - BOTTOM };
    const logarithmic = this.#logarithmic;
    const [low, high, ticks] = scaleOf(this.#data.series, logarithmic);
    const along = logarithmic ? Math.log : (v) => v;
    const share = (v) => (along(Math.max(v, low)) - along(low)) / (along(high) - along(low));
    const last = Math.max(2, this.#data.length);
    return {
      ...area,
      ticks,
      x: (episode) => area.left + (area.width * (episode - 1)) / (last - 1),
      y: (value) => area.top + area.height * (1 - Math.min(1, share(value))),
      shows: (value) => Number.isFinite(value) && (!logarithmic || value > 0),
    };
  }
}

/** The least and the largest value to show, and the ticks between. */
function scaleOf(series, logarithmic) {
  let [low, high] = [Infinity, -Infinity];
  for (const { values, single, band } of series) {
    for (const row of [single ?? values, band?.mean ?? [], band?.high ?? []]) { // a band may end below what is possible
      for (const value of row) {
        if (!Number.isFinite(value) || (logarithmic && value <= 0)) continue;
        [low, high] = [Math.min(low, value), Math.max(high, value)];
      }
    }
  }
  if (low > high) [low, high] = logarithmic ? [1, 10] : [0, 1];
  return logarithmic ? logarithmicScale(low, high) : linearScale(Math.min(0, low), high);
}

function linearScale(low, high) {
  const step = roundStep((high - low || 1) / 4);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(Math.ceil(high / step - 1e-9), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  return [first * step, last * step, ticks];
}

function logarithmicScale(low, high) {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high * 1.0001))];
  const multiples = to - from <= 1 ? [1, 2, 5] : to - from === 2 ? [1, 3] : [1];
  const every = Math.ceil((to - from) / 5);
  const ticks = [];
  for (let power = from; power <= to; power += every) for (const m of multiples) ticks.push(m * 10 ** power);
  const below = Math.max(...ticks.filter((tick) => tick <= low * 1.0001), 10 ** from);
  const above = Math.min(...ticks.filter((tick) => tick >= high * 0.9999), 10 ** to);
  const end = above > below ? above : below * 10;
  return [below, end, ticks.filter((tick) => tick >= below && tick <= end)];
}

/** The smallest of 1, 2 and 5 times a power of ten that is not below the given number. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((multiple) => multiple * power).find((step) => step >= least * 0.999);
}

/** The running mean over each value and those just before it; missing where a value is not a number. */
function means(values, recent) {
  return values.map((value, i) => {
    const known = values.slice(Math.max(0, i - recent + 1), i + 1).filter(Number.isFinite);
    return Number.isFinite(value) ? known.reduce((sum, each) => sum + each, 0) / known.length : null;
  });
}

function drawTitle(context, theme, plot, x, y, title, unit) {
  write(context, title, x + 2, y + 12, { colour: theme.ink, weight: 600, size: 13 });
  const after = x + 2 + context.measureText(title).width + 6;
  const room = plot.left + plot.width - after;
  if (unit && room > 60) write(context, unit, after, y + 12.5, { colour: theme.muted, most: room });
}

function drawAxes(context, theme, plot, length) {
  context.lineWidth = 1;
  context.strokeStyle = theme.faint;
  context.beginPath();
  for (const tick of plot.ticks) {
    const y = Math.round(plot.y(tick)) + 0.5;
    context.moveTo(plot.left, y);
    context.lineTo(plot.left + plot.width, y);
    write(context, tickText(tick), plot.left - 6, y, { colour: theme.muted, align: "right" });
  }
  context.stroke();
  const base = plot.top + plot.height + 13;
  const step = Math.max(1, roundStep((length - 1) / Math.max(2, plot.width / 90)));
  const ticks = [1];
  for (let episode = step; episode <= length; episode += step) {
    if (plot.x(episode) - plot.x(1) > 70) ticks.push(episode);
  }
  for (const episode of ticks) {
    const text = episode === 1 ? "episode 1" : tickText(episode);
    write(context, text, plot.x(episode), base, { colour: theme.muted, align: episode === 1 ? "left" : "center" });
  }
}

function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return `${+value.toPrecision(3)}`.replace("-", "−");
}

function drawNothing(context, theme, plot) {
  const [x, y] = [plot.left + plot.width / 2, plot.top + plot.height / 2];
  write(context, "nothing yet", x, y, { colour: theme.muted, align: "center", size: 12 });
}

function drawCursor(context, theme, plot, cursor) {
  if (cursor === null || cursor === undefined || cursor < 0) return;
  const x = Math.round(plot.x(cursor + 1)) + 0.5;
  context.strokeStyle = faded(theme.ink, 0.4);
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, plot.top - 4);
  context.lineTo(x, plot.top + plot.height);
  context.stroke();
}

/** The points of a line; if there are more than pixels, the smallest and the largest of each pixel. */
function pointsOf(plot, values) {
  const points = [];
  const bunch = Math.max(1, Math.floor(values.length / (2 * Math.max(1, plot.width))));
  for (let i = 0; i < values.length; i += bunch) {
    const part = Array.from(values.slice(i, i + bunch)).filter(plot.shows);
    if (!part.length) continue;
    points.push([plot.x(i + 1), plot.y(Math.max(...part))]);
    if (bunch > 1) points.push([plot.x(i + part.length), plot.y(Math.min(...part))]);
  }
  return points;
}

function drawLine(context, plot, values, { colour, dash }, width) {
  const points = pointsOf(plot, values);
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.setLineDash(dash);
  context.beginPath();
  points.forEach(([x, y]) => context.lineTo(x, y));
  context.stroke();
  context.setLineDash([]);
  if (points.length !== 1) return;
  context.beginPath();
  context.arc(...points[0], 2.5, 0, 2 * Math.PI);
  context.fill();
}

function drawBand(context, plot, { band, colour, dash }) {
  const [above, below] = [pointsOf(plot, band.high), pointsOf(plot, band.low)];
  context.fillStyle = faded(colour, 0.16);
  context.beginPath();
  for (const [x, y] of [...above, ...below.reverse()]) context.lineTo(x, y);
  context.fill();
  drawLine(context, plot, band.mean, { colour: faded(colour, 0.75), dash }, 1);
}

function drawDots(context, plot, { single, colour }) {
  context.fillStyle = faded(colour, 0.4);
  for (const [x, y] of pointsOf(plot, single)) {
    context.beginPath();
    context.arc(x, y, DOT, 0, 2 * Math.PI);
    context.fill();
  }
}

/** Writes each name where its line ends: to the right if there is room, else above the upper, below the lower line. */
function drawNames(context, theme, plot, lines, right) {
  context.font = `600 11px ${FONT}`;
  const ends = lines.filter(({ values }) => values.some(plot.shows)).map(({ name, colour, values }) => {
    const points = pointsOf(plot, values);
    return { name, colour, points, end: points.at(-1), length: context.measureText(name).width };
  });
  ends.sort((one, other) => one.end[1] - other.end[1]);
  const beside = ends.every(({ end, length }) => end[0] + 8 + length <= right);
  const places = ends.map(({ points, end, length }, i) => {
    if (beside) return [end[0] + 8, end[1]];
    const x = Math.max(plot.left, Math.min(right - length - 2, end[0] - length / 2));
    const heights = points.filter(([place]) => place >= x - 4).map(([, height]) => height);
    return [x, i ? Math.max(...heights, end[1]) + 11 : Math.min(...heights, end[1]) - 10];
  });
  spread(places, plot.top, plot.top + plot.height - 6);
  const style = { weight: 600, halo: theme.surface };
  ends.forEach(({ name, colour }, i) => write(context, name, ...places[i], { ...style, colour }));
}

/** Moves words, sorted from above, so that they are a line apart and between top and bottom. */
function spread(places, top, bottom) {
  const [upper, lower] = places;
  if (lower && lower[1] - upper[1] < LINE) {
    const middle = (lower[1] + upper[1]) / 2;
    [upper[1], lower[1]] = [middle - LINE / 2, middle + LINE / 2];
  }
  places.forEach((place, i) => {
    const below = places.length - 1 - i;
    place[1] = Math.max(top + i * LINE, Math.min(bottom - below * LINE, place[1]));
  });
}

function write(context, text, x, y, { colour, align = "left", weight = 400, size = 11, halo = null, most }) {
  context.font = `${weight} ${size}px ${FONT}`;
  context.textAlign = align;
  context.textBaseline = "middle";
  if (halo) {
    context.strokeStyle = halo;
    context.lineWidth = 3.5;
    context.lineJoin = "round";
    context.strokeText(text, x, y, most);
  }
  context.fillStyle = colour;
  context.fillText(text, x, y, most);
}
