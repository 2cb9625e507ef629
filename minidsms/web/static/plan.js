// The plan as a picture that can be moved and enlarged: boxes for operators and stores, ways between them.

import { html, set, svg, write } from "./dom.js";
import { bytes, counted, percent, short } from "./format.js";

const LINE = 16;
const PAD = 10;
const CHARACTER = 7;
const MARGIN = 20;
const MOST_SCALE = 1.25;
const LEAST_SCALE = 0.65;

export class PlanPicture {
  /** area: where it stands. choose(node): a box was chosen. isFocal(node): is shown where all would be too small. */
  constructor(area, choose = () => {}, isFocal = () => true) {
    this.area = area;
    this.choose = choose;
    this.boxes = new Map();
    this.edges = new Map();
    this.lines = new Map();
    this.graph = { nodes: [], edges: [], width: 0, height: 0 };
    this.view = null;
    this.isWhole = false;
    this.isFocal = isFocal;
    this.svg = svg("svg", { class: "plan", role: "group", "aria-label": "the plan of all running queries" });
    area.append(this.svg);
    this.#movable();
    new ResizeObserver(() => this.isMoved || this.fit(this.isWhole)).observe(area);
  }

  /** Another plan. Boxes whose plan has changed are marked for a while. */
  draw(graph) {
    const isFirst = !this.graph.nodes.length;
    this.graph = graph;
    const before = this.lines;
    this.lines = new Map(graph.nodes.map((node) => [node.entity, node.plan.join("\n")]));
    const changed = (node) => before.has(node.entity) && before.get(node.entity) !== this.lines.get(node.entity);
    this.edges = new Map(graph.edges.map((edge) => [edge.key, this.#edge(edge)]));
    this.boxes = new Map(graph.nodes.map((node) => [node.id, this.#box(node, changed(node))]));
    this.svg.replaceChildren(
      ...[...this.edges.values()].map((edge) => edge.group),
      ...[...this.boxes.values()].map((box) => box.group),
    );
    if (isFirst || !this.isMoved) this.fit(this.isWhole);
  }

  /** The figures now; see what the server tells as "now". */
  figures({ told, waiting, state }) {
    const operators = told.operator ?? {};
    const waits = new Map();
    for (const [key, { edge }] of this.edges) waits.set(edge.to, (waits.get(edge.to) ?? 0) + (waiting[key] ?? 0));
    for (const { node, figures, share, frame, group } of this.boxes.values()) {
      const now = operators[node.entity];
      if (node.kind === "store") {
        const store = state[node.id] ?? {};
        write(figures[0], counted(store.elements, "element"));
        write(figures[1], bytes(store.nbytes));
        continue;
      }
      const part = now?.time_share ?? 0;
      const shade = Math.min(1, part).toFixed(2);
      if (frame.style.getPropertyValue("--share") !== shade) frame.style.setProperty("--share", shade);
      set(share, "width", (Math.min(1, part) * (node.box[2] - 2 * PAD)).toFixed(0));
      if (!now) continue;
      write(figures[0], `${short(now.rate_in)}/s${waits.get(node.id) ? ` · ${short(waits.get(node.id))} wait` : ""}`);
      const room = Math.floor((node.box[2] - 2 * PAD) / CHARACTER);
      const facts = [percent(part), now.nbytes ? bytes(now.nbytes) : "", rows(state[node.id])].filter(Boolean).join(" · ");
      write(figures[1], facts.length > room ? `${facts.slice(0, room - 1)}…` : facts);
      set(group, "aria-label", `${node.name} ${node.detail.join(" ")}: ${figures[0].textContent}, ${figures[1].textContent}`);
    }
    for (const [key, { edge, path, text }] of this.edges) {
      const producer = this.boxes.get(edge.from)?.node;
      const { rate_out: rate = null, selectivity = 1 } = operators[producer?.entity] ?? {};
      set(path, "stroke-width", rate ? Math.min(7, 1.2 + Math.log10(1 + rate) * 0.75).toFixed(1) : "1");
      write(text, waiting[key] ? `${short(waiting[key])} wait` : rate ? `${short(rate)}/s${selectivity === 1 ? "" : ` ×${short(selectivity)}`}` : "");
      text.classList.toggle("waits", Boolean(waiting[key]));
    }
  }

  /** Mark the box of an entity, and put aside what does not serve a query; null: neither. */
  mark(entity, query) {
    const serves = (node) => !query || node.queries.includes(query);
    for (const { node, group } of this.boxes.values()) {
      group.classList.toggle("chosen", node.entity === entity && node.kind !== "store");
      group.classList.toggle("aside", !serves(node));
    }
    for (const { edge, group } of this.edges.values()) {
      group.classList.toggle("aside", !serves(this.boxes.get(edge.from).node) || !serves(this.boxes.get(edge.to).node));
    }
  }

  /** Show all of it, or all that serves the query that is marked; where that is too small to read, and nobody asked for
   *  it, what is focal, or the box chosen. */
  fit(isAsked = false) {
    this.isMoved = false;
    this.isWhole = isAsked;
    const room = this.area.getBoundingClientRect();
    const scaleOf = ([, , width, height]) => Math.min(MOST_SCALE, room.width / width, room.height / height);
    const isMarked = ({ group }) => !group.classList.contains("aside");
    const isFocal = (box) => isMarked(box) && this.isFocal(box.node);
    const isChosen = ({ group }) => group.classList.contains("chosen");
    const places = [isMarked, isFocal, isChosen].map((isMeant) => this.#around(isMeant));
    const place = places.find((each) => isAsked || scaleOf(each) >= LEAST_SCALE) ?? places[1];
    const [left, top, width, height] = place;
    if (!width || !room.width) return;
    const scale = isAsked ? scaleOf(place) : Math.max(LEAST_SCALE, scaleOf(place));
    const [w, h] = [room.width / scale, room.height / scale];
    this.#show([left + (width - w) / 2, top + (height - h) / 2, w, h]);
  }

  /** Where the boxes that are meant stand; the whole, where there are none. */
  #around(isMeant) {
    const boxes = [...this.boxes.values()].filter(isMeant).map(({ node }) => node.box);
    if (!boxes.length || boxes.length === this.boxes.size) return this.whole;
    const [left, top] = [0, 1].map((i) => Math.min(...boxes.map((box) => box[i])) - MARGIN);
    const [right, bottom] = [0, 1].map((i) => Math.max(...boxes.map((box) => box[i] + box[i + 2])) + MARGIN);
    return [left, top, right - left, bottom - top];
  }

  /** The whole picture, for saving. */
  get whole() {
    return [0, 0, this.graph.width, this.graph.height];
  }

  zoom(factor, at = null) {
    if (!this.view) return;
    const [x, y, w, h] = this.view;
    const [cx, cy] = at ?? [x + w / 2, y + h / 2];
    this.isMoved = true;
    this.#show([cx - (cx - x) * factor, cy - (cy - y) * factor, w * factor, h * factor]);
  }

  /** Move so that a box is seen: the keyboard reaches those outside too. */
  #bring([x, y, w, h]) {
    if (!this.view) return;
    const [left, top, width, height] = this.view;
    if (x >= left && y >= top && x + w <= left + width && y + h <= top + height) return;
    this.isMoved = true;
    this.#show([x + (w - width) / 2, y + (h - height) / 2, width, height]);
  }

  #show(view) {
    this.view = view;
    this.svg.setAttribute("viewBox", view.map((v) => v.toFixed(1)).join(" "));
  }

  #box(node, isChanged) {
    const [x, y, w, h] = node.box;
    const marks = ["box", node.kind, node.queries.length > 1 ? "shared" : "", isChanged ? "changed" : ""].filter(Boolean);
    const frame = svg("rect", { class: "frame", x, y, width: w, height: h, rx: node.kind === "store" ? 14 : 6 });
    const texts = [];
    const write = (text, kind) => {
      const made = svg("text", { x: x + PAD, y: y + PAD + 8 + LINE * texts.length, class: kind }, text);
      texts.push(made);
      return made;
    };
    write(node.name, "name");
    node.detail.forEach((line) => write(line, ""));
    node.plan.forEach((line) => write(line, "plan-line"));
    if (node.serves) write(node.serves, "small");
    const figures = [write("", "small"), write("", "small")];
    const ground = svg("rect", { class: "share-ground", x: x + PAD, y: y + h - 7, width: w - 2 * PAD, height: 3, rx: 1.5 });
    const share = svg("rect", { class: "share", x: x + PAD, y: y + h - 7, width: 0, height: 3, rx: 1.5 });
    const bar = node.kind === "store" ? [] : [ground, share];
    const chosen = () => this.choose(node);
    const group = svg("g", { class: marks.join(" "), tabindex: 0, role: "button", "aria-label": node.name,
      on: { click: chosen, focus: () => this.#bring(node.box), keydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), chosen()) } },
      frame, texts, bar);
    return { node, group, frame, figures, share };
  }

  #edge(edge) {
    const [x1, y1, c1x, c1y, c2x, c2y, x2, y2] = edge.curve;
    const path = svg("path", { d: `M ${x1} ${y1} C ${c1x} ${c1y}, ${c2x} ${c2y}, ${x2} ${y2 + 7}` });
    const head = svg("path", { class: "head", d: `M ${x2 - 4.5} ${y2 + 8} L ${x2} ${y2 + 1} L ${x2 + 4.5} ${y2 + 8} Z` });
    const text = svg("text", { x: (x1 + x2) / 2 + 7, y: (y1 + y2) / 2 + 6 });
    return { edge, path, text, group: svg("g", { class: "edge" }, path, head, text) };
  }

  #movable() {
    let last = null;
    let way = 0;
    this.svg.addEventListener("pointerdown", (event) => {
      last = [event.clientX, event.clientY];
      way = 0;
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!last || !this.view || !event.buttons) return;
      const scale = this.view[2] / this.svg.clientWidth;
      const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
      way += Math.abs(dx) + Math.abs(dy);
      if (way < 4) return;
      this.svg.classList.add("dragged");
      last = [event.clientX, event.clientY];
      this.isMoved = true;
      this.#show([this.view[0] - dx * scale, this.view[1] - dy * scale, this.view[2], this.view[3]]);
    });
    this.svg.addEventListener("keydown", (event) => {
      const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
      if (!this.view || (!dx && !dy)) return;
      event.preventDefault();
      const [x, y, w, h] = this.view;
      this.isMoved = true;
      this.#show([x + dx * w / 10, y + dy * h / 10, w, h]);
    });
    const end = () => { last = null; this.svg.classList.remove("dragged"); };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointerleave", end);
    this.svg.addEventListener("click", (event) => way >= 4 && event.stopPropagation(), true);
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;  // the wheel alone moves the page
      event.preventDefault();
      const room = this.svg.getBoundingClientRect();
      const [x, y, w, h] = this.view;
      this.zoom(event.deltaY > 0 ? 1.12 : 1 / 1.12, [x + (event.clientX - room.x) / room.width * w, y + (event.clientY - room.y) / room.height * h]);
    }, { passive: false });
  }
}

function rows(state) {
  const windows = Object.entries(state ?? {}).filter(([name]) => name.startsWith("rows_of_"));
  if (windows.length) return windows.map(([name, n]) => `${name.slice(8)} ${short(n)}`).join(", ");
  for (const name of ["rows", "groups"]) if (state?.[name] !== undefined) return `${short(state[name])} ${state[name] === 1 ? name.slice(0, -1) : name}`;
  return "";
}

/** What stands where no query runs. */
export function noPlan() {
  return html("p", { class: "empty" }, "No query runs. Choose an example, or write one: its plan is drawn here as it runs.");
}
