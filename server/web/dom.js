// The few things every view does with the document.

export const byId = id => document.getElementById(id);

// element("td", {class: "up"}, "text", child)
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A sentence in its box, or no box. Markup in it stays text.
export function say(box, sentence) {
  box.textContent = sentence || "";
  box.hidden = !sentence;
}

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
    input.value = ""; // choosing the same file again is a choice too
  });
}

export function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
