// Price bars of one symbol, strictly read: every price is there, finite and positive, and times
// increase.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/csv.h"
#include "tables/timestamps.h"

namespace toto::tables {

// What is forecast, in the order of every output.
enum class Target { close, low, high, open };
inline constexpr std::array<Target, 4> kTargets = {Target::close, Target::low, Target::high,
                                                   Target::open};
std::string_view name_of(Target target) noexcept;

struct Bars {
  std::string symbol = {};
  std::string file = {};         // for messages
  std::string file_sha256 = {};  // of its bytes as they were read
  TimeStyle style = {};
  std::vector<Ticks> times = {};
  std::vector<std::int64_t> lines = {};  // in the file, from 1
  std::vector<double> open = {}, high = {}, low = {}, close = {};
  std::vector<double> volume = {};  // NaN where there is none; empty without such a column

  std::size_t size() const { return close.size(); }
  const std::vector<double>& prices(Target target) const;
  std::string time_text(std::size_t bar) const { return format_time(times[bar], style); }
};

// The symbols of one file: its name without extension, or those of its `symbol` column, in the
// order of the file. Error(not_found), or Error(corrupt_file) with file and line.
std::vector<Bars> read_bars(const std::string& path);
// The same of bytes from elsewhere: `file` is for messages, `symbol` that of a table without a
// column for it.
std::vector<Bars> read_bars(io::ByteSource& source, const std::string& file,
                            const std::string& symbol);

// All symbols of all files, each path a CSV file or a folder of them (in the order of their names).
// Error(corrupt_file) for a symbol that two files have, and for a folder without a CSV file.
std::vector<Bars> read_all_bars(const std::vector<std::string>& paths);

}  // namespace toto::tables
