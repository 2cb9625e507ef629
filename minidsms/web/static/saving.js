// Saving pictures and data as files.

import { html } from "./dom.js";

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "visibility", "font-family", "font-size", "font-weight", "paint-order"];

/** Save a picture as it is, its colours written into it. box: the part of it to be saved, or all it shows. */
export function saveSvg(picture, name, box = null) {
  const copy = picture.cloneNode(true);
  const [shown, written] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  shown.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const property of KEPT) written[i].setAttribute(property, plain(style.getPropertyValue(property)));
    written[i].removeAttribute("class");
    written[i].removeAttribute("style");
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  if (box) {
    copy.setAttribute("viewBox", box.join(" "));
    copy.setAttribute("width", box[2]);
    copy.setAttribute("height", box[3]);
  }
  save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Mixed colours as every reader of SVG knows them. */
function plain(value) {
  return value.replace(/color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)[^)]*\)/g, (_, ...parts) => `rgb(${parts.slice(0, 3).map((part) => Math.round(255 * part)).join(", ")})`);
}

function save(blob, name) {
  const url = URL.createObjectURL(blob);
  html("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
