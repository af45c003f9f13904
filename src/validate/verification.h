// `toto verify`: compares the engine with goldens of the PyTorch reference and, on the user's own
// model, with `reference` mode. Every check looks at outputs of the network (the mixture's
// components, means, quantiles, samples), never at the input's statistics alone, and fails closed:
// a check that could not run has not passed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "toto/toto.h"
#include "validate/judged_report.h"
#include "validate/runner.h"

namespace toto::validate {

// A check without anything to compare with on this machine: neither passed nor failed.
struct SkippedCheck {
  std::string name;
  std::string reason;
};

// The model that was compared with a golden.
struct GoldenModel {
  std::string golden, folder;       // name of the golden, folder of the model
  std::string weights_sha256 = {};  // empty if it could not be loaded
};

struct VerifyReport : JudgedReport {
  std::vector<GoldenModel> goldens;
  std::vector<SkippedCheck> skipped;
};

std::string json_text(const VerifyReport& report);
std::string markdown_text(const VerifyReport& report);
std::string table_text(
    const VerifyReport& report);  // for a terminal: one line per check, then a summary

struct VerifyOptions {
  std::string model;                 // a model folder; unused with golden_only
  std::vector<std::string> goldens;  // case folders, or folders of them
  std::string golden_model = {};     // compared with the goldens instead of the model next to each
  bool golden_only = false;
  std::vector<Mode> modes = all_modes(DType::f32);
  EngineOptions engine;  // dtype, isa and threads; verify sets mode and cache
  std::uint64_t seed = 0;
  Loader load = load_runner;
  std::function<bool()> cancelled;  // called between steps; true: Error(cancelled)
  std::function<void(int done, int total)> progress;  // steps
};

// Runs all checks. A mode or dtype the engine does not have fails its checks. A golden or a model
// that cannot be read, or a golden that proves nothing, is an Error before anything runs.
VerifyReport verify(const VerifyOptions& options);

}  // namespace toto::validate
