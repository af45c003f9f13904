// What a setting is, and where it came from.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli_fixture.h"

namespace toto::cli {

class SettingsTest : public CliTest {
 protected:
  void SetUp() override { file("in.csv", wide_csv(40)); }
  // A forecast of in.csv, whose settings --json repeats.
  Result forecast(std::vector<std::string> more, const Environment& environment = {}) {
    std::vector<std::string> words = {"forecast", "in.csv", "--horizon", "3", "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, environment);
  }
  std::string mode(const Environment& environment, std::vector<std::string> more = {}) {
    return at(at(json_of(forecast(std::move(more), environment)), "engine"), "mode").string;
  }
  void expect_wrong(const Environment& environment, std::string_view fragment) {
    const std::string& name = environment.begin()->first;
    expect_refusal(2, {name, fragment}, {"forecast", "in.csv"}, environment);
  }
  // The row of `toto config show`.
  std::pair<std::string, std::string> shown(std::string_view name,
                                            const std::vector<std::string>& flags = {},
                                            const Environment& environment = {}) {
    std::vector<std::string> words = {"config", "show", "--json", "-"};
    words.insert(words.end(), flags.begin(), flags.end());
    const io::Json json = json_of(run(words, environment));
    for (const io::Json& row : at(json, "settings").array) {
      if (at(row, "name").string == name) {
        return {at(row, "value").string, at(row, "origin").string};
      }
    }
    ADD_FAILURE() << "no setting " << name;
    return {};
  }
};

}  // namespace toto::cli
