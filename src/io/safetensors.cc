#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "io/json.h"

namespace toto::io {
namespace {

constexpr std::uint64_t kPrefix = 8;               // bytes of the length field
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxName = 4096;             // bytes
constexpr std::size_t kMaxDimensions = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct TypeName {
  std::string_view name;
  TensorType type;
  std::size_t size;
};

constexpr std::array<TypeName, 13> kTypes = {{{"F64", TensorType::f64, 8},
                                              {"F32", TensorType::f32, 4},
                                              {"F16", TensorType::f16, 2},
                                              {"BF16", TensorType::bf16, 2},
                                              {"I64", TensorType::i64, 8},
                                              {"I32", TensorType::i32, 4},
                                              {"I16", TensorType::i16, 2},
                                              {"I8", TensorType::i8, 1},
                                              {"U64", TensorType::u64, 8},
                                              {"U32", TensorType::u32, 4},
                                              {"U16", TensorType::u16, 2},
                                              {"U8", TensorType::u8, 1},
                                              {"BOOL", TensorType::boolean, 1}}};

// Types of the format that this engine does not read.
constexpr std::array<std::string_view, 7> kOtherTypes = {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3",
                                                         "F6_E3M2", "F4",      "C64"};

const TypeName& row_of(TensorType type) {
  return *std::ranges::find(kTypes, type, &TypeName::type);
}

// ----------------------------------------------------------------------------------------- header

// Guesses from the first bytes what the file really is.
std::string_view likely_cause(std::string_view prefix) {
  if (prefix.starts_with("version ")) {
    return "it looks like a Git LFS pointer: fetch the file itself with git lfs pull";
  }
  if (prefix.starts_with("PK\x03\x04")) {
    return "it looks like a PyTorch checkpoint: convert it to safetensors first";
  }
  return "it is not a safetensors file, or was cut off";
}

// The header's length in bytes, checked against the size of the file.
std::uint64_t header_length(std::string_view prefix, std::uint64_t file_size,
                            const std::string& path) {
  if (file_size < kPrefix || prefix.size() < kPrefix) {
    fail(ErrorCode::corrupt_file, "{}: holds {} bytes, expected at least 8; {}", path, file_size,
         likely_cause(prefix));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, prefix.data(), sizeof length);
  if (length == 0) {
    fail(ErrorCode::corrupt_file, "{}: the header's length is 0; {}", path, likely_cause(prefix));
  }
  if (length > file_size - kPrefix) {  // length + 8 could overflow
    fail(ErrorCode::corrupt_file, "{}: the header's length is {}, but only {} bytes follow; {}",
         path, length, file_size - kPrefix, likely_cause(prefix));
  }
  if (length > kMaxHeader) {
    fail(ErrorCode::corrupt_file, "{}: the header's length is {}, expected at most {}; {}", path,
         length, kMaxHeader, likely_cause(prefix));
  }
  return length;
}

// Checks and converts header entries. `data_begin` is the file offset of the data section.
class TensorParser {
 public:
  TensorParser(const std::string& path, std::uint64_t data_begin, std::uint64_t data_size)
      : path_(path), data_begin_(data_begin), data_size_(data_size) {}

  TensorInfo parse(std::string name, const Json& entry) {
    name_ = name;
    if (name.size() > kMaxName) fail_tensor("its name is longer than {} bytes", kMaxName);
    if (entry.kind != Json::Kind::object) {
      fail_tensor("its entry is {}, expected an object", described(entry));
    }
    for (const auto& [key, value] : entry.object) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail_tensor("unknown field {}; expected dtype, shape and data_offsets", quoted(key));
      }
    }
    TensorInfo info{.name = std::move(name),
                    .type = parse_type(field(entry, "dtype")),
                    .shape = parse_shape(field(entry, "shape"))};
    parse_offsets(field(entry, "data_offsets"), info);
    return info;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail_tensor(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::corrupt_file, "{}: tensor {}: {}", path_, quoted(name_),
         fmt::format(format, std::forward<Args>(args)...));
  }

