// A chart as a file: the drawing of the page in its colours, with title and footnote.

import {element, svgElement} from "./dom.js";

const kAbove = 54,
  kBelow = 30,
  kMargin = 16;

// The rules of the page's style sheet, for viewers without it.
function styleSheet() {
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return `
    text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: ${colour("--quiet")} }
    .title { font-size: 17px; font-weight: 600; fill: ${colour("--ink")} }
    .t-grid, .t-axis, .t-origin, .t-history, .t-median { fill: none }
    .t-grid { stroke: ${colour("--grid")} }
    .t-axis { stroke: ${colour("--axis")} }
    .t-origin { stroke: ${colour("--axis")}; stroke-dasharray: 3 3 }
    .t-history { stroke: ${colour("--history")}; stroke-width: 1.4 }
    .t-median { stroke: ${colour("--blue")}; stroke-width: 1.8 }
    .t-band { fill: ${colour("--blue")} }
    .page { fill: ${colour("--page")} }`;
}

export function svgText(drawing, {title, subtitle, footnote}) {
  const {width, height: inner} = drawing.viewBox.baseVal;
  const height = kAbove + inner + kBelow;
  const copy = drawing.cloneNode(true);
  for (const mark of copy.querySelectorAll(".cursor-line, .cursor-dot, .t-select")) mark.remove();
  copy.removeAttribute("role");
  for (const [name, value] of Object.entries({y: kAbove, width, height: inner}))
    copy.setAttribute(name, value);
  const style = svgElement("style");
  style.textContent = styleSheet();
  const whole = svgElement(
    "svg",
    {width, height, viewBox: `0 0 ${width} ${height}`},
    style,
    svgElement("rect", {class: "page", width, height}),
    svgElement("text", {class: "title", x: kMargin, y: 26}, title),
    svgElement("text", {x: kMargin, y: 45}, subtitle),
    copy,
    svgElement("text", {x: kMargin, y: height - 10}, footnote),
  );
  return new XMLSerializer().serializeToString(whole);
}

// Twice the size, for screens of high resolution and for paper.
export async function pngBlob(svg) {
  const address = URL.createObjectURL(new Blob([svg], {type: "image/svg+xml"}));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = element("canvas");
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    const brush = canvas.getContext("2d");
    brush.scale(2, 2);
    brush.drawImage(image, 0, 0);
    return await new Promise(resolve => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
