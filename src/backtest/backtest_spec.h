// The settings of a backtest: one struct, and one table of its fields. Flags, settings files, the
// "settings" of a results.json, HTTP requests and Python keywords are all read by this table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backtest/strategy.h"
#include "backtest/transform.h"
#include "io/json.h"
#include "settings/setting.h"
#include "tables/calendar.h"
#include "tables/timestamps.h"
#include "toto/toto.h"

namespace toto::backtest {

inline constexpr std::size_t kMaxLag = 64;

// A bound of the target bars, both inclusive: a date without a clock is the whole day, a month
// without a day the whole month. A zone counts where the file has one too.
struct TimeBound {
  std::string text;
  tables::Ticks first = 0, last = 0;  // of the span the text names
  tables::TimeStyle style = {};
};
TimeBound parse_bound(std::string_view text);  // Error(invalid_argument)

std::vector<const Strategy*> every_strategy();

// Everything that changes the results. The defaults here are the only ones.
struct BacktestSpec {
  std::vector<std::string> data = {};  // files, folders or names of tables
  // Target bars from the end, unless a bound is given; none: see kDefaultWindows.
  std::optional<int> windows = {};
  std::optional<TimeBound> from = {}, to = {};
  std::size_t lag = 1;
  int context = ForecastOptions().max_context;  // points of history used at most
  Transform transform = Transform::pct;
  double scale = ForecastOptions().scale;    // 0: automatic, for each context
  std::optional<Point> point = {};           // none: median, with samples trimmed_mean_10
  int samples = 0;                           // 0: exact
  std::optional<tables::Asset> asset = {};   // none: detected
  std::optional<double> bars_per_year = {};  // none: see tables::bars_per_year()
  std::vector<const Strategy*> strategies = every_strategy();  // in the order of the table
  double ci_multiplier = 1;
  bool tune_offsets = false;
  bool fill_at_close = false;
  std::optional<double> fee_bps = {}, slippage_bps = {};  // none: see usual_costs()
  double borrow_apr = 0;
  bool prove_no_lookahead = false;
  bool lag_test = true;        // the report compares with another decision lag
  std::string benchmark = {};  // a file, or one of the tables of a request; empty: none
  // The engine.
  std::string model = {};
  Mode mode = Mode::standard;
  DType dtype = DType::f32;
  Isa isa = Isa::automatic;
  int threads = 0;  // 0: those of the machine
  std::uint64_t seed = 0;
  bool no_kv_cache = false;

  Point chosen_point() const;
  void set_engine(std::string name, const EngineOptions& options);
};

struct UsualCosts {
  double fee_bps, slippage_bps;
};
UsualCosts usual_costs(tables::Asset asset) noexcept;

using SpecField = settings::Field<BacktestSpec>;
// In the order of results.json.
std::span<const SpecField> spec_fields();

// Whether a signal has this setting too: not those of the proof, of the report, and of a period
// that ends before the coming bar.
bool is_of_signal(std::string_view name) noexcept;

// A value as it was given; text is read as what the field's type asks for.
struct GivenSetting {
  const SpecField* field;
  io::Json value;
  std::string origin;  // begins messages about it: "--fee-bps", "run.conf: line 3: fee_bps"
  ErrorCode code = ErrorCode::invalid_argument;  // of these messages
};
using GivenSettings = std::vector<GivenSetting>;

// The members of an object, without those that are null. `where` begins messages: a file's name, or
// empty. Error(code) for a name that is not in the table.
GivenSettings settings_of(const io::Json& object, const std::string& where, ErrorCode code);
// Lines of `name = value`; `#` begins a comment line. Error(corrupt_file) with the line.
GivenSettings settings_of_lines(std::string_view text, const std::string& path);

// Error for a setting that a signal does not have.
void require_signal_settings(const GivenSettings& settings);

// Adds the settings of `lower` that `settings` does not have. Bounds and windows belong together:
// one of them in `settings` hides all of `lower`.
void add_lower(GivenSettings& settings, GivenSettings lower);

// `base` with these settings, each checked alone and with the others: Error with the origin and
// code of the setting.
BacktestSpec read_spec(const GivenSettings& settings, BacktestSpec base = {});

// The object that read_spec reads back: every field, also those with their default.
io::Json write_spec(const BacktestSpec& spec);

}  // namespace toto::backtest
