// Whichever allocation fails while files are read and written, the answer is an exception: no
// crash, no leak (the sanitizers watch), no file left half written.
#include <cstdlib>
#include <functional>
#include <new>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io_fixture.h"

namespace {

thread_local int allocations_left = -1;  // -1: they never fail

void* allocate(std::size_t size) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left > 0) --allocations_left;
  return std::malloc(size > 0 ? size : 1);
}

void* allocate_or_throw(std::size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Every form, because sanitizers bring their own of each. Not inlined: g++ would take the malloc
// and free inside for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t size) { return allocate_or_throw(size); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return allocate_or_throw(size); }
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace toto::io {
namespace {

// Calls `call` with its first, second, ... allocation failing, and `check` after each failure,
// until one call needs no more; returns how many failed.
int fail_each_allocation(
    const std::function<void()>& call, const std::function<void()>& check = [] {}) {
  for (int left = 0;; ++left) {
    try {
      allocations_left = left;
      call();
      allocations_left = -1;
      return left;
    } catch (const std::bad_alloc&) {
      allocations_left = -1;
    } catch (const Error& error) {
      allocations_left = -1;
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    }
    check();
  }
}

TEST(IoAllocation, AnyMayFailWhileJsonIsRead) {
  const std::string text =
      R"({"a": [1, 2.5, "text\n", {"b": null}], "a long key, not inline": true})";
  EXPECT_GT(fail_each_allocation([&] { parse_json(text, "text"); }), 10);
}

TEST(IoAllocation, AnyMayFailWhileAModelIsRead) {
  const TemporaryFolder folder;
  std::filesystem::copy(TOTO_SOURCE_DIR "/tests/corpus/safetensors/ok_metadata.safetensors",
                        folder / "model.safetensors");
  const std::string path = folder.path();
  const int failed = fail_each_allocation([&] {
    const WeightFiles weights = WeightFiles::open(path);
    float value = 0;
    weights.files()[0].read_floats(weights.files()[0].tensors()[0], 0, std::span(&value, 1));
    weights.sha256();
  });
  EXPECT_GT(failed, 20);
}

TEST(IoAllocation, AnyMayFailWhileAFileIsWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  put(path, "old contents");
  const std::string text(1000, 'x');
  const int failed = fail_each_allocation([&] { write_file_atomically(path, text); },
                                          [&] {
                                            EXPECT_EQ(contents_of(path), "old contents");
                                            EXPECT_EQ(folder.num_entries(), 1U);
                                          });
  EXPECT_GT(failed, 5);
  EXPECT_EQ(contents_of(path), text);
  EXPECT_EQ(folder.num_entries(), 1U);
}

}  // namespace
}  // namespace toto::io
