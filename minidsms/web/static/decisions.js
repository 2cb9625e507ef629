// The decisions that changed plans: on a line of time and as a list; each with the plan before and after it.

import { arrange, button, html, svg } from "./dom.js";
import { clock, percent, short } from "./format.js";
import { ask, known, on } from "./live.js";
import { colour, ticks } from "./chart.js";
import { PlanPicture } from "./plan.js";

const H = 46;
const MOST_LISTED = 200;

export function setUpDecisions(area, count, dialog) {
  const line = html("div", { class: "timeline" });
  const list = html("div", { class: "decided" });
  let before = [];
  let rows = new Map();
  const earlier = button("Earlier ones", async () => {
    before = [...(await ask("/api/decisions", { before: all()[0].number })), ...before];
    write();
  }, { class: "plain", id: "earlier" });
  const all = () => {
    const decisions = known("decisions") ?? [];
    return [...before.filter((each) => !decisions.length || each.number < decisions[0].number), ...decisions];
  };
  const choose = ({ target }) => {
    const number = Number(target.closest("[data-number]")?.dataset.number);
    if (number) compare(dialog, all().find((each) => each.number === number), all());
  };
  area.addEventListener("click", choose);
  line.addEventListener("keydown", (event) => event.key === "Enter" && choose(event));
  area.append(line, list);
  const write = () => {
    const shown = before.length ? all() : all().slice(-MOST_LISTED);
    rows = new Map(shown.map((each) => [each, rows.get(each) ?? row(each)]));
    arrange(list, [...[...rows.values()].reverse(), ...(shown[0]?.number > 1 ? [earlier] : [])]);
    draw();
  };
  let drawnAt = 0;
  let width = 800;
  const draw = () => {
    const decisions = all();
    const now = known("now")?.at ?? 1;
    drawnAt = now;
    count.textContent = decisions.length ? `${decisions.at(-1).number} so far, each with the gain expected and measured` : "";
    line.replaceChildren(decisions.length ? timeline(decisions, now, width) : html("p", { class: "empty" }, "No plan has changed yet."));
  };
  new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || contentRect.width === width) return;
    width = contentRect.width;
    draw();
  }).observe(line);
  on("decisions", write);
  on("now", ({ at }) => at > 1.01 * drawnAt && draw());
}

function techniques(decisions) {
  return [...new Set(decisions.map((each) => each.technique))];
}

function timeline(decisions, now, W) {
  const all = techniques(decisions);
  const X = (at) => 14 + at / (now || 1) * (W - 28);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": "decisions over time" });
  picture.append(svg("line", { class: "axis", x1: 14, x2: W - 14, y1: 18, y2: 18 }));
  for (const tick of ticks(0, now, W > 500 ? 6 : 3, true)) picture.append(svg("text", { x: X(tick), y: H - 6, "text-anchor": "middle" }, clock(tick)));
  for (const each of decisions) {
    const dot = svg("circle", { cx: X(each.at), cy: 18, r: 3.5 + 6 * Math.min(1, Math.max(0, each.measured ?? each.expected ?? 0)), fill: colour(all.indexOf(each.technique)), tabindex: 0, role: "button", "aria-label": `decision ${each.number}`, "data-number": each.number });
    dot.append(svg("title", {}, `#${each.number} ${each.technique}, ${each.query}: ${each.old} → ${each.new}`));
    picture.append(dot);
  }
  return html("div", {}, picture, html("div", { class: "keys" }, all.map((name, i) => html("span", {}, html("i", { vars: { background: colour(i) } }), name))));
}

function row(each) {
  return html("button", { type: "button", class: "decision", "data-number": each.number }, [
    html("span", { class: "muted" }, clock(each.at)),
    html("span", {}, html("b", {}, each.query), ` ${each.technique}: ${each.reason}`),
    gains(each),
    html("span", {}),
    html("span", { class: "what mono", title: `${each.old} → ${each.new}` }, `${each.old} → ${each.new}`),
  ]);
}

function gains({ expected, measured }) {
  return html("span", { class: "gain" }, [["expected", expected], ["measured", measured]].flatMap(([name, gain]) => [
    html("meter", { min: 0, max: 1, value: Math.max(0, gain ?? 0), "aria-label": `${name} gain`, title: `${name} gain` }), html("span", { class: gain < 0 ? "muted" : "" }, percent(gain))]));
}

