// A verify report as JSON, Markdown and a table for a terminal.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "validate/text_tables.h"
#include "validate/verify_parts.h"

namespace toto::validate {
namespace {

std::string_view verdict(const CheckResult& check) { return check.passed ? "pass" : "FAIL"; }

bool is_golden_check(const CheckResult& check) {
  return check.name.starts_with("golden/") || check.name.starts_with("plausible/");
}

std::string summary(const VerifyReport& report) {
  std::string text =
      fmt::format("{}: {} of {} checks passed", report.passed() ? "PASSED" : "FAILED",
                  report.num_passed(), report.checks.size());
  if (!report.skipped.empty()) text += fmt::format(", {} skipped", report.skipped.size());
  // Named again at the end: failures are hard to find among hundreds of passed checks.
  constexpr std::size_t kNamed = 5;
  const std::size_t num_failed = report.checks.size() - report.num_passed();
  std::size_t named = 0;
  for (const CheckResult& check : report.checks) {
    if (check.passed || named == kNamed) continue;
    text += fmt::format("{} {}", named++ == 0 ? "; not" : ",", one_line(check.name));
  }
  if (num_failed > named) text += fmt::format(" and {} more", num_failed - named);
  return text;
}

std::string setting_of(const VerifyReport& report) {
  return fmt::format("toto {}, {}, {}, {}, seed {}", version(), name_of(report.dtype), report.isa,
                     counted(report.threads, "thread"), report.seed);
}

// The weights that a golden's checks are about.
std::string golden_line(const GoldenModel& model) {
  return fmt::format("golden {}: {}, weights {}", model.golden, model.folder,
                     model.weights_sha256.empty() ? "not loaded" : model.weights_sha256);
}

}  // namespace

std::string json_text(const VerifyReport& report) {
  io::JsonWriter json;
  json.begin_object().field("passed", report.passed()).field("version", version());
  write_setting(json, report);
  json.key("goldens").begin_array();
  for (const GoldenModel& model : report.goldens) {
    json.begin_object()
        .field("name", model.golden)
        .field("model", model.folder)
        .field("weights_sha256", model.weights_sha256)
        .end_object();
  }
  json.end_array();
  write_texts(json, "warnings", report.warnings);
  write_checks(json, report);
  json.key("skipped").begin_array();
  for (const SkippedCheck& skipped : report.skipped) {
    json.begin_object().field("name", skipped.name).field("reason", skipped.reason).end_object();
  }
  return json.end_array().end_object().take();
}

std::string markdown_text(const VerifyReport& report) {
  std::string text = fmt::format("# toto verify\n\n**{}**\n\n- {}\n- {}\n", summary(report),
                                 markdown_cell(text_of(report.made)), setting_of(report));
  if (!report.model.empty()) {
    text += fmt::format("- model {}, weights {}\n", markdown_cell(report.model_name()),
                        report.weights_sha256);
  }
  for (const GoldenModel& model : report.goldens) {
    text += fmt::format("- {}\n", markdown_cell(golden_line(model)));
  }
  for (const std::string& warning : report.warnings) {
    text += fmt::format("- warning: {}\n", markdown_cell(warning));
  }
  std::vector<Cells> goldens = {
      {"check", "result", "remark", "mean error", "largest error", "reference's own", "bound"}};
  std::vector<CheckResult> others;
  for (const CheckResult& check : report.checks) {
    if (!is_golden_check(check)) {
      others.push_back(check);
      continue;
    }
    goldens.push_back({check.name, std::string(verdict(check)), check.detail,
                       figure_text(check.figure), figure_text(check.max_error),
                       figure_text(check.own_error), figure_text(check.bound)});
  }
  if (goldens.size() > 1) {
    text +=
        "\n## Goldens\n\nErrors are against the reference's float64 values; the bound comes from "
        "the reference's own float32 error.\n\n" +
        markdown_table(goldens, 3);
  }
  if (!others.empty()) {
    text += "\n## On this model and this machine\n\n" + markdown_table(check_rows(others), 3);
  }
  std::vector<Cells> skipped = {{"check", "why"}};
  for (const SkippedCheck& item : report.skipped) skipped.push_back({item.name, item.reason});
  if (skipped.size() > 1) {
    text += "\n## Skipped: neither passed nor failed\n\n" + markdown_table(skipped, 2);
  }
  return text;
}

std::string table_text(const VerifyReport& report) {
  std::size_t width = 0;
  for (const CheckResult& check : report.checks) width = std::max(width, check.name.size());
  for (const SkippedCheck& skipped : report.skipped) width = std::max(width, skipped.name.size());
  std::string text =
      fmt::format("      {:<{}}  {:>11}  {:>11}\n", "check", width, "figure", "at most");
  for (const CheckResult& check : report.checks) {
    std::string line =
        fmt::format("{}  {:<{}}  {:>11}  {:>11}", verdict(check), one_line(check.name), width,
                    figure_text(check.figure), figure_text(check.bound));
    if (!check.detail.empty()) line += "  " + one_line(check.detail);
    text += line + "\n";
  }
  for (const SkippedCheck& skipped : report.skipped) {
    text +=
        fmt::format("skip  {:<{}}  {}\n", one_line(skipped.name), width, one_line(skipped.reason));
  }
  for (const GoldenModel& model : report.goldens) text += one_line(golden_line(model)) + "\n";
  return text + summary(report) + "\n";
}

}  // namespace toto::validate
