#include "cli/settings/flags.h"

namespace toto::cli {

void Flags::add(Command& command, const settings::Setting& setting) {
  Flag& flag = flags_[std::string(setting.name)];
  if (setting.type == settings::Type::toggle) {
    flag.on_text = setting.standard.boolean ? "0" : "1";
    command.flag(setting.flag(), flag.is_on, setting.flag_help());
  } else {
    command.option(setting.flag(), std::string(setting.placeholder), flag.text,
                   setting.flag_help());
  }
}

std::optional<std::string> Flags::find(std::string_view name) const {
  const auto found = flags_.find(name);
  if (found == flags_.end()) return {};
  const Flag& flag = found->second;
  return flag.is_on ? std::optional(std::string(flag.on_text)) : flag.text;
}

void Flags::set(std::string_view name, std::optional<std::string> text) {
  Flag& flag = flags_[std::string(name)];
  flag.text = std::move(text);
  flag.is_on = false;
}

}  // namespace toto::cli
