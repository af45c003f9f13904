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

Rotary::Rotary(int head_dim) : head_dim_(head_dim) {
  for (int i = 0; i < head_dim; i += 2) {
    // Both are float32 buffers in the reference, even in a float64 model.
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    const float power = static_cast<float>(elementary::exp(exponent * elementary::log(10000.0)));
    const float scale = (static_cast<float>(i) + static_cast<float>(0.4 * head_dim)) /
                        static_cast<float>(1.4 * head_dim);
    turns_.push_back(static_cast<double>(1.0f / power) / (2 * std::numbers::pi));
    log_scales_.push_back(elementary::log(static_cast<double>(scale)));
  }
}

void Rotary::factors(int position, int exponent, float* dst) const noexcept {
  constexpr double kScaleBase = 512;
  const int half = head_dim_ / 2;
  float* query_a = dst;
  float* query_b = dst + head_dim_;
  float* key_a = dst + 2 * head_dim_;
  float* key_b = dst + 3 * head_dim_;
  const double inverse_root = 1 / std::sqrt(static_cast<double>(head_dim_));
  for (int d = 0; d < head_dim_; ++d) {
    const double turn = position * turns_[d / 2];  // frequencies interleaved in pairs
    const double cosine = cos_turns(turn);
    const double sine = cos_turns(turn - 0.25) * (d % 2 == 0 ? -1 : 1);
    const double power = exponent / kScaleBase * log_scales_[d % half];  // scales concatenated
    const double query_scale = elementary::exp(power) * inverse_root;
    const double key_scale = elementary::exp(-power);
    query_a[d] = static_cast<float>(cosine * query_scale);
    query_b[d] = static_cast<float>(sine * query_scale);
    key_a[d] = static_cast<float>(cosine * key_scale);
    key_b[d] = static_cast<float>(sine * key_scale);
  }
}

}  // namespace toto
