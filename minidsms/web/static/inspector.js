// The entity that was chosen: what it is, its plan and how to change it, and every property of it, which can be pinned.

import { button, html, replace, write } from "./dom.js";
import { property } from "./format.js";
import { known, on, tell } from "./live.js";

export class Inspector {
  constructor(area, pins) {
    this.area = area;
    this.pins = pins;
    this.onClose = () => {};
    this.node = null;
    on("catalog", () => this.#drawPlaces());
  }

  show(node) {
    this.node = node;
    this.area.hidden = !node;
    this.#draw();
  }

  /** The plan has been drawn anew: the same entity may stand in another box. */
  keepUp(graph) {
    if (!this.node) return;
    const before = this.node;
    this.node = graph.nodes.find((node) => node.entity === before.entity && node.kind === before.kind) ?? before;
    if (String([this.node.detail, this.node.queries]) !== String([before.detail, before.queries])) this.#draw();
  }

  figures({ parts }) {
    if (!this.node || !this.properties) return;
    this.#update();
    const told = parts[this.node.id] ?? [];
    while (this.parts.childElementCount > told.length) this.parts.lastChild.remove();
    while (this.parts.childElementCount < told.length) this.parts.append(html("li", { class: "part mono" }));
    told.forEach((part, i) => write(this.parts.children[i], part));
  }

  #draw() {
    const node = this.node;
    if (!node) return;
    this.properties = html("div", {});
    this.values = new Map();
    this.parts = html("ul", {});
    this.said = html("p", { class: "muted", "aria-live": "polite" });
    this.places = html("div", {});
    this.area.replaceChildren(
      html("div", { class: "title" }, html("b", {}, node.kind === "store" ? `Store ${node.entity}` : node.entity), button("✕", () => this.onClose(), { class: "plain", "aria-label": "close" })),
      html("p", { class: "mono" }, node.detail.join(" ")),
      node.queries.length ? html("p", { class: "muted" }, `serves ${node.queries.join(", ")}`) : null,
      this.places,
      this.said,
      this.parts,
      html("h3", {}, "Properties"),
      this.properties,
    );
    this.#drawPlaces();
    const now = known("now");
    if (now) this.figures(now);
  }

  /** Where its plan can change. */
  #drawPlaces() {
    if (!this.node) return;
    const places = (known("catalog")?.places ?? []).filter((place) => place.entity === this.node.entity);
    replace(this.places, places.map((place) => this.#place(place)));
  }

  /** What is told of it now: kind, entity, property, value. */
  #told() {
    const told = known("now").told;
    const { entity, kind } = this.node;
    const found = [];
    const add = (k, e) => {
      for (const [name, value] of Object.entries(told[k]?.[e] ?? {})) found.push([k, e, name, value]);
    };
    if (kind === "store") {
      add("store", entity);
      add("source", entity);
    } else {
      add("operator", entity);
      for (const each of Object.keys(told.adaptation ?? {})) if (each.startsWith(`${entity}: `)) add("adaptation", each);
      for (const each of Object.keys(told.queue ?? {})) if (each.endsWith(`> ${entity}`) || each.includes(`> ${entity} input`)) add("queue", each);
      if (/ Output$/.test(entity)) add("query", this.node.queries[0]);
    }
    return found;
  }

  /** Values change in their places: what has the focus keeps it. */
  #update() {
    for (const [k, e, name, value] of this.#told()) {
      const key = JSON.stringify([k, e, name]);
      if (!this.values.has(key)) {
        const shown = html("b", {});
        const label = k === "operator" || k === "store" ? name : `${k === "adaptation" ? e.slice(this.node.entity.length + 2) : k}: ${name}`;
        this.values.set(key, shown);
        this.properties.append(button([html("span", {}, label), shown, html("span", { class: "add" }, "+")],
          () => this.pins.pin(k, e, name), { class: "property", title: `pin ${name} of ${e}` }));
      }
      write(this.values.get(key), property(name, value));
    }
  }

  /** A place where the plan can change. */
  #place(place) {
    const change = async (action, plan = null) => {
      try {
        const { plan: now, pinned } = await tell("/api/plan", { entity: place.entity, number: place.number, action, plan });
        this.said.textContent = `${now}${pinned ? ", pinned" : ""}`;
      } catch (error) {
        this.said.textContent = error.message;
      }
    };
    const swap = (i) => {
      const order = [...place.order];
      [order[i], order[i + 1]] = [order[i + 1], order[i]];
      change("force", order);
    };
    return html("div", { class: "place" },
      html("h3", {}, place.technique, place.pinned ? " (pinned)" : ""),
      place.order
        ? html("div", { class: "chips" }, place.order.flatMap((filter, i) => [
          html("span", { class: "chip" }, `F${filter + 1}`),
          i < place.order.length - 1 ? button("⇄", () => swap(i), { class: "plain", "aria-label": `F${filter + 1} and F${place.order[i + 1] + 1} change places` }) : null]))
        : html("div", { class: "chips" }, html("span", { class: "chip" }, place.plan)),
      html("div", { class: "row" },
        place.pinned ? button("Unpin", () => change("unpin")) : button("Pin", () => change("pin")),
        button("Force another", () => change("another"), { class: "force" })));
  }
}
