// Price bars of one symbol. Reading is strict: every price must be present, finite and positive,
// and times must increase, or decrease from row to row.
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

// The price to forecast, in the order of every output.
enum class Target { close, low, high, open };
inline constexpr std::array<Target, 4> kTargets = {Target::close, Target::low, Target::high,
                                                   Target::open};
std::string_view name_of(Target target) noexcept;

struct Bars {
  std::string symbol = {};
  std::string file = {};         // for messages
  std::string file_sha256 = {};  // of the bytes read
  TimeStyle style = {};
  std::vector<Ticks> times = {};
  std::vector<std::int64_t> lines = {};  // in the file, from 1
  std::vector<double> open = {}, high = {}, low = {}, close = {};
  std::vector<double> volume = {};  // NaN for an empty cell; empty without a volume column

  std::size_t size() const { return close.size(); }
  const std::vector<double>& prices(Target target) const;
  std::string time_text(std::size_t bar) const { return format_time(times[bar], style); }
};

// The bars of each symbol of one file, in file order. A symbol is a value of the `symbol` column,
// or the file's name without extension. Error(not_found), or Error(corrupt_file) with file and
// line.
std::vector<Bars> read_bars(const std::string& path);
// The same from any byte source: `file` is for messages, `symbol` names a table without a symbol
// column.
std::vector<Bars> read_bars(io::ByteSource& source, const std::string& file,
                            const std::string& symbol);

// The symbols of several files.
struct BarFiles {
  std::vector<Bars> bars = {};
  // Sentences for the user: files without columns of bars, which are skipped; rows newest first,
  // which are read in reverse; repeated rows, which are dropped.
  std::vector<std::string> notes = {};
};
// Reads one more, or skips it. Error as read_bars.
void add_bars(io::ByteSource& source, const std::string& file, const std::string& symbol,
              BarFiles& all);
// Error(corrupt_file) with the first note if every file was skipped.
void require_bars(const BarFiles& all);

// All symbols of all files, each path a CSV file or a folder of them (in the order of their names).
// Error(corrupt_file) for a symbol in two files, for a folder without a CSV file and if no file has
// bars.
BarFiles read_all_bars(const std::vector<std::string>& paths);

}  // namespace toto::tables
