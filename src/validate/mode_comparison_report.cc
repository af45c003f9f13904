// A comparison as JSON, Markdown and tables for a terminal.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "validate/mode_comparison_rows.h"
#include "validate/text_tables.h"

namespace toto::validate {
namespace {

std::string milliseconds(double value) { return fmt::format("{:.3g}", value); }

std::string range_of(double low, double high, std::string_view format) {
  const std::string from = fmt::format(fmt::runtime(format), low);
  const std::string to = fmt::format(fmt::runtime(format), high);
  return from == to ? from : from + " to " + to;
}

// Smallest and largest value of a figure, over `reference` or over the optimised modes.
template <typename Figure>
std::pair<double, double> extent(const CompareReport& report, bool reference,
                                 const Figure& figure) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const CompareRow& row : report.rows) {
    if ((row.mode == Mode::reference) != reference) continue;
    low = std::min(low, figure(row));
    high = std::max(high, figure(row));
  }
  return {low, high};
}

std::string same_bits_sentence(const CompareReport& report) {
  std::size_t different = 0, values = 0;
  std::vector<Mode> modes;
  for (const CompareRow& row : report.rows) {
    if (row.mode == Mode::reference) continue;
    different += row.differing_optimised;
    values += row.num_values;
    if (std::find(modes.begin(), modes.end(), row.mode) == modes.end()) modes.push_back(row.mode);
  }
  if (modes.size() < 2) return {};
  std::string names;
  for (const Mode mode : modes) {
    names += names.empty() ? "" : mode == modes.back() ? " and " : ", ";
    names += name_of(mode);
  }
  return different == 0 ? fmt::format("{} give the same bits in all {} numbers", names, values)
                        : fmt::format("{} differ in {} of {} numbers, expected none", names,
                                      different, values);
}

void write_row(io::JsonWriter& json, const CompareRow& row) {
  json.begin_object()
      .field("symbol", row.symbol)
      .field("mode", name_of(row.mode))
      .field("ms_mean", row.latency.mean)
      .field("ms_std", row.latency.std)
      .field("speedup", row.speedup)
      .field("mae", row.accuracy.mae())
      .field("mae_persistence", row.persistence.mae())
      .field("deviation_mean", row.deviation_mean)
      .field("deviation_max", row.deviation_max)
      .field("replans", row.replans)
      .field("peak_memory_mb", row.peak_memory_mb.value_or(NAN))
      .field("targets", row.accuracy.count())
      .field("numbers", static_cast<std::uint64_t>(row.num_values))
      .field("differing_from_optimised", static_cast<std::uint64_t>(row.differing_optimised))
      .field("differing_in_rerun", static_cast<std::uint64_t>(row.differing_reruns))
      .field("first_ms", row.first_ms)
      .key("ms");
  write_counted_latency(json, row.latency);
  json.key("runs_ms").begin_array();
  for (const double ms : row.milliseconds) json.value(ms);
  json.end_array().end_object();
}

}  // namespace

std::vector<std::string> CompareReport::findings() const {
  std::vector<std::string> sentences;
  if (std::string same = same_bits_sentence(*this); !same.empty()) {
    sentences.push_back(std::move(same));
  }
  if (rows.size() > modes.size() || modes.size() > 1) {
    const auto [least, most] =
        extent(*this, false, [](const CompareRow& row) { return row.deviation_mean / row.size; });
    if (least <= most) {
      sentences.push_back(fmt::format(
          "they differ from reference by {:.2g} of a value's size on average, the rounding of {}; "
          "none of it is sampling noise, since all modes use seed {}",
          most, name_of(dtype), seed));
      const auto [slow, fast] =
          extent(*this, false, [](const CompareRow& row) { return row.speedup; });
      sentences.push_back(fmt::format("optimised modes are {} times as fast as reference (medians)",
                                      range_of(slow, fast, "{:.3g}")));
    }
  }
  const auto ratio = [](const CompareRow& row) {
    return row.accuracy.mae() / row.persistence.mae();
  };
  const auto [better, worse] = extent(*this, true, ratio);
  if (better <= worse) {
    sentences.push_back(
        fmt::format("the MAE of the forecasts is {} times that of persistence (the latest value); "
                    "below 1 is better",
                    range_of(better, worse, "{:.3g}")));
  }
  return sentences;
}

