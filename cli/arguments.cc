#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"

namespace toto::cli {
namespace {

[[noreturn]] void fail_unknown_command(const std::string& word,
                                       const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  fail(ErrorCode::invalid_argument, "unknown command {}; the commands are {}{}", quoted(word),
       fmt::join(names, ", "), did_you_mean(word, views));
}

// A misspelled option is reported before anything else that may be wrong: the words behind it were
// read as something they are not. Returns if there is none.
void refuse_unknown_option(const CLI::App& app, const std::string& help) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  for (const std::string& word : app.remaining()) {
    if (word.size() < 2 || word.front() != '-' || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string hint = did_you_mean(name, views);
    fail(ErrorCode::invalid_argument, "unknown option {}{}", quoted(name),
         hint.empty() ? fmt::format("; see `{}`", help) : hint);
  }
}

// `toto`, `toto help`, `toto help COMMAND` and `toto version` as the options they stand for.
// An unknown COMMAND stays a command, which is then refused by its name.
std::vector<std::string> as_options(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return {"--help"};
  if (words.size() == 1 && words[0] == "version") return {"--version"};
  if (words[0] != "help" || words.size() > 2) return words;
  if (words.size() == 1) return {"--help"};
  const auto named = [&words](const CLI::App* command) { return command->get_name() == words[1]; };
  if (app.get_subcommands(named).empty()) return {words[1]};
  return {words[1], "--help"};
}

}  // namespace

struct Command::Impl {
  CLI::App* app = nullptr;
  std::function<int()> action;
};

struct Arguments::Impl {
  CLI::App app{"toto " + std::string(version()) +
                   ": native time series forecasts with Toto, verified against PyTorch.",
               "toto"};
  std::vector<std::shared_ptr<Command::Impl>> commands;

  struct CommonOption {
    std::string name, placeholder, help;
    std::optional<std::string> value = {};
    std::function<void(const std::optional<std::string>&)> chosen;
  };
  std::deque<CommonOption> common_options;  // CLI11 keeps references to the values
};

Command& Command::positional(const std::string& name, std::string& value, const std::string& help) {
  impl_->app->add_option(name, value, help)->required();
  return *this;
}

Command& Command::positionals(const std::string& name, std::vector<std::string>& values,
                              const std::string& help, bool at_least_one) {
  auto* option = impl_->app->add_option(name, values, help);
  if (at_least_one) option->required();
  return *this;
}

Command& Command::option(const std::string& name, const std::string& placeholder,
                         std::optional<std::string>& value, const std::string& help) {
  impl_->app->add_option(name, value, help)->type_name(placeholder);
  return *this;
}

Command& Command::option(const std::string& name, std::vector<std::string>& values,
                         const std::string& help) {
  impl_->app->add_option(name, values, help);
  return *this;
}

Command& Command::flag(const std::string& name, bool& value, const std::string& help) {
  impl_->app->add_flag(name, value, help);
  return *this;
}

Command& Command::json(std::optional<std::string>& path, const std::string& help) {
  return option("--json", "FILE", path, help + "; - is stdout");
}

Command& Command::progress(bool& forced) {
  return flag("--progress", forced, "show progress even when stderr is not a terminal");
}

Command& Command::note(const std::string& text) {
  impl_->app->footer(impl_->app->get_footer() + "\n\n" + text);
  return *this;
}

Command& Command::run(std::function<int()> action) {
  impl_->action = std::move(action);
  return *this;
}

Arguments::Arguments() : impl_(std::make_unique<Impl>()) {
  impl_->app.require_subcommand(1);
  impl_->app.set_version_flag("--version", "toto " + std::string(version()));
  impl_->app.set_help_flag("-h,--help", "show this and exit");
  impl_->app.footer("Run `toto COMMAND --help` for a command's options and an example.");
  impl_->app.failure_message(CLI::FailureMessage::simple);
}

Arguments::~Arguments() = default;

void Arguments::common_option(const std::string& name, const std::string& placeholder,
                              const std::string& help,
                              std::function<void(const std::optional<std::string>&)> chosen) {
  impl_->common_options.push_back(
      {.name = name, .placeholder = placeholder, .help = help, .chosen = std::move(chosen)});
}

Command Arguments::add_command(const std::string& name, const std::string& summary,
                               const std::string& example) {
  auto command = std::make_shared<Command::Impl>();
  command->app = impl_->app.add_subcommand(name, summary);
  command->app->set_help_flag("-h,--help", "show this and exit");
  command->app->footer("Example:\n  " + example);
  impl_->commands.push_back(command);
  return Command(command);
}

int Arguments::run(std::vector<std::string> words) {
  words = as_options(impl_->app, std::move(words));
  for (const auto& command : impl_->commands) {
    for (Impl::CommonOption& option : impl_->common_options) {
      if (command->app->get_option_no_throw(option.name) != nullptr) continue;
      command->app->add_option(option.name, option.value, option.help)
          ->type_name(option.placeholder);
    }
  }
  try {
    // CLI11 takes the words last to first.
    impl_->app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& success) {  // --help and --version
    return impl_->app.exit(success);
  } catch (const CLI::ParseError& wrong) {
    const std::vector<CLI::App*> chosen = impl_->app.get_subcommands();
    if (chosen.empty() && !words.front().starts_with('-')) {
      std::vector<std::string> names;
      for (const auto& command : impl_->commands) names.push_back(command->app->get_name());
      fail_unknown_command(words.front(), names);
    }
    const CLI::App& app = chosen.empty() ? impl_->app : *chosen.front();
    const std::string help =
        chosen.empty() ? "toto --help" : fmt::format("toto {} --help", app.get_name());
    refuse_unknown_option(app, help);
    std::string sentence = wrong.what();
    while (!sentence.empty() && sentence.back() == '\n') sentence.pop_back();
    fail(ErrorCode::invalid_argument, "{}; see `{}`", sentence, help);
  }
  for (const Impl::CommonOption& option : impl_->common_options) option.chosen(option.value);
  for (const auto& command : impl_->commands) {
    if (command->app->parsed()) return command->action();
  }
  fail(ErrorCode::internal, "no command ran");
}

}  // namespace toto::cli
