// The fan chart's page in a real browser: its script runs under its policy, pointer and keys read
// values, no text runs into another. Skipped where there is no chromium.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fan_chart_examples.h"
#include "report/fan_chart.h"
#include "report/line_chart.h"
#include "report/page.h"

namespace toto::report {
namespace {

// The document of the page in a real browser after `script` has run in it.
std::string browsed(std::string html, const std::string& script) {
  std::string folder = (std::filesystem::temp_directory_path() / "fan_chart_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  if (!script.empty()) {  // the page's policy would refuse the test's script
    const std::size_t policy = html.find("<meta http-equiv");
    html.erase(policy, html.find('>', policy) + 1 - policy);
    html.insert(html.rfind("</body>"), "<script type=\"module\">" + script + "</script>");
  }
  std::ofstream(folder + "/page.html") << html;
  const std::string command =
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic "
      "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
      "--window-size=1000,700 --dump-dom --user-data-dir=" +
      folder + "/profile file://" + folder + "/page.html 2>/dev/null";
  std::string dom;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe))
    dom.append(buffer.data(), size);
  pclose(pipe);
  std::filesystem::remove_all(folder);
  return dom;
}

bool has_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

TEST(FanPageInBrowser, PointerAndKeysReadValues) {
  if (!has_browser()) GTEST_SKIP() << "needs the command chromium";
  FanChart chart = example(wave(60, 10, 50), wave(20, 10, 50), 4);
  chart.actual = wave(20, 10, 51);
  const std::string html = html_of(chart);
  // Under its own policy the page's script runs.
  const std::string untouched = browsed(html, "");
  EXPECT_NE(untouched.find("role=\"slider\""), std::string::npos);
  EXPECT_NE(untouched.find("tabindex=\"0\""), std::string::npos);

  const std::string dom = browsed(html, R"js(
    const plot = document.querySelector(".plot"), box = plot.getBoundingClientRect();
    const say = name => {
      const note = document.body.appendChild(document.createElement("pre"));
      const mark = plot.querySelector("svg.wide .cursor-line").getAttribute("visibility");
      note.textContent = name + "=" + mark + "=" + plot.getAttribute("aria-valuetext") + "=" + plot.querySelector(".tip").innerText.replace(/\s+/g, " ");
    };
    const move = share => plot.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width * share, bubbles: true}));
    const press = key => plot.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    move(0); say("first");
    move(1); say("last");
    press("Home"); press("ArrowRight"); say("second");
    press("End"); press("ArrowRight"); press("ArrowLeft"); say("next to last");
    press("Escape"); say("hidden");
    plot.focus(); say("focus");
  )js");
  const auto read = [&](const std::string& name) {
    return between(dom, "<pre>" + name + "=", "</pre>");
  };
  EXPECT_TRUE(read("first").starts_with("visible=1 Jan 2024: History 50=1 Jan 2024"))
      << read("first");
  EXPECT_TRUE(read("second").starts_with("visible=2 Jan 2024: History 53.6")) << read("second");
  EXPECT_TRUE(read("last").starts_with("visible=20 Mar 2024: Median 56.7")) << read("last");
  EXPECT_NE(read("last").find("80 % 51.5"), std::string::npos) << read("last");
  EXPECT_NE(read("last").find("50 % "), std::string::npos) << read("last");
  EXPECT_NE(read("last").find("Actual 57.7"), std::string::npos) << read("last");
  EXPECT_TRUE(read("next to last").starts_with("visible=19 Mar 2024: Median"))
      << read("next to last");
  EXPECT_TRUE(read("hidden").starts_with("hidden=")) << read("hidden");
  EXPECT_TRUE(read("focus").starts_with("visible=1 Mar 2024: Median 50,")) << read("focus");
}

