#include "cli/forecast/forecast_run.h"

#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "cli/forecast/forecast_charts.h"
#include "cli/interrupt.h"

namespace toto::cli {
namespace {

// Enough short series that every pass of the network is full; of long ones a few are enough.
constexpr std::size_t kGroupSeries = 256;
constexpr std::size_t kGroupValues = std::size_t{1} << 22;
constexpr double kGroupAnswerBytes = 64.0 * 1024 * 1024;

void check_memory(double bytes) {
  if (bytes <= kGroupAnswerBytes) return;  // not worth asking the system
  const auto available = static_cast<double>(available_memory());
  if (bytes <= available) return;
  fail(ErrorCode::out_of_memory,
       "the answer needs {:.0f} MB and {:.0f} MB are free; forecast fewer steps or variates, or "
       "leave out --emit samples",
       bytes / 1e6, available / 1e6);
}

}  // namespace

ForecastRun::ForecastRun(const ForecastRequest& request, const Engine& engine, std::size_t num_jobs,
                         TakeForecast take)
    : request_(request),
      engine_(engine),
      num_jobs_(num_jobs),
      take_(std::move(take)),
      options_(request.options),
      progress_("forecast", "series", request.progress) {
  timings_.load = timings_.total = engine.timings().load;
  options_.cancelled = InterruptGuard::interrupted;
  options_.progress = [this](int done, int) {
    progress_.update(num_done_ + static_cast<std::size_t>(done), num_jobs_);
  };
}

bool ForecastRun::group_is_full(const ForecastJob& next) const {
  if (jobs_.empty()) return false;
  const auto variates = static_cast<std::size_t>(next.series.num_variates);
  return jobs_.size() == kGroupSeries || num_values_ + next.series.values.size() > kGroupValues ||
         answer_bytes(static_cast<double>(num_variates_ + variates), options_,
                      engine_.model().facts) > kGroupAnswerBytes;
}

void ForecastRun::add(ForecastJob job) {
  InterruptGuard::check();
  if (group_is_full(job)) forecast_group();
  num_values_ += job.series.values.size();
  num_variates_ += static_cast<std::size_t>(job.series.num_variates);
  batch_.push_back(std::move(job.series));
  jobs_.push_back(std::move(job));
}

void ForecastRun::finish() {
  if (!jobs_.empty()) forecast_group();
  InterruptGuard::check();
}

void ForecastRun::forecast_group() {
  // The levels that only charts need are not computed for series that no chart shows.
  if (num_parts_done_ >= kMaxCharts) options_.quantiles.resize(request_.num_quantiles);
  check_memory(answer_bytes(static_cast<double>(num_variates_), options_, engine_.model().facts));
  engine_.forecast_into(batch_, options_, answers_);
  const Timings timings = engine_.timings();
  timings_.prefill += timings.prefill;
  timings_.decode += timings.decode;
  timings_.total += timings.total;
  progress_.clear();
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    take_(jobs_[i], answers_[i]);
    num_parts_done_ += jobs_[i].parts.size();
  }
  num_done_ += jobs_.size();
  jobs_.clear();
  batch_.clear();
  num_values_ = num_variates_ = 0;
}

}  // namespace toto::cli
