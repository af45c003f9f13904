// The same products by other libraries: OpenBLAS and oneDNN, if they were found when the build was
// configured.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace toto::bench {

// Holds the whole weight stack in the layout its library likes best. Not thread-safe.
class Yardstick {
 public:
  Yardstick() = default;
  Yardstick(const Yardstick&) = delete;
  Yardstick& operator=(const Yardstick&) = delete;
  virtual ~Yardstick() = default;

  // Everything that is not timed, for products of `rows` rows on `threads` threads.
  virtual void prepare(int rows, int threads) = 0;

  // dst[row][out] = src[row][in] W^T of matrix `matrix`, without bias; rows lie row_stride() of
  // their width apart.
  virtual void multiply(int matrix, const float* src, float* dst) = 0;
};

struct YardstickFactory {
  std::string name;
  std::string version;
  std::function<std::unique_ptr<Yardstick>()> make;
};
std::vector<YardstickFactory> yardsticks();

}  // namespace toto::bench
