#include "validate/provenance.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "base/machine.h"
#include "base/text.h"

namespace toto::validate {
namespace {

std::string host_name() {
  std::array<char, 256> name = {};
  // A name that is too long is cut, perhaps without an end.
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown host";
  return one_line(name.data());
}

}  // namespace

Provenance provenance() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return {.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                              fmt::gmtime(std::chrono::system_clock::to_time_t(now))),
          .host = host_name(),
          .cpu = one_line(cpu_name())};
}

std::string text_of(const Provenance& made) {
  return fmt::format("{} on {}, {}", made.date, made.host, made.cpu);
}

void write_provenance(io::JsonWriter& json, const Provenance& made) {
  json.field("date", made.date).field("host", made.host).field("cpu", made.cpu);
}

}  // namespace toto::validate
