// A forecast owned jointly by a result and its arrays.
#pragma once

#include <memory>

#include "toto/toto.h"

namespace toto::python {

// When the last owner is gone, the emptied forecast is kept for the next result: returning its
// memory to the system and getting it again would take longer than the rest of a call. At most 64
// small forecasts (4 MB) are kept. Needs the interpreter's lock.
class SharedForecast {
 public:
  SharedForecast();  // an empty one
  ~SharedForecast();
  SharedForecast(const SharedForecast&) = default;
  SharedForecast& operator=(const SharedForecast&) = delete;

  Forecast& operator*() const { return *forecast_; }
  Forecast* operator->() const { return forecast_.get(); }

 private:
  std::shared_ptr<Forecast> forecast_;
};

}  // namespace toto::python
