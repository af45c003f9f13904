// Makes every <div class="plot"> of a report readable. It follows chart_reader.js in the same inline script.

function attach(plot) {
  const data = JSON.parse(plot.querySelector("script").textContent);
  const count = data.steps.length;
  if (count === 0) return;
  const isForecast = i => data.steps[i] >= data.history;
  const firstForecast = data.steps.findIndex(step => step >= data.history);
  const number = value => formatValue(value, Number.isInteger(value) && data.decimals > 0 ? 0 : data.decimals, 4);

  // The index of the nearest step with a value; a long history has fewer steps than pixels.
  const nearest = step => {
    let low = 0,
      high = count - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (data.steps[middle] <= step) low = middle;
      else high = middle;
    }
    return step - data.steps[low] <= data.steps[high] - step ? low : high;
  };
  // Two drawings, wide and narrow; the style sheet displays one of them.
  const views = Array.from(plot.querySelectorAll("svg"), svg => {
    const [x0, dx, low, high, top, bottom] = svg.dataset.frame.split(" ").map(Number);
    return {
      svg,
      x: i => x0 + data.steps[i] * dx,
      y: value => bottom - ((value - low) / (high - low)) * (bottom - top),
      at: x => nearest((x - x0) / dx),
      left: -Infinity,
      right: Infinity,
      top,
      bottom,
    };
  });
  const chart = {
    count: () => count,
    start: () => (firstForecast < 0 ? count - 1 : firstForecast),
    pageSize: () => Math.max(1, Math.round(count / 10)),
    when: i =>
      data.times
        ? formatTime(data.times[i] * 1000, data.precision)
        : `step ${formatValue(data.first_number + data.steps[i], 0)}`,
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
    views: () => views,
    reveal: () => {},
  };
  const reader = new ChartReader(plot, chart);
  for (const view of views) reader.addMarks(view.svg);
  reader.reset();
  for (const name of ["pointermove", "pointerdown"]) plot.addEventListener(name, event => reader.follow(event));
  plot.addEventListener("keydown", event => reader.key(event));
}

document.querySelectorAll(".plot").forEach(attach);
