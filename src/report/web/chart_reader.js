// Reads values off a chart: a crosshair and a tooltip for mouse, touch and keys, with numbers and times as
// text. Shared by the server's page, which imports it, and by reports, which hold it inline.

export const kMonths = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
export const twoDigits = n => String(n).padStart(2, "0");

// `time` in milliseconds; `precision`: "year", "month", "day", "minute" or "second".
export function formatTime(time, precision) {
  const date = new Date(time);
  const year = String(date.getUTCFullYear());
  if (precision === "year") return year;
  const month = `${kMonths[date.getUTCMonth()]} ${year}`;
  if (precision === "month") return month;
  const day = `${date.getUTCDate()} ${month}`;
  if (precision === "day") return day;
  const minute = `${day} ${twoDigits(date.getUTCHours())}:${twoDigits(date.getUTCMinutes())}`;
  return precision === "minute" ? minute : `${minute}:${twoDigits(date.getUTCSeconds())}`;
}

// Thousands in groups, a real minus; decimals below 0: scientific, with `digits` after the point.
export function formatValue(value, decimals, digits = 3) {
  if (value === null || value === undefined) return "\u2013";
  let text;
  if (decimals < 0) {
    text = value === 0 ? "0" : value.toExponential(digits).replace("e+", "e");
  } else {
    const parts = Math.abs(value).toFixed(decimals).split(".");
    parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, ",");
    text = (value < 0 ? "-" : "") + parts.join(".");
  }
  return text.replace(/-/g, "\u2212");
}

const filled = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
// element("td", {class: "up"}, "text", child)
export const element = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);
export const svgElement = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// The chart given to the constructor has points 0 to count() - 1 and describes each:
//   count(), start(): number of points, the one where the keys begin; pageSize(): of Page Up and Down
//   when(i), rows(i): its time as text, and [name, text] for each value
//   dots(i): [{kind: "history", "median", "actual" or "d-0" to "d-8", value}], drawn on the crosshair
//   views(): its drawings {svg, x(i), y(value), at(x): the nearest point, left, right, top, bottom}, in units of the
//     svg's viewBox; at most one of them is displayed
//   reveal(i): scrolls the point into view
export class ChartReader {
  #host;
  #chart;
  #tip = element("div", {class: "tip", hidden: ""});
  #current = -1;

  constructor(host, chart) {
    this.#host = host;
    this.#chart = chart;
    host.append(this.#tip);
    host.tabIndex = 0;
    // Screen readers announce a slider's value at each arrow key.
    host.setAttribute("role", "slider");
    host.setAttribute("aria-valuemin", 0);
    host.addEventListener("pointerleave", event => {
      if (event.pointerType !== "touch") this.hide(); // a lifted finger leaves the reading in place
    });
    host.addEventListener("blur", () => this.hide());
    host.addEventListener("focus", () => {
      if (this.#current < 0 && chart.count() > 0 && host.matches(":focus-visible")) this.show(chart.start());
    });
  }

  get current() {
    return this.#current; // the point that is read, or -1
  }

  // Call after the points have changed.
  reset() {
    this.hide();
    this.#host.setAttribute("aria-valuemax", this.#chart.count() - 1);
    this.#host.setAttribute("aria-valuenow", this.#chart.start());
  }

  // Adds the crosshair to a new drawing. `dots`: the most that dots(i) returns; a forecast has two.
  addMarks(svg, dots = 2) {
    svg.append(svgElement("line", {class: "cursor-line", visibility: "hidden"}));
    for (let i = 0; i < dots; ++i) svg.append(svgElement("circle", {class: "cursor-dot", visibility: "hidden", r: 4.5}));
  }

  show(wanted) {
    const chart = this.#chart;
    const i = Math.min(Math.max(wanted, 0), chart.count() - 1);
    this.#current = i;
    for (const view of chart.views()) this.#mark(view, i);
    const rows = chart.rows(i),
      when = chart.when(i);
    const list = element("dl");
    for (const [name, text] of rows) list.append(element("dt", {}, name), element("dd", {}, text));
    const title = when.charAt(0).toUpperCase() + when.slice(1);
    this.#tip.replaceChildren(element("div", {class: "when"}, title), list);
    this.#host.setAttribute("aria-valuenow", i);
    this.#host.setAttribute("aria-valuetext", `${title}: ${rows.map(row => row.join(" ")).join(", ")}`);
    this.#placeTip(i);
  }

  hide() {
    this.#current = -1;
    this.#tip.hidden = true;
    for (const mark of this.#host.querySelectorAll(".cursor-line, .cursor-dot")) mark.setAttribute("visibility", "hidden");
  }

  // Reads the point under the pointer.
  follow(event) {
    const shown = this.#shown();
    if (shown) this.show(shown.view.at((event.clientX - shown.box.left) / shown.scale));
  }

  // Whether it was a key for reading values.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "Escape") {
      this.hide();
      return true;
    }
    const chart = this.#chart,
      last = chart.count() - 1,
      now = this.#current < 0 ? chart.start() : this.#current;
    const wanted = {
      ArrowLeft: now - 1,
      ArrowDown: now - 1,
      ArrowRight: now + 1,
      ArrowUp: now + 1,
      PageDown: now - chart.pageSize(),
      PageUp: now + chart.pageSize(),
      Home: 0,
      End: last,
    }[event.key];
    if (wanted === undefined) return false;
    event.preventDefault();
    const point = Math.min(Math.max(wanted, 0), last);
    chart.reveal(point);
    this.show(point);
    return true;
  }

  // The drawing on display, its box on the screen, and screen pixels per unit of the drawing.
  #shown() {
    for (const view of this.#chart.views()) {
      const box = view.svg.getBoundingClientRect();
      if (box.width > 0) return {view, box, scale: box.width / view.svg.viewBox.baseVal.width};
    }
    return null;
  }

  #isInside(view, i) {
    return view.x(i) >= view.left - 1 && view.x(i) <= view.right + 1;
  }

  #mark(view, i) {
    const set = (mark, attributes) => filled(mark, attributes, []);
    const x = view.x(i),
      inside = this.#isInside(view, i),
      visibility = inside ? "visible" : "hidden";
    set(view.svg.querySelector(".cursor-line"), {visibility, x1: x, x2: x, y1: view.top, y2: view.bottom});
    const dots = this.#chart.dots(i);
    view.svg.querySelectorAll(".cursor-dot").forEach((mark, k) => {
      const {kind = "", value} = dots[k] ?? {};
      if (!Number.isFinite(value)) return set(mark, {visibility: "hidden"});
      set(mark, {class: `cursor-dot ${kind}`, visibility, cx: x, cy: view.y(value)});
    });
  }

  // Next to the crosshair, on the side with room; at the top or bottom, whichever leaves the line in sight.
  #placeTip(i) {
    const shown = this.#shown();
    this.#tip.hidden = !shown || !this.#isInside(shown.view, i);
    if (this.#tip.hidden) return;
    const {view, scale} = shown;
    const x = view.x(i) * scale,
      top = view.top * scale,
      bottom = view.bottom * scale;
    const gap = 14,
      {offsetWidth: width, offsetHeight: height} = this.#tip;
    const fits = x + gap + width <= this.#host.clientWidth;
    const left = fits ? x + gap : Math.max(0, x - gap - width);
    const value = this.#chart.dots(view.at((left + width / 2) / scale))[0]?.value;
    const low = Number.isFinite(value) && view.y(value) < (view.top + view.bottom) / 2;
    this.#tip.style.left = `${left}px`;
    this.#tip.style.top = `${low ? bottom - height - 8 : top + 6}px`;
  }
}
