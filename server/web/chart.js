// A fan chart to look around in: history, median, bands; wheel, drag and keys move the view, pointer
// and arrows read values. Drawn as SVG in the size of its box.

import {formatTime, formatValue, precisionOf, stepTicks, timeTicks, valueTicks} from "./axis.js";
import {element, svgElement} from "./dom.js";

const kBandOpacity = 0.2; // of each band; nested bands add up
const kTop = 22,
  kRight = 16,
  kBottom = 28;
const kLeastSteps = 8; // the closest view

const finite = value => Number.isFinite(value); // null is missing

export class FanChart {
  #host;
  #tip = element("div", {class: "tip", hidden: ""});
  #data = null;
  #view = {from: 0, to: 1}; // in steps; history first, the forecast behind it
  #cursor = -1;
  #drag = null;
  #frame = null;
  #pending = 0;

  constructor(host) {
    this.#host = host;
    host.append(svgElement("svg", {role: "presentation"}), this.#tip);
    // A slider is what assistive software knows to announce a value for at each arrow key.
    for (const [name, value] of [
      ["tabindex", 0],
      ["role", "slider"],
      ["aria-label", "Chart"],
      ["aria-valuemin", 0],
    ])
      host.setAttribute(name, value);
    new ResizeObserver(() => this.#redraw()).observe(host);
    host.addEventListener("wheel", event => this.#wheel(event), {passive: false});
    host.addEventListener("pointerdown", event => this.#press(event));
    host.addEventListener("pointermove", event => this.#move(event));
    host.addEventListener("pointerup", event => this.#release(event));
    host.addEventListener("pointercancel", event => this.#release(event));
    host.addEventListener("pointerleave", event => {
      if (event.pointerType !== "touch" && !this.#drag) this.#hide();
    });
    host.addEventListener("dblclick", () => this.reset());
    host.addEventListener("blur", () => this.#hide());
    host.addEventListener("focus", () => {
      if (this.#data && this.#cursor < 0 && !this.#drag && host.matches(":focus-visible"))
        this.#show(this.#data.history.length);
    });
    host.addEventListener("keydown", event => this.#key(event));
  }

  // {history, median: [value], bands: [{label, low, high}] widest first, times: [ms] of all steps or null,
  // firstNumber: of the first step without times, label, decimals: of values read}. `keepView`: the same
  // series at the same length is not looked at anew.
  setData(data, keepView) {
    const before = this.#data;
    this.#data = data;
    this.#data.precision = data.times ? precisionOf(data.times) : null;
    const same =
      keepView &&
      before &&
      before.history.length === data.history.length &&
      before.median.length === data.median.length;
    this.#host.setAttribute("aria-label", `Chart of ${data.label}`);
    this.#host.setAttribute("aria-valuemax", this.#count() - 1);
    if (same) return this.#redraw();
    this.#hide();
    this.reset();
  }

  #count() {
    return this.#data.history.length + this.#data.median.length;
  }

  // The forecast and three times its length of history, as the command line draws it.
  reset() {
    if (!this.#data) return;
    const {history, median} = this.#data;
    this.#setView(history.length - Math.max(120, 3 * median.length), this.#count() - 1);
  }
  showAll() {
    if (this.#data) this.#setView(0, this.#count() - 1);
  }
  // Below 1 is closer; `at` stays where it is.
  zoom(factor, at = null) {
    if (!this.#data) return;
    const {from, to} = this.#view;
    const fixed = at ?? (this.#cursor >= 0 ? this.#cursor : (from + to) / 2);
    this.#setView(fixed - (fixed - from) * factor, fixed + (to - fixed) * factor);
  }
  get view() {
    return {...this.#view};
  }

  #setView(from, to) {
    const last = this.#count() - 1;
    const size = Math.min(Math.max(to - from, Math.min(kLeastSteps, last)), last);
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(middle - size / 2, 0), last - size);
    this.#view = {from: start, to: start + Math.max(size, 1e-9)};
    this.#redraw();
  }

  #redraw() {
    if (this.#pending || !this.#data) return;
    this.#pending = requestAnimationFrame(() => {
      this.#pending = 0;
      this.#draw();
    });
  }

  // ---------------------------------------------------------------------------------------- drawing

  #visible(values, first, take) {
    const from = Math.max(0, Math.floor(this.#view.from) - first),
      to = Math.min(values.length - 1, Math.ceil(this.#view.to) - first);
    for (let i = from; i <= to; ++i) if (finite(values[i])) take(values[i], first + i);
  }

  #valueRange() {
    let low = Infinity,
      high = -Infinity;
    const add = value => {
      low = Math.min(low, value);
      high = Math.max(high, value);
    };
    const {history, median, bands} = this.#data;
    this.#visible(history, 0, add);
    this.#visible(median, history.length, add);
    for (const band of bands)
      for (const edge of [band.low, band.high]) this.#visible(edge, history.length, add);
    if (low > high) return [0, 1];
    const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    return [low - room, high + room];
  }

  #layout() {
    const width = this.#host.clientWidth,
      height = this.#host.clientHeight;
    const [low, high] = this.#valueRange();
    const values = valueTicks(low, high, Math.max(2, Math.round((height - kTop - kBottom) / 64)));
    const labels = values.ticks.map(tick => formatValue(tick, values.decimals));
    const left = 14 + 7.2 * Math.max(...labels.map(label => label.length), 2);
    const {from, to} = this.#view;
    const inner = width - left - kRight,
      bottom = height - kBottom;
    return {
      width,
      height,
      left,
      bottom,
      labels,
      ticks: values.ticks,
      right: width - kRight,
      x: step => left + ((step - from) / (to - from)) * inner,
      y: value => bottom - ((value - low) / (high - low)) * (bottom - kTop),
      step: x => from + ((x - left) / inner) * (to - from),
      perPixel: (to - from) / inner,
    };
  }

  // Runs of points; where several fall on a pixel, the lowest and the highest of them.
  #points(values, first) {
    const {x, y, perPixel} = this.#frame;
    const runs = [];
    let run = null,
      column = null;
    const flush = () => {
      if (!column) return;
      run.push(
        ...(column.lowAt < column.highAt ? [column.low, column.high] : [column.high, column.low]).map(
          value => [column.x, y(value)],
        ),
      );
      column = null;
    };
    let before = -2;
    this.#visible(values, first, (value, step) => {
      if (step !== before + 1) {
        flush();
        run = [];
        runs.push(run);
      }
      before = step;
      if (perPixel <= 1) return run.push([x(step), y(value)]);
      const pixel = Math.round(x(step));
      if (column && column.x !== pixel) flush();
      column ||= {x: pixel, low: value, high: value, lowAt: step, highAt: step};
      if (value < column.low) {
        column.low = value;
        column.lowAt = step;
      }
      if (value > column.high) {
        column.high = value;
        column.highAt = step;
      }
    });
    flush();
    return runs;
  }
  #path(values, first) {
    const text = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    // A point between two gaps is a dot.
    return this.#points(values, first)
      .map(run => (run.length === 1 ? `M${text(run[0])}h.01` : `M${run.map(text).join("L")}`))
      .join("");
  }
  // Edges start from the last observation, so that a band grows out of it.
  #joined(values) {
    const {history} = this.#data;
    const last = history[history.length - 1];
    return finite(last) ? [[last, ...values], history.length - 1] : [values, history.length];
  }
  #bandPath(band) {
    const text = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    const high = this.#points(...this.#joined(band.high)).flat(),
      low = this.#points(...this.#joined(band.low)).flat();
    return high.length < 2 ? "" : `M${high.map(text).join("L")}L${low.reverse().map(text).join("L")}Z`;
  }

  #draw() {
    if (this.#host.clientWidth === 0) return;
    this.#frame = this.#layout();
    const svg = this.#host.querySelector("svg");
    svg.setAttribute("viewBox", `0 0 ${this.#frame.width} ${this.#frame.height}`);
    svg.replaceChildren(...this.#axes(), this.#lines(), ...this.#marks());
    this.#host.dataset.from = this.#view.from.toFixed(2);
    this.#host.dataset.to = this.#view.to.toFixed(2);
    if (this.#cursor >= 0) this.#show(this.#cursor);
  }

  #axes() {
    const {left, right, bottom, x, y, labels, ticks, width} = this.#frame;
    const {times, firstNumber} = this.#data;
    const {from, to} = this.#view;
    const drawn = [];
    ticks.forEach((tick, i) => {
      drawn.push(svgElement("line", {class: "t-grid", x1: left, x2: right, y1: y(tick), y2: y(tick)}));
      drawn.push(svgElement("text", {x: left - 8, y: y(tick) + 4, "text-anchor": "end"}, labels[i]));
    });
    drawn.push(svgElement("line", {class: "t-axis", x1: left, x2: right, y1: bottom, y2: bottom}));
    const most = Math.max(2, Math.floor(width / 90));
    let reached = -Infinity;
    for (const {step, label} of times
      ? timeTicks(times, from, to, most)
      : stepTicks(from, to, most, firstNumber)) {
      const half = 3.6 * label.length,
        at = x(step);
      if (at - half < reached + 8 || at + half > width || at < left - 1) continue;
      reached = at + half;
      drawn.push(svgElement("line", {class: "t-axis", x1: at, x2: at, y1: bottom, y2: bottom + 5}));
      drawn.push(svgElement("text", {x: at, y: bottom + 19, "text-anchor": "middle"}, label));
    }
    return drawn;
  }

  #lines() {
    const {left, right, bottom, x} = this.#frame;
    const {history, median, bands} = this.#data;
    // A nested svg cuts off what lies outside the view.
    const lines = svgElement("svg", {
      x: left,
      y: 0,
      width: Math.max(0, right - left),
      height: bottom + 1,
      viewBox: `${left} 0 ${Math.max(1, right - left)} ${bottom + 1}`,
    });
    for (const band of bands)
      lines.append(
        svgElement("path", {class: "t-band", "fill-opacity": kBandOpacity, d: this.#bandPath(band)}),
      );
    lines.append(svgElement("path", {class: "t-history", d: this.#path(history, 0)}));
    lines.append(svgElement("path", {class: "t-median", d: this.#path(...this.#joined(median))}));
    const origin = x(history.length - 1);
    if (history.length > 0 && origin > left && origin < right) {
      lines.append(svgElement("line", {class: "t-origin", x1: origin, x2: origin, y1: 6, y2: bottom}));
      const text = `Forecast after ${this.#when(history.length - 1)}`,
        fits = origin + 8 + 6.6 * text.length < right;
      lines.append(
        svgElement(
          "text",
          {x: fits ? origin + 7 : origin - 7, y: 15, "text-anchor": fits ? "start" : "end"},
          text,
        ),
      );
    }
    return lines;
  }

  #marks() {
    const {bottom} = this.#frame;
    return [
      svgElement("rect", {class: "t-select", y: kTop, height: bottom - kTop, visibility: "hidden"}),
      svgElement("line", {class: "cursor-line", y1: kTop, y2: bottom, visibility: "hidden"}),
      svgElement("circle", {class: "cursor-dot", r: 4.5, visibility: "hidden"}),
    ];
  }

  // ---------------------------------------------------------------------------------------- reading

  #when(step) {
    const {times, firstNumber, precision} = this.#data;
    return times ? formatTime(times[step], precision) : `step ${formatValue(firstNumber + step, 0)}`;
  }

  #rows(step) {
    const {history, median, bands} = this.#data;
    const number = value => formatValue(value, this.#data.decimals);
    if (step < history.length) return [["History", number(history[step])]];
    const k = step - history.length;
    return [
      ["Median", number(median[k])],
      ...bands.map(band => [band.label, `${number(band.low[k])} to ${number(band.high[k])}`]),
    ];
  }

  #show(wanted) {
    if (!this.#frame) return;
    const {history, median} = this.#data;
    const step = Math.min(Math.max(wanted, 0), this.#count() - 1);
    this.#cursor = step;
    const {x, y, left, right} = this.#frame;
    const at = x(step),
      inside = at >= left - 1 && at <= right + 1;
    const isForecast = step >= history.length;
    const value = isForecast ? median[step - history.length] : history[step];
    const line = this.#host.querySelector(".cursor-line"),
      dot = this.#host.querySelector(".cursor-dot");
    line.setAttribute("visibility", inside ? "visible" : "hidden");
    line.setAttribute("x1", at);
    line.setAttribute("x2", at);
    dot.setAttribute("class", isForecast ? "cursor-dot median" : "cursor-dot");
    dot.setAttribute("visibility", inside && finite(value) ? "visible" : "hidden");
    dot.setAttribute("cx", at);
    dot.setAttribute("cy", finite(value) ? y(value) : 0);
    const rows = this.#rows(step);
    const list = element("dl");
    for (const [name, text] of rows) list.append(element("dt", {}, name), element("dd", {}, text));
    this.#tip.replaceChildren(element("div", {class: "when"}, this.#when(step)), list);
    this.#tip.hidden = !inside;
    this.#placeTip(at);
    this.#host.setAttribute("aria-valuenow", step);
    this.#host.setAttribute(
      "aria-valuetext",
      `${this.#when(step)}: ${rows.map(row => row.join(" ")).join(", ")}`,
    );
  }

  // Beside the crosshair, on the side with room; up or down, whichever leaves the line in sight.
  #placeTip(at) {
    const {history, median} = this.#data;
    const {y, step, bottom} = this.#frame;
    const gap = 14,
      {offsetWidth: width, offsetHeight: height} = this.#tip;
    const fits = at + gap + width <= this.#host.clientWidth;
    const left = fits ? at + gap : Math.max(0, at - gap - width);
    const behind = Math.round(step(left + width / 2));
    const value = behind < history.length ? history[behind] : median[behind - history.length];
    const low = finite(value) && y(value) < (kTop + bottom) / 2;
    this.#tip.style.left = `${left}px`;
    this.#tip.style.top = `${low ? bottom - height - 8 : kTop + 6}px`;
  }

  #hide() {
    this.#cursor = -1;
    this.#tip.hidden = true;
    for (const mark of this.#host.querySelectorAll(".cursor-line, .cursor-dot"))
      mark.setAttribute("visibility", "hidden");
  }

  // ----------------------------------------------------------------------------------------- moving

  #stepAt(event) {
    return this.#frame.step(event.clientX - this.#host.getBoundingClientRect().left);
  }

  #wheel(event) {
    if (!this.#frame || event.ctrlKey) return; // that is the browser's own zoom
    event.preventDefault();
    const {from, to} = this.#view;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = event.deltaX * this.#frame.perPixel;
      return this.#setView(from + by, to + by);
    }
    const lines = event.deltaMode === 1 ? 33 : 1;
    this.zoom(
      Math.exp(Math.max(-1, Math.min(1, (event.deltaY * lines) / 400))),
      Math.min(to, Math.max(from, this.#stepAt(event))),
    );
  }

  #press(event) {
    if (!this.#frame || event.button !== 0) return;
    this.#drag = {
      x: event.clientX,
      step: this.#stepAt(event),
      view: this.view,
      selects: event.shiftKey,
      moved: false,
    };
    this.#host.setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (!this.#frame) return;
    const drag = this.#drag;
    if (!drag) return this.#show(Math.round(this.#stepAt(event)));
    drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
    if (!drag.moved) return;
    this.#hide();
    if (drag.selects) {
      const [a, b] = [drag.step, this.#stepAt(event)].sort((one, other) => one - other);
      const box = this.#host.querySelector(".t-select"),
        {x, left, right} = this.#frame;
      const start = Math.max(left, x(a));
      box.setAttribute("x", start);
      box.setAttribute("width", Math.max(0, Math.min(right, x(b)) - start));
      box.setAttribute("visibility", "visible");
      return;
    }
    this.#host.classList.add("dragging");
    const by = (drag.x - event.clientX) * this.#frame.perPixel;
    this.#setView(drag.view.from + by, drag.view.to + by);
  }

  #release(event) {
    const drag = this.#drag;
    this.#drag = null;
    this.#host.classList.remove("dragging");
    if (!drag || !this.#frame) return;
    this.#host.querySelector(".t-select").setAttribute("visibility", "hidden");
    if (drag.selects && drag.moved) {
      const [a, b] = [drag.step, this.#stepAt(event)].sort((one, other) => one - other);
      return this.#setView(a, b);
    }
    if (!drag.moved) this.#show(Math.round(this.#stepAt(event)));
  }

  #key(event) {
    if (!this.#frame || event.ctrlKey || event.metaKey || event.altKey) return;
    const {from, to} = this.#view;
    const size = to - from,
      last = this.#count() - 1;
    const now = this.#cursor < 0 ? this.#data.history.length : this.#cursor;
    const page = Math.max(1, Math.round(size / 10));
    const pan = by => () => this.#setView(from + by, to + by);
    const read = step => () => {
      const wanted = Math.min(Math.max(step, 0), last);
      if (wanted < from || wanted > to) this.#setView(wanted - size / 2, wanted + size / 2);
      this.#show(wanted);
    };
    const actions = {
      ArrowLeft: event.shiftKey ? pan(-size / 5) : read(now - 1),
      ArrowRight: event.shiftKey ? pan(size / 5) : read(now + 1),
      ArrowDown: read(now - 1),
      ArrowUp: read(now + 1),
      PageDown: read(now - page),
      PageUp: read(now + page),
      Home: read(0),
      End: read(last),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      0: () => this.reset(),
      Escape: () => this.#hide(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // The drawing as it stands, for a file.
  get drawing() {
    return this.#host.querySelector("svg");
  }
}
