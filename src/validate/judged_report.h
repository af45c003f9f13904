// What every report that judges has: when, where and of what it was made, and its checks. It fails
// closed: without a check it has not passed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "toto/toto.h"
#include "validate/provenance.h"

namespace toto::validate {

struct Check {
  std::string name = {};
  bool passed = false;
  std::optional<double> figure = {}, bound = {};  // what was measured, what it may be; or nothing
  std::string detail = {};  // one line: what the figure is, or what went wrong
  // Of goldens: the largest error, and the reference's own mean error.
  std::optional<double> max_error = {}, own_error = {};
};

struct JudgedReport {
  Provenance made = {};
  std::string model, weights_sha256;  // empty when no model was judged but those of goldens
  bool trained = true;
  DType dtype = DType::f32;
  std::string isa;
  int threads = 0;
  std::uint64_t seed = 0;
  std::vector<Check> checks;
  std::vector<std::string>
      warnings;  // of the model's files, of the data, of what came near a limit

  std::size_t num_passed() const;
  bool passed() const;  // every check, and there is one

  void describe(const ModelInfo& judged);
  void describe(const EngineOptions& engine, std::uint64_t of_seed);  // and here and now
};

// Into an object: "date" to "seed", all but checks and warnings.
void write_setting(io::JsonWriter& json, const JudgedReport& report);
// {"name", "passed", "figure", "bound"} and what else there is to say.
void write_checks(io::JsonWriter& json, const JudgedReport& report);

}  // namespace toto::validate
