// The forecast view: a file or a sample in, a fan chart, figures and files out.

import {decimalsFor, parseTime} from "./axis.js";
import {getJson, getText} from "./api.js";
import {FanChart} from "./chart.js";
import {formatTime, formatValue} from "./chart_reader.js";
import {byId, element, save, say, setOptions, svgElement, takeFiles} from "./dom.js";
import {pngBlob, svgText} from "./picture.js";

const kSamples = [
  ["AAPL", "AAPL: Apple, daily bars", 24],
  ["BTCUSD", "BTCUSD: bitcoin, daily bars", 24],
  ["electricity", "Electricity demand, hourly", 48],
  ["AirPassengers", "Air passengers, monthly", 36],
  ["m4_monthly", "M4: six monthly series", 18],
];
const kContext = 4096; // the default of the command line
const kTableRows = 400; // a longer table is in the CSV
const kRecent = 200; // points that determine the number of decimals
const kSlack = 150; // ms between a slider's move and the request

const state = {name: "", csv: "", table: null, answer: null, levels: null};
let chart = null;
// The task in progress, from a file or a moved slider to the chart, and whether it is reading a table.
let running = null;

const chosenSeries = () => state.table.series[byId("series").selectedIndex] || state.table.series[0];

// Quantiles of a band that holds `percent` of all outcomes, without rounding dust.
const levelsOf = percent =>
  [(100 - percent) / 200, (100 + percent) / 200].map(level => Number(level.toFixed(4)));

function showLevels() {
  for (const id of ["outer", "inner"]) {
    const percent = Number(byId(id).value),
      [low, high] = levelsOf(percent);
    byId(`${id}-label`).textContent = `${percent} % · q${low} to q${high}`;
    byId(id).setAttribute("aria-valuetext", `${percent} percent, quantiles ${low} to ${high}`);
  }
}

// Moves the other slider if needed: bands stay nested.
function nest(moved) {
  const outer = byId("outer"),
    inner = byId("inner");
  if (Number(inner.value) < Number(outer.value)) return;
  if (moved === "outer") inner.value = Number(outer.value) - 1;
  else outer.value = Math.min(99, Number(inner.value) + 1);
  if (Number(inner.value) >= Number(outer.value)) inner.value = Number(outer.value) - 1;
}

// Runs a task and aborts the previous one. `task(signal, mine)` may throw.
async function only(task) {
  running?.controller.abort();
  const mine = (running = {controller: new AbortController(), reading: false});
  byId("plot").classList.add("busy");
  say(byId("forecast-error"), "");
  try {
    await task(mine.controller.signal, mine);
  } catch (error) {
    if (running === mine) say(byId("forecast-error"), error.message);
  } finally {
    if (running === mine) {
      running = null;
      allowChoices(true);
      byId("plot").classList.remove("busy");
    }
  }
}

// ------------------------------------------------------------------------------------------ reading

async function read(signal, name, csv, columns) {
  const body = {csv, name};
  if (columns) body.columns = columns;
  const table = await getJson("/v1/series", {body, signal});
  signal.throwIfAborted();
  Object.assign(state, {name, csv, table});
  setOptions(
    byId("series"),
    table.series.map((series, i) => [i, series.id]),
    0,
  );
  byId("series-row").hidden = table.series.length < 2;
  if (!columns) {
    const bars = table.format === "ohlcv";
    setOptions(byId("column"), bars ? table.columns.map(column => [column, column]) : []);
    byId("column-row").hidden = !bars;
    const close = table.columns.find(column => column.toLowerCase() === "close");
    if (bars && close) byId("column").value = close;
  }
}

// Enables or disables the choices of a table; they are off while another one is read.
function allowChoices(allowed) {
  for (const id of ["series", "column"]) byId(id).disabled = !allowed;
}

// `text(signal)` gets the CSV.
const load = (name, text, columns) =>
  only(async (signal, mine) => {
    mine.reading = true;
    allowChoices(Boolean(columns));
    await read(signal, name, await text(signal), columns);
    mine.reading = false;
    allowChoices(true);
    await forecast(signal, false);
  });

export async function loadSample() {
  const [file, , horizon] = kSamples.find(([id]) => id === byId("sample").value);
  byId("horizon").value = horizon;
  byId("file-name").textContent = "long, wide or bars";
  await load(`${file}.csv`, signal => getText(`/web/${file}.csv`, {signal}));
}

function loadFile([file]) {
  byId("sample").value = "";
  byId("file-name").textContent = file.name;
  load(file.name, () => file.text());
}

// -------------------------------------------------------------------------------------- forecasting

