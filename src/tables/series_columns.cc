#include "tables/series_columns.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "io/csv.h"

namespace toto::tables {
namespace {

// `"a", "b", "c"`; at most ten names, then the number of the others.
std::string list_names(std::span<const std::string> names) {
  constexpr std::size_t kMaxListed = 10;
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), kMaxListed))) {
    text += (text.empty() ? "" : ", ") + quoted(name);
  }
  if (names.size() > kMaxListed) text += fmt::format(" and {} more", names.size() - kMaxListed);
  return text;
}

using Names = std::span<const std::string_view>;
constexpr std::string_view kTimeNames[] = {"ds", "timestamp", "date", "datetime", "time"};
constexpr std::string_view kIdNames[] = {"unique_id", "item_id"};
constexpr std::string_view kTargetNames[] = {"y", "target"};

// The first column that has one of these names.
std::optional<std::size_t> find_column(std::span<const std::string> names, Names wanted) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::string_view name : wanted) {
      if (equal_ignoring_case(names[i], name)) return i;
    }
  }
  return {};
}
std::optional<std::size_t> find_column(std::span<const std::string> names, std::string_view name) {
  return find_column(names, Names(&name, 1));
}

// Assigns roles to the columns of one header.
class ColumnPlanner {
 public:
  ColumnPlanner(const std::string& file, std::int64_t header_line,
                const std::vector<std::string>& names, const TableOptions& options)
      : file_(file), header_line_(header_line), names_(names), options_(options) {}

  ColumnPlan plan(std::vector<std::string>& warnings) {
    const std::optional<std::size_t> time = find(kTimeNames);
    const InputFormat format = options_.format;
    ColumnPlan plan{.format = format, .time = time.value_or(0)};
    if (!options_.time_name.empty()) plan.time = require_time(options_.time_name);
    if (format == InputFormat::csv_long) {
      if (!is_long_header(names_)) {
        fail_header(
            "a long table: the ids in unique_id or item_id, the times in ds or timestamp, the "
            "values in y or target; rename the columns");
      }
      plan.id = find(kIdNames);
    } else if (format == InputFormat::csv_ohlcv) {
      if (!is_ohlcv_header(names_)) fail_header("bars with a time, open, high, low and close");
      plan.id = find("symbol");
      if (!time && options_.time_name.empty()) plan.time = other_than_bars();
    }
    if (!options_.columns.empty()) {
      for (const std::string& name : options_.columns) plan.values.push_back(select(name, plan));
    } else if (format == InputFormat::csv_wide) {
      take_all(plan, warnings);
    } else if (format == InputFormat::csv_ohlcv && options_.whole_bars && !plan.id) {
      for (const char* name : {"open", "high", "low", "close"}) plan.values.push_back(*find(name));
    } else {
      plan.values = {format == InputFormat::csv_long ? *find(kTargetNames) : *find("close")};
      if (format == InputFormat::csv_long) warn_of_extra(plan, warnings);
    }
    if (!plan.id) add_also(plan);
    for (const std::string& name : options_.loose) {
      const std::optional<std::size_t> column = find(name);
      if (!column) continue;
      plan.values.push_back(*column);
      ++plan.num_loose;
    }
    return plan;
  }

 private:
  std::optional<std::size_t> find(Names wanted) const { return find_column(names_, wanted); }
  std::optional<std::size_t> find(std::string_view name) const { return find_column(names_, name); }

