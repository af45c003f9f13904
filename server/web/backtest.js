// The backtest view: bars and settings to the server, its report in a frame or the next bar as tables.

import {getText, request} from "./api.js";
import {byId, element, save, say, takeFiles} from "./dom.js";

const files = new Map(); // symbol -> CSV, of the chosen files
let running = null;
let report = "",
  results = "";

function listFiles() {
  byId("bars-chosen").replaceChildren(
    ...Array.from(files.keys(), symbol => {
      const drop = element("button", {type: "button", "aria-label": `Remove ${symbol}`}, "✕");
      drop.addEventListener("click", () => {
        files.delete(symbol);
        listFiles();
      });
      return element("li", {}, symbol, drop);
    }),
  );
}

async function addFiles(chosen) {
  for (const file of chosen) files.set(file.name.replace(/\.[^.]*$/, ""), await file.text());
  for (const box of document.querySelectorAll('input[name="bars"]')) box.checked = false;
  listFiles();
}

// Empty fields get the server's defaults; the server checks the others.
function settings() {
  const wanted = {transform: byId("transform").value, fill: byId("fill").value};
  for (const [id, name] of [
    ["windows", "windows"],
    ["fee", "fee_bps"],
    ["slippage", "slippage_bps"],
  ]) {
    const text = byId(id).value.trim();
    if (text !== "") wanted[name] = Number(text);
  }
  return wanted;
}

// Symbol -> CSV, of the chosen files and the checked samples.
async function bars() {
  const csv = Object.fromEntries(files);
  for (const box of document.querySelectorAll('input[name="bars"]:checked')) {
    csv[box.value] = await getText(`/web/${box.value}.csv`);
  }
  return csv;
}

// Sends bars and settings to `path`; `show(answer, signal)` returns the sentence for the end.
async function run(path, show) {
  running = new AbortController();
  const started = performance.now();
  const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
  const clock = setInterval(() => {
    byId("backtest-state").textContent = `Running: ${seconds()} s`;
  }, 100);
  const buttons = [byId("backtest-run"), byId("signal-run")];
  for (const button of buttons) button.disabled = true;
  byId("backtest-stop").disabled = false;
  say(byId("backtest-error"), "");
  let ended = "";
  try {
    const answer = await request(path, {
      body: {csv: await bars(), settings: settings()},
      signal: running.signal,
    });
    ended = `Done in ${seconds()} s: ${await show(answer, running.signal)}`;
  } catch (error) {
    if (error.name === "AbortError") ended = `Stopped after ${seconds()} s.`;
    else say(byId("backtest-error"), error.message);
  } finally {
    clearInterval(clock);
    byId("backtest-state").textContent = ended;
    for (const button of buttons) button.disabled = false;
    byId("backtest-stop").disabled = true;
    running = null;
  }
}

// The answer has results.json; its Location header names the report.
async function showReport(answer, signal) {
  results = await answer.text();
  report = await getText(answer.headers.get("Location"), {signal});
  byId("signal").hidden = true;
  byId("report").srcdoc = report;
  byId("report").hidden = false;
  for (const id of ["save-report", "save-results"]) byId(id).disabled = false;
  const {symbols} = JSON.parse(results);
  return `${Object.keys(symbols).join(", ")}. toto backtest with the same settings gives the same figures.`;
}

const kEntries = {open: "market at the open", close_before: "market at the close before"};

// As many decimals as in the command and the report.
const price = value => {
  if (value === null) return "–";
  const size = Math.abs(value);
  return value.toFixed(size >= 10 ? 2 : size >= 0.1 ? 4 : 8);
};

const row = (tag, cells) => element("tr", {}, ...cells.map(cell => element(tag, {}, cell)));
const table = (header, rows) =>
  element(
    "div",
    {class: "scroll"},
    element(
      "table",
      {},
      element("thead", {}, row("th", header)),
      element("tbody", {}, ...rows.map(cells => row("td", cells))),
    ),
  );

function signalTables(symbol, signal) {
  const predicted = Object.entries(signal.forecast).map(([target, band]) => [
    target,
    ...[band.point, band["0.1"], band["0.9"]].map(price),
  ]);
  const orders = Object.entries(signal.strategies).flatMap(([name, {orders: placed, why}]) => {
    if (placed.length === 0) return [[name, "flat", "–", "–", "–", why]];
    return placed.map((order, i) => [
      i === 0 ? name : "",
      order.side,
      kEntries[order.entry] ?? `limit ${price(order.limit_price)}`,
      price(order.take_profit),
      order.exit,
      i === 0 ? why : "",
    ]);
  });
  const up = signal.probability_up === null ? "unknown" : `${(100 * signal.probability_up).toFixed(1)} %`;
  return [
    element("h2", {}, `${symbol}: ${signal.target_time}`),
    element(
      "p",
      {},
      `Decided after ${signal.last_time}, last close ${price(signal.last_price)}. Probability of a higher close: ${up}.`,
    ),
    table(["Predicted", "point", "10 %", "90 %"], predicted),
    table(["Strategy", "side", "entry", "take-profit", "exit", "why"], orders),
  ];
}

async function showSignal(answer) {
  const {symbols, warnings} = await answer.json();
  byId("signal").replaceChildren(
    ...Object.entries(symbols).flatMap(([symbol, signal]) => signalTables(symbol, signal)),
    ...warnings.map(text => element("p", {class: "hint"}, text)),
  );
  byId("report").hidden = true;
  byId("signal").hidden = false;
  return `${Object.keys(symbols).join(", ")}. toto signal with the same settings decides the same.`;
}

export function startBacktest() {
  takeFiles(byId("bars-drop"), byId("bars-file"), addFiles);
  byId("backtest-form").addEventListener("submit", event => {
    event.preventDefault();
    if (!running) run("/v1/backtest", showReport);
  });
  byId("signal-run").addEventListener("click", () => {
    if (!running) run("/v1/signal", showSignal);
  });
  byId("backtest-stop").addEventListener("click", () => running?.abort());
  byId("save-report").addEventListener("click", () => save("report.html", report, "text/html"));
  byId("save-results").addEventListener("click", () => save("results.json", results, "application/json"));
}
