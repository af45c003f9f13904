// Whatever a file of the cache folder holds: no forecast and no text is taken from it unless its
// checksum is right, and the next write makes it whole again. The first byte chooses the file: 'f'
// forecasts, 'h' forecasts behind a right header, others a text entry.
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "backtest/forecast_cache.h"
#include "cache/text_entry.h"
#include "require.h"

namespace {

namespace fs = std::filesystem;
using toto::backtest::ForecastCache;

constexpr std::size_t kHeaderBytes = 8 + 64;
constexpr std::array<std::pair<toto::backtest::ContextKey, toto::backtest::RawForecast>, 1>
    kEntries = {{{{1, 2}, {3.0f}}}};

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "toto-fuzz-XXXXXX").string();
    toto::require(mkdtemp(name.data()) != nullptr);
    path = name;
    ForecastCache(path, "setting").add(kEntries);
    forecasts = fs::directory_iterator(path + "/forecasts")->path().string();
    std::ifstream in(forecasts, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path, forecasts, good;
};

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  chmod(path.c_str(), 0600);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using toto::require;
  static const Folder folder;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'f' || data[0] == 'h') {
    if (data[0] == 'h') bytes = folder.good.substr(0, kHeaderBytes) + bytes;
    put(folder.forecasts, bytes);
    ForecastCache cache(folder.path, "setting");
    const auto* found = cache.find({1, 2});
    // Only the record that was written has a right checksum.
    require(found == nullptr || *found == kEntries[0].second);
    require(found == nullptr || bytes.find(folder.good.substr(kHeaderBytes)) != std::string::npos);
    cache.add(kEntries);
    require(cache.warnings().empty());
    require(ForecastCache(folder.path, "setting").find({1, 2}) != nullptr);
    return 0;
  }
  const toto::io::CacheFile entry(folder.path, "schedules", "text.txt");
  toto::cache::write_text_entry(entry, "key", "text\n");
  put(entry.path(), bytes);
  const toto::cache::TextEntry found = toto::cache::read_text_entry(entry, "key");
  require(!found.text || found.invalid.empty());
  require(!found.text || bytes.ends_with("\n"));
  toto::cache::write_text_entry(entry, "key", "text\n");
  require(toto::cache::read_text_entry(entry, "key").text == "text\n");
  return 0;
}
