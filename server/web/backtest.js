// The backtest view: bars and settings to the server, its report in a frame.

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

// The answer has results.json; its Location header names the report.
async function run() {
  running = new AbortController();
  const started = performance.now();
  const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
  const clock = setInterval(() => {
    byId("backtest-state").textContent = `Running: ${seconds()} s`;
  }, 100);
  byId("backtest-run").disabled = true;
  byId("backtest-stop").disabled = false;
  say(byId("backtest-error"), "");
  let ended = "";
  try {
    const answer = await request("/v1/backtest", {
      body: {csv: await bars(), settings: settings()},
      signal: running.signal,
    });
    results = await answer.text();
    report = await getText(answer.headers.get("Location"), {signal: running.signal});
    byId("report").srcdoc = report;
    byId("report").hidden = false;
    for (const id of ["save-report", "save-results"]) byId(id).disabled = false;
    const {symbols} = JSON.parse(results);
    ended = `Done in ${seconds()} s: ${Object.keys(symbols).join(", ")}. toto backtest with the same settings gives the same figures.`;
  } catch (error) {
    if (error.name === "AbortError") ended = `Stopped after ${seconds()} s.`;
    else say(byId("backtest-error"), error.message);
  } finally {
    clearInterval(clock);
    byId("backtest-state").textContent = ended;
    byId("backtest-run").disabled = false;
    byId("backtest-stop").disabled = true;
    running = null;
  }
}

export function startBacktest() {
  takeFiles(byId("bars-drop"), byId("bars-file"), addFiles);
  byId("backtest-form").addEventListener("submit", event => {
    event.preventDefault();
    if (!running) run();
  });
  byId("backtest-stop").addEventListener("click", () => running?.abort());
  byId("save-report").addEventListener("click", () => save("report.html", report, "text/html"));
  byId("save-results").addEventListener("click", () => save("results.json", results, "application/json"));
}
