#include "validate/held_out.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace toto::validate {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double quotient(double sum, std::int64_t count) {
  return count == 0 ? kUndefined : sum / static_cast<double>(count);
}

bool is_known(float value) { return !std::isnan(value); }

Window window_at(const Symbol& symbol, std::size_t start, int context, int horizon) {
  const auto begin = symbol.values.begin() + static_cast<std::ptrdiff_t>(start);
  const std::size_t length = std::min(start, static_cast<std::size_t>(context));
  Window window;
  window.context.id = symbol.name;
  window.context.values.assign(begin - static_cast<std::ptrdiff_t>(length), begin);
  window.actual.assign(begin, begin + horizon);
  const auto& history = window.context.values;
  const auto latest = std::find_if(history.rbegin(), history.rend(), is_known);
  window.latest = latest == history.rend() ? NAN : *latest;
  return window;
}

}  // namespace

std::vector<Window> held_out_windows(const Symbol& symbol, int context, int horizon, int count,
                                     std::vector<std::string>* remarks) {
  std::vector<Window> windows;
  std::size_t skipped = 0;
  const auto step = static_cast<std::size_t>(horizon);
  std::size_t start = symbol.values.size();
  while (windows.size() < static_cast<std::size_t>(count) && start >= step + kMinHistory) {
    start -= step;
    Window window = window_at(symbol, start, context, horizon);
    const auto known = std::count_if(window.actual.begin(), window.actual.end(), is_known);
    if (known < horizon && start + step == symbol.values.size()) {
      fail(ErrorCode::corrupt_file,
           "{}: {} of its last {} values are missing, expected all of them: forecasts are compared "
           "with them; cut the file where its values end",
           quoted(symbol.name), horizon - known, horizon);
    }
    if (known == horizon && !std::isnan(window.latest)) {
      windows.push_back(std::move(window));
    } else {
      ++skipped;
    }
  }
  if (windows.size() < static_cast<std::size_t>(count)) {
    fail(ErrorCode::corrupt_file,
         "{}: {} values give {} windows of {} steps without a missing value and with {} points "
         "before them, expected {}; use a longer file or compare less",
         quoted(symbol.name), symbol.values.size(), windows.size(), horizon, kMinHistory, count);
  }
  if (skipped > 0 && remarks != nullptr) {
    remarks->push_back(
        fmt::format("{}: {} of the last {} windows have missing values and were skipped",
                    symbol.name, skipped, skipped + windows.size()));
  }
  std::reverse(windows.begin(), windows.end());
  // One length for all: growing contexts would look like a mode that becomes slower.
  const std::size_t length = windows.front().context.values.size();
  for (Window& window : windows) {
    std::vector<float>& values = window.context.values;
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(length));
  }
  return windows;
}

bool all_equal(const std::vector<Window>& windows) {
  return std::all_of(windows.begin(), windows.end(), [&](const Window& window) {
    return window.context.values == windows.front().context.values;
  });
}

void Accuracy::add(std::span<const float> predicted, std::span<const float> actual) {
  if (predicted.size() != actual.size()) {
    fail(ErrorCode::internal, "{} predictions for {} actual values", predicted.size(),
         actual.size());
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (is_known(actual[i])) add(double{predicted[i]}, double{actual[i]});
  }
}

void Accuracy::add(double predicted, double actual) {
  const double error = predicted - actual;
  ++count_;
  absolute_ += std::abs(error);
  squared_ += error * error;
  if (actual != 0) {
    ++num_relative_;
    relative_ += std::abs(error / actual);
  }
  predicted_ += predicted;
  actual_ += actual;
  const double step = predicted - center_;
  center_ += step / static_cast<double>(count_);
  spread_ += step * (predicted - center_);
}

double Accuracy::mae() const { return quotient(absolute_, count_); }
double Accuracy::rmse() const { return std::sqrt(quotient(squared_, count_)); }
double Accuracy::mape() const { return quotient(relative_, num_relative_); }
double Accuracy::prediction_mean() const { return quotient(predicted_, count_); }
double Accuracy::prediction_std() const { return std::sqrt(quotient(spread_, count_)); }
double Accuracy::target_mean() const { return quotient(actual_, count_); }

double mae_change(const Accuracy& ours, const Accuracy& theirs) {
  constexpr double kRounding = 1e-5;
  const double change = std::abs(ours.mae() - theirs.mae());
  if (change == 0) return 0;
  const double share = change / theirs.mae();
  const double of_rounding = change / (kRounding * std::abs(theirs.target_mean()));
  return std::isnan(share) ? share : std::min(share, of_rounding);
}

}  // namespace toto::validate
