// Streaming sessions: series that grow, kept between requests. Capped in number and age.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/series_file.h"
#include "protocol_v1.h"
#include "scheduler.h"

namespace toto::server {

struct SessionLimits {
  std::size_t max_sessions = 64;
  std::chrono::seconds max_age{3600};                      // without a request
  std::size_t max_bytes = std::size_t{32} << 20;           // of keys and values, each
  std::size_t max_history_bytes = std::size_t{256} << 20;  // each; the oldest points go
  std::size_t max_histories = std::size_t{1} << 30;        // bytes of all of them together
};

// One of them. Its fields belong to the engine's thread that has locked `turn`.
struct StreamSession {
  std::mutex turn = {};
  // Once it was slow it stays so: it belongs to one engine, and changing costs all of its history.
  std::atomic<bool> is_slow = false;
  std::atomic<std::size_t> length = 0;  // points since the beginning, also of what went
  std::string id;
  std::vector<io::InputSeries> targets;  // [variate], named as the answer names them
  Series history;                        // until an engine has taken it over
  std::optional<Session> session;
  std::shared_ptr<const Engine> engine = {};  // `session` belongs to
  // After a switch of engines the history goes on in the new one.
  Session& on(const ActiveEngine& active, const SessionLimits& limits);
  // The times of the targets after so many points, of which the last was at `end`, if that is said:
  // days without a bar are nobody's steps. Error(invalid_argument) if that cannot be.
  std::vector<std::shared_ptr<const io::TimeAxis>> axes_after(
      std::size_t points, const std::optional<std::string>& end) const;
  void advance(std::size_t points, std::vector<std::shared_ptr<const io::TimeAxis>> axes);
};

// Thread safe.
class Sessions {
 public:
  explicit Sessions(const SessionLimits& limits) : limits_(limits) {}
  const SessionLimits& limits() const { return limits_; }
  // Error(overloaded) if there are too many that are in use, or too large ones.
  std::shared_ptr<StreamSession> open(std::shared_ptr<StreamSession> session);
  std::shared_ptr<StreamSession> find(std::string_view id);  // Error(not_found)
  // Before so many bytes are appended: Error(overloaded) if all together would hold too much.
  void reserve(std::string_view id, std::size_t bytes);
  void close(std::string_view id);   // Error(not_found)
  void forget(std::string_view id);  // closes it if it is there
  std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<StreamSession> session;
    Clock::time_point used;
    std::size_t bytes;  // of its history, at most
  };
  std::list<Entry>::iterator locate(std::string_view id);  // under the lock
  void drop_old();
  void check_room(std::size_t bytes) const;

  const SessionLimits limits_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;
};

// POST /v1/sessions: {"series": {...}} or {"series": [{...}, ...]} for variates of one series.
std::shared_ptr<StreamSession> read_session(const io::Json& body, const Limits& limits);
// POST .../append: {"values": [...]} or [[...], ...], one list a variate; as [variate][point].
std::vector<float> read_points(const io::Json& value, std::size_t num_variates);

}  // namespace toto::server
