// An interactive fan chart: history, median, bands. Wheel, drag and keys move the view; ChartReader reads
// values. Drawn as SVG in the size of its box.

import {precisionOf, stepTicks, timeTicks, valueTicks} from "./axis.js";
import {ChartReader, formatTime, formatValue, svgElement} from "./chart_reader.js";

const kBandOpacity = 0.2; // of each band; nested bands add up
const kTop = 22,
  kRight = 16,
  kBottom = 28;
const kLeastSteps = 8; // the closest view

const finite = value => Number.isFinite(value); // null is missing

export class FanChart {
  #host;
  #reader;
  #data = null;
  #view = {from: 0, to: 1}; // in steps; history first, then the forecast
  #drag = null;
  #frame = null;
  #pending = 0;

  constructor(host) {
    this.#host = host;
    host.append(svgElement("svg", {role: "presentation"}));
    host.setAttribute("aria-label", "Chart");
    this.#reader = new ChartReader(host, {
      count: () => (this.#data ? this.#count() : 0),
      start: () => this.#data.history.length,
      pageSize: () => Math.max(1, Math.round((this.#view.to - this.#view.from) / 10)),
      when: step => this.#when(step),
      rows: step => this.#rows(step),
      dots: step => this.#dots(step),
      views: () => (this.#frame ? [this.#frame] : []),
      reveal: step => this.#reveal(step),
    });
    new ResizeObserver(() => this.#redraw()).observe(host);
    host.addEventListener("wheel", event => this.#wheel(event), {passive: false});
    host.addEventListener("pointerdown", event => this.#press(event));
    host.addEventListener("pointermove", event => this.#move(event));
    host.addEventListener("pointerup", event => this.#release(event));
    host.addEventListener("pointercancel", event => this.#release(event));
    host.addEventListener("dblclick", () => this.reset());
    host.addEventListener("keydown", event => this.#key(event));
  }

  // {history, median: [value], bands: [{label, low, high}] widest first, times: [ms] of all steps or null,
  // firstNumber: of the first step without times, label, decimals: of values read}. `keepView`: keeps the view
  // for the same series at the same length.
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
    if (same) return this.#redraw();
    this.#reader.reset();
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
    const fixed = at ?? (this.#reader.current >= 0 ? this.#reader.current : (from + to) / 2);
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

  #reveal(step) {
    const {from, to} = this.#view,
      half = (to - from) / 2;
    if (step < from || step > to) this.#setView(step - half, step + half);
  }

  // At most once per frame of the browser.
  #redraw() {
    if (this.#pending || !this.#data) return;
    this.#pending = requestAnimationFrame(() => {
      this.#pending = 0;
      this.#draw();
    });
  }

  // ---------------------------------------------------------------------------------------- drawing

  // Calls take(value, step) for the finite values in view; values[0] is at step `first`.
  #visible(values, first, take) {
    const from = Math.max(0, Math.floor(this.#view.from) - first),
      to = Math.min(values.length - 1, Math.ceil(this.#view.to) - first);
    for (let i = from; i <= to; ++i) if (finite(values[i])) take(values[i], first + i);
  }

  // [low, high] of all values in view, with a margin of 6 %.
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

  // Geometry in pixels, and the maps from steps to x, from values to y and back.
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
      svg: this.#host.querySelector("svg"),
      width,
      height,
      left,
      top: kTop,
      bottom,
      labels,
      ticks: values.ticks,
      right: width - kRight,
      x: step => left + ((step - from) / (to - from)) * inner,
      y: value => bottom - ((value - low) / (high - low)) * (bottom - kTop),
      step: x => from + ((x - left) / inner) * (to - from),
      at: x => Math.min(Math.max(Math.round(from + ((x - left) / inner) * (to - from)), 0), this.#count() - 1),
      perPixel: (to - from) / inner,
    };
  }

  // Runs of points; of several points on one pixel the lowest and the highest.
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
  // Lines and bands start from the last observation.
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
    const {svg, width, height, bottom} = this.#frame;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const selection = svgElement("rect", {class: "t-select", y: kTop, height: bottom - kTop, visibility: "hidden"});
    svg.replaceChildren(...this.#axes(), this.#lines(), selection);
    this.#reader.addMarks(svg);
    this.#host.dataset.from = this.#view.from.toFixed(2);
    this.#host.dataset.to = this.#view.to.toFixed(2);
    if (this.#reader.current >= 0) this.#reader.show(this.#reader.current);
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
    // A nested svg clips the lines to the view.
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

  #dots(step) {
    const {history, median} = this.#data;
    return step < history.length
      ? [{kind: "history", value: history[step]}]
      : [{kind: "median", value: median[step - history.length]}];
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

  // A drag moves the view; with Shift it selects a range.
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
    if (!drag) return this.#reader.follow(event);
    drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
    if (!drag.moved) return;
    this.#reader.hide();
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
    if (!drag.moved) this.#reader.follow(event);
  }

  #key(event) {
    if (!this.#frame || event.ctrlKey || event.metaKey || event.altKey) return;
    const {from, to} = this.#view,
      shift = event.shiftKey ? (to - from) / 5 : 0;
    const pan = by => () => this.#setView(from + by, to + by);
    const actions = {
      ArrowLeft: shift > 0 && pan(-shift),
      ArrowRight: shift > 0 && pan(shift),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      0: () => this.reset(),
    };
    const action = actions[event.key];
    if (!action) return this.#reader.key(event);
    event.preventDefault();
    action();
  }

  // The current drawing, for a file.
  get drawing() {
    return this.#host.querySelector("svg");
  }
}
