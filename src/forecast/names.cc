// Names of modes, dtypes and other choices, as used by command line, HTTP and Python.
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "kernels/kernels.h"

namespace toto {
namespace {

template <typename T, std::size_t N>
using Names = std::array<std::pair<std::string_view, T>, N>;

constexpr Names<Mode, 4> kModes = {{{"reference", Mode::reference},
                                    {"default", Mode::standard},
                                    {"reduce-overhead", Mode::reduce_overhead},
                                    {"max-autotune", Mode::max_autotune}}};
constexpr Names<DType, 5> kDTypes = {{{"f32", DType::f32},
                                      {"f64", DType::f64},
                                      {"f16", DType::f16},
                                      {"bf16", DType::bf16},
                                      {"int8", DType::int8}}};
constexpr std::string_view kAutomatic = "auto";
constexpr Names<Decode, 2> kDecodes = {{{"sample", Decode::sample}, {"mean", Decode::mean}}};
constexpr Names<Missing, 3> kMissings = {
    {{"ffill", Missing::ffill}, {"linear", Missing::linear}, {"mask", Missing::mask}}};

// How PyTorch spells some of them.
constexpr Names<std::string_view, 5> kAliases = {{{"float32", "f32"},
                                                  {"float64", "f64"},
                                                  {"float16", "f16"},
                                                  {"bfloat16", "bf16"},
                                                  {"max-autotune-no-cudagraphs", "max-autotune"}}};

std::string_view own_name(std::string_view name) {
  for (const auto& [alias, own] : kAliases) {
    if (alias == name) return own;
  }
  return name;
}

// Error(invalid_argument) lists the choices and suggests the nearest one.
template <typename Table>
auto find(const Table& names, std::string_view name, std::string_view what) {
  std::vector<std::string_view> choices;
  for (const auto& [known, value] : names) {
    if (known == name) return value;
    choices.push_back(known);
  }
  fail(ErrorCode::invalid_argument, "unknown {} \"{}\"; the choices are {}{}", what, name,
       fmt::join(choices, ", "), did_you_mean(name, choices));
}

template <typename T, std::size_t N>
std::string_view name_in(const Names<T, N>& names, T value) noexcept {
  for (const auto& [name, known] : names) {
    if (known == value) return name;
  }
  return "?";
}

}  // namespace

std::string_view version() noexcept { return TOTO_VERSION; }

std::string_view name_of(Mode mode) noexcept { return name_in(kModes, mode); }
std::string_view name_of(DType dtype) noexcept { return name_in(kDTypes, dtype); }
std::string_view name_of(Isa isa) noexcept {
  if (isa == Isa::automatic) return kAutomatic;
  for (const IsaRow& row : isa_rows()) {
    if (row.isa == isa) return row.name;
  }
  return "?";
}
std::string_view name_of(Decode decode) noexcept { return name_in(kDecodes, decode); }
std::string_view name_of(Missing missing) noexcept { return name_in(kMissings, missing); }
Mode parse_mode(std::string_view name) { return find(kModes, own_name(name), "mode"); }
DType parse_dtype(std::string_view name) { return find(kDTypes, own_name(name), "dtype"); }
Isa parse_isa(std::string_view name) {
  std::vector<std::pair<std::string_view, Isa>> names = {{kAutomatic, Isa::automatic}};
  for (const IsaRow& row : isa_rows()) names.emplace_back(row.name, row.isa);
  return find(names, name, "isa");
}
Decode parse_decode(std::string_view name) { return find(kDecodes, name, "decode"); }
Missing parse_missing(std::string_view name) { return find(kMissings, name, "missing-value rule"); }

}  // namespace toto