  const Json& field(const Json& entry, std::string_view key) const {
    const Json* value = entry.find(key);
    if (value == nullptr) fail_tensor("has no {}", key);
    return *value;
  }

  TensorType parse_type(const Json& json) const {
    const auto row = std::ranges::find(kTypes, json.string, &TypeName::name);
    if (json.kind == Json::Kind::string && row != kTypes.end()) return row->type;
    if (std::ranges::find(kOtherTypes, json.string) != kOtherTypes.end()) {
      fail(ErrorCode::unsupported,
           "{}: tensor {}: its dtype {} cannot be read here; convert it to F32, F16 or BF16", path_,
           quoted(name_), json.string);
    }
    fail_tensor("its dtype is {}, expected one of F32, F16, BF16, F64, I64 to I8, U64 to U8, BOOL",
                described(json));
  }

  std::vector<std::int64_t> parse_shape(const Json& json) const {
    if (json.kind != Json::Kind::array) {
      fail_tensor("its shape is {}, expected an array", described(json));
    }
    if (json.array.size() > kMaxDimensions) {
      fail_tensor("its shape has {} dimensions, expected at most {}", json.array.size(),
                  kMaxDimensions);
    }
    std::vector<std::int64_t> shape;
    for (const Json& size : json.array) {
      if (size.kind != Json::Kind::integer || size.integer < 0) {
        fail_tensor("dimension {} of its shape is {}, expected an integer from 0 to 2^63 - 1",
                    shape.size(), described(size));
      }
      shape.push_back(size.integer);
    }
    return shape;
  }

  // Offsets are relative to the data section and must match type and shape exactly.
  void parse_offsets(const Json& json, TensorInfo& info) const {
    if (json.kind != Json::Kind::array || json.array.size() != 2) {
      fail_tensor("its data_offsets is {}, expected an array of 2", described(json));
    }
    for (const Json& offset : json.array) {
      if (offset.kind != Json::Kind::integer || offset.integer < 0) {
        fail_tensor("its data_offsets holds {}, expected an integer from 0 to 2^63 - 1",
                    described(offset));
      }
    }
    const auto begin = static_cast<std::uint64_t>(json.array[0].integer);
    const auto end = static_cast<std::uint64_t>(json.array[1].integer);
    if (begin > end) fail_tensor("its data_offsets [{}, {}] are reversed", begin, end);
    if (end > data_size_) {
      fail_tensor(
          "its data ends at byte {} of the data section, which holds {}; the file may be "
          "truncated",
          end, data_size_);
    }
    const std::optional<std::uint64_t> wanted = byte_size(info.type, info.shape);
    if (!wanted) fail_tensor("its shape {} is too large", shape_text(info.shape));
    if (end - begin != *wanted) {
      fail_tensor("its data_offsets span {} bytes, but {} of shape {} takes {}", end - begin,
                  name_of(info.type), shape_text(info.shape), *wanted);
    }
    info.begin = data_begin_ + begin;
    info.bytes = *wanted;
  }

  const std::string& path_;
  std::uint64_t data_begin_;
  std::uint64_t data_size_;
  std::string name_;  // of the tensor being parsed
};

// `tensors`, in file order, must cover the data section exactly: no holes, overlaps or rest.
void check_tiling(const std::vector<TensorInfo>& tensors, std::uint64_t data_begin,
                  std::uint64_t file_size, const std::string& path) {
  std::uint64_t end = data_begin;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin < end) {
      fail(ErrorCode::corrupt_file,
           "{}: tensor {}: its data begins at byte {} and overlaps the "
           "tensor before it, which ends at {}",
           path, quoted(tensor.name), tensor.begin - data_begin, end - data_begin);
    }
    if (tensor.begin > end) {
      fail(ErrorCode::corrupt_file, "{}: tensor {}: {} bytes before its data belong to no tensor",
           path, quoted(tensor.name), tensor.begin - end);
    }
    end += tensor.bytes;
  }
  if (end != file_size) {
    fail(ErrorCode::corrupt_file, "{}: {} bytes after the last tensor belong to none", path,
         file_size - end);
  }
}

}  // namespace

