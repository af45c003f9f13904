#include "tables/calendar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/median.h"
#include "tables/currency.h"

namespace toto::tables {
namespace {

constexpr std::size_t kMaxNotes = 20;  // per kind and symbol
constexpr int kSaturday = 5;

Ticks day_of(Ticks time) { return (time - time_of_day(time)) / kDay; }

bool is_weekend(Ticks time) { return weekday(time) >= kSaturday; }

// Bars of one day are adjacent.
struct Day {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Without dates every bar is its own day.
std::vector<Day> days_of(const Bars& bars) {
  std::vector<Day> days;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const bool same_day =
        i > 0 && !bars.style.steps && day_of(bars.times[i]) == day_of(bars.times[i - 1]);
    if (!same_day) days.push_back({.first = i});
    ++days.back().count;
  }
  return days;
}

// The median over the days that have bars.
double bars_per_day(const std::vector<Day>& days) {
  std::vector<double> counts;
  counts.reserve(days.size());
  for (const Day& day : days) counts.push_back(static_cast<double>(day.count));
  return median(std::move(counts));
}

// Ticks from each bar to the next.
std::vector<double> steps_of(const Bars& bars) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < bars.size(); ++i) {
    steps.push_back(static_cast<double>(bars.times[i] - bars.times[i - 1]));
  }
  return steps;
}

// The usual distance between bars in words, and bars per year where the name decides it.
struct Spacing {
  std::string_view name;  // empty: daily
  int usual_year = 0;     // bars per year; 0: depends on the market's hours
};

Spacing spacing_of(double median_step) {
  const double days = median_step / static_cast<double>(kDay);
  if (days < 0.9) return {.name = "intraday"};
  if (days < 5) return {};  // in a short file most bars may be next to a holiday or weekend
  if (days < 11) return {.name = "weekly", .usual_year = 52};
  if (days < 45) return {.name = "monthly", .usual_year = 12};
  return {.name = "quarterly or yearly", .usual_year = 4};
}

// Collects the notes of data_notes() for one symbol.
class BarInspection {
 public:
  BarInspection(const Bars& bars, Asset asset) : bars_(bars), asset_(asset), days_(days_of(bars)) {
    if (bars.size() < 2) return;
    std::vector<double> steps = steps_of(bars);
    step_ = median(std::move(steps));
    const double per_day = bars_per_day(days_);
    intraday_ = per_day > 1;
    if (intraday_) {  // nights do not count
      steps.clear();
      for (const Day& day : days_) {
        for (std::size_t i = day.first + 1; i < day.first + day.count; ++i) {
          steps.push_back(static_cast<double>(step_before(i)));
        }
      }
      step_ = median(std::move(steps));
    }
  }

  std::vector<std::string> notes() {
    note_odd_bars();
    note_gaps();
    note_half_days();
    note_splits();
    note_empty_volume();
    return std::move(notes_);
  }

 private:
  Ticks step_before(std::size_t i) const { return bars_.times[i] - bars_.times[i - 1]; }
  std::string where(std::size_t bar) const {
    return fmt::format("{}: line {}: {}", bars_.file, bars_.lines[bar], bars_.symbol);
  }

  // One note per finding up to kMaxNotes; the last one counts the rest. Thousands of findings of
  // one kind have one cause.
  template <typename Sentence>
  void note_each(const std::vector<std::size_t>& found, const Sentence& sentence) {
    for (std::size_t k = 0; k < std::min(found.size(), kMaxNotes); ++k) {
      std::string note = sentence(found[k]);
      if (k + 1 == kMaxNotes && found.size() > kMaxNotes) {
        note += fmt::format("; {} more like it follow, the last one at line {}",
                            found.size() - kMaxNotes, bars_.lines[found.back()]);
      }
      notes_.push_back(std::move(note));
    }
  }

  // One note for all findings: the text of the first one, then the lines of the others.
  void note_together(const std::vector<std::size_t>& found, const std::string& first) {
    if (found.empty()) return;
    std::string note = first;
    if (found.size() > 1) {
      note += fmt::format("; {} more like it, at lines", found.size() - 1);
      for (std::size_t k = 1; k < std::min(found.size(), kMaxNotes); ++k) {
        note += fmt::format("{} {}", k == 1 ? "" : ",", bars_.lines[found[k]]);
      }
      if (found.size() > kMaxNotes) note += ", ...";
    }
    notes_.push_back(std::move(note));
  }

