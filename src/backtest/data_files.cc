#include "backtest/data_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace toto::backtest {
namespace {

using io::Json;

const DataFile* find_file(std::span<const DataFile> files, const std::string& name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const DataFile& item) { return item.file == name; });
  return found == files.end() ? nullptr : &*found;
}

const Json& member(const Json& item, std::string_view name, Json::Kind kind,
                   const std::string& path) {
  const Json* found = item.find(name);
  if (found == nullptr || found->kind != kind) {
    fail(ErrorCode::corrupt_file, "{}: an entry of \"data\" has {} as its {}, expected {}", path,
         found == nullptr ? "nothing" : io::described(*found), quoted(name),
         kind == Json::Kind::string ? "text" : "a whole number");
  }
  return *found;
}

std::string span_of(const DataFile& file) {
  return fmt::format("{} rows, {} to {}", file.rows, file.first, file.last);
}

}  // namespace

std::vector<DataFile> data_files(std::span<const tables::Bars> bars) {
  std::vector<DataFile> files;
  tables::Ticks first = 0, last = 0;  // of the file at the end of the list
  for (const tables::Bars& symbol : bars) {
    if (symbol.size() == 0) continue;
    if (files.empty() || files.back().file != symbol.file) {
      files.push_back({.file = symbol.file, .sha256 = symbol.file_sha256});
    }
    DataFile& file = files.back();
    if (file.rows == 0 || symbol.times.front() < first) {
      first = symbol.times.front();
      file.first = symbol.time_text(0);
    }
    if (file.rows == 0 || symbol.times.back() > last) {
      last = symbol.times.back();
      file.last = symbol.time_text(symbol.size() - 1);
    }
    file.rows += symbol.size();
  }
  return files;
}

void write_data_files(io::JsonWriter& json, std::span<const DataFile> files) {
  json.begin_array();
  for (const DataFile& file : files) {
    json.begin_object()
        .field("file", file.file)
        .field("sha256", file.sha256)
        .field("rows", static_cast<std::uint64_t>(file.rows))
        .field("first", file.first)
        .field("last", file.last)
        .end_object();
  }
  json.end_array();
}

std::vector<DataFile> read_data_files(const Json& results, const std::string& path) {
  const Json* data = results.find("data");
  if (data == nullptr) return {};  // from an older version
  if (data->kind != Json::Kind::array) {
    fail(ErrorCode::corrupt_file, "{}: \"data\" is {}, expected a list", path,
         io::described(*data));
  }
  std::vector<DataFile> files;
  for (const Json& item : data->array) {
    const std::int64_t rows = member(item, "rows", Json::Kind::integer, path).integer;
    files.push_back({.file = member(item, "file", Json::Kind::string, path).string,
                     .sha256 = member(item, "sha256", Json::Kind::string, path).string,
                     .rows = static_cast<std::size_t>(std::max<std::int64_t>(rows, 0)),
                     .first = member(item, "first", Json::Kind::string, path).string,
                     .last = member(item, "last", Json::Kind::string, path).string});
  }
  return files;
}

std::vector<std::string> data_changes(std::span<const DataFile> earlier,
                                      std::span<const DataFile> now, const std::string& origin) {
  std::vector<std::string> changes;
  if (earlier.empty()) return changes;
  for (const DataFile& file : now) {
    const DataFile* before = find_file(earlier, file.file);
    if (before == nullptr) {
      changes.push_back(fmt::format("{}: is new, {} was made without it", file.file, origin));
    } else if (before->sha256 != file.sha256) {
      changes.push_back(fmt::format(
          "{}: is not the file {} was made from: {} then, {} now; the results are those of now",
          file.file, origin, span_of(*before), span_of(file)));
    }
  }
  for (const DataFile& file : earlier) {
    if (find_file(now, file.file) != nullptr) continue;
    changes.push_back(fmt::format("{}: is gone, {} was made with it", file.file, origin));
  }
  return changes;
}

}  // namespace toto::backtest
