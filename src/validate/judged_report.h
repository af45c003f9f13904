// What the reports of verify, compare-modes and stress share: when, where and of which model they
// were made, and their checks. Reports fail closed: one without a check has not passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "toto/toto.h"

namespace toto::validate {

// When and where a report was made: without it two reports cannot be compared.
struct Provenance {
  std::string date;       // UTC, "2026-01-31T12:00:00Z"
  std::string host, cpu;  // as the system names them
};
Provenance provenance();                      // here and now
std::string text_of(const Provenance& made);  // "2026-01-31T12:00:00Z on HOST, CPU"

struct CheckResult {
  std::string name = {};
  bool passed = false;
  std::optional<double> figure = {}, bound = {};  // measured, and the most allowed
  std::string detail = {};  // one line: the meaning of the figure, or what went wrong
  // Goldens only: the largest error, and the reference's own mean error.
  std::optional<double> max_error = {}, own_error = {};
};

// Whether figure <= bound. False if either is NaN or infinite.
bool holds(double figure, double bound);
CheckResult measured_check(std::string name, double figure, double bound, std::string detail);
CheckResult failed_check(std::string name, std::string detail);
// None of `compared` numbers may differ. Fails if nothing was compared: two empty answers are equal
// and prove nothing.
CheckResult equality_check(std::string name, std::size_t different, std::size_t compared,
                           std::string detail);

struct JudgedReport {
  Provenance made = {};
  std::string model, weights_sha256;  // empty if only the models of goldens were judged
  bool trained = true;
  DType dtype = DType::f32;
  std::string isa;
  int threads = 0;
  std::uint64_t seed = 0;
  std::vector<CheckResult> checks;
  std::vector<std::string> warnings;  // about model files, data and figures close to a limit

  std::size_t num_passed() const;
  bool passed() const;  // all checks, and there is at least one
  std::string model_name() const { return model + (trained ? "" : " (untrained)"); }

  void describe(const ModelInfo& judged);
  void describe(const EngineOptions& engine, std::uint64_t of_seed);  // also sets `made`
};

// Members of the open JSON object: "date" to "seed", everything but checks and warnings.
void write_setting(io::JsonWriter& json, const JudgedReport& report);
// "checks": [{"name", "passed", "figure", "bound", ...}]
void write_checks(io::JsonWriter& json, const JudgedReport& report);

}  // namespace toto::validate