  // Bars whose high is not the highest or whose low is not the lowest price.
  void note_odd_bars() {
    std::vector<std::size_t> odd;
    for (std::size_t i = 0; i < bars_.size(); ++i) {
      const double top = std::max(bars_.open[i], bars_.close[i]);
      const double bottom = std::min(bars_.open[i], bars_.close[i]);
      if (bars_.high[i] < std::max(top, bars_.low[i]) || bars_.low[i] > bottom) odd.push_back(i);
    }
    note_each(odd, [&](std::size_t i) {
      return fmt::format(
          "{} has open {}, high {}, low {}, close {}: the high is not the highest or the low not "
          "the lowest; the bar is used as it is",
          where(i), bars_.open[i], bars_.high[i], bars_.low[i], bars_.close[i]);
    });
  }

  // Weekdays without a bar between bar i - 1 and bar i.
  std::int64_t weekdays_between(std::size_t i) const {
    const std::int64_t first = day_of(bars_.times[i - 1]) + 1, end = day_of(bars_.times[i]);
    std::int64_t count = (end - first) / 7 * 5;
    for (std::int64_t day = first + (end - first) / 7 * 7; day < end; ++day) {
      if (!is_weekend(day * kDay)) ++count;
    }
    return count;
  }

  // Daily or faster bars of a market that closes: weekends and holidays are not gaps.
  bool has_rhythm_of_weekdays() const {
    return asset_ != Asset::crypto && !bars_.style.steps && step_ <= 4 * static_cast<double>(kDay);
  }

  // One or two absent weekdays are holidays, more are gaps; without weekdays, 1.5 usual steps are a
  // gap.
  void note_gaps() {
    constexpr std::int64_t kLongestHoliday = 2;  // weekdays in a row
    std::vector<std::size_t> gaps, holidays;
    for (std::size_t i = 1; i < bars_.size(); ++i) {
      const bool over_night =
          has_rhythm_of_weekdays() && day_of(bars_.times[i]) != day_of(bars_.times[i - 1]);
      if (over_night) {
        const std::int64_t absent = weekdays_between(i);
        if (absent > kLongestHoliday) gaps.push_back(i);
        if (absent > 0 && absent <= kLongestHoliday) holidays.push_back(i);
      } else if (static_cast<double>(step_before(i)) > 1.5 * step_) {
        gaps.push_back(i);
      }
    }
    note_each(gaps, [&](std::size_t i) {
      const std::string_view unit = bars_.style.steps ? "step" : "bar";
      return fmt::format("{} has a gap: no {} between {} and {}", where(i), unit,
                         bars_.time_text(i - 1), bars_.time_text(i));
    });
    if (holidays.empty()) return;
    note_together(holidays,
                  fmt::format("{} has no bar on a weekday between {} and {}: probably a holiday",
                              where(holidays.front()), bars_.time_text(holidays.front() - 1),
                              bars_.time_text(holidays.front())));
  }

  // Trading days that end early. The file may cut the first and the last day, so they do not count.
  // Currencies begin every week with a few hours of Sunday.
  void note_half_days() {
    if (asset_ == Asset::fx || !intraday_ || !has_rhythm_of_weekdays() || days_.size() < 3) return;
    const double usual = bars_per_day(days_);
    std::vector<std::size_t> half;
    for (std::size_t d = 1; d + 1 < days_.size(); ++d) {
      if (static_cast<double>(days_[d].count) <= 0.75 * usual) half.push_back(days_[d].first);
    }
    if (half.empty()) return;
    const auto day = std::find_if(days_.begin(), days_.end(),
                                  [&](const Day& item) { return item.first == half.front(); });
    note_together(half, fmt::format("{} has a day of {} bars, {} are usual: probably a half day",
                                    where(half.front()), day->count, usual));
  }

