// The line at the top: how much comes in and goes out, how far behind, how much is held.

import { html } from "./dom.js";
import { bytes, clock, duration, short } from "./format.js";
import { known, on } from "./live.js";

export function setUpSummary(list) {
  on("now", ({ at, told }) => {
    const sum = (kind, name) => Object.values(told[kind] ?? {}).reduce((total, each) => total + (each[name] ?? 0), 0);
    const lag = Math.max(0, ...Object.values(told.query ?? {}).map((each) => each.lag ?? 0));
    const shown = [
      ["in", `${short(sum("source", "rate"))}/s`],
      ["out", `${short(sum("query", "rate"))}/s`],
      ["lag", duration(lag * (known("catalog")?.tick_ns ?? 1e6) / 1e9)],
      ["queues", short(sum("queue", "elements"))],
      ["memory", bytes(told.connection?.connection?.nbytes)],
      ["running for", clock(at)],
    ];
    list.replaceChildren(...shown.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value))));
  });
}