std::size_t size_of(TensorType type) { return row_of(type).size; }

std::string_view name_of(TensorType type) { return row_of(type).name; }

std::uint64_t TensorInfo::num_elements() const {
  std::uint64_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::uint64_t>(size);
  return product;
}

std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = size_of(type);
  for (const std::int64_t size : shape) {
    // Zeros are skipped, so that [2^40, 2^40, 0] is too large as well: its strides would overflow.
    if (size < 0 || (size > 0 && __builtin_mul_overflow(bytes, size, &bytes))) return {};
  }
  return std::ranges::find(shape, 0) != shape.end() ? 0 : bytes;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Tensors are sorted by position for the tiling check, and indexed by name for find().
Safetensors Safetensors::parse_header(std::string_view prefix, std::uint64_t file_size,
                                      const std::string& path) {
  const std::uint64_t length = header_length(prefix, file_size, path);
  const std::string_view header = prefix.substr(kPrefix, length);
  if (header.size() < length) {
    fail(ErrorCode::internal, "{}: {} bytes of a header of {} given", path, header.size(), length);
  }
  if (header.front() != '{') {
    fail(ErrorCode::corrupt_file, "{}: its header begins with {}, expected a JSON object; {}", path,
         quoted(header.substr(0, 1)), likely_cause(prefix));
  }
  Json root = parse_json(header, path + ": header");
  Safetensors file;
  file.path_ = path;
  file.file_size_ = file_size;
  const std::uint64_t data_begin = kPrefix + length;
  TensorParser parser(path, data_begin, file_size - data_begin);
  for (auto& [name, entry] : root.object) {
    if (name != kMetadataKey) {
      file.tensors_.push_back(parser.parse(std::move(name), entry));
      continue;
    }
    if (entry.kind != Json::Kind::object) {
      fail(ErrorCode::corrupt_file, "{}: its {} is {}, expected an object of strings", path,
           kMetadataKey, described(entry));
    }
    for (auto& [key, value] : entry.object) {
      if (value.kind != Json::Kind::string) {
        fail(ErrorCode::corrupt_file, "{}: its {} holds {} for {}, expected a string", path,
             kMetadataKey, described(value), quoted(key));
      }
      file.metadata_.emplace_back(std::move(key), std::move(value.string));
    }
  }
  std::ranges::sort(file.tensors_, {}, [](const TensorInfo& tensor) {
    return std::tuple(tensor.begin, tensor.bytes, std::string_view(tensor.name));
  });
  check_tiling(file.tensors_, data_begin, file_size, path);
  file.by_name_.resize(file.tensors_.size());
  std::iota(file.by_name_.begin(), file.by_name_.end(), std::size_t{0});
  std::ranges::sort(file.by_name_, {},
                    [&](std::size_t i) -> std::string_view { return file.tensors_[i].name; });
  return file;
}

Safetensors Safetensors::open(const std::string& path) {
  RegularFile source(path);
  std::string prefix(kPrefix, '\0');
  const auto bytes = [&](std::size_t from) {
    return std::as_writable_bytes(std::span(prefix)).subspan(from);
  };
  prefix.resize(source.read_at(0, bytes(0)));
  prefix.resize(kPrefix + header_length(prefix, source.size(), path));
  if (source.read_at(kPrefix, bytes(kPrefix)) != prefix.size() - kPrefix) {
    fail(ErrorCode::corrupt_file, "{}: ends inside its header; it was truncated just now", path);
  }
  Safetensors file = parse_header(prefix, source.size(), path);
  file.file_ = std::move(source);
  return file;
}

const TensorInfo* Safetensors::find(std::string_view name) const {
  const auto name_at = [&](std::size_t i) -> std::string_view { return tensors_[i].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return found != by_name_.end() && name_at(*found) == name ? &tensors_[*found] : nullptr;
}

const std::string* Safetensors::metadata(std::string_view key) const {
  const auto found = std::ranges::find(
      metadata_, key, [](const auto& entry) { return std::string_view(entry.first); });
  return found != metadata_.end() ? &found->second : nullptr;
}

}  // namespace toto::io
