// The status view: the state of the service, every two seconds while the view is open, and the mode switch
// for operators.

import {getJson} from "./api.js";
import {formatValue} from "./chart_reader.js";
import {byId, element, say, svgElement} from "./dom.js";

const kInterval = 2000,
  kKept = 150; // samples: five minutes
const samples = [];
let timer = 0;
let watches = 0; // number of watches started; only the latest continues

const number = (value, decimals = 0) => formatValue(value, decimals);
const ms = value => `${number(value, value < 10 ? 2 : 1)} ms`;
const megabytes = value => `${number(value / 1e6, 1)} MB`;
const scientific = value => (value === 0 ? "0" : value === null ? "not a number" : formatValue(value, -1));

// "2 d 3 h", "4 h 5 min", "6 min 7 s" or "8 s".
function duration(seconds) {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  return days > 0
    ? `${days} d ${hours} h`
    : hours > 0
      ? `${hours} h ${minutes} min`
      : minutes > 0
        ? `${minutes} min ${Math.floor(seconds % 60)} s`
        : `${Math.floor(seconds)} s`;
}

// A line of the last five minutes, from zero, with its highest value.
function spark(name, values, format) {
  const high = Math.max(...values),
    width = 300,
    height = 50;
  const x = i => width - ((values.length - 1 - i) * width) / (kKept - 1);
  const y = value => (high > 0 ? height - (value / high) * (height - 4) : height);
  const points = values.map((value, i) => `${x(i).toFixed(1)} ${y(value).toFixed(1)}`);
  const line = points.length > 1 ? `M${points.join("L")}` : `M${points[0]}h.01`;
  return [
    svgElement(
      "svg",
      {
        viewBox: `0 0 ${width} ${height + 4}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${name}: now ${format(values.at(-1))}, at most ${format(high)}`,
      },
      svgElement("line", {
        class: "t-axis",
        x1: 0,
        x2: width,
        y1: height + 2,
        y2: height + 2,
        "vector-effect": "non-scaling-stroke",
      }),
      svgElement("path", {class: "t-median", d: line, "vector-effect": "non-scaling-stroke"}),
    ),
    element("p", {}, element("span", {}, `${name}, 5 min`), element("span", {}, `max ${format(high)}`)),
  ];
}

// badge: {text, kind: "good", "bad" or none}; rows: [name, value].
function card(title, badge, rows, ...more) {
  const heading = element("h2", {}, title);
  if (badge) heading.append(element("span", {class: badge.kind || ""}, badge.text));
  const list = element("dl");
  for (const [name, value] of rows) list.append(element("dt", {}, name), element("dd", {}, value));
  return element("article", {class: "card"}, heading, list, ...more);
}

function shadowBadge(shadow) {
  if (shadow.rolled_back) return {text: "rolled back", kind: "bad"};
  if (!shadow.enabled) return {text: "off"};
  if (shadow.exceeded > 0) return {text: "bound exceeded", kind: "bad"};
  return shadow.checked > 0 ? {text: "within bound", kind: "good"} : {text: "not compared yet"};
}

function draw(status) {
  const {latency_ms: latency, queue, shadow, engine} = status;
  const history = name => samples.map(sample => sample[name]);
  byId("cards").replaceChildren(
    card(
      "Latency",
      {text: `${number(latency.count)} forecasts`},
      [
        ["p50", ms(latency.p50)],
        ["p95", ms(latency.p95)],
        ["p99", ms(latency.p99)],
      ],
      ...spark("p99", history("p99"), ms),
    ),
    card(
      "Load",
      {text: status.status, kind: status.status === "ok" ? "good" : ""},
      [
        ["Queue", `${number(queue.depth)} of ${number(queue.capacity)}`],
        ["Connections", number(status.connections)],
        ["Sessions", number(status.sessions)],
      ],
      ...spark("Queue", history("queue"), value => number(value)),
    ),
    card(
      "Process",
      {text: `up ${duration(status.uptime_seconds)}`},
      [
        ["Memory", megabytes(status.memory_bytes)],
        ["Series forecast", number(status.forecasts)],
        ["Errors", number(status.errors)],
      ],
      ...spark("Memory", history("memory"), megabytes),
    ),
    card(
      "Engine",
      engine ? {text: status.mode} : {text: "loading"},
      engine
        ? [
            ["Model", engine.model],
            ["Trained", engine.trained ? "yes" : "no"],
            ["Weights", engine.dtype],
            ["Instructions", engine.isa],
            ["Threads", number(engine.threads)],
            ["Replans after warm-up", number(status.replans)],
            ["SHA-256", `${engine.weights_sha256.slice(0, 16)}…`],
            ["Version", status.version],
          ]
        : [["Version", status.version]],
    ),
    card("Shadow verification", shadowBadge(shadow), [
      ["Fraction compared", `${number(100 * shadow.rate, 1)} %`],
      ["Compared", number(shadow.checked)],
      ["Skipped (busy)", number(shadow.dropped)],
      ["Last deviation", scientific(shadow.last_deviation)],
      ["Largest deviation", scientific(shadow.worst_deviation)],
      ["Bound", scientific(shadow.bound)],
      ["Alarms", number(shadow.exceeded)],
      ["Automatic rollback", shadow.auto_rollback ? "yes" : "no"],
    ]),
  );
}

export function showEngine(status) {
  byId("engine").textContent = status.engine
    ? `${status.engine.model} · ${status.mode} · ${status.engine.dtype}`
    : "loading the model";
}

// Returns whether to ask again: not after the key was refused.
export async function refresh() {
  try {
    const status = await getJson("/v1/status");
    samples.push({p99: status.latency_ms.p99, queue: status.queue.depth, memory: status.memory_bytes});
    if (samples.length > kKept) samples.shift();
    showEngine(status);
    draw(status);
    if (status.mode && document.activeElement !== byId("mode") && !byId("mode").dataset.chosen)
      byId("mode").value = status.mode;
    say(byId("status-error"), "");
    return true;
  } catch (error) {
    say(byId("status-error"), error.message);
    return error.status !== 401;
  }
}

// Asks repeatedly while the view is open and the tab is in front.
export function watch(open) {
  clearTimeout(timer);
  const mine = ++watches;
  if (!open) return;
  const again = async () => {
    const continues = document.hidden || (await refresh());
    if (continues && mine === watches) timer = setTimeout(again, kInterval);
  };
  again();
}

// Returns after the new engine is loaded, which takes seconds for a large model.
async function switchMode(event) {
  event.preventDefault();
  const mode = byId("mode").value,
    state = byId("mode-state");
  state.className = "";
  state.textContent = `Switching to ${mode} …`;
  byId("mode-switch").disabled = true;
  try {
    await getJson("/v1/mode", {body: {mode}});
    state.textContent = `All forecasts are now made in ${mode} mode.`;
    delete byId("mode").dataset.chosen;
    await refresh();
  } catch (error) {
    state.className = "bad";
    state.textContent = error.message;
  } finally {
    byId("mode-switch").disabled = false;
  }
}

export function startStatus() {
  byId("mode-form").addEventListener("submit", switchMode);
  byId("mode").addEventListener("change", () => {
    byId("mode").dataset.chosen = "yes";
  });
}
