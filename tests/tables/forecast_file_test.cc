#include "tables/forecast_file.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "io_fixture.h"
#include "tables/series_file.h"

namespace toto::tables {
namespace {

// A complete answer.
struct Document : ForecastHeader {
  std::vector<ForecastEntry> series;
  Timings timings;
};

// Two series of three steps; the second has samples, a point forecast and a missing value.
struct Example {
  std::vector<std::string> times = {"2024-01-01", "2024-01-02", "2024-01-03"};
  std::vector<float> mean = {1.5F, 2, 3};
  std::vector<float> median = {1, 2, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> low = {0.1F, -1e-30F, 100'000};
  std::vector<float> high = {3.4028235e38F, 20, 30};
  std::vector<float> samples = {1, 2, 3, 4, 5, 6};
  Document document;

  explicit Example(const std::string& second_id = "b,\"x\"") : second_id_(second_id) {
    document.engine = {.version = "0.1.0",
                       .model = "toto-mini",
                       .trained = false,
                       .weights_sha256 = "abc",
                       .config_sha256 = "def",
                       .mode = "default",
                       .dtype = "f32",
                       .isa = "avx2",
                       .threads = 2,
                       .seed = 18'446'744'073'709'551'615U,
                       .replans = 0};
    document.horizon = 3;
    document.quantiles = {0.1, 0.9};
    document.warnings = {"one", "two"};
    document.series.push_back({.id = "a",
                               .context_length = 512,
                               .exact_steps = 2,
                               .scale = 0.5,
                               .timestamps = times,
                               .mean = mean,
                               .median = median,
                               .quantiles = {low, high}});
    document.series.push_back(document.series.front());
    document.series.back().id = second_id_;
    document.series.back().num_paths = 256;
    document.series.back().scale = 1;
    document.series.back().point = median;
    document.series.back().samples = samples;
    document.timings = {.load = 1.23456, .prefill = 2, .decode = 0, .total = 3.5};
  }
  Example(const Example&) = delete;
  Example& operator=(const Example&) = delete;

 private:
  std::string second_id_;
};

using MakeWriter = std::unique_ptr<ForecastWriter> (*)(ForecastHeader, TextSink);
template <OutputFormat kFormat>
std::unique_ptr<ForecastWriter> file_writer(ForecastHeader header, TextSink sink) {
  return make_file_writer(kFormat, std::move(header), std::move(sink));
}
constexpr MakeWriter kJson = file_writer<OutputFormat::json>;
constexpr MakeWriter kJsonl = file_writer<OutputFormat::jsonl>;
constexpr MakeWriter kCsv = file_writer<OutputFormat::csv>;
constexpr MakeWriter kTable = make_table_writer;

void write(MakeWriter make_writer, const Document& document, TextSink sink) {
  const std::unique_ptr<ForecastWriter> writer = make_writer(document, std::move(sink));
  for (const ForecastEntry& entry : document.series) writer->add(entry);
  writer->finish(document.timings);
}

std::string text_of(MakeWriter make_writer, const Document& document) {
  std::string text;
  write(make_writer, document, [&text](std::string_view part) { text += part; });
  return text;
}

TEST(ForecastJson, HasTheDocumentedFieldsInTheirOrder) {
  const Example example;
  EXPECT_EQ(text_of(kJson, example.document), R"({
  "engine": {
    "version": "0.1.0",
    "model": "toto-mini",
    "trained": false,
    "weights_sha256": "abc",
    "config_sha256": "def",
    "mode": "default",
    "dtype": "f32",
    "isa": "avx2",
    "threads": 2,
    "seed": 18446744073709551615,
    "replans": 0
  },
  "horizon": 3,
  "series": [
    {
      "id": "a",
      "context_length": 512,
      "exact_steps": 2,
      "paths": null,
      "scale": 0.5,
      "start": "2024-01-01",
      "timestamps": [
        "2024-01-01",
        "2024-01-02",
        "2024-01-03"
      ],
      "mean": [1.5, 2, 3],
      "median": [1, 2, null],
      "quantiles": {
        "0.1": [0.1, -1e-30, 1e+05],
        "0.9": [3.4028235e+38, 20, 30]
      }
    },
    {
      "id": "b,\"x\"",
      "context_length": 512,
      "exact_steps": 2,
      "paths": 256,
      "scale": 1,
      "start": "2024-01-01",
      "timestamps": [
        "2024-01-01",
        "2024-01-02",
        "2024-01-03"
      ],
      "mean": [1.5, 2, 3],
      "median": [1, 2, null],
      "point": [1, 2, null],
      "quantiles": {
        "0.1": [0.1, -1e-30, 1e+05],
        "0.9": [3.4028235e+38, 20, 30]
      },
      "samples": [
        [1, 2, 3],
        [4, 5, 6]
      ]
    }
  ],
  "timings_ms": {
    "load": 1.235,
    "prefill": 2,
    "decode": 0,
    "total": 3.5
  },
  "warnings": [
    "one",
    "two"
  ]
}
)");
}

TEST(ForecastJson, ReadsBackToTheSameFloats) {
  const Example example;
  const io::Json json = io::parse_json(text_of(kJson, example.document), "forecast");
  const io::Json& entry = json.find("series")->array.at(1);
  const std::vector<io::Json>& low = entry.find("quantiles")->find("0.1")->array;
  ASSERT_EQ(low.size(), example.low.size());
  for (std::size_t i = 0; i < low.size(); ++i) {
    EXPECT_EQ(static_cast<float>(low[i].real), example.low[i]);
  }
  EXPECT_EQ(entry.find("median")->array[2].kind, io::Json::Kind::null);
}

TEST(ForecastJsonl, IsALineForEachSeries) {
  const Example example;
  std::istringstream lines(text_of(kJsonl, example.document));
  std::string line;
  std::vector<std::string> ids;
  while (std::getline(lines, line)) {
    const io::Json json = io::parse_json(line, "line");
    ids.push_back(json.find("id")->string);
    EXPECT_EQ(json.find("start")->string, "2024-01-01");
    EXPECT_EQ(json.find("quantiles")->object.size(), 2U);
    EXPECT_EQ(json.find("engine")->find("version")->string, "0.1.0");
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b,\"x\""}));
}

TEST(ForecastCsv, HasARowForEachStep) {
  const Example example;
  EXPECT_EQ(text_of(kCsv, example.document),
            "unique_id,ds,mean,0.1,0.9\n"
            "a,2024-01-01,1.5,0.1,3.4028235e+38\n"
            "a,2024-01-02,2,-1e-30,20\n"
            "a,2024-01-03,3,1e+05,30\n"
            "\"b,\"\"x\"\"\",2024-01-01,1.5,0.1,3.4028235e+38\n"
            "\"b,\"\"x\"\"\",2024-01-02,2,-1e-30,20\n"
            "\"b,\"\"x\"\"\",2024-01-03,3,1e+05,30\n");
}

TEST(ForecastCsv, LeavesMissingCellsEmpty) {
  Example example;
  example.document.series.pop_back();
  example.mean = {std::numeric_limits<float>::infinity(), 2, 3};
  example.document.series[0].mean = example.mean;
  EXPECT_NE(text_of(kCsv, example.document).find("a,2024-01-01,,0.1,"), std::string::npos);
}

// An output table can be read as input, and every id survives.
TEST(ForecastCsv, KeepsIdsThatAreFormulasOrScripts) {
  for (const std::string id : {"=cmd|' /C calc'!A0", "+1", "-1", "@x", "<script>", " blank ",
                               "a,b;c", "\"", "\xC3\xA9t\xC3\xA9"}) {
    const Example example(id);
    std::string text = text_of(kCsv, example.document);
    if (std::string_view("=+-@").find(id.front()) != std::string_view::npos) {
      EXPECT_NE(text.find("\n\"" + id + "\","), std::string::npos) << text;
    }
    text.replace(text.find("mean"), 4, "y");
    io::MemorySource source(text);
    const InputData data = read_series(source, "forecast.csv", {});
    EXPECT_EQ(data.format, InputFormat::csv_long);
    ASSERT_EQ(data.series.size(), 2U);
    EXPECT_EQ(data.series[1].id, id);
    EXPECT_EQ(data.series[1].values, example.mean);
  }
}

TEST(ForecastTable, AlignsColumns) {
  Example example;
  EXPECT_EQ(text_of(kTable, example.document),
            "a: 3 steps after 512 values\n"
            "  ds          mean       0.1          0.9\n"
            "  2024-01-01   1.5       0.1  3.40282e+38\n"
            "  2024-01-02   2.0       0.0  2.00000e+01\n"
            "  2024-01-03   3.0  100000.0  3.00000e+01\n"
            "\n"
            "b,\"x\": 3 steps after 512 values\n"
            "  ds          mean       0.1          0.9\n"
            "  2024-01-01   1.5       0.1  3.40282e+38\n"
            "  2024-01-02   2.0       0.0  2.00000e+01\n"
            "  2024-01-03   3.0  100000.0  3.00000e+01\n");
}

// One column of values, formatted by the table.
std::vector<std::string> cells(std::vector<float> values) {
  const std::vector<std::string> times(values.size(), "t");
  Document document;
  document.series.push_back({.id = "s", .timestamps = times, .mean = values, .median = values});
  std::istringstream lines(text_of(kTable, document));
  std::vector<std::string> found;
  std::string line;
  std::getline(lines, line);
  for (std::getline(lines, line); std::getline(lines, line);) {
    found.push_back(line.substr(line.find_first_not_of(' ', 3)));
  }
  return found;
}

TEST(ForecastTable, AlignsDecimalPoints) {
  using Cells = std::vector<std::string>;
  EXPECT_EQ(cells({211.5F, 99.123456F, 3}), (Cells{"211.500", "99.123", "3.000"}));
  EXPECT_EQ(cells({115'000.5F, 0.25F}), (Cells{"115000.50", "0.25"}));
  EXPECT_EQ(cells({1, 20, -300}), (Cells{"1", "20", "-300"})) << "counts stay whole";
  EXPECT_EQ(cells({0.0123456F, -0.001F}), (Cells{"0.0123456", "-0.0010000"}));
  EXPECT_EQ(cells({12'345'678'848.0F, 0.5F}), (Cells{"12345678848", "0"}));
  EXPECT_EQ(cells({1e-12F, 0}), (Cells{"1.00000e-12", "0.00000e+00"}));
  EXPECT_EQ(cells({1e20F, -1}), (Cells{"1.00000e+20", "-1.00000e+00"}));
  EXPECT_EQ(cells({0, 0}), (Cells{"0", "0"}));
  EXPECT_EQ(cells({-1e-9F, 1.25F}), (Cells{"0.00", "1.25"})) << "no sign without a value";
  EXPECT_EQ(cells({std::numeric_limits<float>::quiet_NaN(), 1.5F}), (Cells{"-", "1.5"}));
}

TEST(ForecastTable, ShowsThePointForecastUnderItsName) {
  Example example("b");
  example.document.point_name = "quantile_0.3";
  example.document.heading = "AAPL";
  const std::string text = text_of(kTable, example.document);
  EXPECT_NE(text.find("AAPL a: 3 steps after 512 values\n  ds          mean       0.1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("AAPL b: 3 steps after 512 values\n"
                      "  ds          mean  quantile_0.3       0.1          0.9\n"
                      "  2024-01-01   1.5           1.0       0.1  3.40282e+38\n"),
            std::string::npos)
      << text;
  example.document.heading = "B";  // the file is called like the series
  EXPECT_NE(text_of(kTable, example.document).find("\nb: 3 steps"), std::string::npos);
}

TEST(ForecastTable, ShowsTheOuterQuantilesAndTheMiddleOne) {
  Example example;
  ForecastEntry& entry = example.document.series[0];
  entry.quantiles.assign(5, example.mean);
  entry.quantiles[1] = example.median;
  example.document.series.pop_back();
  example.document.quantiles = {0.9, 0.4, 0.05, 0.2, 0.7};
  const std::string text = text_of(kTable, example.document);
  EXPECT_NE(text.find("mean  0.05  0.4  0.9\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2024-01-03   3.0   3.0    -  3.0\n"), std::string::npos) << text;
  example.document.quantiles = {};
  entry.quantiles.clear();
  EXPECT_NE(text_of(kTable, example.document).find("ds          mean\n"), std::string::npos);
}

TEST(ForecastTable, CutsLongHorizonsAndLists) {
  const std::vector<float> values(64, 1.0F);
  std::vector<std::string> times;
  for (int i = 1; i <= 64; ++i) times.push_back("t" + std::to_string(i));
  Document document;
  document.horizon = 64;
  document.series.assign(
      25, {.id = "s", .context_length = 1, .timestamps = times, .mean = values, .median = values});
  const std::string text = text_of(kTable, document);
  EXPECT_NE(text.find("s: 64 steps after 1 value; 44 steps are not shown\n"), std::string::npos);
  EXPECT_NE(text.find("t16"), std::string::npos);
  EXPECT_EQ(text.find("t17"), std::string::npos);
  EXPECT_NE(text.find("  ...   ...\n  t61"), std::string::npos) << text;
  EXPECT_NE(text.find("\n5 more series are not shown; --output FILE"), std::string::npos);
  document.series.resize(1);
  for (const std::size_t horizon : {1U, 20U, 21U}) {
    document.series[0].mean = std::span(values).first(horizon);
    const std::string shown = text_of(kTable, document);
    EXPECT_EQ(shown.find("not shown") == std::string::npos, horizon <= 20) << shown;
    EXPECT_NE(shown.find("t" + std::to_string(horizon) + " "), std::string::npos) << shown;
  }
}

TEST(ForecastTable, RemovesControlCharacters) {
  const Example example(
      "\x1b[31mred\x7f\n\xC2\x9B"
      "2J\xC3\xA9");
  const std::string text = text_of(kTable, example.document);
  EXPECT_NE(text.find("\n [31mred   2J\xC3\xA9: 3 steps"), std::string::npos) << text;
}

TEST(MakeEntry, PicksTheVariate) {
  Forecast forecast;
  forecast.num_variates = 2;
  forecast.horizon = 2;
  forecast.context_length = 7;
  forecast.mean = {1, 2, 3, 4};
  forecast.median = {5, 6, 7, 8};
  forecast.quantiles = {10, 11, 12, 13, 20, 21, 22, 23};
  forecast.samples = {1, 1, 2, 2, 3, 3, 40, 41, 50, 51, 60, 61};
  forecast.num_samples = 3;
  const std::vector<std::string> times = {"1", "2"};
  const ForecastEntry entry = make_entry(forecast, 1, "y", times);
  const auto list = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(entry.context_length, 7);
  EXPECT_EQ(list(entry.mean), (std::vector<float>{3, 4}));
  EXPECT_EQ(list(entry.median), (std::vector<float>{7, 8}));
  ASSERT_EQ(entry.quantiles.size(), 2U);
  EXPECT_EQ(list(entry.quantiles[1]), (std::vector<float>{22, 23}));
  EXPECT_EQ(list(entry.samples), (std::vector<float>{40, 41, 50, 51, 60, 61}));
  forecast.samples.clear();
  EXPECT_TRUE(make_entry(forecast, 1, "y", times).samples.empty());
}

TEST(QuantileName, IsTheShortestThatReadsBack) {
  EXPECT_EQ(quantile_name(0.1), "0.1");
  EXPECT_EQ(quantile_name(0.50), "0.5");
  EXPECT_EQ(quantile_name(0.975), "0.975");
  EXPECT_EQ(quantile_name(0.1 + 0.2), "0.30000000000000004");
}

// A large answer reaches the sink in many parts.
TEST(ForecastJson, StreamsLargeAnswers) {
  const std::vector<float> values(1000, 1.25F);
  const std::vector<std::string> times(1000, "2024-01-01");
  Document document;
  document.horizon = 1000;
  const std::vector<float> samples(1000 * 200, 2.5F);
  document.series.assign(6, {.id = "s", .timestamps = times, .mean = values, .median = values});
  document.series[1].samples = samples;
  for (const MakeWriter make_writer : {kJson, kJsonl, kCsv}) {
    std::size_t total = 0;
    std::size_t largest = 0;
    write(make_writer, document, [&](std::string_view part) {
      EXPECT_FALSE(part.empty());
      total += part.size();
      largest = std::max(largest, part.size());
    });
    EXPECT_LT(largest, 100'000U);
    EXPECT_GT(total, largest);
  }
}

TEST(OutputFormatOf, IsTheExtension) {
  EXPECT_EQ(output_format("new/a.json"), OutputFormat::json);
  EXPECT_EQ(output_format("a.JSONL"), OutputFormat::jsonl);
  EXPECT_EQ(output_format("a.b.csv"), OutputFormat::csv);
  for (const std::string path : {"out.txt", "out", "folder.json/out", ""}) {
    io::expect_error(ErrorCode::invalid_argument, {"expected .json, .jsonl or .csv"},
                     [&] { output_format(path); });
  }
}

}  // namespace
}  // namespace toto::tables
