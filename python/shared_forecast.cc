#include "shared_forecast.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace toto::python {
namespace {

std::size_t floats_held(const Forecast& forecast) {
  return forecast.mean.capacity() + forecast.median.capacity() + forecast.point.capacity() +
         forecast.quantiles.capacity() + forecast.samples.capacity();
}

void empty(Forecast& forecast) {
  forecast.id.clear();
  forecast.scale.clear();
  forecast.num_variates = forecast.horizon = forecast.context_length = forecast.num_samples = 0;
  forecast.num_paths = forecast.exact_steps = 0;
  for (auto* const values : {&forecast.mean, &forecast.median, &forecast.point, &forecast.quantiles,
                             &forecast.samples}) {
    values->clear();
  }
}

// Empty forecasts for reuse; the latest is last, since it is most likely in a CPU cache.
class Spares {
 public:
  std::shared_ptr<Forecast> take() {
    if (spares_.empty()) return std::make_shared<Forecast>();
    std::shared_ptr<Forecast> taken = std::move(spares_.back());
    spares_.pop_back();
    floats_ -= floats_held(*taken);
    return taken;
  }

  void keep(std::shared_ptr<Forecast> forecast) {
    const std::size_t more = floats_held(*forecast);
    if (spares_.size() == kMaxSpares || more > kMaxFloats - floats_) return;
    empty(*forecast);
    floats_ += more;
    spares_.push_back(std::move(forecast));
  }

 private:
  static constexpr std::size_t kMaxSpares = 64, kMaxFloats = std::size_t{1} << 20;
  std::vector<std::shared_ptr<Forecast>> spares_;
  std::size_t floats_ = 0;
};

Spares& spares() {
  // Never destroyed: the interpreter may free its last results after the library's statics.
  static Spares& all = *new Spares;
  return all;
}

}  // namespace

SharedForecast::SharedForecast() : forecast_(spares().take()) {}

SharedForecast::~SharedForecast() {
  if (forecast_.use_count() == 1) spares().keep(std::move(forecast_));
}

}  // namespace toto::python
