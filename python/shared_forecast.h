// A forecast held by an answer and by the arrays made of it.
#pragma once

#include <memory>

#include "toto/toto.h"

namespace toto::python {

// When the last holder lets go, the forecast waits, emptied, for the next answer: its memory is
// neither given to the system nor taken from it again between two calls of a kind, which costs
// more than the rest of a call. Not much is kept, and only what small answers used. With the
// interpreter's lock.
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
