// Answers on a map: rows that have a latitude and a longitude, or any two coordinates, as points over a graticule.

import { ticks } from "./chart.js";
import { svg } from "./dom.js";
import { short } from "./format.js";
import { LAND } from "./land.js";

const W = 380;
const HIGH = 240;
const PAD = { left: 44, right: 12, top: 10, bottom: 40 };
const LEAST_DEGREES = 25;  // the outline of the land is too rough for less
const WIDE = W - PAD.left - PAD.right;
const KM_A_DEGREE = 111.32;

/** points: [{x, y, value, text}], value a number or null. isEarth: x and y are degrees. label, unit: in words. */
export function mapChart(points, { isEarth, label = "", unit = "" }) {
  const view = framed(points, isEarth);
  const H = PAD.top + view.height + PAD.bottom;
  const X = (x) => PAD.left + (x - view.west) / (view.east - view.west) * WIDE;
  const Y = (y) => H - PAD.bottom - (y - view.south) / (view.north - view.south) * view.height;
  const picture = svg("svg", { class: "chart map", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  const room = { x: PAD.left, y: PAD.top, width: WIDE, height: view.height };
  picture.append(svg("rect", { class: "sea", ...room }));
  if (isEarth && view.east - view.west >= LEAST_DEGREES) {
    picture.append(svg("svg", { ...room, viewBox: Object.values(room).join(" ") }, svg("path", { class: "land", d: outline(X, Y) })));
  }
  const [across, up] = isEarth ? [(v) => degrees(v, "E", "W"), (v) => degrees(v, "N", "S")] : [short, short];
  for (const x of steps(view.west, view.east, isEarth)) {
    picture.append(svg("line", { class: "axis", x1: X(x), x2: X(x), y1: PAD.top, y2: H - PAD.bottom }),
      svg("text", { x: X(x), y: H - PAD.bottom + 13, "text-anchor": "middle" }, across(x)));
  }
  for (const y of steps(view.south, view.north, isEarth)) {
    picture.append(svg("line", { class: "axis", x1: PAD.left, x2: W - PAD.right, y1: Y(y), y2: Y(y) }),
      svg("text", { x: PAD.left - 4, y: Y(y) + 3.5, "text-anchor": "end" }, up(y)));
  }
  const values = points.map((p) => p.value).filter((v) => v !== null);
  const [least, most] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 0];
  for (const point of points) {
    const part = point.value === null ? 0 : most > least ? (point.value - least) / (most - least) : 0.5;
    const dot = svg("circle", { class: "place", cx: X(point.x), cy: Y(point.y), r: 4 + 3 * Math.sqrt(part) }, svg("title", {}, point.text));
    dot.style.setProperty("--part", `${(100 * part).toFixed(0)}%`);
    picture.append(dot);
  }
  if (values.length) picture.append(...legend(least, most, unit, H));
  if (isEarth) picture.append(...scaleBar(view, X, H));
  return picture;
}

/** West, east, south and north, so that all points stand inside; of the earth with steps as long in both directions. */
function framed(points, isEarth) {
  const side = (values, least) => {
    const [from, to] = [Math.min(...values), Math.max(...values)];
    return [(from + to) / 2, Math.max((to - from) * 1.16, least)];
  };
  let [x, wide] = side(points.map((p) => p.x), isEarth ? 0.02 : 1e-9);
  let [y, high] = side(points.map((p) => p.y), isEarth ? 0.02 : 1e-9);
  let height = HIGH;
  if (isEarth) {
    const shape = WIDE / HIGH / Math.max(0.2, Math.cos(y * Math.PI / 180));
    wide = Math.max(wide, high * shape);
    high = wide / shape;
    if (wide > 300) [x, wide] = [0, 360];
    if (high > 150 || wide === 360) {
      height = WIDE / 2;
      [y, high] = [0, 180];
    }
  }
  return { west: x - wide / 2, east: x + wide / 2, south: y - high / 2, north: y + high / 2, height };
}

/** Where lines of the graticule are drawn. */
function steps(from, to, isEarth) {
  if (!isEarth || to - from < 80) return ticks(from, to, 4).filter((step) => step <= to);
  const step = to - from > 200 ? 60 : 30;
  return Array.from({ length: Math.floor(to / step) - Math.ceil(from / step) + 1 }, (_, i) => (Math.ceil(from / step) + i) * step);
}

/** The land; what is beyond the frame is cut off by the picture it stands in. */
function outline(X, Y) {
  return LAND.map((coast) => `${coast.map(([lon, lat], i) => `${i ? "L" : "M"} ${X(lon).toFixed(1)} ${Y(lat).toFixed(1)}`).join(" ")} Z`).join(" ");
}

function degrees(value, positive, negative) {
  const size = String(Number(Math.abs(value).toFixed(3)));
  return `${size}°${!value || Math.abs(value) === 180 ? "" : value > 0 ? positive : negative}`;
}

/** Which colour is which value. */
function legend(least, most, unit, H) {
  const parts = 24;
  const wide = 84;
  const left = W - PAD.right - wide;
  const bar = Array.from({ length: parts }, (_, i) => {
    const part = svg("rect", { class: "place", x: left + i * wide / parts, y: H - 18, width: wide / parts + 0.3, height: 6 });
    part.style.setProperty("--part", `${(100 * i / (parts - 1)).toFixed(0)}%`);
    return part;
  });
  return [...bar, svg("text", { x: left, y: H - 2 }, short(least)), svg("text", { x: W - PAD.right, y: H - 2, "text-anchor": "end" }, short(most)),
    svg("text", { x: left - 6, y: H - 11, "text-anchor": "end" }, unit)];
}

/** How far it is, in the middle of the map. */
function scaleBar(view, X, H) {
  const kmAcross = KM_A_DEGREE * Math.cos((view.south + view.north) / 2 * Math.PI / 180);
  const wanted = (view.east - view.west) * kmAcross / 4;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const km = [5, 2, 1].map((f) => f * power).find((length) => length <= wanted) ?? power;
  const wide = X(view.west + km / kmAcross) - X(view.west);
  const y = H - 14;
  return [svg("path", { class: "bar", d: `M ${PAD.left} ${y - 4} V ${y} H ${PAD.left + wide} V ${y - 4}` }),
    svg("text", { x: PAD.left + wide + 6, y: y + 1 }, km < 1 ? `${Math.round(km * 1000)} m` : `${km} km`)];
}
