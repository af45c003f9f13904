// `toto verify`: is the engine right? Against goldens of the PyTorch reference, and, on the user's
// own model, against `reference` mode. Every check looks at what the network says (the mixture's
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

// What this machine or this version has nothing to compare with: neither passed nor failed.
struct Skipped {
  std::string name;
  std::string reason;
};

// What was held to a golden.
struct GoldenModel {
  std::string golden, folder;       // the golden's name; the model's folder
  std::string weights_sha256 = {};  // empty if it could not be loaded
};

struct Report : JudgedReport {
  std::vector<GoldenModel> goldens;
  std::vector<Skipped> skipped;
};

std::string json_text(const Report& report);
std::string markdown_text(const Report& report);
std::string table_text(const Report& report);  // a line a check and a summary, for a terminal

struct VerifyOptions {
  std::string model;                 // a model folder; not needed with golden_only
  std::vector<std::string> goldens;  // case folders, or folders of them
  std::string golden_model = {};     // held to the goldens in place of the model beside each
  bool golden_only = false;
  std::vector<Mode> modes = all_modes(DType::f32);
  EngineOptions engine;  // dtype, isa and threads; verify chooses mode and cache itself
  std::uint64_t seed = 0;
  Loader load = load_runner;
  std::function<bool()> cancelled;  // asked between steps; true ends the run with Error(cancelled)
  std::function<void(int done, int total)> progress;  // steps
};

// Runs everything asked for. A mode or dtype the engine does not have fails its checks; a golden or
// a model that cannot be read, or a golden that is no evidence, is an Error before anything is run.
Report verify(const VerifyOptions& options);

}  // namespace toto::validate
