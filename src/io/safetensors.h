// The safetensors container. Files are untrusted: every header field is checked before use
// (tests/io/safetensors_test.cc lists what is refused, and how).
//
// Tensor data is read with pread, not mapped: a file truncated or replaced while in use gives a
// short read and an error instead of SIGBUS, and memory holds only the tensor being converted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/regular_file.h"

namespace toto::io {

class Sha256;

enum class TensorType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };
std::size_t size_of(TensorType type);
std::string_view name_of(TensorType type);  // "F32", "BF16", ...

struct TensorInfo {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // byte offset in the file
  std::uint64_t bytes = 0;
  std::uint64_t num_elements() const;  // the product of `shape`
};

// Bytes of the tensor's data; empty if a dimension is negative or the product overflows 64 bits.
std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape);

// "[768, 64]"
std::string shape_text(std::span<const std::int64_t> shape);

// One open file. Movable. Reading is const and thread-safe.
class Safetensors {
 public:
  // Error: corrupt_file, not_found, or unsupported for a tensor type this engine does not read.
  static Safetensors open(const std::string& path);
  // Parses the header only, from a buffer that holds at least the header of a file of `file_size`
  // bytes. `path` is for messages; tensor data cannot be read from the result.
  static Safetensors parse_header(std::string_view prefix, std::uint64_t file_size,
                                  const std::string& path);

  const std::string& path() const { return path_; }
  const RegularFile& file() const { return file_; }
  std::uint64_t file_size() const { return file_size_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in file order
  const TensorInfo* find(std::string_view name) const;                 // nullptr if absent
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  const std::string* metadata(std::string_view key) const;  // nullptr if absent

  // Elements [first, first + dst.size()) converted to float. F32, F16 and BF16 only. NaN and Inf
  // are refused with the tensor's name and index: a network with one computes only NaN.
  void read_floats(const TensorInfo& tensor, std::uint64_t first, std::span<float> dst) const;
  // Raw bytes of the whole tensor; dst.size() must equal tensor.bytes.
  void read_bytes(const TensorInfo& tensor, std::span<std::byte> dst) const;
  // Adds the whole file, header included, to a hash.
  void hash_into(Sha256& hash) const;

 private:
  Safetensors() = default;
  void read_exactly(std::uint64_t offset, std::span<std::byte> dst, std::string_view part) const;

  std::string path_;
  RegularFile file_;
  std::uint64_t file_size_ = 0;
  std::vector<TensorInfo> tensors_;
  std::vector<std::size_t> by_name_;  // positions in tensors_
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// Writes a file tensor by tensor, so memory never holds a whole model. Declare all tensors first,
// then append their data in the declared order. Names, shapes and sizes are checked by the reader's
// own code.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path,
                    std::vector<TensorInfo> tensors,  // begin and bytes are set here
                    const std::vector<std::pair<std::string, std::string>>& metadata);
  ~SafetensorsWriter();
  void append(const void* data, std::size_t bytes);
  void commit();  // atomic; refuses if the data does not fill what was declared

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The weights of a model folder: model.safetensors, or the shards that model.safetensors.index.json
// lists (plain file names only, no folders). Reading is const and thread-safe.
class WeightFiles {
 public:
  static WeightFiles open(const std::string& folder);
  struct StoredTensor {
    const Safetensors* file;
    const TensorInfo* tensor;
  };
  std::vector<StoredTensor> entries() const;  // valid as long as this object
  std::uint64_t total_bytes() const;          // of all files
  std::string sha256() const;                 // of the files concatenated in index order
  const std::string* metadata(std::string_view key) const;  // of the first file
  const std::vector<Safetensors>& files() const { return files_; }

 private:
  std::vector<Safetensors> files_;
};

}  // namespace toto::io
