#include "telemetry.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "base/error.h"

namespace toto::server {
namespace {

// A quoted label value of the Prometheus text format.
std::string label(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out += '"';
}

// Writes metrics: help and type once, then the samples.
class MetricText {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <typename Number>
  void sample(Number value, std::string_view labels = {}, std::string_view suffix = {}) {
    text_ += fmt::format("{}{}{}{}{} {}\n", name_, suffix, labels.empty() ? "" : "{", labels,
                         labels.empty() ? "" : "}", value);
  }
  template <typename Number>
  void single(std::string_view name, std::string_view type, std::string_view help, Number value) {
    begin(name, type, help);
    sample(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

template <typename Bounds, typename Counts>
void write_buckets(MetricText& text, const std::string& labels, const Bounds& bounds,
                   const Counts& counts, std::uint64_t total, double sum) {
  const std::string prefix = labels.empty() ? "" : labels + ",";
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    below += counts[i];
    text.sample(below, fmt::format("{}le=\"{}\"", prefix, bounds[i]), "_bucket");
  }
  text.sample(total, prefix + "le=\"+Inf\"", "_bucket");
  text.sample(sum, labels, "_sum");
  text.sample(total, labels, "_count");
}

struct ErrorKind {
  int status;
  std::string_view name;
};
constexpr std::array<ErrorKind, 10> kErrorKinds = {{{400, "bad_request"},
                                                    {401, "unauthorized"},
                                                    {403, "forbidden"},
                                                    {404, "not_found"},
                                                    {408, "timeout"},
                                                    {413, "too_large"},
                                                    {429, "overloaded"},
                                                    {kClientLeft, "client_left"},
                                                    {503, "unavailable"},
                                                    {500, "internal"}}};

constexpr std::array<double, 3> kQuantiles = {0.5, 0.95, 0.99};

}  // namespace

void LatencyHistogram::add(double seconds) {
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[static_cast<std::size_t>(bucket - kBounds.begin())];
  ++count_;
  sum_ += seconds;
  if (recent_.size() < kRecent) {
    recent_.push_back(static_cast<float>(seconds));
  } else {
    recent_[next_++ % kRecent] = static_cast<float>(seconds);
  }
}

double LatencyHistogram::quantile(double level) const {
  if (recent_.empty()) return 0;
  std::vector<float> sorted = recent_;
  const auto rank =
      static_cast<std::size_t>(std::ceil(level * static_cast<double>(sorted.size())) - 1);
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(rank, sorted.size() - 1));
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

std::string_view kind_of(int status) noexcept {
  for (const ErrorKind& kind : kErrorKinds) {
    if (kind.status == status) return kind.name;
  }
  return "internal";
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void Telemetry::request(std::string_view route, int status, double seconds, bool forecasts) {
  const std::lock_guard lock(mutex_);
  auto found = routes_.find(route);
  if (found == routes_.end()) found = routes_.emplace(std::string(route), LatencyHistogram()).first;
  found->second.add(seconds);
  ++requests_[{std::string(route), status}];
  if (status >= 400) ++errors_[std::string(kind_of(status))];
  if (status == 200 && forecasts) forecasting_.add(seconds);
}

void Telemetry::batch(std::size_t num_series) {
  const std::lock_guard lock(mutex_);
  const auto bucket = std::lower_bound(kBatchBounds.begin(), kBatchBounds.end(),
                                       static_cast<int>(std::min<std::size_t>(num_series, 1000)));
  ++batches_[static_cast<std::size_t>(bucket - kBatchBounds.begin())];
  ++num_batches_;
  batch_sum_ += num_series;
}

Telemetry::ForecastLatency Telemetry::latency() const {
  const std::lock_guard lock(mutex_);
  return {forecasting_.quantile(0.5), forecasting_.quantile(0.95), forecasting_.quantile(0.99),
          forecasting_.count()};
}

std::int64_t Telemetry::num_errors() const {
  const std::lock_guard lock(mutex_);
  std::int64_t total = 0;
  for (const auto& [name, count] : errors_) {
    if (name != kind_of(kClientLeft)) total += static_cast<std::int64_t>(count);
  }
  return total;
}

std::string Telemetry::prometheus(const Gauges& gauges) const {
  MetricText text;
  {
    const std::lock_guard lock(mutex_);
    text.begin("toto_request_duration_seconds", "histogram",
               "Time from the first byte of a request to its answer.");
    for (const auto& [route, latency] : routes_) {
      write_buckets(text, "route=" + label(route), LatencyHistogram::kBounds, latency.counts(),
                    latency.count(), latency.sum());
    }
    text.begin("toto_request_duration_quantile_seconds", "gauge",
               "Exact quantiles of the latest 1024 requests of a route.");
    for (const auto& [route, latency] : routes_) {
      for (const double level : kQuantiles) {
        text.sample(latency.quantile(level),
                    fmt::format("route={},quantile=\"{}\"", label(route), level));
      }
    }
    text.begin("toto_requests_total", "counter", "Requests answered.");
    for (const auto& [key, count] : requests_) {
      text.sample(count, fmt::format("route={},status=\"{}\"", label(key.first), key.second));
    }
    text.begin("toto_errors_total", "counter", "Requests that ended with an error, by kind.");
    for (const ErrorKind& kind : kErrorKinds) {
      const auto found = errors_.find(kind.name);
      text.sample(found == errors_.end() ? 0 : found->second, "kind=" + label(kind.name));
    }
    text.begin("toto_batch_size", "histogram", "Series forecast together.");
    write_buckets(text, "", kBatchBounds, batches_, num_batches_, static_cast<double>(batch_sum_));
  }
  text.single("toto_forecasts_total", "counter", "Series forecast.", forecasts_.load());
  text.single("toto_queue_depth", "gauge", "Requests waiting or being forecast.",
              gauges.queue_depth);
  text.single("toto_queue_full_total", "counter", "Requests refused because the queue was full.",
              queue_full_.load());
  text.single("toto_log_lines_lost_total", "counter",
              "Lines of the access log and messages to the operator that could not be written.",
              gauges.log_lines_lost);
  text.single("toto_connections", "gauge", "Open connections.", gauges.connections);
  text.single("toto_sessions", "gauge", "Streaming sessions kept.", gauges.sessions);
  const Engine* engine = gauges.active.engine.get();
  text.single("toto_ready", "gauge", "1 when the model is loaded.", engine == nullptr ? 0 : 1);
  text.single("toto_replans_total", "counter", "Plans made after warm-up.",
              gauges.active.replans());
  const ShadowState& shadow = gauges.shadow;
  const bool compares =
      shadow.enabled && engine != nullptr && engine->options().mode != Mode::reference;
  text.single(
      "toto_shadow_enabled", "gauge",
      "1 while forecasts are compared: --shadow-rate is above 0 and the mode is not reference.",
      compares ? 1 : 0);
  text.single("toto_shadow_deviation", "gauge",
              "Relative deviation of the latest compared forecast from reference mode.",
              shadow.last_deviation);
  text.single("toto_shadow_deviation_max", "gauge",
              "Largest relative deviation since the mode was switched.", shadow.worst_deviation);
  text.single("toto_shadow_deviation_bound", "gauge", "Bound of the relative deviation.",
              shadow.bound);
  text.single("toto_shadow_checks_total", "counter", "Forecasts compared.", shadow.checked);
  text.single("toto_shadow_dropped_total", "counter",
              "Forecasts skipped because too many comparisons were waiting.", shadow.dropped);
  text.single("toto_shadow_exceeded_total", "counter", "Comparisons that exceeded the bound.",
              shadow.exceeded);
  text.single("toto_rolled_back", "gauge", "1 after an automatic rollback to reference mode.",
              shadow.rolled_back ? 1 : 0);
  text.begin("toto_build_info", "gauge", "The program.");
  text.sample(1, "version=" + label(version()));
  if (engine != nullptr) {
    const tables::EngineBlock block = gauges.active.block(0);
    text.begin("toto_model_info", "gauge", "The model and how it runs.");
    text.sample(1, fmt::format("model={},weights_sha256={},mode={},dtype={},isa={},trained=\"{}\"",
                               label(block.model), label(block.weights_sha256), label(block.mode),
                               label(block.dtype), label(block.isa), block.trained));
  }
  text.single("process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
  text.single("process_uptime_seconds", "gauge", "Since the start.", gauges.uptime_seconds);
  return text.take();
}

}  // namespace toto::server
