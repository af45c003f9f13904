#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "cache/cache_folder.h"
#include "cli/doctor_checks.h"
#include "cli/output.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

// Checks permissions; creates nothing.
Check check_folder(std::string name, const fs::path& folder, Status if_not, std::string advice) {
  Check check{.name = std::move(name), .value = folder.string()};
  try {
    check_writable((folder / "toto-probe").string());
  } catch (const Error& error) {
    check.status = if_not;
    check.value = error.what();
    check.advice = std::move(advice);
  }
  return check;
}

}  // namespace

// The kernels in use, and the reason.
Check check_isa(const Settings& settings) {
  std::string available;
  for (const Isa isa : all_isas()) {
    if (isa_available(isa))
      available += fmt::format("{}{}", available.empty() ? "" : ", ", name_of(isa));
  }
  const bool automatic = settings.engine.isa == Isa::automatic;
  const Isa used = automatic ? best_isa() : settings.engine.isa;
  Check check{.name = "instruction set",
              .value = fmt::format("{}, {}; {} has {}", name_of(used),
                                   automatic ? "the best of this CPU" : settings.origin("isa"),
                                   one_line(cpu_name()), available)};
  if (used == Isa::reference) {
    check.status = Status::warn;
    check.advice = automatic ? "without AVX2 forecasts are right but several times slower"
                             : "use --isa auto: plain C++ is several times slower";
  }
  return check;
}

Check check_threads(const Settings& settings) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int affinity =
      sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  const int cores = usable_cores();
  const int threads = settings.engine.threads == 0 ? cores : settings.engine.threads;
  Check check{.name = "threads",
              .value = fmt::format("{} ({}); {} usable cores, {} CPUs allowed of {} online",
                                   threads, settings.origin("threads"), cores, affinity,
                                   sysconf(_SC_NPROCESSORS_ONLN))};
  if (threads > cores) {
    check.status = Status::warn;
    check.advice =
        fmt::format("use at most {}: more threads than cores wait for each other", cores);
  }
  return check;
}

// Limits set by the shell, the service manager or the container.
Check check_limits() {
  Check check{.name = "limits"};
  const auto describe = [&](int resource, const char* name, double unit, const char* unit_name,
                            double enough, const char* advice) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
    const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
    const double value = static_cast<double>(limit.rlim_cur) / unit;
    check.value += fmt::format("{}{} {}", check.value.empty() ? "" : ", ", name,
                               unlimited ? "unlimited" : fmt::format("{:.0f}{}", value, unit_name));
    if (unlimited || value >= enough) return;
    check.status = Status::warn;
    check.advice += fmt::format("{}{}", check.advice.empty() ? "" : "; ", advice);
  };
  describe(RLIMIT_AS, "address space", 1e6, " MB", 2000,
           "`ulimit -v unlimited`: base-size models and long horizons will not fit");
  describe(RLIMIT_NOFILE, "open files", 1, "", 64, "`ulimit -n 1024`: shards are open together");
  describe(RLIMIT_FSIZE, "file size", 1e6, " MB", 1000,
           "`ulimit -f unlimited`: larger files cannot be written");
  return check;
}

Check check_memory(const std::optional<LoadedEngine>& loaded) {
  constexpr double kEnoughMb = 256;  // far above what forecasts with the bundled model need
  const double available = static_cast<double>(available_memory()) / 1e6;
  Check check{.name = "memory", .value = fmt::format("{:.0f} MB free", available)};
  if (loaded) {
    check.value += fmt::format(", {:.1f} MB taken by the weights",
                               static_cast<double>(loaded->engine.model().weight_bytes) / 1e6);
  }
  if (available < kEnoughMb) {
    check.status = Status::warn;
    check.advice = "free some: long horizons and many samples will be refused";
  }
  return check;
}

