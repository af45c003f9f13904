// Do files, backtests and verification take as long as they should? Each time is a multiple of
// plain work of the same run: the same input at a tenth of the size, a loop over the same data that
// does nothing else, a forecast in reference mode. A multiple hardly depends on the machine.
//
//   time_gate MODEL                exit code 0: every multiple is small enough; 1: one is not
//   time_gate MODEL --self-check   0: a run as if ours took 3 times as long fails
//
// A disturbance can only make us look slower: a multiple that is too large is measured again.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/trading.h"
#include "base/error.h"
#include "gate_main.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "tables/series_file.h"
#include "tables/timestamps.h"
#include "validate/verification.h"

namespace toto::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kAttempts = 6;
constexpr double kNoticedHandicap = 3;

struct Gate {
  std::string name;
  std::function<void()> ours, yardstick;
  double most;  // ours, in times of the yardstick
  int rounds = kRounds;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of each, taken in turns.
double multiple_of(const Gate& gate) {
  double ours = INFINITY, yardstick = INFINITY;
  for (int round = 0; round < gate.rounds; ++round) {
    ours = std::min(ours, seconds_of(gate.ours));
    yardstick = std::min(yardstick, seconds_of(gate.yardstick));
  }
  return ours / yardstick;
}

bool passes(const Gate& gate, double handicap) {
  double multiple = INFINITY;
  for (int attempt = 0; attempt < kAttempts && multiple > gate.most; ++attempt) {
    multiple = std::min(multiple, handicap * multiple_of(gate));
  }
  const bool small_enough = multiple <= gate.most;
  fmt::print("{:<32} {:>8.1f} {:>8.0f}   {}\n", gate.name, multiple, gate.most,
             small_enough ? "ok" : "TOO SLOW");
  return small_enough;
}

// What grows with its input alone takes 10 times as long for 10 times as much; what compares all
// pairs takes 100 times as long.
constexpr int kFew = 10'000, kMany = 100'000;
constexpr double kMostGrowth = 35;

std::string json_keys(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("\"key{}\":{},", i, i);
  text.back() = '}';
  return text;
}

// A safetensors file of `count` numbers without its contents, 4 bytes each.
std::string header_bytes(int count) {
  std::string header = "{";
  for (int i = 0; i < count; ++i) {
    header += fmt::format(R"("t{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}},)", i,
                          4 * i, 4 * i + 4);
  }
  header.back() = '}';
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header;
}

void read_header(const std::string& bytes, int count) {
  const auto file = io::Safetensors::parse_header(
      bytes, bytes.size() + 4 * static_cast<std::size_t>(count), "header");
  for (const io::TensorInfo& tensor : file.tensors()) {
    if (file.find(tensor.name) != &tensor) fail(ErrorCode::internal, "a tensor is not found");
  }
}

