#include "model/rotary.h"

#include <cmath>
#include <numbers>

#include "base/elementary.h"

namespace toto {
namespace {

// cos(2 pi turn), reduced to a quarter turn; the C library's cos differs between CPUs.
double cos_turns(double turn) noexcept {
  const double part = std::fabs(turn - std::floor(turn + 0.5));  // [0, 1/2]
  return part <= 0.25 ? elementary::sin_quarter(1 - 4 * part)
                      : -elementary::sin_quarter(4 * part - 1);
}

}  // namespace

Rotary::Rotary(const RotaryRule& rule) : rule_(rule) {
  const int dims = rule.dims;
  for (int i = 0; i < dims; i += 2) {
    double frequency = elementary::exp(-double(i) / dims * elementary::log(10000.0));
    double scale = (i + 0.4 * dims) / (1.4 * dims);
    if (rule.float32_tables) {  // the reference's buffers, even in a float64 model
      const float exponent = static_cast<float>(i) / static_cast<float>(dims);
      const float power = static_cast<float>(elementary::exp(exponent * elementary::log(10000.0)));
      frequency = 1.0f / power;
      scale =
          (static_cast<float>(i) + static_cast<float>(0.4 * dims)) / static_cast<float>(1.4 * dims);
    }
    turns_.push_back(frequency / (2 * std::numbers::pi));
    log_scales_.push_back(rule.has_xpos ? elementary::log(scale) : 0);
  }
}

void Rotary::factors(int position, int exponent, float* dst) const noexcept {
  const int dims = rule_.dims, half = dims / 2;
  float* query_a = dst;
  float* query_b = dst + dims;
  float* key_a = dst + 2 * dims;
  float* key_b = dst + 3 * dims;
  for (int d = 0; d < dims; ++d) {
    const double turn = position * turns_[d / 2];  // frequencies interleaved in pairs
    const double cosine = cos_turns(turn);
    const double sine = cos_turns(turn - 0.25) * (d % 2 == 0 ? -1 : 1);
    const double power =
        exponent / rule_.xpos_base * log_scales_[rule_.paired_scales ? d / 2 : d % half];
    const double query_scale = elementary::exp(power) * rule_.query_factor;
    const double key_scale = elementary::exp(-power);
    query_a[d] = static_cast<float>(cosine * query_scale);
    query_b[d] = static_cast<float>(sine * query_scale);
    key_a[d] = static_cast<float>(cosine * key_scale);
    key_b[d] = static_cast<float>(sine * key_scale);
  }
}

}  // namespace toto
