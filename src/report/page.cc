#include "report/page.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "io/sha256.h"
#include "report/svg.h"

namespace toto::report {

// Plain rules without variables: viewers that know little of CSS draw the light form. The blue and
// the vermilion are Okabe and Ito's, told apart by every kind of colour vision.
const std::string_view kChartStyle = R"css(
.t-surface{fill:#fff}
text{fill:#616e7c}
.t-title{fill:#1f2933;font-size:17px;font-weight:600}
.t-note{fill:#7a4500;font-size:12px}
.t-note-mark{fill:#e69f00}
.t-footnote,.t-tick,.t-origin-label{font-size:12px}
.t-tick{font-variant-numeric:tabular-nums}
.t-grid,.t-axis,.t-origin,.t-history,.t-median,.t-actual,.t-link{fill:none}
.t-grid{stroke:#e9ecef}
.t-axis{stroke:#9aa5b1}
.t-origin{stroke:#7b8794;stroke-dasharray:3 3}
.t-history,.t-median,.t-actual{stroke-width:1.7;stroke-linejoin:round;stroke-linecap:round}
.t-history{stroke:#3e4c59;stroke-width:1.4}
.t-median{stroke:#0072b2}
.t-actual{stroke:#d55e00;stroke-width:1.5}
.t-link{stroke:#0072b2;stroke-dasharray:3 3}
.t-dot{stroke-width:5;stroke-dasharray:none}
.t-band,.t-bar{fill:#0072b2}
.t-bar-second{fill:#9aa5b1}
@media screen and (prefers-color-scheme:dark){
.t-surface{fill:#14171c}
text{fill:#9aa5b1}
.t-title{fill:#e6e8eb}
.t-note{fill:#f5c26b}
.t-grid{stroke:#262b33}
.t-axis{stroke:#616e7c}
.t-origin{stroke:#7b8794}
.t-history{stroke:#cbd2d9}
.t-median,.t-link{stroke:#56b4e9}
.t-actual{stroke:#f0a04b}
.t-band,.t-bar{fill:#56b4e9}
.t-bar-second{fill:#616e7c}
}
)css";

namespace {

// What the page adds to kChartStyle: its layout and the tooltip.
constexpr std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--page:#fff;--ink:#1f2933;--quiet:#616e7c;--line:#d7dce1;--note:#7a4500;--shade:rgba(31,41,51,.16)}
@media screen and (prefers-color-scheme:dark){
:root{--page:#14171c;--ink:#e6e8eb;--quiet:#9aa5b1;--line:#343b45;--note:#f5c26b;--shade:rgba(0,0,0,.5)}
}
*{box-sizing:border-box}
body{margin:0 auto;max-width:940px;padding:28px 20px 40px;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1{font-size:22px;line-height:1.25;margin:0 0 24px}
figure{margin:0 0 44px;break-inside:avoid}
h1+figure>.subtitle:first-child{margin-top:-18px}
h2{font-size:17px;line-height:1.3;margin:0}
h3{font-size:15px;line-height:1.3;margin:0}
section{margin-top:44px;border-top:1px solid var(--line);padding-top:20px}
section>h2{font-size:19px}
section>figure,.footnote+figure{margin-top:28px}
h1+.subtitle{margin:-18px 0 16px}
.scroll{overflow-x:auto;margin:14px 0 24px}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:5px 0 5px 22px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{font-weight:500}
thead th{color:var(--quiet);font-size:13px}
th:first-child{padding-left:0;text-align:left;white-space:normal;min-width:9em}
.dense table{font-size:13px}
.dense th,.dense td{padding-left:14px}
.dense th:first-child,.dense td:first-child{padding-left:0;min-width:5em}
.dense thead th{white-space:normal;overflow-wrap:normal;vertical-align:bottom;font-size:12px}
.dense tr.first>*{border-top:2px solid var(--line)}
summary{color:var(--quiet);cursor:pointer}
.bars{margin-top:12px}
.bars .t-tick{paint-order:stroke;stroke:var(--page);stroke-width:3px}
p{margin:2px 0 0}
.subtitle,.footnote{color:var(--quiet)}
.footnote{font-size:12.5px;margin-top:6px}
.note{margin-top:8px;padding-left:8px;border-left:3px solid #e69f00;color:var(--note);font-size:13px}
.plot{position:relative;margin-top:10px;border-radius:4px;touch-action:pan-y}
.plot:focus{outline:none}
.plot:focus-visible{outline:2px solid #2f80c2;outline-offset:4px}
.plot svg,.bars svg{display:block;width:100%;height:auto}
.plot svg.narrow,.bars svg.narrow{display:none;max-width:560px}
@media (max-width:720px){
body{padding:18px 14px 32px}
.plot svg.wide,.bars svg.wide{display:none}
.plot svg.narrow,.bars svg.narrow{display:block}
}
.cursor-line{stroke:var(--quiet);stroke-width:1}
.cursor-dot{stroke:var(--page);stroke-width:2}
.cursor-dot.history{fill:var(--ink)}
.cursor-dot.median{fill:#0072b2}
.cursor-dot.actual{fill:#d55e00}
@media screen and (prefers-color-scheme:dark){
.cursor-dot.median{fill:#56b4e9}
.cursor-dot.actual{fill:#f0a04b}
}
.tip{position:absolute;top:0;left:0;padding:7px 10px;border:1px solid var(--line);border-radius:6px;background:var(--page);box-shadow:0 2px 10px var(--shade);font-size:13px;line-height:1.5;white-space:nowrap;pointer-events:none;font-variant-numeric:tabular-nums}
.tip[hidden]{display:none}
.tip dl{display:grid;grid-template-columns:auto auto;gap:0 14px;margin:0}
.tip dt{color:var(--quiet);max-width:16em;overflow:hidden;text-overflow:ellipsis}
.tip dd{margin:0;text-align:right}
.tip .when{font-weight:600}
@media print{.tip{display:none}}
section>h3{margin:22px 0 6px}
.wide-box{overflow-x:auto;margin-top:8px}
.lines svg{display:block;width:100%;min-width:560px;height:auto}
.l-line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.l-0{stroke:#3e4c59;stroke-width:2.2}.l-1{stroke:#0072b2}.l-2{stroke:#d55e00}.l-3{stroke:#009e73}
.l-4{stroke:#cc79a7}.l-5{stroke:#e69f00}.l-6{stroke:#56b4e9}.l-7{stroke:#8c564b}.l-8{stroke:#7f7fd5}
@media screen and (prefers-color-scheme:dark){.l-0{stroke:#cbd2d9}.l-1{stroke:#4aa8e0}}
td:first-child,.word{text-align:left}
td:first-child{padding-left:0}
.l-line.s-dots{stroke-width:6;stroke-opacity:.45}
.worse{color:#b3261e}.better{color:#1a7f4b}
@media screen and (prefers-color-scheme:dark){.worse{color:#ff9087}.better{color:#6fd3a0}}
.checks th:first-child{white-space:nowrap;overflow-wrap:normal}
.checks tbody td:nth-child(3){white-space:normal;width:100%;min-width:14em}
.checks .failed>*{color:#b3261e;font-weight:600}
@media screen and (prefers-color-scheme:dark){.checks .failed>*{color:#ff9087}}
ul{margin:6px 0 0;padding-left:20px}
.plain{overflow-wrap:anywhere}
)css";

// Crosshair, tooltip and arrow keys for every <div class="plot">.
constexpr std::string_view kPageScript = R"js(
"use strict";
(() => {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const pad = n => String(n).padStart(2, "0");

  function formatDate(seconds, precision) {
    const d = new Date(seconds * 1000);
    const year = String(d.getUTCFullYear());
    if (precision === "year") return year;
    const month = MONTHS[d.getUTCMonth()] + " " + year;
    if (precision === "month") return month;
    const day = d.getUTCDate() + " " + month;
    if (precision === "day") return day;
    const minute = day + " " + pad(d.getUTCHours()) + ":" + pad(d.getUTCMinutes());
    return precision === "minute" ? minute : minute + ":" + pad(d.getUTCSeconds());
  }

  function formatValue(value, decimals) {
    if (value === null || value === undefined) return "\u2013";
    let text;
    if (decimals < 0) {
      text = value === 0 ? "0" : value.toExponential(4).replace("e+", "e");
    } else {
      const parts = Math.abs(value).toFixed(Number.isInteger(value) ? 0 : decimals).split(".");
      parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, ",");
      text = (value < 0 ? "-" : "") + parts.join(".");
    }
    return text.replace(/-/g, "\u2212");
  }

  function svgElement(parent, tag, className) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    element.setAttribute("class", className);
    element.setAttribute("visibility", "hidden");
    return parent.appendChild(element);
  }

  function htmlElement(parent, tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    return parent.appendChild(element);
  }

  function attach(plot) {
    const data = JSON.parse(plot.querySelector("script").textContent);
    const count = data.steps.length;
    if (count === 0) return;
    const firstForecast = data.steps.findIndex(step => step >= data.history);
    const isForecast = i => data.steps[i] >= data.history;

    // Both drawings, wide and narrow; only one of them is on display.
    const views = Array.from(plot.querySelectorAll("svg"), svg => {
      const [x0, dx, yLow, yHigh, top, bottom] = svg.dataset.frame.split(" ").map(Number);
      const line = svgElement(svg, "line", "cursor-line");
      line.setAttribute("y1", top);
      line.setAttribute("y2", bottom);
      return {
        svg, line,
        value: svgElement(svg, "circle", "cursor-dot"),
        actual: svgElement(svg, "circle", "cursor-dot actual"),
        x: step => x0 + step * dx,
        step: x => (x - x0) / dx,
        y: value => bottom - (value - yLow) / (yHigh - yLow) * (bottom - top),
      };
    });
    const visibleView = () => views.find(view => view.svg.getBoundingClientRect().width > 0);

    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    plot.append(tip);
    let current = -1;

    function rowsAt(i) {
      const number = value => formatValue(value, data.decimals);
      if (!isForecast(i)) return [["History", number(data.values[i])]];
      const k = i - firstForecast;
      const rows = [["Median", number(data.values[i])]];
      for (const band of data.bands) {
        rows.push([band.label, number(band.low[k]) + " to " + number(band.high[k])]);
      }
      if (data.actual) rows.push(["Actual", number(data.actual[k])]);
      return rows;
    }

    function whenAt(i) {
      return data.times ? formatDate(data.times[i], data.precision)
                        : "Step " + formatValue(data.first_number + data.steps[i], 0);
    }

    function placeDot(dot, view, step, value) {
      const shown = value !== null && value !== undefined;
      dot.setAttribute("visibility", shown ? "visible" : "hidden");
      if (!shown) return;
      dot.setAttribute("r", 4.5);
      dot.setAttribute("cx", view.x(step));
      dot.setAttribute("cy", view.y(value));
    }

    function show(i) {
      current = i;
      const step = data.steps[i];
      for (const view of views) {
        view.line.setAttribute("visibility", "visible");
        view.line.setAttribute("x1", view.x(step));
        view.line.setAttribute("x2", view.x(step));
        view.value.setAttribute("class", "cursor-dot " + (isForecast(i) ? "median" : "history"));
        placeDot(view.value, view, step, data.values[i]);
        placeDot(view.actual, view, step,
                 data.actual && isForecast(i) ? data.actual[i - firstForecast] : null);
      }
      const rows = rowsAt(i);
      tip.replaceChildren();
      htmlElement(tip, "div", whenAt(i)).className = "when";
      const list = htmlElement(tip, "dl", "");
      for (const [name, value] of rows) {
        htmlElement(list, "dt", name);
        htmlElement(list, "dd", value);
      }
      tip.hidden = false;
      plot.setAttribute("aria-valuenow", i);
      plot.setAttribute("aria-valuetext",
                        whenAt(i) + ": " + rows.map(row => row.join(" ")).join(", "));

      // Beside the crosshair, on the side with room; on a phone inside the edges at least.
      const view = visibleView();
      if (!view) return;
      const box = view.svg.getBoundingClientRect();
      const scale = box.width / view.svg.viewBox.baseVal.width;
      const x = view.x(step) * scale;
      const gap = 14;
      const right = x + gap + tip.offsetWidth <= plot.clientWidth;
      const left = right ? x + gap : Math.max(0, x - gap - tip.offsetWidth);
      tip.style.left = left + "px";
      tip.style.top = Number(view.line.getAttribute("y1")) * scale + 6 + "px";
    }

    function hide() {
      current = -1;
      tip.hidden = true;
      for (const view of views) {
        for (const mark of [view.line, view.value, view.actual]) {
          mark.setAttribute("visibility", "hidden");
        }
      }
    }

    function nearest(wanted) {
      let low = 0, high = count - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (data.steps[middle] <= wanted) low = middle; else high = middle;
      }
      return wanted - data.steps[low] <= data.steps[high] - wanted ? low : high;
    }

    function follow(event) {
      const view = visibleView();
      if (!view) return;
      const box = view.svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * view.svg.viewBox.baseVal.width / box.width;
      show(nearest(view.step(x)));
    }

    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    plot.addEventListener("pointerleave", event => {
      if (event.pointerType !== "touch") hide();  // a finger lifted leaves the reading in place
    });
    plot.addEventListener("blur", hide);
    plot.addEventListener("focus", () => {
      if (current < 0) show(firstForecast < 0 ? count - 1 : firstForecast);
    });

    const page = Math.max(1, Math.round(count / 10));
    const moves = {
      ArrowLeft: i => i - 1, ArrowDown: i => i - 1, ArrowRight: i => i + 1, ArrowUp: i => i + 1,
      PageDown: i => i - page, PageUp: i => i + page, Home: () => 0, End: () => count - 1,
    };
    plot.addEventListener("keydown", event => {
      if (event.key === "Escape") return hide();
      const move = moves[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const from = current < 0 ? Math.max(firstForecast, 0) : current;
      show(Math.min(count - 1, Math.max(0, move(from))));
    });

    // A slider is what assistive software knows to announce a value for at each arrow key.
    plot.tabIndex = 0;
    plot.setAttribute("role", "slider");
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", count - 1);
    plot.setAttribute("aria-valuenow", Math.max(firstForecast, 0));
  }

  document.querySelectorAll(".plot").forEach(attach);
})();
)js";

// What the policy calls a text: "sha256-" and its digest in base64 (RFC 4648).
std::string policy_hash(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  io::Sha256 sha256;
  sha256.update(std::as_bytes(std::span(text)));
  const std::string hex = sha256.hex_digest();
  std::string base64;
  // Three hexadecimal digits are two of base64. 64 of the former leave one over: 4 bits, written as
  // a last full digit and padding.
  for (std::size_t i = 0; i < hex.size(); i += 3) {
    const std::string group = (hex.substr(i, 3) + "00").substr(0, 3);
    const unsigned long bits = std::stoul(group, nullptr, 16);
    base64 += kDigits[bits >> 6];
    if (i + 3 <= hex.size()) base64 += kDigits[bits & 63];
  }
  return "sha256-" + base64 + "=";
}

std::string whole_style() { return std::string(kChartStyle) + std::string(kPageStyle); }

}  // namespace

std::string page_style_hash() { return policy_hash(whole_style()); }
std::string page_script_hash() { return policy_hash(kPageScript); }

std::string html_page(std::string_view title, std::string_view body) {
  const std::string style = whole_style();
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n{}"
      "<script>{}</script>\n</body>\n</html>\n",
      page_style_hash(), page_script_hash(), escape_xml(title), style, escape_xml(title), body,
      kPageScript);
}

}  // namespace toto::report