// The request body. Numbers are checked by the server, whose message is shown.
function wanted(series) {
  const outer = levelsOf(Number(byId("outer").value)),
    inner = levelsOf(Number(byId("inner").value));
  const context = Number(byId("context").value);
  // All of it, as the command reads it: values before the context fill a gap at its beginning.
  const entry = {id: series.id, values: series.values};
  if (series.freq && series.timestamps)
    Object.assign(entry, {end: series.timestamps.at(-1), freq: series.freq});
  return {
    series: [entry],
    horizon: Number(byId("horizon").value),
    ...(context === kContext ? {} : {context}),
    quantiles: [outer[0], inner[0], inner[1], outer[1]],
  };
}

async function forecast(signal, keepView) {
  const series = chosenSeries(),
    body = wanted(series);
  const started = performance.now();
  const answer = await getJson("/v1/forecast", {body, signal});
  signal.throwIfAborted();
  state.answer = answer;
  state.levels = body.quantiles;
  show(series, answer, performance.now() - started, keepView);
}

// Forecasts the current table with the current choices. A table being read is forecast afterwards
// anyway.
function again(keepView) {
  if (state.table && !running?.reading) only(signal => forecast(signal, keepView));
}

// ------------------------------------------------------------------------------------------ showing

// elapsed: milliseconds from the request to the answer, in the browser.
function show(series, answer, elapsed, keepView) {
  const forecastOf = answer.series[0],
    quantiles = forecastOf.quantiles;
  const [outerLow, innerLow, innerHigh, outerHigh] = state.levels.map(String);
  const bands = [
    {label: `${byId("outer").value} %`, low: quantiles[outerLow], high: quantiles[outerHigh]},
    {label: `${byId("inner").value} %`, low: quantiles[innerLow], high: quantiles[innerHigh]},
  ];
  const past = series.timestamps ? series.timestamps.map(parseTime) : [null];
  const future = forecastOf.timestamps.map(parseTime);
  const dated = !past.includes(null) && !future.includes(null);
  const firstNumber =
    !dated && series.timestamps && /^\d+$/.test(series.timestamps[0]) ? Number(series.timestamps[0]) : 1;
  const label =
    state.table.format === "ohlcv" && !series.id.includes(".")
      ? `${state.name.replace(/\.[^.]*$/, "")} ${series.id}`
      : series.id;
  const size = Math.max(
    ...[...series.values.slice(-kRecent), ...forecastOf.median.slice(0, kRecent)].map(Math.abs),
  );
  const data = {
    history: series.values,
    median: forecastOf.median,
    bands,
    times: dated ? [...past, ...future] : null,
    firstNumber,
    label,
    decimals: decimalsFor(size, series.values.slice(-kRecent)),
  };
  chart.setData(data, keepView);
  byId("title").textContent = label;
  const points = formatValue(forecastOf.context_length, 0);
  const times = `${elapsed.toFixed(0)} ms (engine ${answer.timings_ms.total.toFixed(1)} ms)`;
  byId("subtitle").textContent =
    `${state.name}: ${state.table.description} · ${answer.horizon} steps from ${points} points in ${times}`;
  showFigures(data, forecastOf);
  showLegend(bands);
  showTable(data, forecastOf);
  const warnings = [...state.table.warnings, ...answer.warnings];
  byId("warnings").replaceChildren(...warnings.map(text => element("li", {}, text)));
  for (const id of ["save-csv", "save-svg", "save-png"]) byId(id).disabled = false;
}

// Figures of the last step: median, change from the last known value, outer band.
function showFigures(data, forecastOf) {
  const last = data.history.findLast(value => value !== null);
  const end = data.median.at(-1),
    [outer] = data.bands;
  const {decimals} = data;
  const when = data.times ? formatTime(data.times.at(-1), "day") : `step ${forecastOf.timestamps.at(-1)}`;
  const change = last ? 100 * (end / last - 1) : null;
  const rows = [
    ["Last", formatValue(last, decimals), ""],
    [`Median, ${when}`, formatValue(end, decimals), ""],
    [
      "Change",
      change === null ? "\u2013" : `${change > 0 ? "+" : ""}${formatValue(change, 2)} %`,
      change > 0 ? "up" : change < 0 ? "down" : "",
    ],
    [
      `${outer.label} band`,
      `${formatValue(outer.low.at(-1), decimals)} to ${formatValue(outer.high.at(-1), decimals)}`,
      "",
    ],
  ];
  byId("figures").replaceChildren(
    ...rows.map(([name, value, kind]) =>
      element("div", {}, element("dt", {}, name), element("dd", kind ? {class: kind} : {}, value)),
    ),
  );
}

