#include "cache/model_identity.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/error.h"
#include "io/sha256.h"

namespace toto::cache {
namespace {

using std::chrono::nanoseconds;

// File times advance in ticks of the kernel's clock, at most 10 ms; a second change within a tick
// leaves the time unchanged. File systems without nanoseconds (FAT, some network file systems) have
// ticks of up to two seconds, too long to wait for.
constexpr nanoseconds kTick = std::chrono::milliseconds(20);
constexpr nanoseconds kCoarseTick = std::chrono::seconds(2);

constexpr std::uint64_t kSampleBytes = 4096;
constexpr std::uint64_t kNumSamples = 16;

// File times identify the contents; samples are a safeguard against clocks that jump.
void hash_samples(const io::RegularFile& file, io::Sha256& hash) {
  std::vector<std::byte> sample(kSampleBytes);
  const std::uint64_t last = file.size() - std::min(file.size(), kSampleBytes);
  for (std::uint64_t i = 0; i < kNumSamples; ++i) {
    const std::size_t size = file.read_at(last / (kNumSamples - 1) * i, sample);
    hash.update(std::span(sample).first(size));
  }
  hash.update(std::span(sample).first(file.read_at(last, sample)));
}

}  // namespace

ModelIdentity identify(const io::WeightFiles& files) {
  ModelIdentity identity;
  io::Sha256 hash;
  for (const io::Safetensors& weights : files.files()) {
    const io::RegularFile& file = weights.file();
    io::FileStamp stamp = file.stamp();
    const nanoseconds tick = stamp.changed_ns % 1'000'000'000 == 0 ? kCoarseTick : kTick;
    const nanoseconds age =
        std::chrono::system_clock::now().time_since_epoch() - nanoseconds(stamp.changed_ns);
    if (age >= nanoseconds(0) && age < tick) {
      identity.settled = identity.settled && tick == kTick;
      if (tick == kTick) std::this_thread::sleep_for(tick - age);
      stamp = file.stamp();
    }
    identity.text += fmt::format("file {}:{} size {} modified {} changed {}\n", stamp.device,
                                 stamp.inode, stamp.size, stamp.modified_ns, stamp.changed_ns);
    hash_samples(file, hash);
  }
  identity.text += fmt::format("samples {}\n", hash.hex_digest());
  return identity;
}

}  // namespace toto::cache
