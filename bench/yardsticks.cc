#include "yardsticks.h"

#include "base/error.h"
#include "weight_stack.h"

#ifdef TOTO_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef TOTO_BENCH_ONEDNN
#include <omp.h>
#include <dnnl.hpp>
#endif

namespace toto::bench {
namespace {

// The stack as [matrix][out][in], the layout of checkpoints and BLAS.
[[maybe_unused]] std::vector<Buffer<float>> plain_stack() {
  std::vector<Buffer<float>> matrices;
  for (int matrix = 0; const MatrixShape& shape : stack_shapes()) {
    Buffer<float> weights(std::size_t(shape.in) * shape.out);
    for (int n = 0; n < shape.out; ++n) {
      fill_weight_row(matrix, n, weights.data() + std::size_t(n) * shape.in);
    }
    matrices.push_back(std::move(weights));
    ++matrix;
  }
  return matrices;
}

#ifdef TOTO_BENCH_OPENBLAS
class OpenBlas : public Yardstick {
 public:
  void prepare(int rows, int threads) override {
    rows_ = rows;
    openblas_set_num_threads(threads);
  }
  void multiply(int matrix, const float* src, float* dst) override {
    const auto [in, out] = stack_shapes()[matrix];
    const float* weights = weights_[matrix].data();
    if (rows_ == 1) {  // its matrix product is several times slower here
      cblas_sgemv(CblasRowMajor, CblasNoTrans, out, in, 1.0f, weights, in, src, 1, 0.0f, dst, 1);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows_, out, in, 1.0f, src,
                  static_cast<int>(row_stride(in)), weights, in, 0.0f, dst,
                  static_cast<int>(row_stride(out)));
    }
  }

 private:
  std::vector<Buffer<float>> weights_ = plain_stack();
  int rows_ = 0;
};
#endif

#ifdef TOTO_BENCH_ONEDNN
// One primitive per matrix, its weights reordered to the layout that the primitive asks for.
class OneDnn : public Yardstick {
 public:
  void prepare(int rows, int threads) override {
    using dnnl::memory;
    omp_set_num_threads(threads);
    products_.clear();
    for (int matrix = 0; const MatrixShape& shape : stack_shapes()) {
      const auto type = memory::data_type::f32;
      const auto activations = [&](int width) {
        const auto stride = static_cast<memory::dim>(row_stride(width));
        return memory::desc({rows, width}, type, memory::dims{stride, 1});
      };
      const memory::desc src = activations(shape.in), dst = activations(shape.out);
      const memory::desc any({shape.in, shape.out}, type, memory::format_tag::any);
      const memory::desc plain({shape.in, shape.out}, type, memory::format_tag::ba);
      const dnnl::matmul::primitive_desc description({src, any, dst}, engine_);
      memory given(plain, engine_, weights_[matrix].data());
      memory weights(description.weights_desc(), engine_);
      dnnl::reorder(given, weights).execute(stream_, given, weights);
      stream_.wait();
      products_.push_back({dnnl::matmul(description), weights, memory(src, engine_, nullptr),
                           memory(dst, engine_, nullptr)});
      ++matrix;
    }
  }
  void multiply(int matrix, const float* src, float* dst) override {
    Product& product = products_[matrix];
    product.src.set_data_handle(const_cast<float*>(src));  // read only
    product.dst.set_data_handle(dst);
    product.primitive.execute(stream_, {{DNNL_ARG_SRC, product.src},
                                        {DNNL_ARG_WEIGHTS, product.weights},
                                        {DNNL_ARG_DST, product.dst}});
    stream_.wait();
  }

 private:
  struct Product {
    dnnl::matmul primitive;
    dnnl::memory weights, src, dst;
  };
  std::vector<Buffer<float>> weights_ = plain_stack();
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Product> products_;
};
#endif

}  // namespace

std::vector<YardstickFactory> yardsticks() {
  std::vector<YardstickFactory> found;
#ifdef TOTO_BENCH_OPENBLAS
  found.push_back({"openblas", openblas_get_config(), [] { return std::make_unique<OpenBlas>(); }});
#endif
#ifdef TOTO_BENCH_ONEDNN
  const dnnl_version_t* version = dnnl_version();
  found.push_back({"onednn",
                   fmt::format("{}.{}.{}", version->major, version->minor, version->patch),
                   [] { return std::make_unique<OneDnn>(); }});
#endif
  return found;
}

}  // namespace toto::bench
