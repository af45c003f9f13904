// A model with one weight that is far too large, as a broken disk or memory module leaves it.
#pragma once

#include <filesystem>
#include <string>

#include "golden_fixture.h"

namespace toto::testing {

// A copy of a Toto 1.0 folder, at `to`.
inline std::string damaged_copy(const std::string& model, const std::string& to) {
  std::filesystem::copy(model, to);
  validate::TensorFile file(to + "/model.safetensors");
  auto& weights = file["model.transformer.layers.0.mlp.2.weight"];
  std::vector<float> values = weights.values<float>();
  values[0] = 8;  // where weights are below 1
  weights.set(values);
  file.save();
  return to;
}

}  // namespace toto::testing
