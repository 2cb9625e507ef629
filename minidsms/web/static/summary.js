// The line at the top: how much comes in and goes out, how far behind, how much is held.

import { html, write } from "./dom.js";
import { bytes, clock, duration, short } from "./format.js";
import { known, on } from "./live.js";

export function setUpSummary(list) {
  const values = new Map();
  const show = (name, value) => {
    if (!values.has(name)) {
      values.set(name, html("dd", {}));
      list.append(html("div", {}, html("dt", {}, name), values.get(name)));
    }
    write(values.get(name), value);
  };
  on("now", ({ at, told }) => {
    const sum = (kind, name) => Object.values(told[kind] ?? {}).reduce((total, each) => total + (each[name] ?? 0), 0);
    const lag = Math.max(0, ...Object.values(told.query ?? {}).map((each) => each.lag ?? 0));
    show("in", `${short(sum("source", "rate"))}/s`);
    show("out", `${short(sum("query", "rate"))}/s`);
    show("lag", duration(lag * (known("catalog")?.tick_ns ?? 1e6) / 1e9));
    show("queues", short(sum("queue", "elements")));
    show("memory", bytes(told.connection?.connection?.nbytes));
    show("running for", clock(at));
  });
}
