// Any bytes are either refused with an Error or give tensors that tile the file exactly.
#include <cstdint>
#include <cstdlib>

#include "io/safetensors.h"
#include "toto/toto.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using toto::io::Safetensors;
  try {
    const Safetensors file =
        Safetensors::parse_header({reinterpret_cast<const char*>(data), size}, size, "input");
    check(size >= 8);
    std::uint64_t end = size;
    for (auto tensor = file.tensors().rbegin(); tensor != file.tensors().rend(); ++tensor) {
      check(tensor->begin + tensor->bytes == end);
      check(tensor->num_elements() * size_of(tensor->type) == tensor->bytes);
      check(file.find(tensor->name) == &*tensor);
      end = tensor->begin;
    }
    check(end >= 10 && end <= size);  // eight bytes of length, at least "{}"
  } catch (const toto::Error& error) {
    check(error.code() == toto::ErrorCode::corrupt_file ||
          error.code() == toto::ErrorCode::unsupported);
  }
  return 0;
}
