// Runs a backtest as `toto backtest` does. Its files are returned as text; totocpp/backtest.py
// makes frames of them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "backtest/backtest_report.h"
#include "backtest/backtest_run.h"
#include "backtest/signal.h"
#include "bindings.h"
#include "engine_handle.h"
#include "io/csv.h"
#include "io/json.h"

namespace toto::python {
namespace {

using backtest::SpecField;

// Bars in memory: name for messages, symbol of a table without such a column, CSV text.
using BarTable = std::tuple<std::string, std::string, nb::bytes>;

enum class Job { backtest, signal };

backtest::BacktestSpec spec_of(const std::string& settings, backtest::BacktestSpec engine,
                               Job job) {
  io::Json json = io::parse_json(settings, "settings");
  for (const SpecField& field : backtest::spec_fields()) {
    for (io::Json::Member& member : json.object) {
      if (member.first == python_name(field.name)) member.first = field.name;
    }
  }
  auto given = backtest::settings_of(json, {}, ErrorCode::invalid_argument);
  for (backtest::GivenSetting& item : given) item.origin = python_name(item.field->name);
  if (job == Job::signal) backtest::require_signal_settings(given);
  return backtest::read_spec(given, std::move(engine));
}

tables::BarFiles bars_of(const std::vector<std::string>& files,
                         const std::vector<BarTable>& tables) {
  if (tables.empty()) return tables::read_all_bars(files);
  tables::BarFiles all;
  for (const auto& [name, symbol, bytes] : tables) {
    io::MemorySource source(std::string_view(bytes.c_str(), bytes.size()));
    tables::add_bars(source, name, symbol, all);
  }
  tables::require_bars(all);
  return all;
}

backtest::BacktestSpec spec_of(const Engine& engine, const std::vector<std::string>& files,
                               const std::vector<BarTable>& tables, const std::string& settings,
                               const std::string& model, Job job) {
  backtest::BacktestSpec spec;
  spec.set_engine(model, engine.options());
  spec = spec_of(settings, std::move(spec), job);
  spec.data = files;
  for (const BarTable& table : tables) spec.data.push_back(std::get<0>(table));
  return spec;
}

// `files` are read if there are no tables. `settings` is a JSON object, `model` the caller's name
// for the model.
nb::dict backtest_of(EngineHandle& handle, const std::vector<std::string>& files,
                     const std::vector<BarTable>& tables, const std::string& settings,
                     const std::string& model, bool report) {
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> texts;
  handle.run([&](const Engine& engine, auto cancelled) {
    backtest::BacktestSpec spec = spec_of(engine, files, tables, settings, model, Job::backtest);
    tables::BarFiles data = bars_of(files, tables);
    std::optional<tables::Bars> benchmark =
        tables.empty() ? backtest::read_benchmark(spec) : backtest::take_benchmark(spec, data);
    if (!tables.empty() && benchmark) std::erase(spec.data, spec.benchmark);
    auto prepared = backtest::prepare(std::move(spec), std::move(data));
    prepared.benchmark = std::move(benchmark);
    prepared.require_symbols();
    const backtest::BacktestRun run = backtest::run(prepared, engine, engine.model().name,
                                                    {.cancelled = std::move(cancelled),
                                                     .cache_folder = engine.options().cache.folder,
                                                     .report = report});
    run.require_proof();
    warnings = prepared.warnings();
    warnings.insert(warnings.end(), run.warnings.begin(), run.warnings.end());
    texts.emplace_back("lookahead", backtest::lookahead_sentence(run.lookahead));
    for (const backtest::RunFile& file : backtest::run_files()) {
      auto& [name, text] = texts.emplace_back(file.name.substr(0, file.name.find('.')), "");
      file.write(run, [&text](std::string_view part) { text += part; });
    }
    return true;
  });
  nb::dict result;
  for (const auto& [name, text] : texts) result[name.c_str()] = text;
  result["warnings"] = warnings;
  return result;
}

// The JSON of `toto signal`, and the warnings.
std::tuple<std::string, std::vector<std::string>> signal_of(EngineHandle& handle,
                                                            const std::vector<std::string>& files,
                                                            const std::vector<BarTable>& tables,
                                                            const std::string& settings,
                                                            const std::string& model) {
  std::string json;
  std::vector<std::string> warnings;
  handle.run([&](const Engine& engine, auto cancelled) {
    const auto prepared = backtest::prepare_signal(
        spec_of(engine, files, tables, settings, model, Job::signal), bars_of(files, tables));
    prepared.require_symbols();
    backtest::SignalRun run = backtest::run_signal(
        prepared, engine, engine.model().name,
        {.cancelled = std::move(cancelled), .cache_folder = engine.options().cache.folder});
    json = std::move(run.json);
    warnings = prepared.warnings();
    warnings.insert(warnings.end(), run.warnings.begin(), run.warnings.end());
    return true;
  });
  return {std::move(json), std::move(warnings)};
}

}  // namespace

void bind_backtest(nb::module_& module) {
  module.def("backtest", &backtest_of, nb::arg("engine"), nb::arg("files"), nb::arg("tables"),
             nb::arg("settings"), nb::arg("model"), nb::arg("report"),
             nb::sig("def backtest(engine: Engine, files: list[str], tables: list[tuple[str, str, "
                     "bytes]], settings: str, model: str, report: bool) "
                     "-> dict[str, typing.Any]"));
  module.def("signal", &signal_of, nb::arg("engine"), nb::arg("files"), nb::arg("tables"),
             nb::arg("settings"), nb::arg("model"),
             nb::sig("def signal(engine: Engine, files: list[str], tables: list[tuple[str, str, "
                     "bytes]], settings: str, model: str) -> tuple[str, list[str]]"));
}

}  // namespace toto::python
