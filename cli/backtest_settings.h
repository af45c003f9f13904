// Settings of a backtest from a file: one written by hand (--settings) or the results.json of an
// earlier run (--from-results). They become flags, so that one place checks them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backtest_request.h"
#include "io/json.h"
#include "toto/toto.h"

namespace toto::cli {

class SettingsFiles {
 public:
  // Both fill in what `flags` leaves open; a new period there replaces that of the file whole.
  // Error(not_found, corrupt_file) naming the file and, of lines, the line.

  // `name = value` lines or a JSON object. Variables of the environment win over it.
  void take_config(BacktestFlags& flags, const std::string& path);
  // The "settings" object of a results.json.
  void take_results(BacktestFlags& flags, const std::string& path);

  // The settings of a request to the service, under the names of a results.json.
  void take_request(BacktestFlags& flags, const io::Json& settings);

  // What the run of --from-results was made from; empty where it does not say, or where DATA is
  // given anew.
  const std::vector<backtest::DataFile>& earlier_data() const { return earlier_data_; }

  // If `error` complains about a flag whose value stands in a file, throws one that says so.
  void explain(const Error& error) const;

 private:
  struct Setting {
    std::string name;
    io::Json value;
    std::string where;  // the file, and of lines the line
  };
  struct Taken {
    std::string flag;  // "--fee-bps"
    std::string name;  // "fee_bps"
    std::string where;
  };
  static std::vector<Setting> read_lines(const std::string& text, const std::string& path);
  static std::vector<Setting> members_of(const io::Json& object, const std::string& path);
  void take(BacktestFlags& flags, const std::vector<Setting>& settings, bool variables_win);

  std::vector<Taken> taken_;
  std::vector<backtest::DataFile> earlier_data_;
};

}  // namespace toto::cli
