/* What is on the screen as one picture: both boards, the words, the legend and the charts. */

import { divergingStops, legendStops, palette, readableOn } from "./colour.js";
import { FONT, shortNumber } from "./grid.js";
import { momentWords } from "./transport.js";

const WIDTH = 1200;
const MARGIN = 32;
const BETWEEN = 32;
const [SMALLEST, TALLEST] = [140, 620];
const CHART = 210;
const SHARPNESS = 2;

/** Composes the picture and offers it as backcast-<world>-<at>.png. */
export async function downloadPicture({ scene, boards, charts, moment, words }) {
  const canvas = compose({ scene, boards, charts, moment, words });
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `backcast-${scene.name.replace(/[^\w-]+/g, "-")}-${moment.at}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The picture as a canvas. */
export function compose({ scene, boards, charts, moment, words }) {
  const theme = palette();
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  const column = (WIDTH - 2 * MARGIN - BETWEEN) / 2;
  const aspect = Math.max(...boards.map((board) => board.aspect));
  const tall = Math.max(SMALLEST, Math.min(TALLEST, column * aspect));
  const sentences = boards.map((_, i) => wrapped(context, words?.[i] ?? "", column));
  const spoken = 20 * Math.max(...sentences.map((lines) => lines.length));
  const height = MARGIN + 56 + 30 + tall + 16 + spoken + 44 + (charts.length ? CHART + 8 : 0) + MARGIN / 2;
  canvas.width = WIDTH * SHARPNESS;
  canvas.height = Math.ceil(height) * SHARPNESS;
  context.scale(SHARPNESS, SHARPNESS);
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, WIDTH, height);
  let y = drawHeading(context, theme, scene, moment);
  boards.forEach((board, i) => {
    const x = MARGIN + i * (column + BETWEEN);
    const agent = scene.agents[i];
    const colour = readableOn(agent.colour, theme.surface);
    write(context, agent.label ?? agent.name, x, y, { colour, weight: 600, size: 17 });
    board.renderTo(context, x, y + 16, column, tall);
    const below = y + tall + 34;
    sentences[i].forEach((line, k) => write(context, line, x, below + 20 * k, { colour: theme.ink, size: 14 }));
  });
  y += 16 + tall + 26 + spoken;
  drawLegend(context, theme, scene.range, boards[0].view, y);
  drawCharts(context, charts, y + 34);
  return canvas;
}

function drawHeading(context, theme, scene, moment) {
  const when = momentWords(moment, scene.config.episodes);
  write(context, scene.name, MARGIN, MARGIN + 10, { colour: theme.ink, weight: 700, size: 24 });
  write(context, `${when}, seed ${scene.config.seed}`, MARGIN, MARGIN + 38, { colour: theme.muted, size: 14 });
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
  const width = (WIDTH - 2 * MARGIN - BETWEEN * (charts.length - 1)) / Math.max(1, charts.length);
  charts.forEach((chart, i) => chart.renderTo(context, MARGIN + i * (width + BETWEEN), y, width, CHART));
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

function write(context, text, x, y, { colour, weight = 400, size, align = "left" }) {
  context.font = `${weight} ${size}px ${FONT}`;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
