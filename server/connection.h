// One client's connection from its first byte to its last, and the state all connections share.
// Only for http.cc; together with connection.cc it is the only user of Boost.
#pragma once

// Asio 1.74 uses std::exchange without including it.
#include <utility>

#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>

#include "http.h"
#include "memory_budget.h"

namespace toto::server {

class ConnectionBase;

// The state all connections share. Thread safe; the lock is held for a few instructions only.
class Connections {
 public:
  Connections(const HttpOptions& wanted, HttpHandler& request_handler)
      : options(wanted),
        handler(request_handler),
        budget(std::make_shared<MemoryBudget>(wanted.max_bodies)) {}
  const HttpOptions options;
  HttpHandler& handler;
  const std::shared_ptr<MemoryBudget> budget;  // also held by requests that are still queued
  std::atomic<bool> draining{false};

  using Place = std::list<ConnectionBase*>::iterator;
  Place add(ConnectionBase* connection);
  void remove(Place place);
  void to_back(Place place);  // after an answer: the last to be evicted
  std::size_t size() const;
  // False if there are too many connections and all of them wait for an answer.
  bool make_room() { return size() < options.max_connections || evict(); }
  // Closes the least active connection; false if all of them wait for an answer.
  bool evict();
  void check();          // deadlines, and clients that have left
  void refuse_unread();  // requests still being sent when the server stops
  void listening_ended();
  // Whether all connections ended within this time and no new one can begin.
  bool wait_until_none(std::chrono::milliseconds time);

 private:
  template <typename Act>
  void for_each(const Act& act);

  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  std::list<ConnectionBase*> all_;  // most recently answered last
  bool listening_ = true;
};

// In this order; after `writing` a kept connection is `idle` again. `lingering`: the answer is sent
// and further bytes are discarded.
enum class ConnectionState { handshake, idle, header, body, answering, writing, lingering };

// The part of a connection that other threads use.
class ConnectionBase : public std::enable_shared_from_this<ConnectionBase> {
 public:
  explicit ConnectionBase(Connections& shared) : shared_(shared), place_(shared.add(this)) {}
  virtual ~ConnectionBase() { shared_.remove(place_); }
  ConnectionBase(const ConnectionBase&) = delete;
  ConnectionBase& operator=(const ConnectionBase&) = delete;

  // Run on the connection's own strand.
  virtual void post_check() = 0;
  virtual void post_refuse() = 0;  // closes it if no request has begun
  virtual void post_close() = 0;

  ConnectionState state() const { return state_.load(); }
  bool needs_check(Clock::time_point now) const {
    return now.time_since_epoch().count() >= deadline_.load() ||
           state() == ConnectionState::answering;
  }
  bool is_evicted = false;  // under the lock of Connections

 protected:
  void enter(ConnectionState state, std::chrono::milliseconds time) {
    enter(state, Clock::now() + time);
  }
  void enter(ConnectionState state, Clock::time_point deadline) {
    state_.store(state);
    deadline_.store(deadline.time_since_epoch().count());
  }
  bool expired() const { return Clock::now().time_since_epoch().count() >= deadline_.load(); }
  void answered_now() { shared_.to_back(place_); }

  Connections& shared_;

 private:
  Connections::Place place_;
  std::atomic<ConnectionState> state_{ConnectionState::handshake};
  std::atomic<Clock::rep> deadline_{Clock::time_point::max().time_since_epoch().count()};
};

// From here on the connection keeps itself alive.
void start_connection(Connections& shared, boost::asio::ip::tcp::socket socket);
void start_connection(Connections& shared, boost::asio::ip::tcp::socket socket,
                      boost::asio::ssl::context& tls);

}  // namespace toto::server