// Text widths are estimated without a font; here they are checked with a real one.
TEST(FanPageInBrowser, NoTwoTextsOverlapAndNoneIsCutOff) {
  if (!has_browser()) GTEST_SKIP() << "needs the command chromium";
  std::vector<FanChart> charts = {
      example(wave(300, 10, 50), wave(60, 10, 50), 4),
      example(wave(9, 1e29, 1e30), wave(3, 1e29, 1e30), 1e29F),
      example(wave(50, 0.3, 1'234'567), wave(12, 0.3, 1'234'567), 0.1F, false)};
  FanChart hourly = example(wave(100), wave(20), 0.3F);
  for (std::int64_t& time : hourly.history_times) time = kStart + (time - kStart) / 24;
  for (std::int64_t& time : hourly.forecast_times) time = kStart + (time - kStart) / 24;
  hourly.y_label = "Thousand passengers a month, as counted";
  charts.push_back(hourly);
  charts.push_back(example(wave(1), wave(8), 0.3F));
  const std::string dom = browsed(fan_chart_html(charts, "Page"), R"js(
    const problems = [];
    let texts = 0;
    for (const kind of ["wide", "narrow"]) {
      for (const svg of document.querySelectorAll("svg." + kind)) {
        svg.setAttribute("style", "display:block");
        const edge = svg.viewBox.baseVal;
        const boxes = Array.from(svg.querySelectorAll("text"), text => [text.textContent, text.getBBox()]);
        texts += boxes.length;
        boxes.forEach(([name, a], i) => {
          if (a.x < 0 || a.x + a.width > edge.width || a.y + a.height > edge.height) problems.push(name);
          for (const [other, b] of boxes.slice(i + 1)) {
            const x = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
            const y = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
            if (x > 0 && y > 2) problems.push(kind + " " + name + " on " + other);
          }
        });
      }
    }
    document.body.appendChild(document.createElement("pre")).textContent =
        texts + " texts: " + problems.join("; ") + ".";
  )js");
  const std::string found = between(dom, "<pre>", "</pre>");
  EXPECT_GT(std::atoi(found.c_str()), 100) << found;
  EXPECT_TRUE(found.ends_with("texts: .")) << found;
}

TEST(LineChartInBrowser, TheLegendSwitchesLinesAndThePointerReadsThem) {
  if (!has_browser()) GTEST_SKIP() << "needs the command chromium";
  LineChart chart{.title = "Equity", .y_label = "equity", .times = {}, .lines = {}};
  chart.lines.push_back({.label = "first", .values = {1, 2, 3}, .color = 0});
  chart.lines.push_back({.label = "second", .values = {4, 5, 6}, .color = 1, .shown = false});
  chart.markers = {
      {.label = "trades",
       .marks = {{.step = 2, .value = 3, .sign = LineChart::Sign::up, .text = "long at 3"}}}};
  const std::string html = html_page("Report", line_chart_figure(chart));
  EXPECT_NE(browsed(html, "").find("role=\"slider\""), std::string::npos) << "its policy allows it";
  const std::string dom = browsed(html, R"js(
    const plot = document.querySelector(".plot"), box = plot.getBoundingClientRect();
    const entries = document.querySelectorAll(".legend button");
    const say = name => {
      const note = document.body.appendChild(document.createElement("pre"));
      const drawn = Array.from(plot.querySelectorAll("svg.wide g"), g => getComputedStyle(g).display !== "none");
      plot.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width, bubbles: true}));
      note.textContent = name + "=" + drawn.join() + "=" + plot.querySelector(".tip").innerText.replace(/\s+/g, " ").trim();
    };
    say("before");
    entries[1].click(); say("second on");
    entries[0].click(); entries[2].click(); say("only second");
  )js");
  const auto said = [&](const std::string& line) {
    EXPECT_NE(dom.find("<pre>" + line + "</pre>"), std::string::npos)
        << line << dom.substr(dom.find("<pre>"));
  };
  said("before=true,false,true=Step 3 first 3.000 trades long at 3");
  said("second on=true,true,true=Step 3 first 3.000 second 6.000 trades long at 3");
  said("only second=false,true,false=Step 3 second 6.000");
}

}  // namespace
}  // namespace toto::report
