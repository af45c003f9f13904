// Streaming sessions: series that grow, kept between requests. Limited in number, age and memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "protocol_v1.h"
#include "scheduler.h"
#include "tables/series_file.h"

namespace toto::server {

struct SessionLimits {
  std::size_t max_sessions = 64;
  std::chrono::seconds max_age{3600};                      // since the last request
  std::size_t max_bytes = std::size_t{32} << 20;           // of keys and values, per session
  std::size_t max_history_bytes = std::size_t{256} << 20;  // per session; the oldest points go
  std::size_t max_histories = std::size_t{1} << 30;        // bytes of all sessions together
};

// One session. Its fields belong to the engine thread that holds `turn`.
struct StreamSession {
  std::mutex turn = {};
  // Set for good by the first slow request: changing the lane changes the engine, which must read
  // the whole history again.
  std::atomic<bool> is_slow = false;
  std::atomic<std::size_t> length = 0;  // points since the beginning, dropped ones included
  std::string id;
  std::vector<tables::InputSeries> targets;  // [variate], named as the answer names them
  Series history;                            // until an engine has taken it over
  std::optional<Session> session;
  std::shared_ptr<const Engine> engine = {};  // the owner of `session`
  // The session on this engine; after a switch of engines its history is moved to the new one.
  Session& on(const ActiveEngine& active, const SessionLimits& limits);
  // The time axes of the targets after `points` more points. `end`, if given, is the time of the
  // last one: days without a bar take no step. Error(invalid_argument) for an impossible `end`.
  std::vector<std::shared_ptr<const tables::TimeAxis>> axes_after(
      std::size_t points, const std::optional<std::string>& end) const;
  void advance(std::size_t points, std::vector<std::shared_ptr<const tables::TimeAxis>> axes);
};

// Thread safe.
class SessionStore {
 public:
  explicit SessionStore(const SessionLimits& limits) : limits_(limits) {}
  const SessionLimits& limits() const { return limits_; }
  // Error(overloaded) if there are too many that are in use, or too large ones.
  std::shared_ptr<StreamSession> open(std::shared_ptr<StreamSession> session);
  std::shared_ptr<StreamSession> find(std::string_view id);  // Error(not_found)
  // Room for an append, given back with the object: the append itself is counted by set_history.
  // Movable.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept
        : store_(other.store_), id_(std::move(other.id_)), bytes_(std::exchange(other.bytes_, 0)) {}
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() { release(); }
    void release() noexcept;

   private:
    friend class SessionStore;
    Reservation(SessionStore& store, std::string id, std::size_t bytes)
        : store_(&store), id_(std::move(id)), bytes_(bytes) {}
    SessionStore* store_;
    std::string id_;
    std::size_t bytes_;
  };
  // Call before appending this many bytes: Error(overloaded) if all sessions would hold too much,
  // Error(not_found).
  [[nodiscard]] Reservation reserve(std::string_view id, std::size_t bytes);
  void set_history(std::string_view id, std::size_t bytes);  // what the session holds now
  void close(std::string_view id);                           // Error(not_found)
  void forget(std::string_view id);                          // closes it if it exists
  std::size_t size() const;

 private:
  struct StoredSession {
    std::shared_ptr<StreamSession> session;
    Clock::time_point used;
    std::size_t history;   // bytes
    std::size_t reserved;  // bytes of appends that wait or run
  };
  // Both under the lock. `locate`: Error(not_found).
  std::list<StoredSession>::iterator locate(std::string_view id);
  std::list<StoredSession>::iterator find_entry(std::string_view id);
  void drop_old();
  void check_room(std::size_t bytes) const;

  const SessionLimits limits_;
  mutable std::mutex mutex_;
  std::list<StoredSession> entries_;
};

// POST /v1/sessions: {"series": {...}} or {"series": [{...}, ...]} for variates of one series.
// Returns 0, or bytes_too_large_here (prepared_request.h): the session is incomplete then.
[[nodiscard]] std::size_t read_session(const io::Json& body, const RequestLimits& limits,
                                       StreamSession& session);
// POST .../append: {"values": [...]} or [[...], ...], one list per variate; as [variate][point].
std::vector<float> read_points(const io::Json& value, std::size_t num_variates);

}  // namespace toto::server
