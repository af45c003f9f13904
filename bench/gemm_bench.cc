#include "gemm_bench.h"

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>

#include "base/error.h"
#include "measure.h"
#include "peaks.h"
#include "weight_stack.h"
#include "yardsticks.h"

namespace toto::bench {
namespace {

constexpr int kRowCounts[] = {1, 8, 16, 64, 512};

ThreadPool& pool_of(int threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  std::unique_ptr<ThreadPool>& pool = pools[threads];
  if (!pool) pool = std::make_unique<ThreadPool>(threads);
  return *pool;
}

// Our product with weights of one type, behind the interface of the others.
class Ours : public Yardstick {
 public:
  explicit Ours(DType type) : stack_(packed_stack(type)), type_(type) {}

  void prepare(int rows, int threads) override {
    rows_ = rows;
    pool_ = &pool_of(threads);
    int depth = 0;
    for (const MatrixShape& shape : stack_shapes()) depth = std::max(depth, shape.in);
    arena_.start_measuring();
    take_quantised(arena_, type_, rows, depth);
    arena_.reserve(arena_.used());
    arena_.start_handing_out();
    quantised_ = take_quantised(arena_, type_, rows, depth);
  }
  void multiply(int matrix, const float* src, float* dst) override {
    const PackedLinear& linear = stack_[matrix];
    apply(linear,
          {.src = src,
           .src_stride = row_stride(linear.in),
           .dst = dst,
           .dst_stride = row_stride(linear.padded_out()),
           .rows = rows_,
           .quantised = quantised_},
          kernels_for(Isa::automatic), *pool_);
  }

 private:
  const std::vector<PackedLinear>& stack_;
  DType type_;
  ThreadPool* pool_ = nullptr;
  Arena arena_;
  QuantisedRows quantised_;
  int rows_ = 0;
};

// A library, and the largest difference of its products from our float32 ones: mean |difference| as
// a share of mean |product|. For bf16 and int8 it is the rounding of those types.
struct Library {
  std::string name;
  std::function<std::unique_ptr<Yardstick>()> make;
  double tolerance;
};

std::vector<Library> libraries() {
  std::vector<Library> all;
  for (const auto& [type, tolerance] :
       {std::pair(DType::f32, 0.0), std::pair(DType::bf16, 1e-2), std::pair(DType::int8, 2e-2)}) {
    all.push_back({fmt::format("toto/{}", name_of(type)),
                   [wanted = type] { return std::make_unique<Ours>(wanted); }, tolerance});
  }
  for (const YardstickFactory& yardstick : yardsticks()) {
    all.push_back({yardstick.name + "/f32", yardstick.make, 1e-5});
  }
  return all;
}

// Made on first use, then kept: half a gigabyte each.
Yardstick& instance_of(const Library& library) {
  static std::map<std::string, std::unique_ptr<Yardstick>> instances;
  std::unique_ptr<Yardstick>& instance = instances[library.name];
  if (!instance) instance = library.make();
  return *instance;
}

// Whether the first block's products agree with ours in float32; else why not.
std::string disagreement(const Library& library, int rows, int threads) {
  Ours ours(DType::f32);
  ours.prepare(rows, threads);
  Activations mine(rows), theirs(rows);
  for (int matrix = 0; matrix < kMatricesPerBlock; ++matrix) {
    ours.multiply(matrix, mine.src.data(), mine.dst.data());
    instance_of(library).multiply(matrix, theirs.src.data(), theirs.dst.data());
    const int out = stack_shapes()[matrix].out;
    double difference = 0, size = 0;
    for (int row = 0; row < rows; ++row) {
      const std::size_t first = row * row_stride(out);
      for (std::size_t i = first; i < first + out; ++i) {
        difference += std::fabs(double(mine.dst[i]) - theirs.dst[i]);
        size += std::fabs(mine.dst[i]);
      }
    }
    if (!(difference <= library.tolerance * size)) {
      return fmt::format(
          "matrix {}: differs from ours by {:.1e} of its size, expected at most {:.0e}", matrix,
          difference / size, library.tolerance);
    }
  }
  return {};
}

void register_product(const std::string& name, const Library& library, std::vector<int> matrices,
                      int rows, int threads) {
  double weights = 0;
  for (const int m : matrices) weights += double(stack_shapes()[m].in) * stack_shapes()[m].out;
  const auto run = [=, checked = false](benchmark::State& state) mutable {
    Yardstick& yardstick = instance_of(library);
    yardstick.prepare(rows, threads);
    if (!checked) {
      if (const std::string why = disagreement(library, rows, threads); !why.empty()) {
        state.SkipWithError(why.c_str());
        return;
      }
      checked = true;
    }
    Activations activations(rows);
    measure(state, [&] {
      for (const int matrix : matrices) {
        yardstick.multiply(matrix, activations.src.data(), activations.dst.data());
      }
    });
    state.counters["GFLOP"] =
        benchmark::Counter(2e-9 * weights * rows, benchmark::Counter::kIsIterationInvariantRate);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMillisecond);
}

// Read bandwidth without computing: the packed float32 stack, read once.
void register_read(int threads) {
  const auto run = [threads](benchmark::State& state) {
    std::vector<std::span<const std::byte>> arrays;
    for (const PackedLinear& linear : packed_stack(DType::f32)) {
      arrays.push_back(linear.panels.as_bytes());
    }
    measure(state, [&] { read_seconds(arrays, pool_of(threads)); });
    state.counters["GB"] =
        benchmark::Counter(4e-9 * stack_weights(), benchmark::Counter::kIsIterationInvariantRate);
  };
  benchmark::RegisterBenchmark(fmt::format("read/threads:{}", threads).c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

void register_gemm_benchmarks() {
  std::vector<int> whole(stack_shapes().size());
  std::iota(whole.begin(), whole.end(), 0);
  for (const int threads : thread_counts()) {
    register_read(threads);
    for (const int rows : kRowCounts) {
      for (const Library& library : libraries()) {
        register_product(fmt::format("stack/{}/rows:{}/threads:{}", library.name, rows, threads),
                         library, whole, rows, threads);
      }
    }
    for (int matrix = 0; matrix < kMatricesPerBlock; ++matrix) {
      const auto [in, out] = stack_shapes()[matrix];
      for (const int rows : kRowCounts) {
        for (const Library& library : libraries()) {
          register_product(
              fmt::format("gemm/{}x{}/{}/rows:{}/threads:{}", in, out, library.name, rows, threads),
              library, {matrix}, rows, threads);
        }
      }
    }
  }
}

}  // namespace toto::bench
