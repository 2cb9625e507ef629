// What the server tells, as it changes, and what can be asked of it and told to it.

const PARTS = ["now", "graph", "pictures", "decisions", "catalog", "feeds"];
const latest = new Map();
const listeners = new Map(PARTS.map((part) => [part, []]));

/** Call fn with a part now, where it is known, and whenever it changes. */
export function on(part, fn) {
  listeners.get(part).push(fn);
  if (latest.has(part)) fn(latest.get(part));
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
      source.addEventListener(part, (event) => {
        latest.set(part, JSON.parse(event.data));
        for (const fn of listeners.get(part)) fn(latest.get(part));
      });
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
