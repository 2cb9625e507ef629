// Properties over time, pinned side by side. Each goes back to when its entity was first seen, not to when it was pinned.

import { keys, lineChart } from "./chart.js";
import { button, html } from "./dom.js";
import { clock, property, short } from "./format.js";
import { ask, on, tell } from "./live.js";
import place, { keep } from "./place.js";
import { saveSvg } from "./saving.js";

const MOST_POINTS = 1200;

export function setUpPins(area) {
  const grid = html("div", { class: "graphs" });
  const empty = html("p", { class: "empty" }, "Nothing is pinned.");
  area.append(grid, empty);
  const pinned = new Map();

  const pin = async (kind, entity, name) => {
    const key = JSON.stringify([kind, entity, name]);
    if (pinned.has(key)) return;
    const graph = new Pin(kind, entity, name, () => {
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
  on("now", (now) => { for (const graph of pinned.values()) graph.add(now); });
  for (const each of place.pins) pin(...each);
  /** Run a query a second time with a plan that stays, and pin what both take. */
  const compare = async (query) => {
    const { entities } = await tell("/api/compare", { query });
    for (const entity of entities) pin("operator", entity, "time_ns");
  };
  /** The schedulers side by side on the same bursts, each in a connection of its own. */
  const schedulers = async () => {
    const graph = new Schedulers(() => { graph.element.remove(); note(); });
    grid.querySelector(".schedulers")?.remove();
    grid.prepend(graph.element);
    note();
    graph.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
    await graph.run();
  };
  return { pin, compare, schedulers };
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
    const series = Object.entries(queued).map(([name, sizes]) => ({ name, points: sizes.map((size, i) => [i, size]) }));
    const words = series.map(({ name, points }) => {
      const sizes = points.map(([, size]) => size);
      return `${name}: peak ${short(Math.max(...sizes))}, mean ${short(sizes.reduce((sum, size) => sum + size, 0) / sizes.length)}`;
    });
    this.about.textContent = "over the runs of operators, bursts of 4,000 elements";
    this.picture.replaceChildren(lineChart(series, { width: 720, height: 240, label: "elements in queues by scheduler" }), keys(words));
  }
}

class Pin {
  constructor(kind, entity, name, remove) {
    Object.assign(this, { kind, entity, name, points: [], isReady: false });
    this.value = html("span", { class: "value" });
    this.picture = html("div", {});
    const save = () => saveSvg(this.picture.querySelector("svg"), `${entity} ${name}`);
    this.element = html("div", { class: "graph" },
      html("div", { class: "title" }, html("b", { title: `${kind} ${entity}` }, `${entity} · ${name}`), this.value,
        button("SVG", save, { class: "plain" }), button("✕", remove, { class: "plain", "aria-label": "remove" })),
      this.picture);
  }

  async begin() {
    const { times, values } = await ask("/api/series", { kind: this.kind, entity: this.entity, property: this.name });
    this.points = [...times.map((time, i) => [time, values[i]]), ...this.points.filter(([time]) => time > (times.at(-1) ?? -1))];
    this.isReady = true;
    this.#draw();
  }

  add({ at, told }) {
    const value = told[this.kind]?.[this.entity]?.[this.name];
    if (value === undefined) return;
    this.points.push([at, value === null ? null : Number(value)]);
    if (this.points.length > MOST_POINTS) this.points = this.points.filter((_, i) => i % 2 === 0);
    if (this.isReady) this.#draw();
  }

  #draw() {
    const show = (value) => property(this.name, value);
    this.value.textContent = show(this.points.at(-1)?.[1]);
    this.picture.replaceChildren(lineChart([{ name: this.name, points: this.points }], { showX: clock, showY: show, label: `${this.name} of ${this.entity} over time` }));
  }
}
