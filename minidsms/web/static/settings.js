// The settings of the connection. A change takes effect at once, or says why it cannot be.

import { button, html } from "./dom.js";
import { known, on, tell } from "./live.js";

export function setUpSettings(dialog, opener) {
  const said = html("p", { class: "muted", "aria-live": "polite" });
  const filter = html("input", { placeholder: "find a setting", "aria-label": "find a setting", on: { input: () => draw() } });
  const rows = html("div", {});
  const draw = () => {
    const wanted = filter.value.toLowerCase();
    const shown = (known("catalog")?.settings ?? []).filter(([name, , meaning]) => `${name} ${meaning}`.toLowerCase().includes(wanted));
    rows.replaceChildren(...shown.map((each) => row(each, said)));
  };
  dialog.append(
    html("div", { class: "head" }, html("h2", { id: "settings-title" }, "Settings"), filter, html("span", {}, button("✕", () => dialog.close(), { "aria-label": "close" }))),
    html("div", { class: "body" }, said, rows),
  );
  opener.addEventListener("click", () => {
    draw();
    dialog.showModal();
  });
  on("catalog", () => dialog.open && !dialog.contains(document.activeElement?.closest(".setting")) && draw());
}

function row([name, value, meaning, isLive], said) {
  const input = html("input", { value, disabled: !isLive, "aria-label": name, name });
  const set = async () => {
    const words = /^(-?\d+(\.\d+)?|[a-z_]+)$/i.test(input.value) ? input.value : `'${input.value.replaceAll("'", "''")}'`;
    const { error } = await tell("/api/run", { text: `SET ${name} = ${words}` }).catch((e) => ({ error: { text: e.message } }));
    said.textContent = error ? error.text : `${name} is ${input.value}`;
  };
  input.addEventListener("keydown", (event) => event.key === "Enter" && set());
  return html("div", { class: "setting" }, html("code", {}, name), input, isLive ? button("Set", set) : html("span", { class: "tag" }, "fixed"), html("small", {}, meaning));
}
