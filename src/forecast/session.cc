#include "forecast/session.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "base/error.h"
#include "forecast/series.h"

namespace toto {
namespace {

// A copy of [variate][length] data without the first `drop` steps of every variate and with `count`
// values at(variate, i) appended to each.
template <typename T, typename At>
std::vector<T> reshaped(const std::vector<T>& data, int num_variates, std::size_t length,
                        std::size_t drop, std::size_t count, const At& at) {
  const std::size_t kept = length - drop;
  std::vector<T> result;
  result.reserve(num_variates * (kept + count));
  for (int v = 0; v < num_variates; ++v) {
    const auto from = data.begin() + static_cast<std::ptrdiff_t>(v * length + drop);
    result.insert(result.end(), from, from + static_cast<std::ptrdiff_t>(kept));
    for (std::size_t i = 0; i < count; ++i) result.push_back(at(v, i));
  }
  return result;
}

// Whether there is one id per value instead of one per variate; equal for a single step.
bool has_id_per_value(const Series& series) {
  return series.length() > 1 && series.group_ids.size() == series.values.size();
}

std::string name_of(const Series& series) {
  return series.id.empty() ? std::string("the session") : fmt::format("session \"{}\"", series.id);
}

// If a series exceeds `max_length`, drops its oldest points down to three quarters of that, so that
// dropping is rare; returns how many.
std::size_t shorten(Series& series, std::size_t max_length) {
  const std::size_t length = series.length();
  if (length <= max_length) return 0;
  const std::size_t left = std::max<std::size_t>(max_length - max_length / 4, 1);
  const std::size_t drop = length - left;
  const auto cut = [&](const auto& data) {
    return reshaped(data, series.num_variates, length, drop, 0, [](int, std::size_t) { return 0; });
  };
  if (has_id_per_value(series)) series.group_ids = cut(series.group_ids);
  if (!series.mask.empty()) series.mask = cut(series.mask);
  series.values = cut(series.values);
  return drop;
}

}  // namespace

Session::Impl::Impl(std::shared_ptr<Engine::Impl> owner, Series history,
                    const SessionOptions& limits)
    : engine(std::move(owner)),
      series(std::move(history)),
      options(limits),
      kept(limits.max_bytes) {
  if (options.max_length < 1) {
    fail(ErrorCode::invalid_argument, "{}: max_length is 0, expected at least 1 point",
         name_of(series));
  }
  // Known future values are checked at forecast time, when the horizon is known.
  std::vector<float> future = std::exchange(series.future_exogenous, {});
  validate_series(series, 1);
  series.future_exogenous = std::move(future);
  stats.points_dropped = static_cast<std::int64_t>(shorten(series, options.max_length));
}

void Session::Impl::append(std::span<const float> values) {
  const int variates = series.num_variates;
  const std::size_t length = series.length(), count = values.size() / variates;
  if (values.size() % variates != 0) {
    fail(ErrorCode::invalid_argument,
         "{}: {} values are appended, expected a multiple of its {} variates", name_of(series),
         values.size(), variates);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isinf(values[i])) continue;
    fail(ErrorCode::invalid_argument,
         "{}: variate {} has an infinite value at appended step {}; expected finite numbers or NaN "
         "for missing",
         name_of(series), i / count, i % count);
  }
  if (count == 0) return;
  // Work on a copy, so that a failure leaves the session unchanged.
  Series next;
  next.num_variates = variates;
  next.group_ids = series.group_ids;
  if (has_id_per_value(series)) {
    next.group_ids =
        reshaped(series.group_ids, variates, length, 0, count,
                 [&](int v, std::size_t) { return series.group_ids[(v + 1) * length - 1]; });
  }
  if (!series.mask.empty()) {
    next.mask = reshaped(series.mask, variates, length, 0, count,
                         [](int, std::size_t) { return std::uint8_t{1}; });
  }
  next.values = reshaped(series.values, variates, length, 0, count,
                         [&](int v, std::size_t i) { return values[v * count + i]; });
  stats.points_dropped += static_cast<std::int64_t>(shorten(next, options.max_length));
  series.values = std::move(next.values);
  series.group_ids = std::move(next.group_ids);
  series.mask = std::move(next.mask);
  series.future_exogenous.clear();
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

void Session::append(std::span<const float> values) {
  try {
    impl_->append(values);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "not enough memory to append {} values to {}", values.size(),
         name_of(impl_->series));
  }
}

void Session::set_known_future(std::vector<float> values) {
  impl_->series.future_exogenous = std::move(values);
}

const Series& Session::series() const noexcept { return impl_->series; }

SessionStats Session::stats() const noexcept {
  SessionStats stats = impl_->stats;
  stats.contexts = impl_->kept.size();
  stats.bytes = impl_->kept.bytes();
  return stats;
}

}  // namespace toto
