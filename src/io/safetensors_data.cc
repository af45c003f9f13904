// Reads and writes tensor data; the header parser is in safetensors.cc.
#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/sha256.h"

namespace toto::io {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes read at a time
constexpr std::uint32_t kFloatExponent = 0x7F800000;  // all its bits set: infinity or NaN

// Exact: every half, subnormal ones included, is a normal float.
float from_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float from_bf16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

// Position of the first NaN or infinity, values.size() if there is none.
std::size_t first_non_finite(std::span<const float> values) {
  const auto is_bad = [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & kFloatExponent) == kFloatExponent;
  };
  bool any = false;  // no early exit, so that the compiler vectorises the loop
  for (const float value : values) any = any | is_bad(value);
  if (!any) return values.size();
  return static_cast<std::size_t>(std::ranges::find_if(values, is_bad) - values.begin());
}

}  // namespace

void Safetensors::read_exactly(std::uint64_t offset, std::span<std::byte> dst,
                               std::string_view part) const {
  const std::size_t done = file_.read_at(offset, dst);
  if (done == dst.size()) return;
  fail(ErrorCode::corrupt_file,
       "{}: {}: the file ends at byte {}, expected {}; it was truncated while in use", path_, part,
       offset + done, file_size_);
}

// Converts chunk by chunk, so that memory holds at most 1 MB of half-precision data.
void Safetensors::read_floats(const TensorInfo& tensor, std::uint64_t first,
                              std::span<float> dst) const {
  const std::string part = fmt::format("tensor {}", quoted(tensor.name));
  const bool is_half = tensor.type == TensorType::f16 || tensor.type == TensorType::bf16;
  if (!is_half && tensor.type != TensorType::f32) {
    fail(ErrorCode::unsupported, "{}: {}: its dtype is {}, expected F32, F16 or BF16", path_, part,
         name_of(tensor.type));
  }
  if (first > tensor.num_elements() || dst.size() > tensor.num_elements() - first) {
    fail(ErrorCode::internal, "{}: {}: elements {} to {} read, but it has {}", path_, part, first,
         first + dst.size(), tensor.num_elements());
  }
  std::vector<std::uint16_t> halves(is_half ? std::min(kChunk / 2, dst.size()) : 0);
  while (!dst.empty()) {
    const std::uint64_t offset = tensor.begin + first * size_of(tensor.type);
    const auto chunk = dst.first(std::min(is_half ? kChunk / 2 : kChunk / 4, dst.size()));
    if (is_half) {
      const auto source = std::span(halves).first(chunk.size());
      read_exactly(offset, std::as_writable_bytes(source), part);
      if (tensor.type == TensorType::f16) {
        std::ranges::transform(source, chunk.begin(), from_f16);
      } else {
        std::ranges::transform(source, chunk.begin(), from_bf16);
      }
    } else {
      read_exactly(offset, std::as_writable_bytes(chunk), part);
    }
    const std::size_t bad = first_non_finite(chunk);
    if (bad < chunk.size()) {
      fail(ErrorCode::corrupt_file,
           "{}: {}: element {} is {}, expected a finite number; the weights are damaged", path_,
           part, first + bad, chunk[bad]);
    }
    first += chunk.size();
    dst = dst.subspan(chunk.size());
  }
}

void Safetensors::read_bytes(const TensorInfo& tensor, std::span<std::byte> dst) const {
  const std::string part = fmt::format("tensor {}", quoted(tensor.name));
  if (dst.size() != tensor.bytes) {
    fail(ErrorCode::internal, "{}: {}: {} bytes read, but it has {}", path_, part, dst.size(),
         tensor.bytes);
  }
  read_exactly(tensor.begin, dst, part);
}

void Safetensors::hash_into(Sha256& hash) const {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kChunk, file_size_));
  for (std::uint64_t offset = 0; offset < file_size_; offset += buffer.size()) {
    const auto chunk =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file_size_ - offset));
    read_exactly(offset, chunk, "hashing");
    hash.update(chunk);
  }
}

// ----------------------------------------------------------------------------------------- writer

struct SafetensorsWriter::Impl {
  AtomicFile file;
  std::string path;
  std::uint64_t remaining;  // bytes of data still to come
};

namespace {

// The length, the JSON, and spaces so that the data begins at a multiple of eight.
std::string header_bytes(const std::vector<TensorInfo>& tensors,
                         const std::vector<std::pair<std::string, std::string>>& metadata) {
  JsonWriter writer(JsonLayout::compact);
  writer.begin_object();
  if (!metadata.empty()) {
    writer.key("__metadata__").begin_object();
    for (const auto& [key, value] : metadata) writer.field(key, value);
    writer.end_object();
  }
  for (const TensorInfo& tensor : tensors) {
    writer.key(tensor.name).begin_object();
    writer.field("dtype", name_of(tensor.type)).key("shape").begin_array();
    for (const std::int64_t size : tensor.shape) writer.value(size);
    writer.end_array().key("data_offsets").begin_array();
    writer.value(tensor.begin).value(tensor.begin + tensor.bytes).end_array();
    writer.end_object();
  }
  std::string json = writer.end_object().take();
  json.back() = ' ';  // the newline
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + json;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(
    const std::string& path, std::vector<TensorInfo> tensors,
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::uint64_t size = 0;
  for (TensorInfo& tensor : tensors) {
    const std::optional<std::uint64_t> bytes = byte_size(tensor.type, tensor.shape);
    tensor.begin = size;
    tensor.bytes = bytes.value_or(0);
    if (!bytes || __builtin_add_overflow(size, tensor.bytes, &size)) {
      fail(ErrorCode::invalid_argument, "{}: tensor {}: its shape {} is negative or too large",
           path, quoted(tensor.name), shape_text(tensor.shape));
    }
  }
  const std::string header = header_bytes(tensors, metadata);
  const Safetensors readable = Safetensors::parse_header(header, header.size() + size, path);
  for (const TensorInfo& tensor : tensors) {
    if (readable.find(tensor.name) == nullptr) {
      fail(ErrorCode::invalid_argument, "{}: the tensor name {} is not valid UTF-8 or is reserved",
           path, quoted(tensor.name));
    }
  }
  impl_.reset(new Impl{.file = AtomicFile(path), .path = path, .remaining = size});
  impl_->file.write(header);
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::append(const void* data, std::size_t bytes) {
  if (bytes > impl_->remaining) {
    fail(ErrorCode::internal, "{}: {} bytes of tensor data more than declared", impl_->path,
         bytes - impl_->remaining);
  }
  impl_->file.write(data, bytes);
  impl_->remaining -= bytes;
}

void SafetensorsWriter::commit() {
  if (impl_->remaining > 0) {
    fail(ErrorCode::internal, "{}: {} bytes of tensor data fewer than declared", impl_->path,
         impl_->remaining);
  }
  impl_->file.commit();
}

}  // namespace toto::io
