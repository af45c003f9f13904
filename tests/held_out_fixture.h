// For tests of compare-modes and stress: small symbols, a small model, and lookups in a report.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "test_model.h"
#include "validate/held_out.h"
#include "validate/judged_report.h"

namespace toto::validate {

// One model for all tests of a file; it is never changed.
inline const std::string& shared_model() {
  static const testing::TemporaryFolder folder;
  static const std::string path = testing::made_model(folder);
  return path;
}

inline std::vector<Symbol> two_symbols(int length) {
  return {{.name = "ONE", .values = testing::walk(1, length).values},
          {.name = "TWO", .values = testing::walk(2, length).values}};
}

using Names = std::set<std::string>;

inline Names failed_in(const JudgedReport& report) {
  Names names;
  for (const CheckResult& check : report.checks) {
    if (!check.passed) names.insert(check.name);
  }
  return names;
}

inline std::string detail_of(const JudgedReport& report, const std::string& name) {
  for (const CheckResult& check : report.checks) {
    if (check.name == name) return check.detail;
  }
  return "no check " + name;
}

inline bool is(const EngineOptions& options, Mode mode) { return options.mode == mode; }

inline void expect_zeros_caught(const Names& failed) {
  for (const char* mode : {"reference", "default", "reduce-overhead", "max-autotune"}) {
    EXPECT_TRUE(failed.contains(std::string("network/") + mode)) << mode;
    EXPECT_TRUE(failed.contains(std::string("answers/") + mode)) << mode;
  }
}

// One symbol with too few values is named; no symbol at all is a wrong argument.
template <typename Options, typename Report>
void expect_refused_without_targets(Options options, std::size_t too_few,
                                    Report (*run)(const Options&)) {
  options.symbols[1].values.resize(too_few);
  ErrorCode code{};
  EXPECT_NE(testing::error_of([&] { (void)run(options); }, &code).find("\"TWO\""),
            std::string::npos);
  EXPECT_EQ(code, ErrorCode::corrupt_file);
  options.symbols.clear();
  (void)testing::error_of([&] { (void)run(options); }, &code);
  EXPECT_EQ(code, ErrorCode::invalid_argument);
}

template <typename Options, typename Report>
void expect_cancellable(Options options, Report (*run)(const Options&)) {
  options.cancelled = [] { return true; };
  ErrorCode code{};
  (void)testing::error_of([&] { (void)run(options); }, &code);
  EXPECT_EQ(code, ErrorCode::cancelled);
}

}  // namespace toto::validate