// A folder whose one file of weights has an index.
class IndexedWeights {
 public:
  explicit IndexedWeights(int count) {
    std::string name = (std::filesystem::temp_directory_path() / "toto-time-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail(ErrorCode::internal, "no temporary folder");
    folder_ = name;
    constexpr const char* kShard = "model-00001-of-00001.safetensors";
    std::ofstream(folder_ / kShard, std::ios::binary)
        << header_bytes(count) << std::string(4 * static_cast<std::size_t>(count), '\0');
    io::JsonWriter index(io::JsonLayout::compact);
    index.begin_object().key("weight_map").begin_object();
    for (int i = 0; i < count; ++i) index.field(fmt::format("t{}", i), kShard);
    std::ofstream(folder_ / "model.safetensors.index.json")
        << index.end_object().end_object().take();
  }
  ~IndexedWeights() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  IndexedWeights(const IndexedWeights&) = delete;
  IndexedWeights& operator=(const IndexedWeights&) = delete;

  void open() const { (void)io::WeightFiles::open(folder_.string()); }

 private:
  std::filesystem::path folder_;
};

volatile double sink = 0;  // what a yardstick computed: it must not be left out

std::string long_table() {
  std::string text = "unique_id,ds,y\n";
  for (int i = 0; i < kMany; ++i) {
    text += fmt::format("series_1,{},{}.25\n",
                        tables::format_time(i * tables::kHour, {.has_clock = true}), i);
  }
  return text;
}

void read_table(const std::string& text) {
  io::MemorySource source(text);
  sink = static_cast<double>(tables::read_series(source, "data.csv", {}).series.size());
}

// The last field of each line, as a number.
void scan_table(std::string_view text) {
  double sum = 0;
  for (std::size_t at = text.find('\n') + 1; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::size_t comma = text.rfind(',', end);
    double value = 0;
    std::from_chars(text.data() + comma + 1, text.data() + end, value);
    sum += value;
    at = end + 1;
  }
  sink = sum;
}

constexpr std::size_t kBars = 1'000'000;

tables::Bars million_bars() {
  tables::Bars bars;
  for (std::size_t i = 0; i <= kBars; ++i) {
    const double base = 100 + static_cast<double>(i % 7);
    bars.times.push_back(static_cast<tables::Ticks>(i) * tables::kDay);
    bars.lines.push_back(static_cast<std::int64_t>(i) + 2);
    bars.open.push_back(base);
    bars.high.push_back(base + 3);
    bars.low.push_back(base - 3);
    bars.close.push_back(base + 1);
  }
  return bars;
}

// One after another, as equity grows.
void compound(const tables::Bars& bars) {
  double equity = 1;
  for (std::size_t i = 0; i < kBars; ++i) {
    if (bars.low[i] <= 99.5 && bars.high[i] >= 104) equity *= bars.close[i] / bars.open[i];
  }
  sink = equity;
}

std::vector<Gate> all_gates(const std::string& model) {
  using backtest::BarOrders, backtest::Side;
  std::vector<Gate> gates;
  const auto grows = [&](const char* name, const auto& few, const auto& many) {
    gates.push_back({.name = name, .ours = many, .yardstick = few, .most = kMostGrowth});
  };
  grows(
      "keys of JSON, 10 times as many",
      [text = json_keys(kFew)] { (void)io::parse_json(text, "few"); },
      [text = json_keys(kMany)] { (void)io::parse_json(text, "many"); });
  grows(
      "tensors, 10 times as many", [bytes = header_bytes(kFew)] { read_header(bytes, kFew); },
      [bytes = header_bytes(kMany)] { read_header(bytes, kMany); });
  const auto few = std::make_shared<IndexedWeights>(kFew);
  const auto many = std::make_shared<IndexedWeights>(kMany);
  grows("indexed tensors, 10 times as many", [few] { few->open(); }, [many] { many->open(); });

  const auto table = std::make_shared<std::string>(long_table());
  gates.push_back({.name = "a CSV, in scans of its text",
                   .ours = [table] { read_table(*table); },
                   .yardstick = [table] { scan_table(*table); },
                   .most = 20});
  const auto bars = std::make_shared<tables::Bars>(million_bars());
  BarOrders orders;
  orders.legs[0] = {.side = Side::buy, .at_limit = true, .entry = 99.5, .take_profit = 104};
  const auto all = std::make_shared<std::vector<BarOrders>>(kBars, orders);
  gates.push_back({.name = "a million orders, in scans of bars",
                   .ours = [bars, all] { simulate_round_trips(*bars, 1, *all, {.fee = 0.0005}); },
                   .yardstick = [bars] { compound(*bars); },
                   .most = 40});

  // As many forecasts in reference mode as it looks at, and the other modes hardly show.
  const auto reference =
      std::make_shared<Engine>(Engine::load(model, {.mode = Mode::reference, .threads = 1}));
  const auto forecast = [reference] {
    Series series;
    for (int t = 0; t < 4096; ++t) {
      series.values.push_back(100 + std::sin(0.26F * static_cast<float>(t)));
    }
    (void)reference->forecast(series, {.horizon = 64});
  };
  const auto verify_model = [model] {
    validate::VerifyOptions options;
    options.model = model;
    if (!verify(options).passed()) fail(ErrorCode::internal, "the model does not verify");
  };
  gates.push_back({.name = "toto verify, in forecasts",
                   .ours = verify_model,
                   .yardstick = forecast,
                   .most = 15,
                   .rounds = 1});
  return gates;
}

// How many multiples are too large.
int run(const std::string& model, double handicap) {
  int failed = 0;
  fmt::print("{:<32} {:>8} {:>8}\n", "", "times", "at most");
  for (const Gate& gate : all_gates(model)) {
    if (!passes(gate, handicap)) ++failed;
    if (failed > 0 && handicap > 1) break;  // it has been shown
  }
  return failed;
}

}  // namespace
}  // namespace toto::bench

int main(int argc, char** argv) {
  return toto::bench::gate_main(argc, argv, "time_gate", toto::bench::run,
                                [] { return toto::bench::kNoticedHandicap; });
}
