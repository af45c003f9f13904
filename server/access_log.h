// One JSON line a request. Those that cannot be written are lost and counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "line_output.h"
#include "message.h"

namespace toto::server {

// Thread safe.
class AccessLog {
 public:
  // "-" is standard error, nothing no log. Error(invalid_argument) if the file cannot be opened.
  // Behind a proxy that is trusted, the peer is whom it speaks for.
  explicit AccessLog(const std::string& path, bool trust_proxy = false);

  void reopen() {  // a file that was moved away
    if (out_ != nullptr) out_->reopen();
  }
  void add(const Request& request, std::string_view route, const Response& response, bool sent);
  std::int64_t num_lost() const { return num_lost_; }

 private:
  std::optional<LineOutput> file_;
  LineOutput* out_ = nullptr;  // nobody wants to know
  bool trust_proxy_ = false;
  std::atomic<std::int64_t> num_lost_{0};
};

}  // namespace toto::server
