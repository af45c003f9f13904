#include "validate/judged_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/machine.h"
#include "base/text.h"
#include "tables/timestamps.h"

namespace toto::validate {
namespace {

// NaN and infinities have no place in JSON: they become null, and such a check has not passed.
void write_number(io::JsonWriter& json, std::string_view key, const std::optional<double>& value) {
  json.key(key);
  if (value && std::isfinite(*value)) {
    json.value(*value);
  } else {
    json.null();
  }
}

std::string host_name() {
  std::array<char, 256> name = {};
  // A name that is too long is cut, perhaps without a terminating zero.
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown host";
  return one_line(name.data());
}

}  // namespace

Provenance provenance() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  constexpr tables::TimeStyle kStyle{
      .has_clock = true, .has_seconds = true, .zone = tables::TimeStyle::Zone::utc};
  return {.date = tables::format_time(tables::kSecond * now.time_since_epoch().count(), kStyle),
          .host = host_name(),
          .cpu = one_line(cpu_name())};
}

std::string text_of(const Provenance& made) {
  return fmt::format("{} on {}, {}", made.date, made.host, made.cpu);
}

bool holds(double figure, double bound) {
  return std::isfinite(figure) && std::isfinite(bound) && figure <= bound;
}

CheckResult measured_check(std::string name, double figure, double bound, std::string detail) {
  return {.name = std::move(name),
          .passed = holds(figure, bound),
          .figure = figure,
          .bound = bound,
          .detail = std::move(detail)};
}

CheckResult failed_check(std::string name, std::string detail) {
  return {.name = std::move(name), .passed = false, .detail = std::move(detail)};
}

CheckResult equality_check(std::string name, std::size_t different, std::size_t compared,
                           std::string detail) {
  CheckResult check =
      measured_check(std::move(name), static_cast<double>(different), 0, std::move(detail));
  check.passed = check.passed && compared > 0;
  return check;
}

std::size_t JudgedReport::num_passed() const {
  return static_cast<std::size_t>(std::ranges::count_if(checks, &CheckResult::passed));
}

bool JudgedReport::passed() const { return !checks.empty() && num_passed() == checks.size(); }

void JudgedReport::describe(const ModelInfo& judged) {
  model = judged.name;
  weights_sha256 = judged.weights_sha256;
  trained = judged.trained;
}

void JudgedReport::describe(const EngineOptions& engine, std::uint64_t of_seed) {
  made = provenance();
  dtype = engine.dtype;
  isa = name_of(engine.isa);
  threads = engine.threads;
  seed = of_seed;
}

void write_setting(io::JsonWriter& json, const JudgedReport& report) {
  const Provenance& made = report.made;
  json.field("date", made.date).field("host", made.host).field("cpu", made.cpu);
  if (!report.model.empty()) {
    json.field("model", report.model)
        .field("trained", report.trained)
        .field("weights_sha256", report.weights_sha256);
  }
  json.field("dtype", name_of(report.dtype))
      .field("isa", report.isa)
      .field("threads", report.threads)
      .field("seed", report.seed);
}

void write_checks(io::JsonWriter& json, const JudgedReport& report) {
  json.key("checks").begin_array();
  for (const CheckResult& check : report.checks) {
    json.begin_object().field("name", check.name).field("passed", check.passed);
    write_number(json, "figure", check.figure);
    write_number(json, "bound", check.bound);
    if (check.max_error) write_number(json, "max_error", check.max_error);
    if (check.own_error) write_number(json, "reference_error", check.own_error);
    if (!check.detail.empty()) json.field("detail", check.detail);
    json.end_object();
  }
  json.end_array();
}

}  // namespace toto::validate
