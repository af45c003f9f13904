// Parses and checks the specifications of `--point`.
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "forecast/summary.h"

namespace toto {
namespace {

using Kind = Point::Kind;

struct Form {
  Kind kind;
  std::string_view name;
  int num_values;
  std::string_view usage;
};

// A name must come before its own prefixes.
constexpr std::array<Form, 10> kForms = {{
    {Kind::mean, "mean", 0, "mean"},
    {Kind::median, "median", 0, "median"},
    {Kind::quantile_plus_std, "quantile_plus_std", 2, "quantile_plus_std_Q_C"},
    {Kind::quantile, "quantile", 1, "quantile_Q"},
    {Kind::trimmed_mean, "trimmed_mean", 1, "trimmed_mean_P"},
    {Kind::lower_trimmed_mean, "lower_trimmed_mean", 1, "lower_trimmed_mean_P"},
    {Kind::upper_trimmed_mean, "upper_trimmed_mean", 1, "upper_trimmed_mean_P"},
    {Kind::mean_minus_std, "mean_minus_std", 1, "mean_minus_std_C"},
    {Kind::mean_plus_std, "mean_plus_std", 1, "mean_plus_std_C"},
    {Kind::mean_quantile_mix, "mean_quantile_mix", 2, "mean_quantile_mix_Q_W"},
}};

// The row of a kind, or null.
const Form* form_of(Kind kind) noexcept {
  for (const Form& form : kForms) {
    if (form.kind == kind) return &form;
  }
  return nullptr;
}

// Untrusted text, made short and printable for a message.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string result = "'";
  for (const char c : text.substr(0, kMost)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > kMost ? "...'" : "'");
}

// A finite number that fills the whole text.
double parse_number(std::string_view spec, std::string_view text, const Form& form) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    fail(ErrorCode::invalid_argument, "point {}: {} is not a number; expected {}", shown(spec),
         shown(text), form.usage);
  }
  return value;
}

// Kinds whose number is a share of the probability.
bool is_share(Kind kind) noexcept {
  return kind == Kind::trimmed_mean || kind == Kind::lower_trimmed_mean ||
         kind == Kind::upper_trimmed_mean;
}

// Kinds whose number counts standard deviations.
bool is_count(Kind kind) noexcept {
  return kind == Kind::mean_minus_std || kind == Kind::mean_plus_std;
}

// `written` returns the point as the user wrote it. It is called for errors only, because a
// forecast must not allocate.
template <typename Written>
void check(const Point& point, const Written& written) {
  const Form* form = form_of(point.kind);
  if (form == nullptr) {
    fail(ErrorCode::invalid_argument, "point: unknown kind {}; expected 0 to {}",
         static_cast<int>(point.kind), kForms.size() - 1);
  }
  if (form->num_values == 0) return;
  if (is_count(point.kind)) {
    if (!(point.a >= 0 && std::isfinite(point.a))) {
      fail(ErrorCode::invalid_argument,
           "point {}: {} standard deviations; expected zero or more, the sign is in the name",
           shown(written()), point.a);
    }
  } else if (is_share(point.kind)) {
    const double limit = point.kind == Kind::trimmed_mean ? 0.5 : 1.0;
    if (!(point.a >= 0 && point.a < limit)) {
      fail(ErrorCode::invalid_argument,
           "point {}: a share of {} cut from {} {}; expected at least 0 and less than {} (a number "
           "above 1 is a percentage)",
           shown(written()), point.a, limit < 1 ? "each end" : "one end",
           point.a >= limit ? "leaves nothing" : "makes no sense", limit);
    }
  } else if (!(point.a > 0 && point.a < 1)) {
    fail(ErrorCode::invalid_argument,
         "point {}: the level is {}; expected a level between 0 and 1, both excluded (a number "
         "above 1 is a percentage)",
         shown(written()), point.a);
  }
  if (point.kind == Kind::mean_quantile_mix && !(point.b >= 0 && point.b <= 1)) {
    fail(ErrorCode::invalid_argument,
         "point {}: the mean's weight is {}; expected a weight from 0 to 1", shown(written()),
         point.b);
  }
  if (point.kind == Kind::quantile_plus_std && !std::isfinite(point.b)) {
    fail(ErrorCode::invalid_argument,
         "point {}: {} standard deviations; expected a finite number of them", shown(written()),
         point.b);
  }
}

}  // namespace

void check_point(const Point& point) {
  check(point, [&] { return name_of(point); });
}

Point parse_point(std::string_view spec) {
  for (const Form& form : kForms) {
    if (!spec.starts_with(form.name)) continue;
    std::string_view rest = spec.substr(form.name.size());
    if (form.num_values == 0) {
      if (rest.empty()) return {.kind = form.kind};
      continue;
    }
    if (!rest.starts_with('_')) continue;
    rest.remove_prefix(1);
    Point point{.kind = form.kind};
    if (form.num_values == 2) {
      const std::size_t split = rest.find('_');
      if (split == std::string_view::npos) {
        fail(ErrorCode::invalid_argument, "point {}: one number found; expected two, {}",
             shown(spec), form.usage);
      }
      point.b = parse_number(spec, rest.substr(split + 1), form);
      rest = rest.substr(0, split);
    }
    point.a = parse_number(spec, rest, form);
    if (!is_count(form.kind) && point.a > 1) point.a /= 100;
    check(point, [&] { return spec; });
    return point;
  }
  fail(ErrorCode::invalid_argument,
       "point {}: unknown point; expected one of mean, median, quantile_Q, trimmed_mean_P, "
       "lower_trimmed_mean_P, upper_trimmed_mean_P, mean_minus_std_C, mean_plus_std_C, "
       "mean_quantile_mix_Q_W, quantile_plus_std_Q_C",
       shown(spec));
}

std::string name_of(const Point& point) {
  const Form* form = form_of(point.kind);
  if (form == nullptr) return "unknown";
  if (form->num_values == 0) return std::string(form->name);
  if (form->num_values == 1) return fmt::format("{}_{}", form->name, point.a);
  return fmt::format("{}_{}_{}", form->name, point.a, point.b);
}

}  // namespace toto
