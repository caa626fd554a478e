/* What is on the screen as one picture: both boards, the words, the legend, the charts, and all it takes to see it
   again. */

import { divergingStops, legendStops, palette, readableOn } from "./colour.js";
import { FONT, shortNumber } from "./grid.js";
import { inWords } from "./kinds.js";
import { momentWords } from "./transport.js";

const WIDTH = 1200;
const MARGIN = 32;
const BETWEEN = 32;
const [SMALLEST, TALLEST] = [140, 620];
const [CHART, ACROSS] = [210, 2];
const ADDRESS = 180; // characters of the address in a line
const SHARPNESS = 2;

/** Compose the picture and download it as backcast-<world>-<at>.png. */
export async function downloadPicture(onScreen) {
  const { scene, moment } = onScreen;
  const canvas = compose(onScreen);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `backcast-${scene.name.replace(/[^\w-]+/g, "-")}-${moment.at}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The picture as a canvas. */
export function compose({ scene, hello, scale, boards, charts, moment, words, address }) {
  const theme = palette();
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const column = (WIDTH - 2 * MARGIN - BETWEEN) / 2;
  const aspect = Math.max(...boards.map((board) => board.aspect));
  const tall = Math.max(SMALLEST, Math.min(TALLEST, column * aspect));
  const sentences = boards.map((_, i) => wrapped(context, words[i], column));
  const spoken = 20 * Math.max(...sentences.map((lines) => lines.length));
  const source = address.match(new RegExp(`.{1,${ADDRESS}}`, "g"));
  const plots = Math.ceil(charts.length / ACROSS) * CHART;
  const height = MARGIN + 56 + 30 + tall + 16 + spoken + 44 + plots + 24 + 15 * source.length + MARGIN / 2;
  canvas.width = WIDTH * SHARPNESS;
  canvas.height = Math.ceil(height) * SHARPNESS;
  context.scale(SHARPNESS, SHARPNESS);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, WIDTH, height);
  let y = drawHeading(context, theme, scene, hello, moment);
  boards.forEach((board, i) => {
    const x = MARGIN + i * (column + BETWEEN);
    const agent = scene.agents[i];
    const colour = readableOn(agent.colour, theme.surface);
    write(context, agent.label, x, y, { colour, weight: 600, size: 17 });
    const after = x + context.measureText(agent.label).width + 12;
    const given = scene.config[i ? "right" : "left"];
    const settings = inWords(given, hello.kinds.find(({ name }) => name === given.kind).settings);
    write(context, settings, after, y, { colour: theme.muted, size: 13, most: x + column - after });
    board.renderTo(context, x, y + 16, column, tall);
    const below = y + tall + 34;
    sentences[i].forEach((line, k) => write(context, line, x, below + 20 * k, { colour: theme.ink, size: 14 }));
  });
  y += 16 + tall + 26 + spoken;
  drawLegend(context, theme, scale, boards[0].view, y);
  drawCharts(context, charts, y + 34);
  y += 34 + plots + 16;
  source.forEach((line, k) => write(context, line, MARGIN, y + 15 * k, { colour: theme.muted, size: 11 }));
  return canvas;
}

function drawHeading(context, theme, scene, hello, moment) {
  const when = momentWords(moment, scene.config.episodes);
  const { world } = scene.config;
  const { keys } = hello.worlds.find(({ kind }) => kind === world.kind);
  write(context, scene.name, MARGIN, MARGIN + 10, { colour: theme.ink, weight: 700, size: 24 });
  const about = [when, `seed ${scene.config.seed}`, inWords(world, keys)].filter(Boolean).join(", ");
  write(context, about, MARGIN, MARGIN + 38, { colour: theme.muted, size: 14 });
  const corner = { colour: theme.muted, weight: 600, size: 15, align: "right" };
  write(context, "Backcast", WIDTH - MARGIN, MARGIN + 10, corner);
  return MARGIN + 56 + 16;
}

function drawLegend(context, theme, [low, high], view, y) {
  const isError = view === "error";
  const stops = isError ? divergingStops(64) : legendStops(64);
  const [first, last] = isError ? [low - high, high - low] : [low, high];
  const name = { values: "value", exact: "exact value", error: "error" }[view];
  const [left, width] = [MARGIN + 120, 220];
  write(context, `${name} ${shortNumber(first)}`, left - 8, y + 7, { colour: theme.muted, align: "right", size: 13 });
  stops.forEach(({ colour }, i) => {
    context.fillStyle = colour;
    context.fillRect(left + (i * width) / stops.length, y, width / stops.length + 0.5, 14);
  });
  write(context, shortNumber(last), left + width + 8, y + 7, { colour: theme.muted, size: 13 });
  const words = "Arrows: credit, from the state that informs to the state changed; dashed where the value fell";
  write(context, words, WIDTH - MARGIN, y + 7, { colour: theme.muted, align: "right", size: 13 });
}

function drawCharts(context, charts, y) {
  const width = (WIDTH - 2 * MARGIN - BETWEEN * (ACROSS - 1)) / ACROSS;
  charts.forEach((chart, i) => {
    const [row, column] = [Math.floor(i / ACROSS), i % ACROSS];
    chart.renderTo(context, MARGIN + column * (width + BETWEEN), y + row * CHART, width, CHART - 10);
  });
}

function wrapped(context, text, width) {
  context.font = `400 14px ${FONT}`;
  const lines = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function write(context, text, x, y, { colour, weight = 400, size, align = "left", most }) {
  context.font = `${weight} ${size}px ${FONT}`;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y, most);
}
