// The answers of the query chosen, while they change: as a table, over time, as bars, as points, or on a map.

import { barChart, keys, lineChart } from "./chart.js";
import { button, html, menu, replace, write } from "./dom.js";
import { counted, short } from "./format.js";
import { ask, askAlong, come, known, on } from "./live.js";
import { mapChart } from "./map.js";
import place, { keep } from "./place.js";
import { saveSvg } from "./saving.js";

const VIEWS = [["table", "Table"], ["changes", "Changes"], ["line", "Line"], ["bars", "Bars"], ["points", "Points"], ["map", "Map"]];
const MOST_LINES = 8;
const MOST_BARS = 30;
const EAST = /^(.*[ _])?(lon|lng|long|longitude)$/i;
const NORTH = /^(.*[ _])?(lat|latitude)$/i;

export function setUpAnswers(area, tools) {
  let asked = null;
  let last = null;
  let offered = "";
  const picture = html("div", {}, html("p", { class: "empty" }, "No query is chosen."));
  const head = html("div", { class: "row" });
  area.append(head, picture);
  const draw = () => {
    if (!last) return;
    const key = JSON.stringify([last.name, last.columns, place.view, drawn(last)]);
    if (key !== offered) replace(head, choices(last, draw));
    offered = key;
    write(head.querySelector(".note"), note(last));
    const made = shown(last, picture.firstChild);
    if (made !== picture.firstChild) picture.replaceChildren(made);
  };
  const look = async () => {
    const { query } = place;
    if (!query || query === asked) return;
    asked = query;
    try {
      come("answer", await ask("/api/answer", { query, rows: 300 }));
    } catch (error) {
      come("answer", { name: query, error: error.message });
    } finally {
      if (asked === query) asked = null;
    }
  };
  const buttons = VIEWS.map(([view, label]) => button(label, () => {
    keep({ view });
    press();
    draw();
  }, { "data-view": view }));
  const press = () => buttons.forEach((each) => each.setAttribute("aria-pressed", String(each.dataset.view === place.view)));
  press();
  tools.className = "row";
  tools.append(...buttons);
  askAlong(() => known("catalog")?.queries.some(({ name }) => name === place.query) && look());
  on("answer", (answer) => {
    if (answer.name !== place.query) return;
    const isNew = JSON.stringify(answer) !== JSON.stringify(last);
    last = answer.error ? null : answer;
    if (answer.error) picture.replaceChildren(html("p", { class: "empty" }, answer.error));
    else if (isNew) draw();
  });
  on("feeds", () => last?.results === 0 && draw());
  return {
    show(name) {
      last = null;
      head.replaceChildren();
      offered = "";
      picture.replaceChildren(html("p", { class: "empty" }, name ? "" : "No query is chosen."));
      look();
    },
  };
}

/** What stands above the picture: the query, which columns are drawn, and how to have it as a file. */
function choices(answer, draw) {
  const numbers = answer.columns.filter((c) => c.is_number).map((c) => c.name);
  const others = answer.columns.filter((c) => !c.is_number).map((c) => c.name);
  const pick = (name, options, chosen, label) => menu(options.map((o) => [o, o]), chosen, (value) => { keep({ [name]: value }); draw(); }, { "aria-label": label });
  const path = `/export/${encodeURIComponent(answer.name)}?format=`;
  const file = (kind, label) => html("a", { href: path + kind, download: `${answer.name}.${kind}` }, label);
  const isTable = place.view === "table" || place.view === "changes";
  const made = [html("div", { class: "row head-line" }, html("b", {}, answer.name), html("span", { class: "muted grow note" }),
    isTable ? [file("csv", "CSV"), file("parquet", "Parquet")] : button("SVG", (event) => saveSvg(event.target.closest(".body").querySelector("svg.chart"), answer.name), { class: "plain" }))];
  const columns = drawn(answer);
  if (place.view === "line" || place.view === "bars") made.push(pick("y", numbers, columns.y, "value"), pick("by", ["", ...others, ...numbers], columns.by, "by"));
  if (place.view === "points") made.push(pick("x", numbers, columns.x, "across"), pick("y", numbers, columns.y, "up"));
  if (place.view === "map") made.push(pick("east", numbers, columns.east, "across"), pick("north", numbers, columns.north, "up"), pick("colour", ["", ...numbers], columns.colour, "colour"));
  return made;
}

function note({ kind, results, total, failure }) {
  if (failure) return `failed ${failure}`;
  return kind === "relation" ? `${counted(total, "row")} now, ${counted(results, "change")}` : counted(results, "element");
}

/** The columns that are drawn: those chosen, where the query has them, else what fits. */
function drawn({ columns }) {
  const has = (name) => columns.some((c) => c.name === name);
  const numbers = columns.filter((c) => c.is_number).map((c) => c.name);
  const key = columns.find((c) => !c.is_number)?.name ?? (numbers.length > 1 ? numbers[0] : "");
  const free = numbers.filter((name) => name !== key);
  const east = has(place.east) ? place.east : numbers.find((name) => EAST.test(name)) ?? numbers[0] ?? "";
  const north = has(place.north) ? place.north : numbers.find((name) => NORTH.test(name)) ?? numbers.find((name) => name !== east) ?? east;
  const y = has(place.y) ? place.y : free[0] ?? numbers[0] ?? "";
  return {
    east,
    north,
    colour: has(place.colour) ? place.colour : numbers.find((name) => ![east, north, key].includes(name)) ?? "",
    x: has(place.x) ? place.x : numbers.find((name) => name !== y) ?? y,
    y,
    by: has(place.by) ? place.by : key,
  };
}

