// A network whose answer is not a number is refused, in every mode and precision: it must not pass
// for a forecast.
#include <gtest/gtest.h>

#include "base/error.h"
#include "golden_fixture.h"
#include "test_model.h"

namespace toto {
namespace {

TEST(BrokenNetwork, IsRefusedInEveryModeAndPrecision) {
  const testing::TemporaryFolder folder;
  const std::string model = testing::made_model(folder);
  {
    validate::TensorFile file(model + "/model.safetensors");
    for (auto& tensor : file.tensors) {
      if (tensor.info.name.find("patch_embed") == std::string::npos) continue;
      // Finite, so that it loads; its products are not.
      tensor.edit<float>([](float& weight) { weight = weight < 0 ? -3e38f : 3e38f; });
    }
    file.save();
  }
  const std::vector<EngineOptions> all = {
      {.mode = Mode::standard, .dtype = DType::f32},
      {.mode = Mode::standard, .dtype = DType::bf16},
      {.mode = Mode::standard, .dtype = DType::int8},
      {.mode = Mode::reduce_overhead, .dtype = DType::int8},
      {.mode = Mode::max_autotune, .dtype = DType::f32},
      {.mode = Mode::reference, .dtype = DType::f32},
  };
  for (const EngineOptions& options : all) {
    const Engine engine = Engine::load(model, options);
    for (const int horizon : {1, 50}) {
      try {
        const Forecast forecast = engine.forecast(testing::walk(1, 40, 2), {.horizon = horizon});
        ADD_FAILURE() << name_of(options.mode) << " " << name_of(options.dtype) << " answers "
                      << forecast.mean[0];
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
        EXPECT_NE(std::string(error.what()).find("series \"walk\" is not finite"),
                  std::string::npos)
            << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace toto
