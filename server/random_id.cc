#include "random_id.h"

#include <sys/random.h>

#include <array>

#include "base/error.h"

namespace toto::server {

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail(ErrorCode::internal, "the system returned no random numbers");
  }
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace toto::server
