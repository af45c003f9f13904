#include "settings/engine_settings.h"

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"

namespace toto::settings {
namespace {

using EngineRows = Rows<EngineSettings>;
using io::Json;

constexpr unsigned kCommon = kFlag | kFile | kPython;

bool is_filled(std::string_view text) { return !text.empty(); }

void set_logs(EngineSettings& settings, const Json& topics) {
  for (const Json& topic : topics.array) {
    if (topic.string == "plans") continue;
    fail(ErrorCode::invalid_argument, "unknown topic {}; what can be logged is: plans",
         quoted(topic.string));
  }
  settings.log_plans = true;
}

std::vector<EngineField> engine_rows() {
  constexpr double kMostPlans = 1'000'000;
  std::vector<EngineField> rows;
  rows.push_back(
      EngineRows::text<&EngineSettings::model>("model")
          .words("M", "folder, bundled model or owner/name of the local Hugging Face cache")
          .at(kCommon)
          .from({"TOTO_MODEL_ID"}));
  rows.push_back(
      EngineRows::named<[](auto& s) -> auto& { return s.engine.mode; }, parse_mode>("mode")
          .words("MODE", "reference, default, reduce-overhead or max-autotune")
          .at(kCommon)
          .from({"TOTO_COMPILE_MODE", "TORCH_COMPILE_MODE"}));
  rows.push_back(EngineRows::toggle<&EngineSettings::disable_compile>("disable_compile")
                     .words({}, "1: roll back to reference mode")
                     .at(kFile)
                     .from({"TOTO_DISABLE_COMPILE"}));
  rows.push_back(EngineRows::toggle<&EngineSettings::compile>("compile")
                     .words({}, "0: reference mode; 1 leaves the mode to the other settings")
                     .at(kFile)
                     .from({"TOTO_COMPILE"}));
  rows.push_back(EngineRows::text<&EngineSettings::backend>("backend")
                     .words({}, "accepted without effect: the kernels are always ours")
                     .at(kFile)
                     .from({"TOTO_COMPILE_BACKEND"}));
  rows.back().choices = {"native", "inductor"};
  rows.push_back(
      EngineRows::named<[](auto& s) -> auto& { return s.engine.dtype; }, parse_dtype>("dtype")
          .words("T", "type of the stored weights: f32, f16, bf16 or int8; f64 in reference mode",
                 "f16, bf16 and int8 take half, half and a quarter of the memory and change the "
                 "bundled model's quantile loss by less than 0.5 %")
          .at(kCommon)
          .from({"TOTO_DTYPE"}));
  rows.push_back(EngineRows::number<[](auto& s) -> auto& { return s.engine.threads; }>(
                     "threads", 1, 4.0 * usable_cores(),
                     [](const EngineSettings& s) {
                       return s.engine.threads > 0 ? io::json_number(s.engine.threads) : Json();
                     })
                     .words("N", "threads, at most four per usable physical core")
                     .at(kCommon)
                     .from({"TOTO_THREADS"})
                     .or_else("the usable physical cores"));
  rows.push_back(
      EngineRows::named<[](auto& s) -> auto& { return s.engine.isa; }, parse_available_isa>("isa")
          .words("ISA", "instruction set: auto, reference, avx2 or avx512")
          .at(kCommon)
          .from({"TOTO_ISA"}));
  // As text: a seed may be beyond what JSON readers keep exactly.
  rows.push_back(
      EngineRows::number<&EngineSettings::seed>(
          "seed", 0, 0x1p64,
          [](const EngineSettings& s) { return io::json_text(fmt::format("{}", s.seed)); })
          .words("S", "random seed")
          .at(kCommon)
          .from({"TOTO_SEED"}));
  rows.push_back(EngineRows::number<[](auto& s) -> auto& { return s.engine.plan_cache_size; }>(
                     "plan_cache_size", 1, kMostPlans)
                     .words("N", "plans kept in modes reduce-overhead and max-autotune")
                     .at(kCommon)
                     .from({"TORCHDYNAMO_CACHE_SIZE_LIMIT", "TORCHDYNAMO_RECOMPILE_LIMIT"}));
  rows.push_back(
      EngineRows::toggle<&EngineSettings::capture_scalar_outputs>("capture_scalar_outputs")
          .words({}, "accepted without effect: no scalar is read back")
          .at(kFile)
          .from({"TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS"}));
  rows.push_back(
      EngineRows::text<&EngineSettings::cache_dir>("cache_dir")
          .words("DIR", "folder of packed weights, tuned schedules and backtest forecasts")
          .at(kFlag | kFile)
          .from({"TOTO_CACHE_DIR"})
          .only(is_filled, "a folder; --no-cache keeps nothing")
          .or_else("$XDG_CACHE_HOME/toto, else ~/.cache/toto"));
  rows.push_back(EngineRows::toggle<&EngineSettings::no_cache>("no_cache")
                     .words({}, "neither read nor write the cache folder")
                     .at(kFlag | kFile));
  rows.push_back(
      {{.name = "no_kv_cache",
        .type = Type::toggle,
        .doors = kFlag | kFile,
        .help = "run the reference's uncached path; needs --mode reference"},
       [](EngineSettings& s, const Json& value) { s.engine.use_kv_cache = !value.boolean; },
       [](const EngineSettings& s) { return io::json_toggle(!s.engine.use_kv_cache); }});
  rows.push_back(
      {{.name = "logs",
        .type = Type::names,
        .doors = kFile,
        .nullable = true,
        .help = "plans: log every plan made and where the weights came from",
        .variables = {"TOTO_LOGS"},
        .otherwise = "nothing"},
       set_logs,
       [](const EngineSettings& s) { return io::json_text(s.log_plans ? "plans" : "nothing"); }});
  return table(std::move(rows));
}

}  // namespace

std::span<const EngineField> engine_fields() {
  static const std::vector<EngineField> fields = engine_rows();
  return fields;
}

Isa parse_available_isa(std::string_view name) {
  const Isa isa = parse_isa(name);
  if (isa_available(isa)) return isa;
  fail(ErrorCode::invalid_argument, "this CPU does not have {}; its best is {}: use auto", name,
       name_of(best_isa()));
}

}  // namespace toto::settings
