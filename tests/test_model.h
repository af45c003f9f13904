// Small seeded models and series for tests, in a temporary folder.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "io_fixture.h"
#include "toto/toto.h"
#include "toto1_models.h"

namespace toto::testing {

using io::TemporaryFolder;

// A small model with time- and space-wise layers, several heads and components.
inline Toto1Config small_config() {
  Toto1Config config;
  config.patch_size = 8;
  config.embed_dim = 32;
  config.num_layers = 3;
  config.num_heads = 4;
  config.mlp_hidden_dim = 48;
  config.spacewise_every_n_layers = 3;
  config.spacewise_first = false;
  config.num_components = 5;
  return config;
}

inline std::string made_model(const TemporaryFolder& folder,
                              const Toto1Config& config = small_config(), std::uint64_t seed = 1) {
  const std::string path = folder / ("model-" + std::to_string(seed));
  make_model(config, seed, io::TensorType::f32, path);
  return path;
}

// A noisy walk with a season, different for every seed.
inline Series walk(unsigned seed, int length, int num_variates = 1,
                   const std::string& id = "walk") {
  std::mt19937 engine(seed);
  std::normal_distribution<float> noise;
  Series series;
  series.id = id;
  series.num_variates = num_variates;
  for (int v = 0; v < num_variates; ++v) {
    float level = 100.0f + 10 * noise(engine);
    for (int t = 0; t < length; ++t) {
      level += noise(engine);
      series.values.push_back(level + 5 * std::sin(0.3f * static_cast<float>(t + v)));
    }
  }
  return series;
}

inline std::string text_of(const std::string& path) { return io::contents_of(path); }

inline void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// The message of the Error that `action` throws; "no error" if it throws none.
template <typename Action>
std::string error_of(const Action& action, ErrorCode* code = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
  return "no error";
}

}  // namespace toto::testing
