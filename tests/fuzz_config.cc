// Any bytes as config.json: a config within its limits or one Error, never anything else.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "toto/toto.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> warnings;
  try {
    const toto::Config config =
        toto::parse_config({reinterpret_cast<const char*>(data), size}, "config.json", warnings);
    // What was accepted must survive being written and read again.
    std::vector<std::string> none;
    const toto::Config again = toto::parse_config(toto::config_json(config), "written", none);
    if (!none.empty() || again.num_parameters(true) != config.num_parameters(true)) std::abort();
  } catch (const toto::Error&) {
  }
  return 0;
}
