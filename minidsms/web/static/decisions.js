// The decisions that changed plans: on a line of time and as a list; each with the plan before and after it.

import { button, html, svg } from "./dom.js";
import { clock, percent } from "./format.js";
import { ask, known, on } from "./live.js";
import { colour, ticks } from "./chart.js";
import { PlanPicture } from "./plan.js";

const W = 800;
const H = 46;
const MOST_LISTED = 200;

export function setUpDecisions(area, count, dialog) {
  const line = html("div", { class: "timeline" });
  const list = html("div", { class: "decided" });
  area.append(line, list);
  const draw = () => {
    const decisions = known("decisions") ?? [];
    const now = known("now")?.at ?? 1;
    count.textContent = decisions.length ? `${decisions.length} so far` : "";
    line.replaceChildren(decisions.length ? timeline(decisions, now, (each) => compare(dialog, each)) : html("p", { class: "empty" }, "No plan has changed yet."));
  };
  on("decisions", (decisions) => {
    list.replaceChildren(...decisions.slice(-MOST_LISTED).reverse().map((each) => row(each, () => compare(dialog, each))));
    draw();
  });
  on("now", draw);
}

function techniques(decisions) {
  return [...new Set(decisions.map((each) => each.technique))];
}

function timeline(decisions, now, choose) {
  const all = techniques(decisions);
  const X = (at) => 14 + (at ?? 0) / (now || 1) * (W - 28);
  const picture = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": "decisions over time" });
  picture.append(svg("line", { class: "axis", x1: 14, x2: W - 14, y1: 18, y2: 18 }));
  for (const tick of ticks(0, now, 6)) picture.append(svg("text", { x: X(tick), y: H - 6, "text-anchor": "middle" }, clock(tick)));
  for (const each of decisions) {
    const dot = svg("circle", { cx: X(each.at), cy: 18, r: 3.5 + 6 * Math.min(1, Math.max(0, each.measured ?? each.expected ?? 0)), fill: colour(all.indexOf(each.technique)), tabindex: 0, role: "button", "aria-label": `decision ${each.number}`,
      on: { click: () => choose(each), keydown: (event) => event.key === "Enter" && choose(each) } });
    dot.append(svg("title", {}, `#${each.number} ${each.technique}, ${each.query}: ${each.old} → ${each.new}`));
    picture.append(dot);
  }
  return html("div", {}, picture, html("div", { class: "keys" }, all.map((name, i) => html("span", {}, html("i", { vars: { background: colour(i) } }), name))));
}

function row(each, choose) {
  return button([
    html("span", { class: "muted" }, each.at === null ? "before" : clock(each.at)),
    html("span", {}, html("b", {}, each.query), ` ${each.technique}: ${each.reason}`),
    gains(each),
    html("span", {}),
    html("span", { class: "what mono", title: `${each.old} → ${each.new}` }, `${each.old} → ${each.new}`),
  ], choose, { class: "decision" });
}

function gains({ expected, measured }) {
  return html("span", { class: "gain" }, [["expected", expected], ["measured", measured]].flatMap(([name, gain]) => [
    html("meter", { min: 0, max: 1, value: Math.max(0, gain ?? 0), "aria-label": `${name} gain`, title: `${name} gain` }), html("span", { class: gain < 0 ? "muted" : "" }, percent(gain))]));
}

/** The plan before and after a decision, side by side. */
async function compare(dialog, each) {
  const times = known("pictures") ?? [];
  // The picture drawn at the first look after the decision has it; the one before it has not.
  const after = each.at === null ? -1 : times.findIndex((at) => at >= each.at);
  const sides = [side("before", each.old, "old"), side("after", each.new, "")];
  dialog.replaceChildren(
    html("div", { class: "head" }, html("h2", {}, `Decision ${each.number}: ${each.technique} of ${each.query}`), html("span", {}, button("✕", () => dialog.close(), { "aria-label": "close" }))),
    html("div", { class: "body" },
      html("p", {}, `${each.operator}. ${each.reason}. Expected gain ${percent(each.expected)}, measured ${percent(each.measured)} of the cost per tuple.`),
      html("div", { class: "pair" }, sides.map((s) => s.element)),
      statistics(each.statistics)),
  );
  dialog.showModal();
  if (after < 1) {
    sides.forEach((s) => s.drawn.remove());
    return;
  }
  for (const [i, at] of [times[after - 1], times[after]].entries()) {
    const graph = await ask("/api/picture", { at });
    if (!graph) continue;
    const picture = new PlanPicture(sides[i].drawn);
    picture.draw(graph);
    picture.mark(null, each.query);
    picture.fit();
  }
}

function side(title, plan, kind) {
  const drawn = html("div", { class: "drawn" });
  const steps = plan.split(/ \| /);
  const element = html("div", { class: "side" }, html("h3", {}, title),
    html("div", { class: "body" }, steps.map((step) => html("div", { class: "chips" }, step.split(/, (?![^(]*\))/).map((part) => html("span", { class: `chip ${kind}` }, part))))), drawn);
  return { element, drawn };
}

function statistics(known) {
  const rows = Object.entries(known);
  if (!rows.length) return null;
  return html("details", {}, html("summary", { class: "muted" }, "what was known when it was taken"),
    html("table", {}, html("tbody", {}, rows.map(([name, value]) => html("tr", {}, html("td", {}, name), html("td", { class: "mono" }, value))))));
}
