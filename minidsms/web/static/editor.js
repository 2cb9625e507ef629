// The editor: statements are completed while they are typed, run with Ctrl-Enter, and their errors shown with their place.

import { button, html } from "./dom.js";
import { ask, known, tell } from "./live.js";

const LINE = 18;
const PAUSE_MS = 140;

export function setUpEditor(area, examplesArea, chooseQuery, pins) {
  const text = html("textarea", { id: "text", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
    "aria-label": "statements of CQL", "aria-controls": "offered",
    placeholder: "CREATE STREAM ..; SELECT .. FROM ..\n\nCtrl-Enter runs it, Ctrl-Space completes" });
  const said = html("div", { class: "said", id: "said", "aria-live": "polite" });
  const completion = new Completion(text);
  const run = async (isExample = false) => {
    completion.close();
    const { results, error } = await tell("/api/run", { text: text.value }).catch(failed);
    said.replaceChildren(...results.map(shown).filter(Boolean));
    if (error) {
      said.append(html("pre", { class: "error" }, error.text));
      if (error.position) select(text, error.position);
    }
    const last = results.flatMap((each) => each.queries).at(-1);
    if (last) chooseQuery(last, !isExample);
    return !error;
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  area.append(
    html("div", { class: "editing" }, text, completion.list),
    html("div", { class: "row end run" }, button("Run", () => run(), { class: "main", id: "run" })),
    said,
  );
  setUpExamples(examplesArea, text, run, said, pins);
  return {
    say(error) {
      said.replaceChildren(html("pre", { class: "error" }, error));
    },
    write(statement) {
      text.value = statement;
      text.focus();
    },
    async carryOut(statement) {
      const { results, error } = await tell("/api/run", { text: statement }).catch(failed);
      said.replaceChildren(...results.map(shown).filter(Boolean));
      if (error) said.append(html("pre", { class: "error" }, error.text));
    },
  };
}

function failed(error) {
  return { results: [], error: { text: `error: ${error.message}`, position: null } };
}

/** What a statement gave. */
function shown({ table, warnings, queries, text }) {
  if (table && table.columns.length === 1 && table.columns[0] === "plan") {
    return html("pre", {}, table.rows.map((row) => row[0]).join("\n"));
  }
  if (table) {
    return html("div", { class: "scroll" }, html("table", {},
      html("thead", {}, html("tr", {}, table.columns.map((name) => html("th", {}, name)))),
      html("tbody", {}, table.rows.map((row) => html("tr", {}, row.map((cell) => html("td", { title: cell }, cell)))))));
  }
  if (warnings.length) return html("pre", {}, warnings.join("\n"));
  if (queries.length) return html("p", { class: "muted" }, `${queries.join(", ")} runs`);
  return html("p", { class: "muted" }, `done: ${text.split("\n")[0].slice(0, 60)}`);
}

/** Put the cursor where an error is. */
function select(text, [line, column]) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
  const end = start + (/^\w+/.exec(text.value.slice(start))?.[0].length ?? 1);
  text.focus();
  text.setSelectionRange(start, Math.min(end, text.value.length));
}

async function setUpExamples(area, text, run, said, pins) {
  const examples = await ask("/api/examples");
  const offered = (label, isMeant) => html("select", { "aria-label": label, on: { change: (event) => begin(event.target) } },
    html("option", { value: "" }, label), examples.map((each, i) => (isMeant(each) ? html("option", { value: String(i), title: each.paper }, each.name) : null)));
  const begin = async (menu) => {
    if (menu.value === "") return;
    const example = examples[Number(menu.value)];
    text.value = example.text;
    menu.value = "";
    if (example.schedulers) {
      said.replaceChildren(html("p", { class: "muted" }, `${example.about} (${example.paper})`));
      await pins.schedulers().catch((error) => said.append(html("pre", { class: "error" }, error.message)));
      return;
    }
    if (!(await run(true))) return;
    said.replaceChildren(html("p", { class: "muted" }, example.about, example.paper ? ` (${example.paper})` : ""));
    if (example.compared) await pins.compare(example.compared).catch((error) => said.append(html("pre", { class: "error" }, error.message)));
    const together = new Map();
    for (const [kind, entity, name] of example.watched) {
      const key = `${kind} ${name}`;
      together.set(key, [kind, [...(together.get(key)?.[1] ?? []), entity], name]);
    }
    for (const each of together.values()) pins.pin(...each);
    // Where declared sources are being read, those of the example are, too.
    if (known("feeds")?.some((feed) => feed.is_declared && feed.state !== "ended")) return;
    await tell("/api/feed", { action: "declared", speed: example.speed }).catch((error) => said.append(html("pre", { class: "error" }, error.message)));
  };
  area.className = "row";
  area.append(offered("Examples", (each) => !each.paper), offered("Experiments", (each) => each.paper));
}

/** What may stand at the cursor, offered below it. */
class Completion {
  constructor(text) {
    this.text = text;
    this.list = html("ul", { class: "offered", id: "offered", role: "listbox", hidden: true });
    this.offered = [];
    this.at = 0;
    this.asked = 0;
    text.addEventListener("input", () => this.#soon());
    text.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    text.addEventListener("keydown", (event) => this.#key(event));
  }

  close() {
    clearTimeout(this.timer);
    this.asked += 1;
    this.list.hidden = true;
  }

  #soon() {
    clearTimeout(this.timer);
    const before = this.text.value.slice(0, this.text.selectionStart);
    if (/[\w.[('"]$|\b(FROM|JOIN|BY|SET|SHOW|QUERY) $/i.test(before)) this.timer = setTimeout(() => this.#ask(), PAUSE_MS);
    else this.close();
  }

  async #ask() {
    const number = (this.asked += 1);
    const end = this.text.selectionStart;
    const found = await tell("/api/complete", { before: this.text.value.slice(0, end), after: this.text.value.slice(end) }).catch(() => []);
    if (number !== this.asked) return;
    const word = /\w*$/.exec(this.text.value.slice(0, end))[0].toLowerCase();
    this.offered = found.filter((each) => each.text.toLowerCase() !== word);
    this.end = end;
    this.#show(0);
  }

  #show(at) {
    this.at = at;
    this.list.hidden = !this.offered.length;
    this.list.replaceChildren(...this.offered.map((each, i) => html("li", {
      role: "option", "aria-selected": String(i === at), on: { pointerdown: (event) => { event.preventDefault(); this.#take(i); } },
    }, html("span", { class: "mono" }, each.shown || each.text), html("small", {}, each.meta))));
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
    const lines = this.text.value.slice(0, this.text.selectionStart).split("\n");
    const left = Math.min(10 + lines.at(-1).length * 7.55 - this.text.scrollLeft, this.text.clientWidth - 200);
    this.list.style.top = `${Math.min(10 + lines.length * LINE - this.text.scrollTop, this.text.clientHeight)}px`;
    this.list.style.left = `${Math.max(0, left)}px`;
  }

  #take(i) {
    const { text, length } = this.offered[i];
    const start = this.end - length, end = this.text.selectionStart;
    // More may have been typed since it was offered.
    const typed = this.text.value.slice(start, end).toLowerCase();
    if (end === this.end || (end > this.end && text.toLowerCase().startsWith(typed))) this.text.setRangeText(text, start, end, "end");
    this.close();
    this.text.focus();
  }

  #key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.#ask();
      return;
    }
    if (this.list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#show((this.at + step + this.offered.length) % this.offered.length);
    else if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey)) this.#take(this.at);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }
}
