// One JSON line a request. A log that cannot be written, on a full disk or into a pipe nobody
// reads, never stops the service: lines are lost and counted, whole ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "message.h"

namespace toto::server {

// Thread safe.
class AccessLog {
 public:
  AccessLog() = default;  // writes nothing
  // "-" is standard error. Error(invalid_argument) if the file cannot be opened. Behind a proxy
  // that is trusted, the peer is whom it speaks for.
  explicit AccessLog(const std::string& path, bool trust_proxy = false);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void add(const Request& request, std::string_view route, const Response& response, bool sent);
  std::int64_t num_lost() const { return num_lost_; }

 private:
  bool write_line(std::string_view line);  // under the lock

  int fd_ = -1;
  bool trust_proxy_ = false;
  bool owned_ = false;
  bool torn_ = false;  // the log ends with half a line
  std::mutex mutex_;
  std::atomic<std::int64_t> num_lost_{0};
};

}  // namespace toto::server
