// Names of the public choices, as the command line, the wire and Python spell them.
#include <array>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"

namespace toto {
namespace {

template <typename T, std::size_t N>
using Names = std::array<std::pair<std::string_view, T>, N>;

constexpr Names<Mode, 4> kModes = {{{"reference", Mode::reference},
                                    {"default", Mode::standard},
                                    {"reduce-overhead", Mode::reduce_overhead},
                                    {"max-autotune", Mode::max_autotune}}};
constexpr Names<DType, 4> kDTypes = {
    {{"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}, {"int8", DType::int8}}};
constexpr Names<Isa, 4> kIsas = {{{"auto", Isa::automatic},
                                  {"reference", Isa::reference},
                                  {"avx2", Isa::avx2},
                                  {"avx512", Isa::avx512}}};
constexpr Names<Decode, 2> kDecodes = {{{"sample", Decode::sample}, {"mean", Decode::mean}}};
constexpr Names<Missing, 3> kMissings = {
    {{"ffill", Missing::ffill}, {"linear", Missing::linear}, {"mask", Missing::mask}}};

template <typename T, std::size_t N>
T find(const Names<T, N>& names, std::string_view name, std::string_view what) {
  std::array<std::string_view, N> choices;
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i].first == name) return names[i].second;
    choices[i] = names[i].first;
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
std::string_view name_of(Isa isa) noexcept { return name_in(kIsas, isa); }
Mode parse_mode(std::string_view name) { return find(kModes, name, "mode"); }
DType parse_dtype(std::string_view name) { return find(kDTypes, name, "dtype"); }
Isa parse_isa(std::string_view name) { return find(kIsas, name, "isa"); }
Decode parse_decode(std::string_view name) { return find(kDecodes, name, "decode"); }
Missing parse_missing(std::string_view name) { return find(kMissings, name, "missing-value rule"); }

}  // namespace toto
