#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings/settings_file.h"

namespace {

// The exit code of each kind of error.
int exit_code(toto::ErrorCode code) {
  switch (code) {
    case toto::ErrorCode::invalid_argument:
      return 2;
    case toto::ErrorCode::not_found:
    case toto::ErrorCode::corrupt_file:
    case toto::ErrorCode::unsupported:
      return 3;
    case toto::ErrorCode::out_of_memory:
      return 4;
    case toto::ErrorCode::overloaded:
      return 5;
    case toto::ErrorCode::cancelled:
      return 130;
    case toto::ErrorCode::internal:
      return 70;
  }
  return 70;
}

int report(std::string_view sentence, int code) {
  toto::cli::print_line(fmt::format("error: {}", sentence));
  return code;
}

// If a standard stream is closed, the next file opened would take its place and receive its output.
// Opened in the wrong direction, its use is an error instead.
void occupy_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

// Every command, in the order of the help text.
void add_commands(toto::cli::Arguments& arguments) {
  using namespace toto::cli;
  for (const auto& add : {add_forecast, add_eval, add_backtest, add_signal, add_serve, add_verify,
                          add_compare_modes, add_stress, add_analyze_log, add_bench, add_inspect,
                          add_make_model, add_config, add_doctor}) {
    add(arguments);
  }
}

int run(std::vector<std::string> words) {
  toto::cli::Arguments arguments;
  arguments.common_option("--config", "FILE",
                          "settings to use (default: ./toto.conf, else toto/toto.conf in the "
                          "user's config folder)",
                          toto::cli::choose_settings_file);
  add_commands(arguments);
  return arguments.run(std::move(words));
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  // A closed pipe and a file at its size limit are errors of the write; they do not end the
  // process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run({argv + std::min(argc, 1), argv + argc});
  } catch (const toto::Error& error) {
    return report(error.what(), exit_code(error.code()));
  } catch (const std::bad_alloc&) {
    return report("out of memory", 4);
  } catch (const std::exception& error) {
    return report(
        fmt::format("internal: {}; this is a bug in toto, please report it", error.what()), 70);
  }
}