  // Exchanges name the time column in many ways ("Open time", "unix"): it is the first column that
  // has none of the other names.
  std::size_t other_than_bars() const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      bool known = false;
      for (const std::string_view name : {"symbol", "open", "high", "low", "close", "volume"}) {
        known |= equal_ignoring_case(names_[i], name);
      }
      if (!known) return i;
    }
    fail_header("bars with a time, open, high, low and close");
  }

  [[noreturn]] void fail_header(std::string_view expected) const {
    fail(ErrorCode::corrupt_file, "{}: the header has {}, expected {}",
         io::place(file_, header_line_, 1), list_names(names_), expected);
  }

  std::size_t require_time(const std::string& name) const {
    const std::optional<std::size_t> found = find(name);
    if (!found) fail_header(fmt::format("the time column {} among them", quoted(name)));
    return *found;
  }

  // Hash sets instead of a search per name: both tables may have 10^5 columns.
  void add_also(ColumnPlan& plan) const {
    const std::unordered_set<std::string_view> there(names_.begin(), names_.end());
    std::unordered_set<std::string> exactly, in_lower_case;
    for (const std::string& name : options_.also) {
      there.contains(name) ? exactly.insert(name) : in_lower_case.insert(lower_case(name));
    }
    std::vector<bool> taken(names_.size());
    taken[plan.time] = true;
    for (const std::size_t column : plan.values) taken[column] = true;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (taken[i] || names_[i].empty()) continue;
      if (exactly.contains(names_[i]) || in_lower_case.erase(lower_case(names_[i])) > 0) {
        plan.values.push_back(i);
      }
    }
  }

  // A column by name: an exact match first, then a case-insensitive one.
  std::size_t select(const std::string& name, const ColumnPlan& plan) const {
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      found = std::find_if(names_.begin(), names_.end(), [&](const std::string& other) {
        return equal_ignoring_case(other, name);
      });
    }
    const auto column = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end() || name.empty()) {
      const std::vector<std::string_view> views(names_.begin(), names_.end());
      fail(ErrorCode::invalid_argument, "{} has no column {}, expected one of {}{}", file_,
           quoted(name), list_names(names_), did_you_mean(name, views));
    }
    if (column == plan.time || column == plan.id) {
      fail(ErrorCode::invalid_argument,
           "the column {} of {} holds the {}, expected a column with values", quoted(name), file_,
           column == plan.time ? "times" : "ids");
    }
    if (std::find(plan.values.begin(), plan.values.end(), column) != plan.values.end()) {
      fail(ErrorCode::invalid_argument, "the column {} of {} is asked for twice, expected once",
           quoted(name), file_);
    }
    return column;
  }

  // Wide tables: every named column except the time.
  void take_all(ColumnPlan& plan, std::vector<std::string>& warnings) const {
    std::size_t num_unnamed = 0;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i == plan.time) continue;
      if (names_[i].empty()) {
        ++num_unnamed;
      } else {
        plan.values.push_back(i);
      }
    }
    if (plan.values.empty()) {
      fail_header("a time column and at least one named column with values");
    }
    if (num_unnamed > 0) {
      warnings.push_back(
          fmt::format("{}: columns without a name are ignored: {}", file_, num_unnamed));
    }
  }

  void warn_of_extra(const ColumnPlan& plan, std::vector<std::string>& warnings) const {
    std::vector<std::string> extra;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i != plan.time && i != plan.id && i != plan.values.front()) extra.push_back(names_[i]);
    }
    if (extra.empty()) return;
    warnings.push_back(fmt::format("{}: columns that are not used: {}", file_, list_names(extra)));
  }

  const std::string& file_;
  std::int64_t header_line_;
  const std::vector<std::string>& names_;
  const TableOptions& options_;
};

}  // namespace

bool is_long_header(std::span<const std::string> names) {
  return find_column(names, kIdNames) && find_column(names, kTargetNames) &&
         find_column(names, kTimeNames);
}

bool is_ohlcv_header(std::span<const std::string> names) {
  return find_column(names, "open") && find_column(names, "high") && find_column(names, "low") &&
         find_column(names, "close");
}

ColumnPlan plan_columns(const std::string& file, std::int64_t header_line,
                        const std::vector<std::string>& names, const TableOptions& options,
                        std::vector<std::string>& warnings) {
  return ColumnPlanner(file, header_line, names, options).plan(warnings);
}

}  // namespace toto::tables
