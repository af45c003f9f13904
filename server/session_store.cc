#include "session_store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "random_id.h"

namespace toto::server {
using io::Json;

Session& StreamSession::on(const ActiveEngine& active, const SessionLimits& limits) {
  if (!session || engine != active.engine) {
    Series series = std::move(history);
    if (session) series = session->series();
    SessionOptions options{.max_bytes = limits.max_bytes};
    options.max_length = std::clamp<std::size_t>(
        limits.max_history_bytes / (sizeof(float) * targets.size()), 1, options.max_length);
    session.emplace(active.engine->open(std::move(series), options));
    engine = active.engine;
  }
  return *session;
}

std::vector<std::shared_ptr<const tables::TimeAxis>> StreamSession::axes_after(
    std::size_t points, const std::optional<std::string>& end) const {
  std::vector<std::shared_ptr<const tables::TimeAxis>> axes;
  for (const tables::InputSeries& target : targets) {
    if (target.axis->times.empty()) {
      if (end) {
        fail(ErrorCode::invalid_argument,
             "end is {}, but the session was opened without start or end", quoted(*end));
      }
      axes.push_back(target.axis);
      continue;
    }
    tables::TimeAxis axis = *target.axis;
    const tables::Ticks last = axis.times.back();
    axis.times = {tables::advance(axis.frequency, last, static_cast<std::int64_t>(points))};
    if (end) {
      tables::TimeColumn clock;
      const std::string complaint = clock.read(*end, axis.times.back());
      if (!complaint.empty()) fail(ErrorCode::invalid_argument, "end: {}", complaint);
      if (axis.times.back() <= last) {
        fail(ErrorCode::invalid_argument, "end is {}, expected a time after {}, the session's last",
             quoted(*end), tables::format_time(last, axis.style));
      }
    }
    tables::widen(axis.style, axis.times.back());
    axes.push_back(std::make_shared<const tables::TimeAxis>(std::move(axis)));
  }
  return axes;
}

void StreamSession::advance(std::size_t points,
                            std::vector<std::shared_ptr<const tables::TimeAxis>> axes) {
  length += points;
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].axis = std::move(axes[i]);
}

std::shared_ptr<StreamSession> SessionStore::open(std::shared_ptr<StreamSession> session) {
  session->id = random_id();
  const std::lock_guard lock(mutex_);
  drop_old();
  if (entries_.size() >= limits_.max_sessions) {
    fail(ErrorCode::overloaded,
         "{} sessions are open, the most that --max-sessions allows; close one or try again later",
         entries_.size());
  }
  const std::size_t bytes = sizeof(float) * session->history.values.size();
  check_room(bytes);
  entries_.push_back({session, Clock::now(), bytes, 0});
  return session;
}

void SessionStore::check_room(std::size_t bytes) const {
  std::size_t total = bytes;
  for (const StoredSession& entry : entries_) total += entry.history + entry.reserved;
  if (total <= limits_.max_histories) return;
  fail(ErrorCode::overloaded,
       "the histories of all sessions would take {:.0f} MB, expected at most {:.0f}; close one or "
       "try again later",
       static_cast<double>(total) / 1e6, static_cast<double>(limits_.max_histories) / 1e6);
}

SessionStore::Reservation SessionStore::reserve(std::string_view id, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = locate(id);
  // The history keeps at most max_history_bytes: older points are dropped.
  const std::size_t before = found->history + found->reserved;
  const std::size_t after = std::max(before, std::min(before + bytes, limits_.max_history_bytes));
  check_room(after - before);
  Reservation reservation(*this, std::string(id), after - before);
  found->reserved += after - before;
  return reservation;
}

void SessionStore::Reservation::release() noexcept {
  if (bytes_ == 0) return;
  const std::lock_guard lock(store_->mutex_);
  const auto found = store_->find_entry(id_);
  if (found != store_->entries_.end()) found->reserved -= bytes_;
  bytes_ = 0;
}

void SessionStore::set_history(std::string_view id, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = find_entry(id);
  if (found != entries_.end()) found->history = bytes;
}

std::list<SessionStore::StoredSession>::iterator SessionStore::locate(std::string_view id) {
  drop_old();
  const auto found = find_entry(id);
  if (found == entries_.end()) {
    fail(ErrorCode::not_found,
         "there is no session {}; it may have been closed or unused for too long", quoted(id));
  }
  return found;
}

std::list<SessionStore::StoredSession>::iterator SessionStore::find_entry(std::string_view id) {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const StoredSession& entry) { return entry.session->id == id; });
}

std::shared_ptr<StreamSession> SessionStore::find(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = locate(id);
  found->used = Clock::now();
  return found->session;
}

void SessionStore::close(std::string_view id) {
  std::list<StoredSession> closed;  // freed after the lock
  const std::lock_guard lock(mutex_);
  closed.splice(closed.end(), entries_, locate(id));
}

void SessionStore::forget(std::string_view id) {
  std::list<StoredSession> closed;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = find_entry(id);
  if (found != entries_.end()) closed.splice(closed.end(), entries_, found);
}

std::size_t SessionStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void SessionStore::drop_old() {
  const Clock::time_point oldest = Clock::now() - limits_.max_age;
  std::erase_if(entries_, [&](const StoredSession& entry) { return entry.used < oldest; });
}

std::size_t read_session(const Json& body, const RequestLimits& limits, StreamSession& session) {
  Fields fields(body, "");
  const Json& value = fields.need("series");
  fields.finish();
  std::vector<V1Entry> entries;
  if (value.kind == Json::Kind::array) {
    if (value.array.empty() || value.array.size() > limits.max_series) {
      fail(ErrorCode::invalid_argument, "series has {} variates, expected 1 to {}",
           value.array.size(), limits.max_series);
    }
    for (std::size_t i = 0; i < value.array.size(); ++i) {
      entries.push_back(read_entry(value.array[i], fmt::format("series[{}]", i)));
    }
  } else {
    entries.push_back(read_entry(value, "series"));
  }
  std::vector<const V1Entry*> variates;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    V1Entry& entry = entries[i];
    if (entry.is_known) {
      fail(ErrorCode::unsupported, "series has a \"future\", which sessions do not take");
    }
    if (entry.input.id.empty()) entry.input.id = fmt::format("series_{}", i + 1);
    variates.push_back(&entry);
    session.targets.push_back({.id = entry.input.id, .values = {}, .axis = entry.input.axis});
  }
  // The smallest request possible; each later request is checked again.
  const std::size_t too_large =
      check_size(limits, {{shape_of(variates)}}, {.horizon = 1, .quantiles = {}});
  if (too_large > 0) return too_large;
  session.history = join(variates, session.targets.front().id);
  session.length = session.history.length();
  return 0;
}

std::vector<float> read_points(const Json& value, std::size_t num_variates) {
  const std::vector<Json>& items = list_of(value, "values");
  const bool nested = !items.empty() && items.front().kind == Json::Kind::array;
  if (!nested && num_variates == 1) return values_of(value, "values");
  if (items.size() != num_variates) {
    fail(ErrorCode::invalid_argument, "values has {} lists, expected one for each of {} variates",
         items.size(), num_variates);
  }
  std::vector<float> points;
  std::size_t count = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::vector<float> row = values_of(items[i], fmt::format("values[{}]", i));
    if (i > 0 && row.size() != count) {
      fail(ErrorCode::invalid_argument, "values has lists of {} and {} points, expected one length",
           count, row.size());
    }
    count = row.size();
    points.insert(points.end(), row.begin(), row.end());
  }
  return points;
}

}  // namespace toto::server
