// How far a long job has come, how fast it goes and how long it will take: a bar on a terminal,
// lines where stderr goes elsewhere and --progress asks for it, otherwise nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace toto::cli {

class Progress {
 public:
  // "forecast", "series"; `always`: --progress was given.
  Progress(std::string job, std::string unit, bool always);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap to call often: draws ten times a second at most, and at the end.
  void update(std::uint64_t done, std::uint64_t total);
  void clear();  // makes room for other text on the terminal; the next update draws again

 private:
  enum class Form { none, bar, lines };
  std::string job_, unit_;
  Form form_;
  bool drawn_ = false;
  bool finished_ = false;
  std::chrono::steady_clock::time_point start_, next_;
};

}  // namespace toto::cli
