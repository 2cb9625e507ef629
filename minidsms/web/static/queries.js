// The queries that run, and what may be done with each.

import { button, html, replace, write } from "./dom.js";
import { counted, short } from "./format.js";
import { known, named, on } from "./live.js";
import place from "./place.js";

export function setUpQueries(area, choose, editor, pins, showSettings) {
  const compare = async (query) => {
    try {
      await pins.compare(query);
    } catch (error) {
      editor.say(error.message);
    }
  };
  const figures = new Map();
  const draw = () => {
    const catalog = known("catalog");
    if (!catalog) return;
    figures.clear();
    const rows = catalog.queries.map((query) => row(query, figures, (name, isAsked) => { choose(name, isAsked); draw(); }, editor, compare, showSettings));
    if (catalog.more_queries) rows.push(html("p", { class: "muted" }, `and ${catalog.more_queries} more`));
    replace(area, rows.length ? rows : [html("p", { class: "empty" }, "No query runs.")]);
    if (!catalog.queries.some(({ name }) => name === place.query) && (place.query || catalog.queries.length)) choose(catalog.queries[0]?.name ?? null, false);
    update();
  };
  const update = () => {
    const told = known("now")?.told.query ?? {};
    for (const [name, element] of figures) {
      const now = told[name];
      write(element, now ? `${counted(now.results, "change")}, ${short(now.rate)}/s` : "");
    }
  };
  on("catalog", draw);
  on("now", update);
}

function row(query, figures, choose, editor, compare, showSettings) {
  const name = named(query.name);
  const isChosen = place.marked === query.name;
  const figure = html("span", { class: "muted" });
  figures.set(query.name, figure);
  const run = (statement) => editor.carryOut(statement);
  return html("div", { class: "query" },
    html("div", { class: "row" },
      button(query.name, () => choose(query.name, !isChosen), { class: "plain name", "aria-pressed": String(isChosen) }),
      html("span", { class: `tag ${query.state}` }, query.state), html("span", { class: "grow" }), figure),
    html("code", { title: query.text }, query.text.replace(/\s+/g, " ")),
    query.failure ? html("pre", { class: "error" }, query.failure) : null,
    html("div", { class: "row" },
      query.state === "paused"
        ? button("Resume", () => run(`ALTER QUERY ${name} RESUME`), { class: "plain" })
        : button("Pause", () => run(`ALTER QUERY ${name} PAUSE`), { class: "plain" }),
      button("Pin", () => run(`ALTER QUERY ${name} PIN PLAN`), { class: "plain" }),
      button("Unpin", () => run(`ALTER QUERY ${name} UNPIN PLAN`), { class: "plain" }),
      button("Compare", () => compare(query.name), { class: "plain", title: "run it a second time with a plan that stays, and watch what both take" }),
      button("Explain", () => run(`EXPLAIN ANALYZE ${name}`), { class: "plain" }),
      button("Settings", () => showSettings(query.name), { class: "plain", title: "memory, priority of memory, queues and batches of this query" }),
      button("Edit", () => editor.write(`DROP QUERY ${name};\nCREATE QUERY ${name} AS\n${query.text};\n`), { class: "plain" }),
      button("Drop", () => confirm(`Drop the query ${query.name}? What only it used is freed.`) && run(`DROP QUERY ${name}`), { class: "plain" })));
}
