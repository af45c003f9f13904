// The fan chart as a drawing and as a page: well formed, safe, finite and small for any input.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <locale>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fan_chart_examples.h"
#include "io/json.h"
#include "report/fan_chart.h"
#include "special_values.h"
#include "toto/toto.h"

namespace toto::report {
namespace {

// --------------------------------------------------------------------------- reading the markup

struct Element {
  std::string tag;
  std::map<std::string, std::string> attributes;
};

// A small XML reader, strict where it matters: every problem throws. Returns the elements in order.
std::vector<Element> parse_xml(const std::string& xml) {
  std::size_t at = 0;
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string(what) + " near " + xml.substr(at, 60));
  };
  const auto check_text = [&](std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      expect(c >= 0x20 || c == '\n', "control character");
      expect(c != '<', "bare <");
      if (c != '&') continue;
      const std::string_view rest = text.substr(i);
      expect(rest.starts_with("&amp;") || rest.starts_with("&lt;") || rest.starts_with("&gt;") ||
                 rest.starts_with("&quot;") || rest.starts_with("&#39;"),
             "bare &");
    }
  };
  const auto name = [&] {
    const std::size_t start = at;
    while (at < xml.size() && (std::isalnum(static_cast<unsigned char>(xml[at])) || xml[at] == '-'))
      ++at;
    expect(at > start, "a name is missing");
    return xml.substr(start, at - start);
  };
  std::vector<Element> elements;
  std::vector<std::string> open;
  do {
    const std::size_t tag = std::min(xml.find('<', at), xml.size());
    check_text(std::string_view(xml).substr(at, tag - at));
    at = tag;
    expect(at < xml.size(), "unclosed element");
    ++at;
    if (xml[at] == '/') {
      ++at;
      expect(!open.empty() && name() == open.back() && xml[at] == '>', "end tag that matches none");
      open.pop_back();
      ++at;
      continue;
    }
    Element element{name(), {}};
    while (xml[at] == ' ') {
      ++at;
      const std::string key = name();
      expect(xml.compare(at, 2, "=\"") == 0, "attribute without quotes");
      at += 2;
      const std::size_t end = xml.find('"', at);
      expect(end != std::string::npos, "attribute without end");
      const std::string value = xml.substr(at, end - at);
      check_text(value);
      expect(element.attributes.emplace(key, value).second, "attribute given twice");
      at = end + 1;
    }
    const bool empty = xml[at] == '/';
    if (empty) ++at;
    expect(xml[at] == '>', "tag without end");
    ++at;
    if (!empty) open.push_back(element.tag);
    elements.push_back(std::move(element));
  } while (!open.empty());
  expect(xml.find_first_not_of('\n', at) == std::string::npos, "text after the end");
  return elements;
}

std::vector<double> numbers_in(std::string text) {
  for (char& c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) && c != 'n' && c != 'i') c = ' ';
  }
  std::istringstream in(text);
  std::vector<double> numbers;
  for (std::string word; in >> word;) numbers.push_back(std::stod(word));
  return numbers;
}

