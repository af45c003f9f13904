// Helpers for the document, used by every view.

import {element} from "./chart_reader.js";

export const byId = id => document.getElementById(id);

export {element, svgElement} from "./chart_reader.js";

// Shows a message in its box, or hides the box. Markup in it stays text.
export function say(box, sentence) {
  box.textContent = sentence || "";
  box.hidden = !sentence;
}

// options: [value, text].
export function setOptions(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => element("option", {value}, text)));
  if (chosen !== undefined) select.value = chosen;
}

// Files dropped on `zone` or chosen with `input`.
export function takeFiles(zone, input, take) {
  const highlight = on => zone.classList.toggle("over", on);
  zone.addEventListener("dragover", event => {
    event.preventDefault();
    highlight(true);
  });
  zone.addEventListener("dragleave", () => highlight(false));
  zone.addEventListener("drop", event => {
    event.preventDefault();
    highlight(false);
    if (event.dataTransfer.files.length > 0) take(Array.from(event.dataTransfer.files));
  });
  input.addEventListener("change", () => {
    if (input.files.length > 0) take(Array.from(input.files));
    input.value = ""; // so that the same file can be chosen again
  });
}

// Downloads text or a Blob as a file.
export function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
