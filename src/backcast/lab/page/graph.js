/* The static background of the states: the edges of a graph, and the titles of groups. */

import { FONT } from "./grid.js";

/** Draws the titles of groups and, of a graph, its edges. */
export function drawGround(context, fit, theme) {
  const { groups, edges } = fit.layout;
  for (const group of groups) drawTitle(context, fit, theme, group, roomOf(group, groups) * fit.unit);
  if (!fit.isGrid && edges.length) drawEdges(context, fit, theme);
}

/** How wide a title may be so that it does not touch the next one. */
function roomOf(group, groups) {
  const middle = ({ x, width }) => x + width / 2;
  const beside = groups.filter((other) => other !== group && other.y === group.y);
  return 0.96 * Math.min(...beside.map((other) => Math.abs(middle(other) - middle(group))), 1e6);
}

function drawTitle(context, fit, theme, group, room) {
  const height = Math.min(13, Math.max(8, fit.unit * 0.62));
  const { x, y } = fit.at(group.x + group.width / 2, group.y);
  context.fillStyle = theme.muted;
  context.font = `600 ${height}px ${FONT}`;
  context.textAlign = "center";
  context.textBaseline = "bottom";
  const short = group.title.split(":")[0];
  context.fillText(context.measureText(group.title).width > room ? short : group.title, x, y - 2, room);
}

function drawEdges(context, fit, theme) {
  const many = fit.layout.edges.length;
  context.beginPath();
  for (const [from, to] of fit.layout.edges) {
    if (from === to) continue;
    const [start, end] = [fit.centre(from), fit.centre(to)];
    context.moveTo(start.x, start.y);
    context.lineTo(end.x, end.y);
  }
  context.strokeStyle = theme.muted;
  context.globalAlpha = Math.max(0.1, Math.min(0.6, 24 / many));
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;
}
