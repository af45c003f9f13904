#include "sessions.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace toto::server {
namespace {

using io::Json;

// Names nobody can guess: a session belongs to who opened it.
std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail(ErrorCode::internal, "the system has no random numbers");
  }
  std::string name;
  for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
  return name;
}

[[noreturn]] void fail_unknown(std::string_view id) {
  fail(ErrorCode::not_found, "there is no session {}; it may have been closed or too long unused",
       io::quoted(id));
}

}  // namespace

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

std::vector<std::shared_ptr<const io::TimeAxis>> StreamSession::axes_after(
    std::size_t points, const std::optional<std::string>& end) const {
  std::vector<std::shared_ptr<const io::TimeAxis>> axes;
  for (const io::InputSeries& target : targets) {
    if (target.axis->times.empty()) {
      if (end) {
        fail(ErrorCode::invalid_argument,
             "end is {}, but the session was opened without start or end", io::quoted(*end));
      }
      axes.push_back(target.axis);
      continue;
    }
    io::TimeAxis axis = *target.axis;
    const io::Ticks last = axis.times.back();
    axis.times = {io::advance(axis.frequency, last, static_cast<std::int64_t>(points))};
    if (end) {
      io::TimeColumn clock;
      const std::string complaint = clock.read(*end, axis.times.back());
      if (!complaint.empty()) fail(ErrorCode::invalid_argument, "end: {}", complaint);
      if (axis.times.back() <= last) {
        fail(ErrorCode::invalid_argument, "end is {}, expected a time after {}, the session's last",
             io::quoted(*end), io::format_time(last, axis.style));
      }
    }
    io::widen(axis.style, axis.times.back());
    axes.push_back(std::make_shared<const io::TimeAxis>(std::move(axis)));
  }
  return axes;
}

void StreamSession::advance(std::size_t points,
                            std::vector<std::shared_ptr<const io::TimeAxis>> axes) {
  length += points;
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].axis = std::move(axes[i]);
}

std::shared_ptr<StreamSession> Sessions::open(std::shared_ptr<StreamSession> session) {
  session->id = random_name();
  const std::lock_guard lock(mutex_);
  drop_old();
  if (entries_.size() >= limits_.max_sessions) {
    fail(ErrorCode::overloaded,
         "there are {} sessions, as many as --max-sessions allows; close one or try again later",
         entries_.size());
  }
  const std::size_t bytes = sizeof(float) * session->history.values.size();
  check_room(bytes);
  entries_.push_back({session, Clock::now(), bytes});
  return session;
}

void Sessions::check_room(std::size_t bytes) const {
  std::size_t total = bytes;
  for (const Entry& entry : entries_) total += entry.bytes;
  if (total <= limits_.max_histories) return;
  fail(ErrorCode::overloaded,
       "the histories of all sessions would take {:.0f} MB, more than the {:.0f} there are for "
       "them; close one or try again later",
       static_cast<double>(total) / 1e6, static_cast<double>(limits_.max_histories) / 1e6);
}

void Sessions::reserve(std::string_view id, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = locate(id);
  const std::size_t before = found->bytes;
  const std::size_t after = std::max(before, std::min(before + bytes, limits_.max_history_bytes));
  check_room(after - before);
  found->bytes = after;
}

std::list<Sessions::Entry>::iterator Sessions::locate(std::string_view id) {
  drop_old();
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.session->id == id; });
  if (found == entries_.end()) fail_unknown(id);
  return found;
}

std::shared_ptr<StreamSession> Sessions::find(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = locate(id);
  found->used = Clock::now();
  return found->session;
}

void Sessions::close(std::string_view id) {
  std::shared_ptr<StreamSession> last;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = locate(id);
  last = std::move(found->session);
  entries_.erase(found);
}

void Sessions::forget(std::string_view id) {
  std::shared_ptr<StreamSession> last;  // freed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.session->id == id; });
  if (found == entries_.end()) return;
  last = std::move(found->session);
  entries_.erase(found);
}

std::size_t Sessions::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void Sessions::drop_old() {
  const Clock::time_point oldest = Clock::now() - limits_.max_age;
  std::erase_if(entries_, [&](const Entry& entry) { return entry.used < oldest; });
}

std::shared_ptr<StreamSession> read_session(const Json& body, const Limits& limits) {
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
  auto session = std::make_shared<StreamSession>();
  std::vector<const V1Entry*> variates;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    V1Entry& entry = entries[i];
    if (entry.is_known) {
      fail(ErrorCode::unsupported, "series has a \"future\", which sessions do not take");
    }
    if (entry.input.id.empty()) entry.input.id = fmt::format("series_{}", i + 1);
    variates.push_back(&entry);
    session->targets.push_back({.id = entry.input.id, .values = {}, .axis = entry.input.axis});
  }
  // The least that can be asked of it; what is asked is checked again then.
  check_size(limits, {{shape_of(variates)}}, {.horizon = 1, .quantiles = {}});
  session->history = join(variates, session->targets.front().id);
  session->length = session->history.length();
  return session;
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
