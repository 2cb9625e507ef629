// Charts of lines, areas, bars and points, drawn as SVG; no more than the page needs.

import { html, svg } from "./dom.js";
import { clock, short } from "./format.js";

const PAD = { left: 54, right: 10, top: 8, bottom: 18 };

export function colour(i) {
  return `var(--series-${(i % 8) + 1})`;
}

/** Round steps between two values, about n of them; seconds: as a clock has them. */
export function ticks(from, to, n = 4, areSeconds = false) {
  const span = to - from || 1;
  const rough = span / n;
  const unit = !areSeconds || rough < 10 ? 1 : rough < 600 ? 60 : 3600;
  const power = 10 ** Math.floor(Math.log10(rough / unit));
  const round = unit > 1 && rough < unit ? [1 / 4, 1 / 2, 1] : [1, 2, 5, 10].map((f) => f * power);
  const step = unit * (round.find((s) => s * unit >= rough) ?? rough / unit);
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to + step * 1e-6; tick += step) found.push(Math.abs(tick) < step * 1e-6 ? 0 : tick);
  return found;
}

/** Steps and what is written at each, short where that tells them apart. */
function labelled(steps, show) {
  const texts = steps.map(show);
  const areApart = new Set(texts).size === texts.length;
  return steps.map((step, i) => [step, areApart ? texts[i] : String(Number(step.toPrecision(12)))]);
}

function extent(values, withZero) {
  let [from, to] = [Infinity, -Infinity];
  for (const value of values) if (value !== null) { from = Math.min(from, value); to = Math.max(to, value); }
  if (from > to) return [0, 1];
  if (withZero && from > 0 && from < 0.6 * to) from = 0;
  return from === to ? [from - Math.abs(from) * 0.1 - (from ? 0 : 0), to + (Math.abs(to) * 0.1 || 1)] : [from, to];
}

/** series: [{name, points: [[x, y or null]]}]. showX, showY: how values are written. kind: "line" or "points". */
export function lineChart(series, { width: W = 300, height = 130, showX = short, showY = short, kind = "line", label = "" } = {}) {
  const all = series.flatMap((each) => each.points);
  const [x0, x1] = extent(all.map((p) => p[0]), false);
  const [y0, y1] = extent(all.map((p) => p[1]), kind === "line");
  const X = (x) => PAD.left + (x - x0) / (x1 - x0 || 1) * (W - PAD.left - PAD.right);
  const Y = (y) => height - PAD.bottom - (y - y0) / (y1 - y0 || 1) * (height - PAD.top - PAD.bottom);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": label });
  for (const [tick, text] of labelled(ticks(y0, y1, height > 180 ? 5 : 3), showY)) {
    picture.append(svg("line", { class: "axis", x1: PAD.left, x2: W - PAD.right, y1: Y(tick), y2: Y(tick) }),
      svg("text", { x: PAD.left - 6, y: Y(tick) + 3.5, "text-anchor": "end" }, text));
  }
  for (const [tick, text] of labelled(ticks(x0, x1, showX === clock ? 5 : W > 350 ? 4 : 3, showX === clock), showX)) {
    const isLast = X(tick) > W - 28;
    picture.append(svg("text", { x: isLast ? W - 2 : X(tick), y: height - 4, "text-anchor": isLast ? "end" : "middle" }, text));
  }
  series.forEach((each, i) => {
    if (kind === "points") {
      for (const [x, y] of each.points) if (y !== null) picture.append(svg("circle", { cx: X(x), cy: Y(y), r: 2.6, fill: colour(i), "fill-opacity": 0.7 }));
      return;
    }
    const d = way(each.points, X, Y);
    if (series.length === 1 && each.points.length > 1) {
      const [first, last] = [each.points[0], each.points.at(-1)];
      if (each.points.every((p) => p[1] !== null)) picture.append(svg("path", { class: "area", d: `${d} L ${X(last[0])} ${height - PAD.bottom} L ${X(first[0])} ${height - PAD.bottom} Z`, fill: colour(i) }));
    }
    picture.append(svg("path", { class: "line", d, stroke: colour(i) }));
  });
  if (kind === "line") picture.append(...cursor(picture, series, X, { width: W, height, showX, showY, from: x0, to: x1 }));
  return picture;
}

function way(points, X, Y) {
  let isDown = false;
  return points.map(([x, y]) => {
    if (y === null) { isDown = false; return ""; }
    const step = `${isDown ? "L" : "M"} ${X(x).toFixed(1)} ${Y(y).toFixed(1)}`;
    isDown = true;
    return step;
  }).join(" ");
}

/** A line that follows the pointer and tells the values under it. */
function cursor(picture, series, X, { width: W, height, showX, showY, from: x0, to: x1 }) {
  const line = svg("line", { class: "cursor", y1: PAD.top, y2: height - PAD.bottom, visibility: "hidden" });
  const text = svg("text", { class: "hover", y: PAD.top + 9, visibility: "hidden" });
  const show = (isShown) => [line, text].forEach((each) => each.setAttribute("visibility", isShown ? "visible" : "hidden"));
  picture.addEventListener("pointerleave", () => show(false));
  picture.addEventListener("pointermove", (event) => {
    const room = picture.getBoundingClientRect();
    const x = x0 + ((event.clientX - room.x) / room.width * W - PAD.left) / (W - PAD.left - PAD.right) * (x1 - x0);
    const near = series.map((each) => nearest(each.points, x)).filter(Boolean);
    if (!near.length) return show(false);
    const at = X(near[0][0]);
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
    text.setAttribute("x", at > W / 2 ? at - 6 : at + 6);
    text.setAttribute("text-anchor", at > W / 2 ? "end" : "start");
    text.textContent = `${showX(near[0][0])}: ${near.slice(0, 4).map((p) => showY(p[1])).join(", ")}`;
    show(true);
  });
  return [line, text];
}

function nearest(points, x) {
  let best = null;
  for (const point of points) if (best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
  return best;
}

/** bars: [{name, value}], lying, the longest first names kept short. */
export function barChart(bars, { width: W = 380, showY = short, label = "" } = {}) {
  const row = 22;
  const height = bars.length * row + 6;
  const left = 16 + 6.5 * Math.min(16, Math.max(...bars.map((bar) => bar.name.length)));
  const [from, to] = [Math.min(0, ...bars.map((b) => b.value)), Math.max(0, ...bars.map((b) => b.value))];
  const X = (v) => left + (v - from) / (to - from || 1) * (W - left - 62);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": label });
  bars.forEach((bar, i) => {
    const y = i * row + 4;
    picture.append(
      svg("text", { x: left - 8, y: y + 12, "text-anchor": "end" }, bar.name.length > 16 ? `${bar.name.slice(0, 15)}…` : bar.name),
      svg("rect", { x: Math.min(X(0), X(bar.value)), y, width: Math.max(1, Math.abs(X(bar.value) - X(0))), height: row - 7, rx: 3, fill: colour(0) }),
      svg("text", { x: X(Math.max(0, bar.value)) + 6, y: y + 12 }, showY(bar.value)),
    );
  });
  return picture;
}

/** Which colour is whose. */
export function keys(names) {
  return html("div", { class: "keys" }, names.map((name, i) => html("span", {}, html("i", { vars: { background: colour(i) } }), name)));
}