function showLegend(bands) {
  const swatch = child => svgElement("svg", {viewBox: "0 0 18 12", "aria-hidden": "true"}, child);
  const line = kind => swatch(svgElement("path", {class: kind, d: "M0 6H18"}));
  const area = depth =>
    swatch(
      svgElement("rect", {
        class: "t-band",
        width: 18,
        height: 12,
        rx: 2,
        "fill-opacity": (1 - 0.8 ** depth).toFixed(3),
      }),
    );
  const items = [
    [line("t-history"), "History"],
    [line("t-median"), "Median"],
    ...bands.map((band, i) => [area(i + 1), band.label]),
  ];
  byId("legend").replaceChildren(...items.map(([mark, text]) => element("span", {}, mark, text)));
}

function showTable(data, forecastOf) {
  const [outer, inner] = data.bands,
    names = state.levels.map(level => `q${level}`);
  const {decimals} = data;
  const columns = [outer.low, inner.low, data.median, inner.high, outer.high, forecastOf.mean];
  const heads = ["Time", names[0], names[1], "Median", names[2], names[3], "Mean"];
  const rows = data.median
    .slice(0, kTableRows)
    .map((_, step) =>
      element(
        "tr",
        {},
        element("td", {}, forecastOf.timestamps[step]),
        ...columns.map(column => element("td", {}, formatValue(column[step], decimals))),
      ),
    );
  if (data.median.length > kTableRows) {
    rows.push(
      element(
        "tr",
        {},
        element("td", {colspan: 7}, `${data.median.length - kTableRows} more steps are in the CSV`),
      ),
    );
  }
  byId("values").replaceChildren(
    element("thead", {}, element("tr", {}, ...heads.map(head => element("th", {scope: "col"}, head)))),
    element("tbody", {}, ...rows),
  );
}

// -------------------------------------------------------------------------------------------- files

// As `toto forecast --output FILE.csv` writes it.
function csvText() {
  const forecastOf = state.answer.series[0];
  const quoted = text => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const levels = [...state.levels].sort((a, b) => a - b).map(String);
  const rows = forecastOf.mean.map((mean, step) =>
    [
      quoted(forecastOf.id),
      forecastOf.timestamps[step],
      mean,
      ...levels.map(level => forecastOf.quantiles[level][step]),
    ].join(","),
  );
  return `${["unique_id", "ds", "mean", ...levels].join(",")}\n${rows.join("\n")}\n`;
}

const fileName = extension => `${byId("title").textContent.replace(/[^\w.-]+/g, "_")}_forecast.${extension}`;

// The chart with title, subtitle and footnote.
function chartFile() {
  const {engine, horizon} = state.answer;
  const [outer, inner] = ["outer", "inner"].map(id => byId(id).value);
  return svgText(chart.drawing, {
    title: `${byId("title").textContent}, next ${horizon} steps`,
    subtitle: `Median with ${outer} % and ${inner} % bands; ${state.table.description}`,
    footnote: `toto.cpp ${engine.version}, model ${engine.model}, mode ${engine.mode}`,
  });
}

export function startForecast() {
  chart = new FanChart(byId("plot"));
  setOptions(
    byId("sample"),
    [["", "none (your file)"], ...kSamples.map(([id, text]) => [id, text])],
    kSamples[0][0],
  );
  byId("sample").firstElementChild.disabled = true;
  showLevels();
  takeFiles(byId("drop"), byId("file"), loadFile);
  byId("sample").addEventListener("change", loadSample);
  byId("series").addEventListener("change", () => again(false));
  byId("column").addEventListener("change", () =>
    load(state.name, () => state.csv, [byId("column").value]),
  );
  byId("forecast-form").addEventListener("submit", event => {
    event.preventDefault();
    again(true);
  });
  for (const id of ["horizon", "context"]) byId(id).addEventListener("change", () => again(true));
  let timer = 0;
  for (const id of ["outer", "inner"]) {
    byId(id).addEventListener("input", () => {
      nest(id);
      showLevels();
      clearTimeout(timer);
      timer = setTimeout(() => again(true), kSlack);
    });
  }
  byId("zoom-in").addEventListener("click", () => chart.zoom(0.7));
  byId("zoom-out").addEventListener("click", () => chart.zoom(1 / 0.7));
  byId("zoom-reset").addEventListener("click", () => chart.reset());
  byId("zoom-all").addEventListener("click", () => chart.showAll());
  byId("save-csv").addEventListener("click", () => save(fileName("csv"), csvText(), "text/csv"));
  byId("save-svg").addEventListener("click", () => save(fileName("svg"), chartFile(), "image/svg+xml"));
  byId("save-png").addEventListener("click", async () => {
    save(fileName("png"), await pngBlob(chartFile()), "image/png");
  });
}