/** The plan before and after a decision, one of all, side by side. */
async function compare(dialog, each, all) {
  const times = known("pictures") ?? [];
  // The picture drawn at the first look after the decision has it; the one before it has not.
  const after = times.findIndex((at) => at >= each.at);
  const together = all.filter(({ at }) => after > 0 && at > times[after - 1] && at <= times[after]);
  const sides = [side("before", each.old, "old"), side("after", each.new, "")];
  dialog.replaceChildren(
    html("div", { class: "head" }, html("h2", {}, `Decision ${each.number}: ${each.technique} of ${each.query}`), html("span", {}, button("✕", () => dialog.close(), { "aria-label": "close" }))),
    html("div", { class: "body" },
      html("p", {}, `${each.operator}: ${each.reason}.${each.expected === null ? "" : ` Expected gain ${percent(each.expected)}, measured ${percent(each.measured)} of the cost per tuple.`}`),
      html("div", { class: "pair" }, sides.map((s) => s.element)),
      together.length > 1 ? html("p", { class: "muted" }, `One call took the decisions ${together[0].number} to ${together.at(-1).number}: the pictures are those before and after it.`) : null,
      considered(each.statistics, each)),
  );
  dialog.showModal();
  if (after < 1) {
    sides.forEach((s) => s.drawn.remove());
    return;
  }
  const graphs = await Promise.all([times[after - 1], times[after]].map((at) => ask("/api/picture", { at })));
  const plans = graphs.map((graph) => new Map(graph?.nodes.map(({ entity, plan }) => [entity, plan.join()])));
  const isChanged = ({ entity }) => plans[0].get(entity) !== plans[1].get(entity);
  graphs.forEach((graph, i) => {
    if (!graph) return;
    const picture = new PlanPicture(sides[i].drawn, undefined, isChanged);
    picture.draw(graph);
    picture.mark(null, each.query);
    picture.fit();
  });
}

function side(title, plan, kind) {
  const drawn = html("div", { class: "drawn" });
  const steps = plan.split(/ \| /);
  const element = html("div", { class: "side" }, html("h3", {}, title),
    html("div", { class: "body" }, steps.map((step) => html("div", { class: "chips" }, step.split(/, (?![^([]*[)\]])/).map((part) => html("span", { class: `chip ${kind}` }, part))))), drawn);
  return { element, drawn };
}

/** What was known of every part, those that were not taken too: figures by place as a table, others by name. */
function considered({ considered: costs, ...known }, taken) {
  const entries = Object.entries(known);
  if (!entries.length && !costs) return null;
  const lists = entries.filter(([, value]) => Array.isArray(value));
  const places = Math.max(0, ...lists.map(([, value]) => value.length));
  const nested = entries.filter(([, value]) => value && typeof value === "object" && !Array.isArray(value));
  const single = entries.filter(([, value]) => value === null || typeof value !== "object");
  return html("section", { class: "considered" }, html("h3", {}, "What was considered"),
    costs ? alternatives(costs, taken) : null,
    places ? facts(["place", ...lists.map(([name]) => name)], Array.from({ length: places }, (_, i) => [String(i + 1), ...lists.map(([name, value]) => (name === "order" && Number.isInteger(value[i]) ? `F${value[i] + 1}` : figure(value[i])))])) : null,
    ...nested.map(([name, value]) => facts([name, ""], Object.entries(value).map(([key, each]) => [key, figure(each)]))),
    single.length ? facts(["", ""], single.map(([name, value]) => [name, figure(value)])) : null);
}

/** Every plan that was compared with what a tuple costs under it by the same statistics, the cheapest first. */
function alternatives(costs, { old, new: chosen }) {
  const most = Math.max(...Object.values(costs));
  return html("div", { class: "scroll" }, html("table", { class: "alternatives" },
    html("thead", {}, html("tr", {}, ["plan", "cost per tuple", "", ""].map((name, i) => html("th", { class: i === 1 ? "number" : "" }, name)))),
    html("tbody", {}, Object.entries(costs).sort(([, a], [, b]) => a - b).map(([plan, cost]) => html("tr", { class: plan === chosen ? "taken" : "" },
      html("td", { class: "mono", title: plan }, plan),
      html("td", { class: "number" }, short(cost)),
      html("td", {}, html("meter", { min: 0, max: most || 1, value: cost, "aria-label": `cost of ${plan}` })),
      html("td", { class: "muted" }, plan === chosen ? "taken" : plan === old ? "before" : `${costs[chosen] ? `× ${(cost / costs[chosen]).toFixed(2)}` : ""}`))))));
}

function facts(head, rows) {
  return html("div", { class: "scroll" }, html("table", {},
    html("thead", {}, html("tr", {}, head.map((name) => html("th", {}, name.replaceAll("_", " "))))),
    html("tbody", {}, rows.map((row) => html("tr", {}, row.map((value) => html("td", { class: "mono" }, value)))))));
}

function figure(value) {
  if (value === undefined) return "";
  if (Array.isArray(value)) return value.map(figure).join(", ");
  return value && typeof value === "object" ? Object.entries(value).map(([name, each]) => `${name} ${figure(each)}`).join("; ") : short(value);
}
