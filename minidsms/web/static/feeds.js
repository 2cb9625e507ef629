// What is read into the streams: sources that were declared, and files; each can wait, go on, stop, and change its speed.

import { button, html, menu, replace } from "./dom.js";
import { counted, percent } from "./format.js";
import { known, on, tell } from "./live.js";

const SPEEDS = [["0", "as fast as it can"], ["1", "real time"], ["10", "10 ×"], ["60", "60 ×"], ["600", "600 ×"]];

export function setUpFeeds(area) {
  const said = html("p", { class: "muted", "aria-live": "polite" });
  const control = async (body) => {
    said.textContent = "";
    try {
      await tell("/api/feed", body);
    } catch (error) {
      said.textContent = error.message;
    }
  };
  let speed = "10";
  const chosenSpeed = menu(SPEEDS, speed, (chosen) => { speed = chosen; }, { "aria-label": "speed" });
  const path = html("input", { placeholder: "file, as events.csv", "aria-label": "file", class: "grow" });
  const target = html("select", { "aria-label": "stream" });
  const running = html("div", { id: "running" });
  area.append(
    html("div", { class: "row" }, html("h3", { class: "grow" }, "Feeds"), chosenSpeed,
      button("Read sources", () => control({ action: "declared", speed: Number(speed) }), { id: "feed" })),
    html("details", {}, html("summary", { class: "muted" }, "a file"),
      html("div", { class: "row" }, path, target, button("Read", () => control({ action: "file", name: target.value, path: path.value, speed: Number(speed) })))),
    running, said,
  );
  on("catalog", ({ inputs }) => {
    const chosen = target.value;
    target.replaceChildren(...inputs.map(({ name }) => html("option", { value: name, selected: name === chosen }, name)));
  });
  const draw = (feeds) => replace(running, feeds.map((feed) => row(feed, control)));
  on("feeds", draw);
  draw(known("feeds") ?? []);
}

/** What is offered, and the present speed among it. */
function speeds(speed) {
  const offered = SPEEDS.some(([value]) => value === String(speed ?? 0)) ? SPEEDS : [...SPEEDS, [String(speed), `${speed} ×`]];
  return [...offered].sort(([a], [b]) => a - b);
}

function row({ number, names, rows, state, fraction, speed, error }, control) {
  const act = (action) => control({ action, number });
  return html("div", { class: "feed" },
    html("div", { class: "row" },
      html("span", { class: "grow" }, `${names.join(", ")}: ${counted(rows, "row")}`, fraction === null ? "" : `, ${percent(fraction)}`),
      html("span", { class: `tag ${state}` }, state)),
    html("div", { class: "row end" },
      state === "ended" ? null : menu(speeds(speed), String(speed ?? 0), (chosen) => control({ action: "speed", number, speed: Number(chosen) }), { "aria-label": "speed of this feed" }),
      state === "running" ? button("Pause", () => act("pause")) : null,
      state === "paused" ? button("Go on", () => act("resume")) : null,
      state === "ended" ? null : button("Stop", () => act("stop"))),
    fraction === null || state === "ended" ? null : html("progress", { value: fraction, max: 1 }),
    error ? html("pre", { class: "error" }, error) : null);
}