/** The picture of an answer: the one there is, where it is a table that can go on. */
function shown(answer, present) {
  const isFed = known("feeds")?.length || !known("catalog")?.inputs.some((input) => input.has_source);
  const nothing = html("p", { class: "empty" }, isFed ? "Nothing yet." : "Nothing yet: Read sources, above, begins.");
  if (!answer.results) return nothing;
  if (place.view === "changes" || (place.view === "table" && answer.kind === "stream")) return changes(answer, present);
  if (place.view === "table") {
    if (!answer.present.length) return html("p", { class: "empty" }, "The relation holds no rows now.");
    return table(answer.columns, answer.present.map((row) => row.map((value, i) => cell(value, answer.columns[i]))), present);
  }
  const columns = drawn(answer);
  const { x, y, by } = columns;
  const at = (name) => answer.columns.findIndex((c) => c.name === name);
  if (at(y) < 0) return html("p", { class: "empty" }, "The answer has no column of numbers.");
  const rows = answer.kind === "relation" ? answer.present : answer.changes.map((change) => change[3]);
  if (place.view === "bars") {
    const bars = rows.slice(-MOST_BARS).map((row, i) => ({ name: at(by) < 0 ? String(i + 1) : String(row[at(by)]), value: Number(row[at(y)]) || 0 }));
    if (!bars.length) return nothing;
    return html("div", {}, barChart(bars, { label: `${y} by ${by}` }), part("last", bars, rows.length));
  }
  if (place.view === "points") {
    const points = rows.map((row) => [Number(row[at(x)]), Number(row[at(y)])]).filter((p) => p.every(Number.isFinite));
    return points.length ? lineChart([{ name: y, points }], { kind: "points", width: 380, height: 300, label: `${y} against ${x}` }) : nothing;
  }
  if (place.view === "map") return map(rows, columns, at) ?? nothing;
  return line(answer, at(y), at(by), y) ?? nothing;
}

function map(rows, { east, north, colour }, at) {
  const value = (row) => (at(colour) < 0 || row[at(colour)] === null ? null : Number(row[at(colour)]));
  const points = rows.filter((row) => [east, north].every((name) => row[at(name)] !== null && Number.isFinite(Number(row[at(name)]))))
    .map((row) => ({ x: Number(row[at(east)]), y: Number(row[at(north)]), value: value(row), text: row.map(String).join(", ") }));
  if (!points.length) return null;
  const isEarth = points.every((p) => Math.abs(p.x) <= 180 && Math.abs(p.y) <= 90) && (EAST.test(east) || NORTH.test(north));
  return mapChart(points, { isEarth, label: `${colour || "rows"} by ${east} and ${north}`, unit: colour });
}

function line({ changes, is_calendar, tick_ns }, y, by, label) {
  const series = new Map();
  for (const [, ts, sign, row] of changes) {
    if (sign < 0) continue;
    const name = by < 0 ? label : String(row[by]);
    if (!series.has(name)) series.set(name, []);
    const value = Number(row[y]);
    series.get(name).push([Number(ts) * (is_calendar ? tick_ns / 1e6 : 1), row[y] === null || !Number.isFinite(value) ? null : value]);
  }
  const lines = [...series].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true })).slice(0, MOST_LINES).map(([name, points]) => ({ name, points }));
  if (!lines.length) return null;
  const time = (ms) => new Date(ms).toISOString().slice(11, 19);
  return html("div", {}, lineChart(lines, { width: 380, height: 220, label, showX: is_calendar ? time : short }), keys(lines.map((each) => each.name)), part("first", lines, series.size));
}

/** That no more is drawn, where there is more. */
function part(which, drawn, n) {
  return n > drawn.length ? html("p", { class: "note" }, `the ${which} ${drawn.length} of ${n}`) : null;
}

const tables = new WeakMap();

/** rows: of [text, class]. present: a table of these columns goes on, and only what differs is written. */
function table(columns, rows, present) {
  const heads = columns.map(({ name, is_number }) => [name, is_number ? "number" : ""]);
  const key = JSON.stringify(heads);
  let kept = tables.get(present);
  if (kept?.key !== key) {
    const body = html("tbody");
    const element = html("div", { class: "scroll" }, html("table", {},
      html("thead", {}, html("tr", {}, heads.map(([name, kind]) => html("th", { class: kind }, name)))), body));
    kept = { key, body, element };
    tables.set(element, kept);
  }
  const { body, element } = kept;
  while (body.childElementCount > rows.length) body.lastChild.remove();
  while (body.childElementCount < rows.length) body.append(html("tr", {}, heads.map(() => html("td"))));
  rows.forEach((row, i) => row.forEach(([text, kind], j) => {
    const cell = body.rows[i].cells[j];
    if (cell.textContent === text && cell.className === kind) return;
    cell.textContent = text;
    cell.className = kind;
    cell.title = text.length > 40 ? text : "";
  }));
  return element;
}

function changes({ columns, changes: all }, present) {
  const rows = all.slice(-100).reverse().map(([instant, , sign, row]) => [
    [String(instant), "muted"], sign > 0 ? ["+", "enters"] : ["−", "leaves"], ...row.map((value, i) => cell(value, columns[i]))]);
  return table([{ name: "instant" }, { name: "" }, ...columns], rows, present);
}

function cell(value, column) {
  const text = value === null ? "NULL" : typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(10))) : String(value);
  return [text, [column.is_number ? "number" : "", value === null ? "muted" : ""].join(" ").trim()];
}
