// A stress run as JSON, Markdown and tables for a terminal.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "io/json.h"
#include "validate/stress_runs.h"
#include "validate/text_tables.h"

namespace toto::validate {
namespace {

double mean_ms(const StressRow& row) { return latency_of(row.milliseconds).mean; }

std::string megabytes(const std::optional<std::uint64_t>& bytes) {
  return bytes ? fmt::format("{:.1f}", static_cast<double>(*bytes) / kMegabyte) : "-";
}

std::string verdict_of(const StressReport& report) {
  return fmt::format(
      "{}: {} of {} limits hold{}", report.passed() ? "PASSED" : "FAILED", report.num_passed(),
      report.checks.size(),
      report.warnings.empty() ? "" : ", " + counted(std::ssize(report.warnings), "warning"));
}

std::string setting_of(const StressReport& report) {
  return fmt::format(
      "{}, {} iterations, {} shapes, {} concurrent callers, held-out values of {}, model {}, {}, "
      "{}, {}, seed {}",
      name_of(report.level), iterations_of(report.level), report.num_requests, report.callers,
      fmt::join(report.symbols, ", "), report.model_name(), name_of(report.dtype), report.isa,
      counted(report.threads, "thread"), report.seed);
}

// The figures of one mode over all iterations.
Cells mode_cells(const StressReport& report, Mode mode, const Latency& latency) {
  double mae = 0, peak = 0;
  std::int64_t replans = 0, count = 0;
  const StressRow* last = nullptr;
  for (const StressRow& row : report.rows) {
    if (row.mode != mode) continue;
    mae += row.accuracy.mae();
    ++count;
    replans += row.replans;
    peak = std::max(peak, row.peak_memory_mb.value_or(NAN));
    last = &row;
  }
  return {std::string(name_of(mode)),         figure_text(mae / static_cast<double>(count)),
          fmt::format("{}", latency.count),   fmt::format("{:.3g}", latency.p50),
          fmt::format("{:.3g}", latency.p95), fmt::format("{:.3g}", latency.p99),
          fmt::format("{:.3g}", latency.max), fmt::format("{}", replans),
          fmt::format("{:.1f}", peak),        last == nullptr ? "-" : megabytes(last->resident)};
}

std::vector<Cells> mode_rows(const StressReport& report) {
  std::vector<Cells> rows = {
      {"mode", "MAE", "n", "p50 ms", "p95", "p99", "max", "replans", "peak MB", "resident MB"}};
  for (const auto& [mode, latency] : report.latency) {
    rows.push_back(mode_cells(report, mode, latency));
  }
  return rows;
}

// Calls under load. The spread within a row comes from the different shapes; compare the same row
// of two modes or two reports.
std::vector<Cells> load_rows(const StressReport& report) {
  std::vector<Cells> rows = {{"mode", "calls", "n", "p50 ms", "p95", "p99", "max"}};
  const auto add = [&](Mode mode, std::string calls, const Latency& latency) {
    rows.push_back({std::string(name_of(mode)), std::move(calls), fmt::format("{}", latency.count),
                    fmt::format("{:.3g}", latency.p50), fmt::format("{:.3g}", latency.p95),
                    fmt::format("{:.3g}", latency.p99), fmt::format("{:.3g}", latency.max)});
  };
  for (const auto& [mode, latency] : report.mixed) {
    add(mode, "mixed shapes", latency);
    add(mode, fmt::format("{} concurrent callers", report.callers), report.concurrent.at(mode));
  }
  return rows;
}

void write_latencies(io::JsonWriter& json, std::string_view key,
                     const std::map<Mode, Latency>& latencies) {
  json.key(key).begin_object();
  for (const auto& [mode, latency] : latencies) {
    json.key(name_of(mode));
    write_counted_latency(json, latency);
  }
  json.end_object();
}

std::vector<Cells> iteration_rows(const StressReport& report) {
  std::vector<Cells> rows = {{"mode", "iteration", "MAE", "RMSE", "MAPE %", "prediction mean",
                              "prediction std", "target mean", "ms", "replans", "peak MB",
                              "resident MB", "heap MB"}};
  for (const StressRow& row : report.rows) {
    if (!row.complaint.empty()) {
      rows.push_back(
          {std::string(name_of(row.mode)), fmt::format("{}", row.iteration), row.complaint});
      rows.back().resize(rows.front().size());
      continue;
    }
    rows.push_back(
        {std::string(name_of(row.mode)), fmt::format("{}", row.iteration),
         figure_text(row.accuracy.mae()), figure_text(row.accuracy.rmse()),
         figure_text(100 * row.accuracy.mape()), figure_text(row.accuracy.prediction_mean()),
         figure_text(row.accuracy.prediction_std()), figure_text(row.accuracy.target_mean()),
         figure_text(mean_ms(row)), fmt::format("{}", row.replans), figure_text(row.peak_memory_mb),
         megabytes(row.resident), megabytes(row.heap)});
  }
  return rows;
}

void write_row(io::JsonWriter& json, const StressReport& report, const StressRow& row) {
  json.begin_object()
      .field("model", report.model)
      .field("mode", name_of(row.mode))
      .field("iteration", row.iteration);
  json.key("accuracy")
      .begin_object()
      .field("mae", row.accuracy.mae())
      .field("rmse", row.accuracy.rmse())
      .field("mape", 100 * row.accuracy.mape())
      .field("prediction_mean", row.accuracy.prediction_mean())
      .field("prediction_std", row.accuracy.prediction_std())
      .field("target_mean", row.accuracy.target_mean())
      .end_object();
  json.key("performance")
      .begin_object()
      .field("inference_time_ms", mean_ms(row))
      .field("peak_memory_mb", row.peak_memory_mb.value_or(NAN))
      .field("recompilations", row.replans)
      .end_object();
  if (!row.complaint.empty()) json.field("error", row.complaint);
  json.end_object();
}

std::vector<const CheckResult*> broken(const StressReport& report) {
  std::vector<const CheckResult*> checks;
  for (const CheckResult& check : report.checks) {
    if (!check.passed) checks.push_back(&check);
  }
  return checks;
}

}  // namespace

std::string json_text(const StressReport& report) {
  io::JsonWriter json;
  json.begin_object()
      .field("passed", report.passed())
      .field("stress_mode", name_of(report.level))
      .field("version", version());
  write_setting(json, report);
  json.field("mae_persistence", report.mae_persistence).key("rows").begin_array();
  for (const StressRow& row : report.rows) write_row(json, report, row);
  json.end_array();
  write_latencies(json, "latency_ms", report.latency);
  write_latencies(json, "latency_mixed_ms", report.mixed);
  write_latencies(json, "latency_concurrent_ms", report.concurrent);
  write_checks(json, report);
  write_texts(json, "weights", report.weights);
  write_texts(json, "warnings", report.warnings);
  return json.end_object().take();
}

std::string markdown_text(const StressReport& report) {
  std::string text =
      fmt::format("# toto stress: {}\n\n**{}**\n\n{}.\n\n{}, toto {}, weights {}.\n",
                  name_of(report.level), verdict_of(report), markdown_cell(setting_of(report)),
                  markdown_cell(text_of(report.made)), version(), report.weights_sha256);
  if (const std::vector<const CheckResult*> checks = broken(report); !checks.empty()) {
    text += "\n## Broken limits\n\n";
    for (const CheckResult* check : checks) {
      text += fmt::format("- {}: {}\n", markdown_cell(check->name), markdown_cell(check->detail));
    }
  }
  if (!report.warnings.empty()) {
    text += "\n## Warnings\n\n" + markdown_list(report.warnings);
  }
  text += fmt::format(
      "\n## Modes\n\nMAE on held-out values; that of persistence (the latest value) is {}. Times "
      "are of single forecasts.\n\n",
      figure_text(report.mae_persistence));
  text += markdown_table(mode_rows(report), 1) +
          "\n## Calls under load\n\nAll n calls after the warm-up.\n\n" +
          markdown_table(load_rows(report), 2);
  if (!report.weights.empty()) {
    text += "\n## Origin of the weights\n\n" + markdown_list(report.weights);
  }
  text += "\n## Limits\n\n" + markdown_table(check_rows(report.checks), 3);
  return text + "\n## Iterations\n\n" + markdown_table(iteration_rows(report), 1);
}

std::string table_text(const StressReport& report) {
  std::string text = one_line(setting_of(report)) + "\n\n" + aligned_table(mode_rows(report), 1);
  text += "\n" + aligned_table(load_rows(report), 2);
  text += fmt::format("\nMAE of persistence, the latest value: {}\n",
                      figure_text(report.mae_persistence));
  for (const CheckResult* check : broken(report)) {
    text += one_line(fmt::format("BROKEN  {}: {}", check->name, check->detail)) + "\n";
  }
  return text + verdict_of(report) + "\n";
}

}  // namespace toto::validate