std::string verdict_of(const CompareReport& report) {
  std::string text = fmt::format("{}: {} of {} checks hold", report.passed() ? "PASSED" : "FAILED",
                                 report.num_passed(), report.checks.size());
  for (const CheckResult& check : report.checks) {
    if (!check.passed) text += fmt::format("; {}: {}", check.name, check.detail);
  }
  return text;
}

std::string setting_of(const CompareReport& report) {
  return fmt::format(
      "{} of {} per symbol and mode, from up to {}, {}, seed {}, model {}, {}, {}, {}",
      counted(report.runs, "forecast"), counted(report.horizon, "step"),
      counted(report.context, "point"),
      report.samples == 0 ? std::string("exact") : counted(report.samples, "sample"), report.seed,
      report.model_name(), name_of(report.dtype), report.isa, counted(report.threads, "thread"));
}

std::string made_of(const CompareReport& report) {
  return fmt::format("{}, toto {}, weights {}", text_of(report.made), version(),
                     report.weights_sha256);
}

std::vector<Cells> speed_rows(const CompareReport& report) {
  std::vector<Cells> rows = {{"symbol", "mode", "n", "ms mean", "std", "p50", "p95", "p99", "first",
                              "speed-up", "replans", "peak MB"}};
  for (const CompareRow& row : report.rows) {
    rows.push_back({row.symbol, std::string(name_of(row.mode)),
                    fmt::format("{}", row.latency.count), milliseconds(row.latency.mean),
                    milliseconds(row.latency.std), milliseconds(row.latency.p50),
                    milliseconds(row.latency.p95), milliseconds(row.latency.p99),
                    milliseconds(row.first_ms), fmt::format("{:.3g}x", row.speedup),
                    fmt::format("{}", row.replans),
                    row.peak_memory_mb ? fmt::format("{:.1f}", *row.peak_memory_mb) : "-"});
  }
  return rows;
}

std::vector<Cells> accuracy_rows(const CompareReport& report) {
  std::vector<Cells> rows = {{"symbol", "mode", "MAE", "persistence", "targets", "deviation mean",
                              "deviation max", "differing bits"}};
  for (const CompareRow& row : report.rows) {
    const bool is_reference = row.mode == Mode::reference;
    rows.push_back({row.symbol, std::string(name_of(row.mode)), figure_text(row.accuracy.mae()),
                    figure_text(row.persistence.mae()), fmt::format("{}", row.accuracy.count()),
                    is_reference ? "-" : fmt::format("{:.2g}", row.deviation_mean),
                    is_reference ? "-" : fmt::format("{:.2g}", row.deviation_max),
                    is_reference ? "-" : fmt::format("{}", row.differing_optimised)});
  }
  return rows;
}

std::string json_text(const CompareReport& report) {
  io::JsonWriter json;
  json.begin_object().field("passed", report.passed()).field("version", version());
  write_setting(json, report);
  json.field("context", report.context)
      .field("horizon", report.horizon)
      .field("samples", report.samples)
      .field("runs", report.runs)
      .key("rows")
      .begin_array();
  for (const CompareRow& row : report.rows) write_row(json, row);
  json.end_array();
  write_checks(json, report);
  write_texts(json, "weights", report.weights);
  write_texts(json, "findings", report.findings());
  write_texts(json, "warnings", report.warnings);
  return json.end_object().take();
}

std::string markdown_text(const CompareReport& report) {
  std::string text = fmt::format("# toto compare-modes\n\n**{}**\n\n{}.\n\n{}.\n\n",
                                 markdown_cell(verdict_of(report)),
                                 markdown_cell(setting_of(report)), markdown_cell(made_of(report)));
  text += markdown_list(report.findings());
  for (const std::string& warning : report.warnings) {
    text += fmt::format("- warning: {}\n", markdown_cell(warning));
  }
  text += markdown_list(report.weights);
  text += "\n## Time and memory\n\n" + markdown_table(speed_rows(report), 2);
  text += "\n## Accuracy, against the actual values\n\n" + markdown_table(accuracy_rows(report), 2);
  return text + "\n## Checks\n\n" + markdown_table(check_rows(report.checks), 3);
}

std::string table_text(const CompareReport& report) {
  std::string text = setting_of(report) + "\n\n" + aligned_table(speed_rows(report), 2) + "\n" +
                     aligned_table(accuracy_rows(report), 2) + "\n";
  for (const std::string& sentence : report.findings()) text += sentence + "\n";
  return text + one_line(verdict_of(report)) + "\n";
}

}  // namespace toto::validate
