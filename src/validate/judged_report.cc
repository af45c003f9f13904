#include "validate/judged_report.h"

#include <algorithm>
#include <cmath>

namespace toto::validate {
namespace {

// NaN and infinities have no place in JSON: null, and such a check has not passed.
void write_number(io::JsonWriter& json, std::string_view key, const std::optional<double>& value) {
  json.key(key);
  if (value && std::isfinite(*value)) {
    json.value(*value);
  } else {
    json.null();
  }
}

}  // namespace

std::size_t JudgedReport::num_passed() const {
  return static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(), [](const Check& check) { return check.passed; }));
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
  write_provenance(json, report.made);
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
  for (const Check& check : report.checks) {
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
