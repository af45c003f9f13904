// The access log: one JSON line per request. Lines that cannot be written are counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http_message.h"
#include "line_output.h"

namespace toto::server {

// Thread safe.
class AccessLog {
 public:
  // "-" is standard error; empty: no log. Error(invalid_argument) if the file cannot be opened.
  // `trust_proxy`: the peer is the client that the proxy names.
  explicit AccessLog(const std::string& path, bool trust_proxy = false);

  void reopen() {  // after a rotation
    if (out_ != nullptr) out_->reopen();
  }
  void add(const HttpRequest& request, std::string_view route, const HttpResponse& response,
           bool sent);
  std::int64_t num_lost() const { return num_lost_; }

 private:
  std::optional<LineOutput> file_;
  LineOutput* out_ = nullptr;  // nullptr: no log
  bool trust_proxy_ = false;
  std::atomic<std::int64_t> num_lost_{0};
};

}  // namespace toto::server