  // A close that changed by a usual split ratio or its inverse.
  void note_splits() {
    constexpr std::array<double, 6> kRatios = {2, 3, 4, 5, 10, 20};
    constexpr double kTolerance = 0.05;  // the price itself may have moved by this on that day
    std::vector<std::size_t> splits;
    for (std::size_t i = 1; i < bars_.size(); ++i) {
      const double change = bars_.close[i] / bars_.close[i - 1];
      const double ratio = std::max(change, 1 / change);
      for (const double split : kRatios) {
        if (std::abs(ratio / split - 1) <= kTolerance) {
          splits.push_back(i);
          break;
        }
      }
    }
    note_each(splits, [&](std::size_t i) {
      return fmt::format(
          "{} closes at {} after {}, {:.3g} times as much: probably a split; if so, adjust the "
          "prices",
          where(i), bars_.close[i], bars_.close[i - 1], bars_.close[i] / bars_.close[i - 1]);
    });
  }

  void note_empty_volume() {
    std::vector<std::size_t> empty;
    for (std::size_t i = 0; i < bars_.volume.size(); ++i) {
      if (bars_.volume[i] == 0) empty.push_back(i);
    }
    if (empty.empty()) return;
    note_together(empty,
                  fmt::format("{} has a volume of 0: no trade could have happened at its prices",
                              where(empty.front())));
  }

  const Bars& bars_;
  Asset asset_;
  std::vector<Day> days_;
  double step_ = 0;        // ticks from one bar to the next, within a day if there are several
  bool intraday_ = false;  // more than one bar a day
  std::vector<std::string> notes_;
};

}  // namespace

std::string_view name_of(Asset asset) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"stock", "crypto", "fx"};
  return kNames[static_cast<std::size_t>(asset)];
}

DetectedAsset detect_asset(const Bars& bars) {
  if (is_currency_pair(bars.symbol)) return {Asset::fx, "named by two currencies"};
  if (bars.style.steps) return {Asset::stock, "no dates"};
  const bool weekend = std::any_of(bars.times.begin(), bars.times.end(), is_weekend);
  return weekend ? DetectedAsset{Asset::crypto, "bars on weekends"}
                 : DetectedAsset{Asset::stock, "no bar on a weekend"};
}

double bars_per_year(const Bars& bars, Asset asset) {
  constexpr std::array<double, 3> kDays = {252, 365, 260};
  return kDays[static_cast<std::size_t>(asset)] * bars_per_day(days_of(bars));
}

std::vector<std::string> calendar_notes(const Bars& bars, std::optional<Asset> chosen_asset,
                                        std::optional<double> chosen_bars_per_year) {
  std::vector<std::string> notes;
  if (bars.style.steps || bars.size() < 2) return notes;
  const double step = median(steps_of(bars));
  const Spacing spacing = spacing_of(step);
  const Asset asset = chosen_asset.value_or(detect_asset(bars).asset);
  if (!chosen_bars_per_year && !spacing.name.empty()) {
    notes.push_back(fmt::format(
        "{}: {} has {} bars, {:.3g} {} apart: its annual figures assume {:g} bars a year; "
        "--bars-per-year {} overrides it",
        bars.file, bars.symbol, spacing.name,
        step / static_cast<double>(step < static_cast<double>(kDay) ? kMinute : kDay),
        step < static_cast<double>(kDay) ? "minutes" : "days", bars_per_year(bars, asset),
        spacing.usual_year > 0 ? fmt::format("{}", spacing.usual_year) : "N"));
  }
  if (chosen_asset || asset != Asset::crypto) return notes;
  // A market that never closes has two of seven bars on weekends. Weekly and monthly dates prove
  // nothing.
  constexpr double kRare = 0.1;
  const auto weekend = std::count_if(bars.times.begin(), bars.times.end(), is_weekend);
  const bool telling = spacing.usual_year == 0;
  if (telling && static_cast<double>(weekend) >= kRare * static_cast<double>(bars.size())) {
    return notes;
  }
  const auto first = static_cast<std::size_t>(
      std::find_if(bars.times.begin(), bars.times.end(), is_weekend) - bars.times.begin());
  notes.push_back(fmt::format(
      "{}: line {}: {} is classified as crypto (never short) because {} of its {} bars {} on a "
      "weekend, the first on {}{}; --asset stock overrides it",
      bars.file, bars.lines[first], bars.symbol, weekend, bars.size(),
      weekend == 1 ? "falls" : "fall", bars.time_text(first),
      telling ? ": probably stray bars" : ""));
  return notes;
}

std::vector<std::string> data_notes(const Bars& bars, Asset asset) {
  return BarInspection(bars, asset).notes();
}

}  // namespace toto::tables
