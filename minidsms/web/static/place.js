// The state of the page in its address, behind the #: what is chosen, pinned and shown. It can be kept and sent on.

const place = { theme: "", query: null, marked: null, view: "table", chosen: null, pins: [], x: "", y: "", by: "", east: "", north: "", colour: "" };
try {
  Object.assign(place, JSON.parse(decodeURIComponent(location.hash.slice(1)) || "{}"));
} catch {
  // An address that somebody has cut: the page begins anew.
}

export default place;

/** Keep what has changed of it. */
export function keep(changes) {
  Object.assign(place, changes);
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(place))}`);
}
