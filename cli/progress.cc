#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace toto::cli {
namespace {

constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(1);
constexpr std::size_t kLineWidth = 79;  // a wrapped line cannot be cleared
constexpr std::size_t kMinBarWidth = 8, kMaxBarWidth = 30;
constexpr const char* kClearLine = "\r\x1b[K";

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string duration(double seconds) {
  const long long whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

// ", 12.5/s, 3 min 20 s left"
std::string pace(std::uint64_t done, std::uint64_t total, double seconds) {
  if (done == 0 || seconds <= 0) return {};
  const double rate = static_cast<double>(done) / seconds;
  std::string text = rate < 100 ? fmt::format(", {:.1f}/s", rate) : fmt::format(", {:.0f}/s", rate);
  if (done < total) {
    text += fmt::format(", {} left", duration(static_cast<double>(total - done) / rate));
  }
  return text;
}

}  // namespace

Progress::Progress(std::string job, std::string unit, bool always)
    : job_(std::move(job)),
      unit_(std::move(unit)),
      form_(Form::none),
      start_(std::chrono::steady_clock::now()) {
  if (::isatty(STDERR_FILENO) != 0) {
    form_ = Form::bar;
  } else if (always) {
    form_ = Form::lines;
  }
}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (form_ == Form::bar && drawn_) print(kClearLine);
  drawn_ = false;
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (form_ == Form::none || total == 0 || finished_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_ && done < total) return;
  drawn_ = true;
  finished_ = done >= total;
  const std::uint64_t percent = done * 100 / total;
  const std::string count =
      fmt::format("{} %, {} of {} {}{}", percent, done, total, unit_,
                  pace(done, total, std::chrono::duration<double>(now - start_).count()));
  if (form_ == Form::lines) {
    next_ = now + kLineInterval;
    print(fmt::format("{}: {}\n", job_, count));
    return;
  }
  next_ = now + kBarInterval;
  const std::size_t text = job_.size() + count.size() + 4;  // two blanks and two brackets
  const std::size_t room = kLineWidth > text ? kLineWidth - text : 0;
  const std::size_t width = std::clamp(room, kMinBarWidth, kMaxBarWidth);
  const std::size_t filled = done * width / total;
  print(fmt::format("{}{} [{:#<{}}{:.<{}}] {}", kClearLine, job_, "", filled, "", width - filled,
                    count));
}

}  // namespace toto::cli
