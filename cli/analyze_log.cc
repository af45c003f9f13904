// `toto analyze-log`: the problems in a log of PyTorch's compiler or of our planner, with advice.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "compile_log/compile_log.h"
#include "io/csv.h"

namespace toto::cli {
namespace {

struct AnalyzeLogFlags {
  std::string log;
  std::optional<std::string> output, json;
  bool progress = false;
};

compile_log::LogAnalysis read_log(const AnalyzeLogFlags& flags) {
  const std::unique_ptr<io::ByteSource> source = io::open_source(flags.log);
  std::error_code unknown;  // of pipes: they are read without a bar
  const std::uintmax_t size = flags.log == "-" ? 0 : std::filesystem::file_size(flags.log, unknown);
  const InterruptGuard guard;
  Progress progress("analyze-log", "MB", flags.progress);
  compile_log::CompileLogReader reader;
  std::vector<char> buffer(std::size_t{1} << 18);
  std::uint64_t done = 0;
  while (const std::size_t count = source->read(buffer.data(), buffer.size())) {
    InterruptGuard::check();
    reader.read({buffer.data(), count});
    done += count;
    if (!unknown && size > done) progress.update(done >> 20, size >> 20);
  }
  return reader.finish();
}

int analyze_log(const AnalyzeLogFlags& flags) {
  if (flags.output == "-" && flags.json == "-") {
    fail(ErrorCode::invalid_argument,
         "--output and --json are both -; stdout can hold one of them");
  }
  check_outputs({{"LOG", flags.log}}, {{"--output", flags.output}, {"--json", flags.json}});
  const compile_log::LogAnalysis analysis = read_log(flags);
  const std::string name = flags.log == "-" ? "standard input" : one_line(flags.log);
  const std::string markdown = compile_log::markdown_text(analysis, name);
  ResultFiles files;
  if (flags.output && flags.output != "-") files.add(*flags.output, markdown);
  publish(files, flags.json, compile_log::json_text(analysis),
          flags.output == "-" ? markdown : compile_log::table_text(analysis, name));
  if (analysis.evidence()) return 0;
  print_line(fmt::format("error: {}: {}", name, compile_log::summary_of(analysis)));
  return 1;
}

}  // namespace

void add_analyze_log(Arguments& arguments) {
  const auto flags = std::make_shared<AnalyzeLogFlags>();
  arguments
      .add_command("analyze-log", "read PyTorch compile logs or our plan logs and give advice",
                   "toto analyze-log compile.log --output compile.md")
      .positional("LOG", flags->log, "the log, of any size; - is standard input")
      .option("--output", "FILE", flags->output,
              "write the report in Markdown; - sends it to stdout")
      .json(flags->json, "write the report as JSON")
      .progress(flags->progress)
      .note(
          "PyTorch writes such a log with\n"
          "  TORCH_LOGS=recompiles,graph_breaks,cudagraphs python serve.py 2> compile.log\n"
          "toto with TOTO_LOGS=plans.")
      .run([flags] { return analyze_log(*flags); });
}

}  // namespace toto::cli
