// Any bytes can be analysed; the pieces they come in make no difference, every event is in exactly
// one group, and what is kept stays within its bounds.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "compile_log/compile_log.h"
#include "io/json.h"
#include "require.h"

namespace {

using namespace toto::compile_log;
using toto::require;

LogAnalysis analyse(std::string_view log, std::size_t step) {
  CompileLogReader reader;
  for (std::size_t at = 0; at < log.size(); at += step) reader.read(log.substr(at, step));
  return reader.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  const LogAnalysis analysis = analyse(log, 1 << 20);
  const std::string json = json_text(analysis);
  require(json == json_text(analyse(log, 13)));
  toto::io::parse_json(json, "report");
  require(analysis.groups.size() <= kMaxLogGroups + kNumLogKinds);
  std::uint64_t sum = 0;
  for (const LogGroup& group : analysis.groups) {
    sum += group.count;
    require(!group.advice.change.empty() && group.count > 0 && group.first_line > 0);
    require(group.function.find('\n') == std::string::npos);
  }
  require(sum == analysis.num_events());
  require(sum == 0 || analysis.evidence());
  require(!markdown_text(analysis, "log").empty() && !table_text(analysis, "log").empty());
  return 0;
}
