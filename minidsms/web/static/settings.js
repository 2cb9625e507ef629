// The settings of the connection, and those a query may have of its own. A change takes effect at once, or says why not.

import { button, html } from "./dom.js";
import { known, named, on, tell } from "./live.js";

/** Returns what shows the settings of a query. */
export function setUpSettings(dialog, opener) {
  let query = null;
  const title = html("h2", { id: "settings-title" });
  const said = html("p", { class: "muted", "aria-live": "polite" });
  const filter = html("input", { placeholder: "find a setting", "aria-label": "find a setting", on: { input: () => draw() } });
  const rows = html("div", {});
  const draw = () => {
    const catalog = known("catalog");
    const all = catalog?.settings ?? [];
    const own = new Map(catalog?.queries.find(({ name }) => name === query)?.settings.map(([name, ...rest]) => [name, rest]));
    const wanted = filter.value.toLowerCase();
    const shown = all.filter(([name, , meaning]) => (query === null || own.has(name)) && `${name} ${meaning}`.toLowerCase().includes(wanted));
    title.textContent = query === null ? "Settings" : `Settings of ${query}`;
    rows.replaceChildren(...shown.map(([name, value, meaning, isLive]) => {
      if (query === null) return row(name, value, meaning, isLive, `SET ${name} =`, said);
      const [present, isOwn] = own.get(name);
      return row(name, present, `${meaning}${isOwn ? " (its own)" : ""}`, true, `ALTER QUERY ${named(query)} SET ${name} =`, said);
    }));
  };
  const open = (name) => {
    query = name;
    said.textContent = filter.value = "";
    draw();
    dialog.showModal();
  };
  dialog.append(
    html("div", { class: "head" }, title, filter, html("span", {}, button("✕", () => dialog.close(), { "aria-label": "close" }))),
    html("div", { class: "body" }, said, rows),
  );
  opener.addEventListener("click", () => open(null));
  on("catalog", () => dialog.open && !dialog.contains(document.activeElement?.closest(".setting")) && draw());
  return open;
}

function row(name, value, meaning, isLive, statement, said) {
  const input = html("input", { value, disabled: !isLive, "aria-label": name, name });
  const set = async () => {
    const words = /^(-?\d+(\.\d+)?|[a-z_]+)$/i.test(input.value) ? input.value : `'${input.value.replaceAll("'", "''")}'`;
    const { error } = await tell("/api/run", { text: `${statement} ${words}` }).catch((e) => ({ error: { text: e.message } }));
    said.textContent = error ? error.text : `${name} is ${input.value}`;
  };
  input.addEventListener("keydown", (event) => event.key === "Enter" && set());
  return html("div", { class: "setting" }, html("code", {}, name), input, isLive ? button("Set", set) : html("span", { class: "tag" }, "fixed"), html("small", {}, meaning));
}
