// The file of a golden case, and the two formats it comes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "validate/golden.h"

namespace toto::validate {

inline constexpr const char* kCaseFile = "case.safetensors";

// Reads tensors and metadata. Error(corrupt_file) naming file and tensor for anything unexpected.
class CaseReader {
 public:
  explicit CaseReader(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<io::TensorInfo>& tensors() const { return file_.tensors(); }
  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  const io::TensorInfo& tensor(std::string_view name) const;

  // The bytes of a tensor that must have this shape and one of these types.
  template <typename T>
  std::vector<T> read(std::string_view name, const std::vector<std::int64_t>& shape,
                      std::initializer_list<io::TensorType> types) const {
    const io::TensorInfo& info = checked(name, shape, types);
    std::vector<T> values(info.num_elements());
    file_.read_bytes(info, std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<float> read_input(std::string_view name,
                                const std::vector<std::int64_t>& shape) const;
  // 0 or 1 for every value.
  std::vector<std::uint8_t> read_mask(std::string_view name,
                                      const std::vector<std::int64_t>& shape) const;
  GoldenOutput read_output(const std::string& name, const std::vector<std::int64_t>& shape) const;

  const std::string* find_metadata(const char* key) const { return file_.metadata(key); }
  const std::string& metadata(const char* key) const;
  int whole_number(const char* key, int low, int high) const;
  double number(const char* key, double low, double high) const;
  bool boolean(const char* key) const;

 private:
  const io::TensorInfo& checked(std::string_view name, const std::vector<std::int64_t>& shape,
                                std::initializer_list<io::TensorType> types) const;
  template <typename T>
  void check_finite(std::string_view name, std::span<const T> values) const;

  io::Safetensors file_;
};

// Fills batch, outputs, architecture and sizes; golden.name and golden.horizon must be set. A file
// whose metadata names an architecture has format 2, any other format 1 (Toto 1.0).
void read_case(const CaseReader& file, Golden& golden);

// Moves the variate axis to the front: [...][variate][...] becomes [variate][...][...].
std::vector<double> variate_first(std::span<const double> values,
                                  std::span<const std::int64_t> shape, int variate_axis);

}  // namespace toto::validate
