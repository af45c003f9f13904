// Makes every <div class="plot"> of a report readable. It follows chart_reader.js in the same inline script.

// The index of the nearest of the ascending steps; a long series has fewer steps with a value than pixels.
function nearestStep(steps, step) {
  let low = 0,
    high = steps.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle;
    else high = middle;
  }
  return step - steps[low] <= steps[high] - step ? low : high;
}

// Two drawings, wide and narrow; the style sheet displays one of them.
function viewsOf(plot, steps) {
  return Array.from(plot.querySelectorAll("svg"), svg => {
    const [x0, dx, low, high, top, bottom] = svg.dataset.frame.split(" ").map(Number);
    return {
      svg,
      x: i => x0 + steps[i] * dx,
      y: value => bottom - ((value - low) / (high - low)) * (bottom - top),
      at: x => nearestStep(steps, (x - x0) / dx),
      left: -Infinity,
      right: Infinity,
      top,
      bottom,
    };
  });
}

function forecastChart(data) {
  const isForecast = i => data.steps[i] >= data.history;
  const firstForecast = data.steps.findIndex(step => step >= data.history);
  const number = value => formatValue(value, Number.isInteger(value) && data.decimals > 0 ? 0 : data.decimals, 4);
  return {
    start: () => (firstForecast < 0 ? data.steps.length - 1 : firstForecast),
    rows: i => {
      if (!isForecast(i)) return [["History", number(data.values[i])]];
      const k = i - firstForecast;
      const rows = [["Median", number(data.values[i])]];
      for (const band of data.bands) rows.push([band.label, `${number(band.low[k])} to ${number(band.high[k])}`]);
      if (data.actual) rows.push(["Actual", number(data.actual[k])]);
      return rows;
    },
    dots: i => {
      const dots = [{kind: isForecast(i) ? "median" : "history", value: data.values[i]}];
      if (data.actual && isForecast(i)) dots.push({kind: "actual", value: data.actual[i - firstForecast]});
      return dots;
    },
  };
}

// Lines and markers are numbered together, as the entries of the legend that switch them.
function lineChart(data, legend) {
  const isOn = number => legend.children[number].getAttribute("aria-pressed") === "true";
  const shown = () => data.lines.filter((_, number) => isOn(number));
  return {
    start: () => data.steps.length - 1,
    rows: i => {
      const rows = shown().map(line => [line.label, formatValue(line.values[i], data.decimals, 4)]);
      data.markers.forEach((marks, k) => {
        const number = data.lines.length + k;
        if (!isOn(number)) return;
        for (const {at, text} of marks) if (at === i) rows.push([legend.children[number].textContent, text]);
      });
      return rows;
    },
    dots: i => shown().map(line => ({kind: `d-${line.color}`, value: line.values[i] ?? NaN})),
  };
}

function attachLegend(legend, plot, reader) {
  for (const entry of legend.children) {
    entry.addEventListener("click", () => {
      const on = entry.getAttribute("aria-pressed") !== "true";
      entry.setAttribute("aria-pressed", on);
      for (const part of plot.querySelectorAll(`g[data-line="${entry.dataset.line}"]`)) part.classList.toggle("off", !on);
      reader.hide();
    });
  }
}

function attach(plot) {
  const data = JSON.parse(plot.querySelector("script").textContent);
  const count = data.steps.length;
  if (count === 0) return;
  const legend = plot.parentElement.querySelector(".legend");
  const views = viewsOf(plot, data.steps);
  const chart = {
    ...(data.lines ? lineChart(data, legend) : forecastChart(data)),
    count: () => count,
    pageSize: () => Math.max(1, Math.round(count / 10)),
    when: i =>
      data.times
        ? formatTime(data.times[i] * 1000, data.precision)
        : `step ${formatValue((data.first_number ?? 1) + data.steps[i], 0)}`,
    views: () => views,
    reveal: () => {},
  };
  const reader = new ChartReader(plot, chart);
  for (const view of views) reader.addMarks(view.svg, data.lines?.length);
  reader.reset();
  for (const name of ["pointermove", "pointerdown"]) plot.addEventListener(name, event => reader.follow(event));
  plot.addEventListener("keydown", event => reader.key(event));
  if (data.lines) attachLegend(legend, plot, reader);
}

document.querySelectorAll(".plot").forEach(attach);
