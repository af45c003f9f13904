// Any bytes as config.json: a config within its limits or one Error, never anything else.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "require.h"
#include "toto/toto.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> warnings;
  try {
    const auto architecture = toto::parse_architecture({reinterpret_cast<const char*>(data), size},
                                                       "config.json", warnings);
    // What was accepted must survive being written and read again.
    std::vector<std::string> none;
    const std::string text = architecture->config_json();
    const auto again = toto::parse_architecture(text, "written", none);
    toto::require(none.empty() && again->config_json() == text);
  } catch (const toto::Error&) {
  }
  return 0;
}