// Well formed, and every coordinate finite and on the canvas. Returns the elements.
std::vector<Element> check_drawing(const std::string& svg) {
  std::vector<Element> elements;
  EXPECT_NO_THROW(elements = parse_xml(svg));
  if (elements.empty()) return elements;
  EXPECT_EQ(elements.front().tag, "svg");
  const std::vector<double> box = numbers_in(elements.front().attributes.at("viewBox"));
  EXPECT_EQ(box.size(), 4U);
  for (const Element& element : elements) {
    for (const char* key : {"d", "x", "y", "width", "height"}) {
      const auto found = element.attributes.find(key);
      if (found == element.attributes.end()) continue;
      for (const double number : numbers_in(found->second)) {
        EXPECT_TRUE(number >= 0 && number <= std::max(box[2], box[3]))
            << element.tag << ' ' << key << " = " << found->second.substr(0, 100);
      }
    }
  }
  return elements;
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

std::size_t count_class(const std::vector<Element>& elements, const std::string& css_class) {
  return static_cast<std::size_t>(
      std::count_if(elements.begin(), elements.end(), [&](const Element& e) {
        const auto found = e.attributes.find("class");
        return e.tag == "path" && found != e.attributes.end() && found->second == css_class;
      }));
}

io::Json tooltip_data(const std::string& html, int n = 0) {
  return io::parse_json(between(html, "<script type=\"application/json\">", "</script>", n),
                        "tooltip");
}

// The page's own drawings, wide and narrow, each checked.
void check_page(const std::string& html, std::size_t charts) {
  EXPECT_EQ(count_of(html, "<svg"), 2 * charts);
  EXPECT_EQ(count_of(html, "</script"), charts + 1);
  EXPECT_EQ(count_of(html, "<script"), charts + 1);
  for (std::size_t i = 0; i < 2 * charts; ++i) {
    check_drawing("<svg" + between(html, "<svg", "</svg>", static_cast<int>(i)) + "</svg>");
  }
}

// --------------------------------------------------------------------------------------- drawing

TEST(FanChart, DrawsHistoryMedianBandsAndOrigin) {
  FanChart chart = example(wave(60), wave(20), 0.5F);
  chart.subtitle = "20 days ahead";
  chart.y_label = "USD";
  chart.footnote = "Model: toto-mini";
  const std::string svg = fan_chart_svg(chart);
  const std::vector<Element> elements = check_drawing(svg);
  EXPECT_EQ(count_class(elements, "t-history"), 2U);  // the line and its mark in the legend
  EXPECT_EQ(count_class(elements, "t-median"), 2U);
  EXPECT_EQ(count_class(elements, "t-band"), 2U);
  EXPECT_EQ(count_class(elements, "t-origin"), 1U);
  EXPECT_EQ(count_class(elements, "t-actual"), 0U);
  for (const char* text : {">Example<", ">20 days ahead<", ">USD<", ">Model: toto-mini<", ">80 %<",
                           ">50 %<", ">Forecast after 29 Feb 2024<", ">2024<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(svg.find("Untrained"), std::string::npos);
  EXPECT_NE(svg.find("History of 60 points to 29 Feb 2024. Forecast of 20 steps to 20 Mar 2024"),
            std::string::npos);
}

TEST(FanChart, ShowsActualValuesAndWarnsOfUntrainedWeights) {
  FanChart chart = example(wave(60), wave(20), 0.5F);
  chart.actual = wave(20);
  chart.actual[15] = kMissing;
  chart.warn_untrained = true;
  const std::string svg = fan_chart_svg(chart);
  EXPECT_EQ(count_class(check_drawing(svg), "t-actual"), 2U);
  EXPECT_NE(svg.find(">Untrained demonstration weights: the shape is not a forecast<"),
            std::string::npos);
  const std::string html = html_of(chart);
  EXPECT_NE(html.find("<p class=\"note\">Untrained demonstration weights"), std::string::npos);
  const io::Json data = tooltip_data(html);
  ASSERT_NE(data.find("actual"), nullptr);
  EXPECT_EQ(data.find("actual")->array.size(), 20U);
  EXPECT_EQ(data.find("actual")->array[15].kind, io::Json::Kind::null);
}

TEST(FanChart, ShowsTheNewestHistory) {
  FanChart chart = example(wave(1000), wave(10), 0.5F, false);
  EXPECT_EQ(tooltip_data(html_of(chart)).find("history")->integer, 120);
  chart.max_history = 30;
  const io::Json data = tooltip_data(html_of(chart));
  EXPECT_EQ(data.find("history")->integer, 30);
  EXPECT_EQ(data.find("first_number")->integer, 971);  // steps keep their numbers
  EXPECT_EQ(static_cast<float>(data.find("values")->array[0].real), wave(1000)[970]);
  EXPECT_NE(fan_chart_svg(chart).find(">Forecast after step 1000<"), std::string::npos);
  chart = example(wave(1000), wave(100), 0.5F);
  EXPECT_EQ(tooltip_data(html_of(chart)).find("history")->integer, 300);
}

TEST(FanChart, TheTooltipHoldsDatesValuesAndBands) {
  FanChart chart = example({1, 2, kMissing}, {3.5F, 4}, 1);
  const io::Json data = tooltip_data(html_of(chart));
  const auto numbers = [](const io::Json* list) {
    std::vector<float> values(list->array.size());
    std::transform(list->array.begin(), list->array.end(), values.begin(),
                   [](const io::Json& item) { return static_cast<float>(item.real); });
    return values;
  };
  EXPECT_EQ(numbers(data.find("steps")),
            (std::vector<float>{0, 1, 3, 4}));  // the gap has no reading
  EXPECT_EQ(numbers(data.find("values")), (std::vector<float>{1, 2, 3.5, 4}));
  EXPECT_EQ(data.find("times")->array[2].integer, kStart + 3 * kDay);
  EXPECT_EQ(data.find("precision")->string, "day");
  ASSERT_EQ(data.find("bands")->array.size(), 2U);
  const io::Json& band = data.find("bands")->array[0];
  EXPECT_EQ(band.find("label")->string, "80 %");
  EXPECT_EQ(numbers(band.find("low")), (std::vector<float>{3.5F - 1.3F, 4 - 1.3F}));
  EXPECT_EQ(band.find("high")->array.size(), 2U);
}

TEST(FanChart, OneStepIsABarAndADot) {
  const std::vector<Element> elements =
      check_drawing(fan_chart_svg(example(wave(60), {0.2F}, 0.5F)));
  EXPECT_EQ(count_class(elements, "t-median t-dot"), 1U);
  EXPECT_EQ(count_class(elements, "t-link"), 1U);
  std::size_t bars = 0;
  for (const Element& element : elements) {
    if (element.tag != "path" || element.attributes.at("class") != "t-band") continue;
    std::string d = element.attributes.at("d");
    const std::vector<double> points = numbers_in(d);
    ASSERT_EQ(points.size(), 8U) << d;
    EXPECT_GE(points[2] - points[0], 8);   // wide enough to see
    EXPECT_GE(points[5] - points[3], 10);  // and high
    ++bars;
  }
  EXPECT_EQ(bars, 2U);
}

// The points of the median's line: the legend's mark has two.
std::vector<double> median_line(const FanChart& chart) {
  std::vector<double> longest;
  for (const Element& element : check_drawing(fan_chart_svg(chart))) {
    if (element.tag != "path" || element.attributes.at("class") != "t-median") continue;
    std::string d = element.attributes.at("d");
    std::vector<double> points = numbers_in(d);
    if (points.size() > longest.size()) longest = std::move(points);
  }
  return longest;
}

TEST(FanChart, AJumpOfTheModelIsDrawnAsAGap) {
  const std::vector<float> history = {10, 11, 13, 12};  // moves of 2 at most
  EXPECT_EQ(median_line(example(history, {13, 13, 14}, 1)).size(), 2U * 4) << "joined";
  EXPECT_EQ(median_line(example(history, {14, 13, 14}, 1)).size(), 2U * 4) << "as far as before";
  EXPECT_EQ(median_line(example(history, {14.5F, 13, 14}, 1)).size(), 2U * 3) << "a jump";
  EXPECT_EQ(median_line(example(history, {-40, -41, -40}, 1)).size(), 2U * 3);
  EXPECT_EQ(median_line(example({5}, {5, 6, 7}, 1)).size(), 2U * 3) << "no move to compare with";
  EXPECT_EQ(median_line(example({5, 5, 5}, {5, 5, 5}, 1)).size(), 2U * 4);
  // Bands start where the median does; actual values always follow the history.
  FanChart chart = example(history, {-40, -41, -40}, 1);
  chart.actual = {12, 13, 12};
  const double first_x = median_line(chart)[0];
  for (const Element& element : check_drawing(fan_chart_svg(chart))) {
    if (element.tag != "path") continue;
    const std::string& css_class = element.attributes.at("class");
    const std::vector<double> points = numbers_in(element.attributes.at("d"));
    if (css_class == "t-band") {
      EXPECT_EQ(points[0], first_x);
    } else if (css_class == "t-actual" && points.size() > 4) {
      EXPECT_LT(points[0], first_x);
    }
  }
  // A single step far off has no link.
  const auto links = [&](float step) {
    return count_class(check_drawing(fan_chart_svg(example(history, {step}, 1))), "t-link");
  };
  EXPECT_EQ(links(13), 1U);
  EXPECT_EQ(links(40), 0U);
}

TEST(FanChart, SeparateForecastsAreNotJoinedToTheHistory) {
  FanChart chart = example({10, 11, 13, 12}, {13, 13, 14}, 1);
  chart.origin_label = "Each bar's band was forecast <one> bar before";
  const std::string svg = fan_chart_svg(chart);
  EXPECT_NE(svg.find("was forecast &lt;one&gt; bar before"), std::string::npos);
  EXPECT_EQ(svg.find("Forecast after"), std::string::npos);
  EXPECT_EQ(median_line(chart).size(), 2U * 3) << "not joined to the history";
}

TEST(FanChart, TheUnitDoesNotTouchTheHighestTick) {
  // 0 to 100 with air at the top: ticks end anywhere up to the edge of the frame.
  for (const float top : {90.0F, 93.0F, 94.3F, 95.0F, 100.0F}) {
    FanChart chart = example({0, top}, {top, 0}, 0);
    chart.y_label = "dew_point";
    const std::string svg = fan_chart_svg(chart);
    double unit = 0, highest = 1e9;
    for (std::size_t at = svg.find("<text class=\"t-tick\""); at != std::string::npos;
         at = svg.find("<text class=\"t-tick\"", at + 1)) {
      const std::string element = svg.substr(at, svg.find("</text>", at) - at);
      const double y = std::stod(element.substr(element.find(" y=\"") + 4));
      if (element.ends_with(">dew_point")) {
        unit = y;
      } else {
        highest = std::min(highest, y);
      }
    }
    EXPECT_GE(highest - unit, 15) << top;  // baselines of 12 px text, descenders and all
  }
}

TEST(FanChart, DegenerateSeriesAreDrawn) {
  std::vector<float> gaps = wave(60);
  for (const std::size_t i : {0U, 20U, 21U, 22U, 24U, 40U, 59U}) gaps[i] = kMissing;
  gaps[30] = kInfinity;
  std::vector<float> gappy_median = wave(12);
  gappy_median[0] = gappy_median[5] = -kInfinity;
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::map<std::string, FanChart> cases = {
      {"one point of history", example({5}, {5, 6, 7}, 0.4F)},
      {"no history", example({}, {5, 6, 7}, 0.4F)},
      {"one step and nothing else", example({}, {5}, 0.4F)},
      {"constant", example(std::vector<float>(50, 42), std::vector<float>(12, 42), 0)},
      {"all zero, no dates", example(std::vector<float>(50, 0), {0, 0}, 0, false)},
      {"1e30", example(wave(60, 1e29, 1e30), wave(12, 1e29, 1e30), 1e29F)},
      {"1e-30", example(wave(60, 1e-31, 1e-30), wave(12, 1e-31, 1e-30), 1e-31F)},
      {"negative", example(wave(60, 3e5, -5e6), wave(12, 3e5, -5e6), 1e5F)},
      {"around zero", example(wave(60), wave(12), 0.2F, false)},
      {"gaps", example(gaps, gappy_median, 0.3F)},
      {"all missing", example(std::vector<float>(9, kMissing), {kMissing, kMissing}, 1)},
      {"one missing step", example({kMissing}, {kMissing}, 1)},
      {"largest floats", example({-huge, huge}, {huge, -huge}, 0)},
      {"denormals", example({0, tiny}, {tiny, tiny}, 0)},
      {"last digits", example({16'777'215, 16'777'216}, {16'777'215}, 0)},
  };
  for (const auto& [name, chart] : cases) {
    SCOPED_TRACE(name);
    check_drawing(fan_chart_svg(chart));
    check_page(html_of(chart), 1);
  }
  EXPECT_NE(fan_chart_svg(cases.at("all missing")).find("No values to show"), std::string::npos);
}

TEST(FanChart, LongForecastsStaySmallAndKeepTheirPeaks) {
  std::mt19937 random(1);
  std::normal_distribution<float> noise;
  for (const std::size_t horizon : {10'000U, 100'000U}) {
    std::vector<float> history(4096), median(horizon);
    for (float& value : history) value = 100 + noise(random);
    for (float& value : median) value = 100 + noise(random);
    median[horizon / 3] = 150;
    FanChart chart = example(history, median, 2);
    for (std::int64_t& time : chart.history_times) time /= 1440;  // by the minute
    for (std::int64_t& time : chart.forecast_times) time /= 1440;
    const std::string svg = fan_chart_svg(chart);
    const std::string html = html_of(chart);
    EXPECT_LT(svg.size(), 150'000U);
    EXPECT_LT(html.size(), 500'000U);
    check_drawing(svg);
    check_page(html, 1);
    const io::Json data = tooltip_data(html);
    const auto& values = data.find("values")->array;
    EXPECT_TRUE(
        std::any_of(values.begin(), values.end(), [](const io::Json& v) { return v.real == 150; }));
  }
  // The worst case for the size: every second value missing.
  std::vector<float> holes(20'000, kMissing);
  for (std::size_t i = 0; i < holes.size(); i += 2) holes[i] = noise(random);
  EXPECT_LT(html_of(example(holes, holes, 1)).size(), 500'000U);
}

TEST(FanChart, RandomChartsAreWellFormedAndFinite) {
  std::mt19937 random(42);
  const auto below = [&](std::size_t n) { return random() % n; };
  const auto text = [&] {
    std::string bytes(below(80), ' ');
    for (char& c : bytes) c = static_cast<char>(below(3) == 0 ? "<>&\"'\\/"[below(7)] : random());
    return bytes;
  };
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto value = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); };
    std::vector<float> history(below(200)), median(1 + below(40));
    std::generate(history.begin(), history.end(), value);
    std::generate(median.begin(), median.end(), value);
    FanChart chart = example(history, median, 0, below(2) == 0);
    for (FanChart::Band& band : chart.bands) {
      band.label = text();
      for (std::size_t i = 0; i < median.size(); ++i) {
        band.low[i] = value(), band.high[i] = value();
        if (band.low[i] > band.high[i]) std::swap(band.low[i], band.high[i]);
      }
    }
    if (below(2) == 0) chart.actual = median;
    chart.title = text(), chart.subtitle = text(), chart.y_label = text(), chart.footnote = text();
    check_drawing(fan_chart_svg(chart));
    check_page(fan_chart_html({&chart, 1}, text()), 1);
    if (HasFailure()) break;
  }
}

TEST(FanChart, NumbersDoNotDependOnTheLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const FanChart chart = example(wave(60, 1000, 12'345), wave(12, 1000, 12'345), 300);
  const std::string svg = fan_chart_svg(chart), html = html_of(chart);
  const std::locale before =
      std::locale::global(std::locale(std::locale(), std::make_unique<Comma>().release()));
  const std::string svg_after = fan_chart_svg(chart), html_after = html_of(chart);
  std::locale::global(before);
  EXPECT_EQ(svg, svg_after);
  EXPECT_EQ(html, html_after);
}

// ------------------------------------------------------------------------------------------ page

TEST(FanPage, TextFromFilesIsNeverMarkup) {
  FanChart chart = example(wave(10), wave(5), 0.2F);
  const std::string attack =
      "</script></svg><script>alert(1)</script><img src=x onerror=\"a('b')\"> ]]> & \x01";
  chart.title = chart.subtitle = chart.y_label = chart.footnote = chart.bands[0].label = attack;
  const std::string svg = fan_chart_svg(chart);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<img"), std::string::npos);
  check_drawing(svg);
  const std::string html = fan_chart_html({&chart, 1}, attack);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  check_page(html, 1);
  EXPECT_TRUE(tooltip_data(html).find("bands")->array[0].find("label")->string.starts_with(
      "</script></svg>"));
}

TEST(FanPage, IsSelfContained) {
  const std::string html = html_of(example(wave(10), wave(5), 0.2F));
  EXPECT_NE(html.find("default-src 'none'; style-src 'sha256-"), std::string::npos);
  for (const char* part : {"src=\"", "href=", "@import", "url(", "fetch(",
                           "https:", "unsafe-inline", " style=\"", "innerHTML"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
  // The one address is the name of the SVG namespace.
  EXPECT_EQ(count_of(html, "http://"), count_of(html, "http://www.w3.org/2000/svg"));
}

TEST(FanPage, HoldsEveryChartUnderItsTitle) {
  std::vector<FanChart> charts = {example(wave(10), wave(5), 0.2F),
                                  example(wave(30), wave(1), 0.2F, false)};
  charts[0].title = "First";
  charts[1].title = "Second & last";
  const std::string html = fan_chart_html(charts, "Two series");
  check_page(html, 2);
  for (const char* part : {"<title>Two series</title>", "<h1>Two series</h1>", "<h2>First</h2>",
                           "<h2>Second &amp; last</h2>"}) {
    EXPECT_EQ(count_of(html, part), 1U) << part;
  }
  // A page named after its only chart says it once.
  EXPECT_EQ(fan_chart_html({charts.data(), 1}, "First").find("<h2>"), std::string::npos);
}

// ---------------------------------------------------------------------------------------- errors

void expect_error(const std::function<void(FanChart&)>& spoil, const std::string& part) {
  FanChart chart = example(wave(10), wave(5), 0.2F);
  spoil(chart);
  for (const bool page : {false, true}) {
    try {
      page ? html_of(chart) : fan_chart_svg(chart);
      ADD_FAILURE() << "accepted: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("chart \"Example\""), std::string::npos)
          << error.what();
    }
  }
}

TEST(FanChart, RefusesInvalidCharts) {
  expect_error([](FanChart& c) { c.median.clear(), c.forecast_times.clear(); },
               "the median is empty");
  expect_error([](FanChart& c) { c.bands[1].high.pop_back(); },
               "band \"50 %\" has 5 low and 4 high values, expected 5");
  expect_error([](FanChart& c) { std::swap(c.bands[0].low, c.bands[0].high); },
               "expected low <= high");
  expect_error([](FanChart& c) { c.actual = {1}; }, "1 actual values for 5 steps");
  expect_error([](FanChart& c) { c.max_history = -1; }, "max_history is -1");
  expect_error([](FanChart& c) { c.history_times.clear(); }, "0 history times for 10 values");
  expect_error([](FanChart& c) { c.forecast_times.clear(); }, "0 forecast times for 5 values");
  expect_error([](FanChart& c) { c.forecast_times[0] = kStart; },
               "forecast time 1 is 1 Jan 2024 00:00:00, before 10 Jan 2024 00:00:00");
  expect_error([](FanChart& c) { c.history_times[3] *= 1000; },
               "perhaps it was given in milliseconds");
  expect_error([](FanChart& c) { c.history_times[0] = std::numeric_limits<std::int64_t>::min(); },
               "expected the years 1 to 9999");
  EXPECT_THROW(fan_chart_html({}, "none"), Error);
}

}  // namespace
}  // namespace toto::report
