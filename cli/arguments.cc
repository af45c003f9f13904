#include "arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/error.h"

namespace toto::cli {

struct Command::Impl {
  CLI::App* app = nullptr;
  std::function<int()> action;
};

struct Arguments::Impl {
  CLI::App app{"toto " + std::string(version()) +
                   ": forecasts time series with Toto, natively, and proves that they are right.",
               "toto"};
  std::vector<std::shared_ptr<Command::Impl>> commands;
};

Command& Command::positional(const std::string& name, std::string& value, const std::string& help) {
  impl_->app->add_option(name, value, help)->required();
  return *this;
}

Command& Command::positionals(const std::string& name, std::vector<std::string>& values,
                              const std::string& help) {
  impl_->app->add_option(name, values, help);
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

Command Arguments::add_command(const std::string& name, const std::string& summary,
                               const std::string& example) {
  auto command = std::make_shared<Command::Impl>();
  command->app = impl_->app.add_subcommand(name, summary);
  command->app->set_help_flag("-h,--help", "show this and exit");
  command->app->footer("Example:\n  " + example);
  impl_->commands.push_back(command);
  return Command(command);
}

int Arguments::run(int argc, char** argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return impl_->app.exit(success);
  } catch (const CLI::ParseError& wrong) {
    const std::vector<CLI::App*> chosen = impl_->app.get_subcommands();
    if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
      std::string names;
      for (const auto& command : impl_->commands) {
        names += (names.empty() ? "" : ", ") + command->app->get_name();
      }
      fail(ErrorCode::invalid_argument, "unknown command \"{}\"; the commands are {}", argv[1],
           names);
    }
    std::string sentence = wrong.what();
    while (!sentence.empty() && sentence.back() == '\n') sentence.pop_back();
    fail(ErrorCode::invalid_argument, "{}; see `toto{} --help`", sentence,
         chosen.empty() ? "" : " " + chosen.front()->get_name());
  }
  for (const auto& command : impl_->commands) {
    if (command->app->parsed()) return command->action();
  }
  fail(ErrorCode::internal, "no command ran");
}

}  // namespace toto::cli
