// Properties over time, pinned side by side. Each goes back to when its entity was first seen, not to when it was pinned.

import { keys, lineChart } from "./chart.js";
import { button, html, write } from "./dom.js";
import { clock, property, short } from "./format.js";
import { ask, heed, on, tell } from "./live.js";
import place, { keep } from "./place.js";
import { saveSvg } from "./saving.js";

const MOST_POINTS = 1200;

export function setUpPins(area) {
  const grid = html("div", { class: "graphs" });
  const empty = html("p", { class: "empty" }, "Nothing is pinned.");
  area.append(grid, empty);
  const pinned = new Map();

  /** entities: one, or several that are compared. */
  const pin = async (kind, entities, name) => {
    const all = [entities].flat();
    const key = JSON.stringify([kind, all, name]);
    if (pinned.has(key)) return;
    const graph = new Pin(kind, all, name, () => {
      pinned.delete(key);
      graph.element.remove();
      note();
    });
    pinned.set(key, graph);
    grid.append(graph.element);
    note();
    await graph.begin();
  };
  const note = () => {
    empty.hidden = grid.childElementCount > 0;
    keep({ pins: [...pinned.keys()].map((key) => JSON.parse(key)) });
  };
  let compared = null;
  heed((now) => pinned.forEach((graph) => graph.add(now)));
  on("now", () => {
    for (const graph of pinned.values()) graph.goOn();
    compared?.fit();
  });
  for (const each of place.pins) pin(...each);
  /** Run a query a second time with a plan that stays, and pin what both take. */
  const compare = async (query) => {
    const { entities } = await tell("/api/compare", { query });
    pin("operator", entities, "total_ns");
  };
  /** The schedulers side by side on the same bursts, each in a connection of its own. */
  const schedulers = async () => {
    compared?.element.remove();
    const graph = compared = new Schedulers(() => { graph.element.remove(); note(); });
    grid.prepend(graph.element);
    note();
    graph.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
    await graph.run();
  };
  /** What was told while nobody listened. */
  const catchUp = () => pinned.forEach((graph) => graph.isReady && graph.begin());
  return { pin, compare, schedulers, catchUp };
}

/** What waits in queues under every scheduler, over the runs of operators. */
class Schedulers {
  constructor(remove) {
    this.seed = 0;
    this.about = html("span", { class: "muted grow" }, "running …");
    this.picture = html("div", {});
    const save = () => saveSvg(this.picture.querySelector("svg"), "schedulers");
    this.element = html("div", { class: "graph schedulers" },
      html("div", { class: "title" }, html("b", {}, "Schedulers · elements in queues"), this.about,
        button("Again", () => this.run(), { class: "plain", title: "the same bursts of other elements" }),
        button("SVG", save, { class: "plain" }), button("✕", remove, { class: "plain", "aria-label": "remove" })),
      this.picture);
  }

  async run() {
    const { queued } = await tell("/api/schedulers", { seed: this.seed });
    this.seed += 1;
    this.lines = Object.entries(queued).map(([name, sizes]) => ({ name, points: sizes.map((size, i) => [i, size]) }));
    this.about.textContent = "over the runs of operators, bursts of 4,000 elements";
    this.width = 0;
    this.fit();
  }

  /** Draw in the room there is. */
  fit() {
    const width = this.picture.clientWidth;
    if (!this.lines || !width || width === this.width) return;
    this.width = width;
    const words = this.lines.map(({ name, points }) => {
      const sizes = points.map(([, size]) => size);
      return `${name}: peak ${short(Math.max(...sizes))}, mean ${short(sizes.reduce((sum, size) => sum + size, 0) / sizes.length)}`;
    });
    this.picture.replaceChildren(lineChart(this.lines, { width, height: 240, label: "elements in queues by scheduler" }), keys(words));
  }
}

/** A property over time, of one entity or of several as lines of one graph. */
class Pin {
  constructor(kind, entities, name, remove) {
    Object.assign(this, { kind, name, isReady: false, from: 0, drawnTo: 0, isTotal: entities.length > 1 && name === "total_ns" });
    this.lines = entities.map((entity) => ({ name: entity, points: [] }));
    this.value = html("span", { class: "value" });
    this.picture = html("div", {});
    this.keys = html("div", {});
    const title = entities.length > 1 ? `${this.isTotal ? "time taken" : name}, side by side` : `${entities[0]} · ${name}`;
    const save = () => saveSvg(this.picture.querySelector("svg"), title);
    this.element = html("div", { class: `graph${entities.length > 1 ? " wide" : ""}` },
      html("div", { class: "title" }, html("b", { title: `${kind} ${entities.join(", ")}` }, title), this.value,
        this.isTotal ? button("From now", () => { this.from = this.lines[0].points.at(-1)?.[0] ?? 0; this.#draw(); }, { class: "plain", title: "what each takes from now on" }) : null,
        button("SVG", save, { class: "plain" }), button("✕", remove, { class: "plain", "aria-label": "remove" })),
      this.picture, this.keys);
  }

  async begin() {
    await Promise.all(this.lines.map(async (line) => {
      const { times, values } = await ask("/api/series", { kind: this.kind, entity: line.name, property: this.name });
      line.points = [...times.map((time, i) => [time, values[i]]), ...line.points.filter(([time]) => time > (times.at(-1) ?? -1))];
    }));
    this.isReady = true;
    this.#draw();
  }

  add({ at, told }) {
    for (const line of this.lines) {
      const value = told[this.kind]?.[line.name]?.[this.name];
      // What was told before the series was asked for may arrive after it.
      if (value === undefined || at <= (line.points.at(-1)?.[0] ?? -1)) continue;
      line.points.push([at, value === null ? null : Number(value)]);
      if (line.points.length > MOST_POINTS) line.points = line.points.filter((_, i) => i % 2 === 0);
    }
  }

  goOn() {
    if (this.isReady) this.#draw(false);
  }

  /** The figures, and the lines where they would look different. */
  #draw(isNew = true) {
    const show = (value) => property(this.name, value);
    const last = ({ points }) => points.at(-1)?.[1];
    const time = (i) => this.lines[0].points.at(i)?.[0] ?? 0;
    const isOne = this.lines.length === 1;
    const lines = this.isTotal ? sinceAllRun(this.lines, this.from) : this.lines;
    write(this.value, isOne ? show(last(lines[0])) : "");
    const label = `${this.name} of ${this.lines.map(({ name }) => name).join(" and ")} over time`;
    const size = isOne ? { width: 300, height: 130 } : { width: this.picture.clientWidth || 560, height: 170 };
    if (isNew || time(-1) - this.drawnTo >= (time(-1) - time(0)) / size.width) {
      this.picture.replaceChildren(lineChart(lines, { ...size, showX: clock, showY: show, label }));
      this.drawnTo = time(-1);
    }
    if (isOne) return;
    const least = Math.min(...lines.map(last));
    this.keys.replaceChildren(keys(lines.map((line) => `${line.name}: ${show(last(line))}${last(line) > least && least > 0 ? ` (× ${(last(line) / least).toFixed(2)})` : ""}`)));
  }
}

/** Totals from when all of them had begun, or from later: what is compared is what each has taken since. */
function sinceAllRun(lines, from) {
  const began = Math.max(from, ...lines.map(({ points }) => points[0]?.[0] ?? 0));
  return lines.map(({ name, points }) => {
    const later = points.filter(([time]) => time >= began);
    return { name, points: later.map(([time, value]) => [time, value - later[0][1]]) };
  });
}
