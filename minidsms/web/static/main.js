// Puts the page together: each part of it is a module of its own.

import { setUpAnswers } from "./answers.js";
import { setUpDecisions } from "./decisions.js";
import { button, byId } from "./dom.js";
import { setUpEditor } from "./editor.js";
import { setUpFeeds } from "./feeds.js";
import { Inspector } from "./inspector.js";
import { listen, on } from "./live.js";
import { setUpPins } from "./pins.js";
import place, { keep } from "./place.js";
import { noPlan, PlanPicture } from "./plan.js";
import { setUpQueries } from "./queries.js";
import { saveSvg } from "./saving.js";
import { setUpSettings } from "./settings.js";
import { setUpSummary } from "./summary.js";

const area = byId("plan-picture");
const pins = setUpPins(byId("pinned"));
const inspector = new Inspector(byId("inspector"), pins);
const picture = new PlanPicture(area, (node) => choose(node), ({ queries }) => queries.includes(inspector.node?.queries.at(-1) ?? place.query));
const empty = noPlan();
area.append(empty);

function choose(node) {
  keep({ chosen: node?.entity ?? null });
  inspector.show(node);
  picture.mark(place.chosen, place.marked);
  if (!picture.isMoved) picture.fit();
}

inspector.onClose = () => choose(null);

on("graph", (graph) => {
  empty.hidden = graph.nodes.length > 0;
  byId("undrawn").textContent = graph.undrawn ? `and ${graph.undrawn} older queries` : "";
  picture.svg.toggleAttribute("hidden", !graph.nodes.length);
  picture.draw(graph);
  picture.mark(place.chosen, place.marked);
  inspector.keepUp(graph);
  if (place.chosen && !inspector.node) inspector.show(graph.nodes.find((node) => node.entity === place.chosen) ?? null);
});
on("now", (now) => {
  picture.figures(now);
  inspector.figures(now);
});

byId("plan-tools").append(
  button("−", () => picture.zoom(1.25), { "aria-label": "smaller", class: "plain" }),
  button("+", () => picture.zoom(0.8), { "aria-label": "larger", class: "plain" }),
  button("Fit", () => picture.fit(true), { class: "plain" }),
  button("Save SVG", () => saveSvg(picture.svg, "plan", picture.whole), { class: "plain" }),
);

const answers = setUpAnswers(byId("answer"), byId("answer-tools"));
const editor = setUpEditor(byId("editor"), byId("examples"), chooseQuery, pins);
setUpFeeds(byId("feeds"));
const showSettings = setUpSettings(byId("settings"), byId("open-settings"));
setUpQueries(byId("query-list"), chooseQuery, editor, pins, showSettings);
setUpDecisions(byId("timeline"), byId("decision-count"), byId("comparison"));
setUpSummary(byId("summary"));

/** Show a query's answers; isAsked: and put aside what does not serve it. */
function chooseQuery(name, isAsked = true) {
  keep({ query: name, marked: isAsked ? name : null });
  picture.mark(place.chosen, place.marked);
  if (isAsked) picture.fit();
  answers.show(name);
}

byId("theme").addEventListener("click", () => {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  keep({ theme: isDark ? "light" : "dark" });
  document.documentElement.dataset.theme = place.theme;
});
if (place.theme) document.documentElement.dataset.theme = place.theme;

listen((isLive) => {
  const state = byId("state");
  state.className = isLive ? "live" : "gone";
  state.textContent = isLive ? "live" : "not connected";
  if (isLive) pins.catchUp();
});
