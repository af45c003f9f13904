// Any allocation may fail while files are read and written: the result is an exception, without a
// crash, a leak (checked by the sanitizers) or an incomplete file.
#include <functional>

#include "allocation_hook.h"
#include "base/error.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io_fixture.h"

namespace toto::io {
namespace {

// src/io may throw std::bad_alloc; the engine and the command translate it.
int fail_each_allocation(
    const std::function<void()>& call, const std::function<void()>& check = [] {}) {
  const auto translated = [&call] {
    try {
      call();
    } catch (const std::bad_alloc&) {
      throw Error(ErrorCode::out_of_memory, "out of memory");
    }
  };
  return toto::testing::fail_each_allocation(translated, check);
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
