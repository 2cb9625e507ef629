// Elements of the page. Whatever comes from the data stands in them as text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** Attributes and listeners of an element; `on` names listeners, `vars` custom properties of its style. */
function dress(element, given) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, fn] of Object.entries(value)) element.addEventListener(event, fn);
    else if (name === "vars") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return element;
}

/** An HTML element: its name, attributes, and children, each an element or a text. */
export function html(name, given = {}, ...children) {
  const element = dress(document.createElement(name), given);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(asNode));
  return element;
}

/** An SVG element, likewise. */
export function svg(name, given = {}, ...children) {
  const element = dress(document.createElementNS(SVG, name), given);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(asNode));
  return element;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** Let an element have this text. What is as it was is left alone: the browser need not draw it. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Likewise an attribute. */
export function set(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Put other children into an element; the control that has the focus keeps it, by its place among them. */
export function replace(area, children) {
  const controls = () => [...area.querySelectorAll("a, button, select, input")];
  const focused = controls().indexOf(document.activeElement);
  area.replaceChildren(...children);
  controls()[focused]?.focus();
}

/** Let an area have these children, in this order; those that stand there already stay. */
export function arrange(area, children) {
  let at = area.firstChild;
  for (const child of children) {
    if (child === at) at = at.nextSibling;
    else area.insertBefore(child, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export function byId(id) {
  return document.getElementById(id);
}

export function button(label, fn, given = {}) {
  return html("button", { type: "button", ...given, on: { click: fn } }, label);
}

/** A menu of [value, label]. */
export function menu(options, chosen, fn, given = {}) {
  const made = html("select", { ...given, on: { change: () => fn(made.value) } },
    options.map(([value, label]) => html("option", { value, selected: value === chosen }, label)));
  return made;
}