Check check_clock() {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  const auto start = steady_clock::now();
  auto tick = start;
  // A stopped clock must not hang the doctor.
  for (int i = 0; i < 1'000'000 && tick == start; ++i) tick = steady_clock::now();
  const auto resolution = std::chrono::duration<double, std::micro>(tick - start).count();
  const auto today = std::chrono::floor<std::chrono::days>(system_clock::now());
  const std::chrono::year_month_day date{today};
  const int year = static_cast<int>(date.year());
  Check check{.name = "clock",
              .value = fmt::format("{:04}-{:02}-{:02}, ticks of {:.2f} us", year,
                                   static_cast<unsigned>(date.month()),
                                   static_cast<unsigned>(date.day()), resolution)};
  if (tick == start || resolution > 1000) {
    check.status = Status::fail;
    check.advice = "the steady clock is too coarse to time a forecast";
  } else if (year < 2024 || year > 2100) {
    check.status = Status::warn;
    check.advice = "the date looks wrong; set the system clock";
  }
  return check;
}

Check check_temporary_folder() {
  constexpr const char* kAdvice = "set TMPDIR to a folder that can be written";
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);  // empty if it is not a folder
  if (!error) return check_folder("temporary folder", folder, Status::fail, kAdvice);
  const char* variable = std::getenv("TMPDIR");
  return {.name = "temporary folder",
          .status = Status::fail,
          .value = fmt::format("{}: {}", variable == nullptr ? "/tmp" : variable, error.message()),
          .advice = kAdvice};
}

// Who else could exchange or remove what the cache folder and its subfolders hold. Another user's
// bytes are never used (io::CacheFile), but the cache is then of no use.
std::vector<std::string> cache_folder_problems(const std::string& cache_dir) {
  std::vector<std::string> problems;
  const auto look = [&](const std::string& path, bool may_be_link) {
    struct stat status{};
    const bool known =
        (may_be_link ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) == 0;
    if (!known) return;
    if (S_ISLNK(status.st_mode)) {
      problems.push_back(fmt::format("{} is a symbolic link and not used: remove it", path));
      return;
    }
    if (status.st_uid != ::geteuid()) {
      problems.push_back(
          fmt::format("{} belongs to user {}: choose a folder of your own", path, status.st_uid));
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0) {
      problems.push_back(fmt::format("other users may write to it: `chmod go-w {}`", path));
    }
  };
  look(cache_dir, true);
  for (const char* name : {"weights", "schedules", "forecasts"}) {
    look(cache_dir + "/" + name, false);
  }
  return problems;
}

// Packed weights only make the next start faster.
Check check_cache_folder(const Settings& settings) {
  constexpr const char* kAdvice = "set TOTO_CACHE_DIR to a folder that can be written";
  if (settings.cache_dir.empty()) {
    return {.name = "cache folder",
            .status = Status::warn,
            .value = "none: HOME is not set",
            .advice = kAdvice};
  }
  Check check = check_folder("cache folder", settings.cache_dir, Status::warn, kAdvice);
  const cache::FolderUsage usage = cache::usage_of(settings.cache_dir);
  check.value += fmt::format(" ({}), {} packed models, {:.1f} MB", settings.origin("cache_dir"),
                             usage.num_entries, static_cast<double>(usage.bytes) / 1e6);
  if (settings.no_cache) {
    check.value += fmt::format(", ignored because of {}", settings.origin("no_cache"));
  }
  std::error_code error;
  const auto warn = [&](const std::string& advice) {
    check.status = Status::warn;
    check.advice += fmt::format("{}{}", check.advice.empty() ? "" : "; ", advice);
  };
  constexpr std::uint64_t kMostRead = 2'000'000'000;  // a few seconds from a disk
  const cache::EntriesCheck found = cache::check_entries(settings.cache_dir, kMostRead);
  if (!found.damaged.empty()) {
    warn(fmt::format("{} of them damaged, rebuilt at the next start: {}", found.damaged.size(),
                     found.damaged.front()));
  }
  if (found.unread_bytes > 0) {
    check.value += fmt::format(", {:.1f} MB of it not compared with their checksums",
                               static_cast<double>(found.unread_bytes) / 1e6);
  }
  for (const std::string& problem : cache_folder_problems(settings.cache_dir)) warn(problem);
  if (fs::exists(settings.cache_dir, error)) {
    constexpr double kEnoughMb = 1000;  // the packed weights of a base-size model are 473
    const fs::space_info space = fs::space(settings.cache_dir, error);
    if (!error) {
      const double free = static_cast<double>(space.available) / 1e6;
      check.value += fmt::format(", {:.0f} MB of disk free", free);
      if (free < kEnoughMb) warn("free some disk space: files that do not fit are not kept");
    }
  }
  return check;
}

}  // namespace toto::cli
