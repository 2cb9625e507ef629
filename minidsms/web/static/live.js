// What the server tells, as it changes, and what can be asked of it and told to it.

// In the order in which they are drawn.
const PARTS = ["catalog", "feeds", "graph", "pictures", "decisions", "answer", "now"];
const PATIENCE_MS = 250;
const SHARE = 0.005;
const MOST_REST_MS = 2000;
const MOST_DECISIONS = 500;
const latest = new Map();
const listeners = new Map(PARTS.map((part) => [part, []]));
const heeding = [];
const asking = [];
const undrawn = new Set();
let timer = null;
let isAsking = false;
let restUntil = 0;

/** Call fn with a part now, where it is known, and whenever it is drawn: as it changes, of several changes the last. */
export function on(part, fn) {
  listeners.get(part).push(fn);
  if (latest.has(part)) fn(latest.get(part));
}

/** Call fn with all figures that come, also those that are not drawn. */
export function heed(fn) {
  heeding.push(fn);
}

/** Call fn before new figures are drawn; what its promise brings within a moment is drawn in the same frame. */
export function askAlong(fn) {
  asking.push(fn);
}

/** A part has come, from the server or as an answer to what was asked. Figures are drawn when drawing has rested. */
export function come(part, value) {
  latest.set(part, part === "decisions" ? merged(known(part) ?? [], value) : value);
  undrawn.add(part);
  if (part === "now") for (const fn of heeding) fn(value);
  if (isAsking) return;
  if (part !== "now") clearTimeout(timer);
  else if (timer) return;
  timer = setTimeout(gather, part === "now" ? Math.max(0, restUntil - performance.now()) : 0);
}

/** Of decisions only those are told that are new or known better. */
function merged(before, told) {
  const all = new Map([...before, ...told].map((each) => [each.number, each]));
  return [...all.values()].sort((a, b) => a.number - b.number).slice(-MOST_DECISIONS);
}

async function gather() {
  timer = null;
  isAsking = true;
  if (undrawn.has("now")) await Promise.race([Promise.all(asking.map((fn) => fn())), new Promise((go) => setTimeout(go, PATIENCE_MS))]);
  requestAnimationFrame(draw);
}

/** Draw what has come, in one frame, and rest for so long that drawing has a share of the time. */
function draw() {
  const began = performance.now();
  isAsking = false;
  for (const part of PARTS.filter((each) => undrawn.delete(each))) for (const fn of listeners.get(part)) fn(latest.get(part));
  setTimeout(() => {  // the browser has drawn
    const now = performance.now();
    restUntil = now + Math.min(MOST_REST_MS, (now - began) / SHARE);
  });
}

/** What was told last of a part. */
export function known(part) {
  return latest.get(part);
}

/** Listen to the server while the page can be seen; told(isLive) hears whether it can be heard. */
export function listen(told) {
  let source = null;
  const follow = () => {
    source?.close();
    source = document.hidden ? null : new EventSource("/events");
    if (!source) return;
    source.onopen = () => told(true);
    source.onerror = () => told(false);
    for (const part of PARTS) {
      source.addEventListener(part, ({ data }) => come(part, JSON.parse(data)));
    }
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}

async function answered(response) {
  const given = await response.json().catch(() => ({ error: response.statusText }));
  if (!response.ok) throw new Error(given.error ?? response.statusText);
  return given;
}

export async function ask(path, parameters = {}) {
  return answered(await fetch(`${path}?${new URLSearchParams(parameters)}`));
}

export async function tell(path, body) {
  const headers = { "Content-Type": "application/json" };
  return answered(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** A name as CQL writes it. */
export function named(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}
