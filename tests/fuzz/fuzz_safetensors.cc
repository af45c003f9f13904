// Any bytes are either refused with an Error or give tensors that tile the file exactly.
#include <cstdint>

#include "io/safetensors.h"
#include "require.h"
#include "toto/toto.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using toto::require;
  using toto::io::Safetensors;
  try {
    const Safetensors file =
        Safetensors::parse_header({reinterpret_cast<const char*>(data), size}, size, "input");
    require(size >= 8);
    std::uint64_t end = size;
    for (auto tensor = file.tensors().rbegin(); tensor != file.tensors().rend(); ++tensor) {
      require(tensor->begin + tensor->bytes == end);
      require(tensor->num_elements() * size_of(tensor->type) == tensor->bytes);
      require(file.find(tensor->name) == &*tensor);
      end = tensor->begin;
    }
    require(end >= 10 && end <= size);  // eight bytes of length, at least "{}"
  } catch (const toto::Error& error) {
    require(error.code() == toto::ErrorCode::corrupt_file ||
            error.code() == toto::ErrorCode::unsupported);
  }
  return 0;
}
