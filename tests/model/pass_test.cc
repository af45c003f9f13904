// Features of a pass: several outputs per run, constant rows at any place, and skipped positions.
#include <gtest/gtest.h>

#include <limits>

#include "model/architecture.h"
#include "model/checkpoint.h"
#include "test_model.h"

namespace toto {
namespace {

// Two variates of a model with labels, which are its constant rows.
class PassTest : public ::testing::Test {
 protected:
  static constexpr int kTokens = 7, kLabel = 3;
  static constexpr int kVariates = 2;

  PassTest() {
    const std::size_t floats = network_->shape().position_floats;
    positions_.resize((kTokens + 2) * floats);
    for (int i = 0; i < kTokens + 2; ++i) {
      network_->position_factors(i, kTokens, kTokens, positions_.data() + i * floats);
    }
    const Series values = testing::walk(3, kVariates * kTokens * network_->shape().input_width);
    for (const float x : values.values) inputs_.push_back((x - 100) / 10);
  }

  struct PassRequest {
    int first = 0, last = kTokens;  // tokens of this pass
    int outputs = 1;                // of each run
    int constant = 0;               // the vector at token kLabel
    const int* places = nullptr;
  };

  // The heads of one pass; keys and values continue after the previous pass.
  std::vector<float> run(const PassRequest& request) {
    const ModelShape& shape = network_->shape();
    const int count = request.last - request.first, width = shape.input_width;
    std::vector<RowRun> runs;
    std::vector<ConstantRow> constants;
    std::vector<float> rows;
    std::vector<int> group_rows, output_rows;
    std::vector<SpaceGroup> groups, output_groups;
    for (int v = 0; v < kVariates; ++v) {
      RowRun row_run{.first_row = v * count,
                     .num_rows = count,
                     .tail = {cache_[v].data(), kCapacity},
                     .tail_length = request.first,
                     .positions = positions_.data() + request.first * shape.position_floats,
                     .num_outputs = request.outputs};
      if (request.places != nullptr) {
        row_run.positions = positions_.data();
        row_run.places = request.places + request.first;
      }
      runs.push_back(row_run);
      for (int token = request.first; token < request.last; ++token) {
        const float* from = inputs_.data() + (v * kTokens + token) * width;
        rows.insert(rows.end(), from, from + width);
        if (token != kLabel) continue;
        constants.push_back({v * count + token - request.first, request.constant});
        std::fill_n(rows.end() - width, width, std::numeric_limits<float>::max());  // not used
      }
    }
    const auto add_groups = [](int number, std::vector<int>& members,
                               std::vector<SpaceGroup>& list) {
      for (int i = 0; i < number; ++i) {
        for (int v = 0; v < kVariates; ++v) members.push_back(v * number + i);
      }
      for (int i = 0; i < number; ++i) list.push_back({members.data() + i * kVariates, kVariates});
    };
    add_groups(count, group_rows, groups);
    add_groups(request.outputs, output_rows, output_groups);
    Arena arena;
    const int num_outputs = kVariates * request.outputs;
    arena.start_measuring();
    network_->take_workspace(arena, kVariates * count, num_outputs, kCapacity);
    arena.reserve(arena.used());
    arena.start_handing_out();
    Workspace workspace =
        network_->take_workspace(arena, kVariates * count, num_outputs, kCapacity);
    network_->forward({.runs = runs,
                       .inputs = rows.data(),
                       .num_rows = kVariates * count,
                       .constants = constants,
                       .groups = groups,
                       .output_groups = output_groups,
                       .num_outputs = num_outputs,
                       .output_steps = shape.patch},
                      workspace);
    return {workspace.heads, workspace.heads + num_outputs * workspace.head_stride};
  }

  // The i-th of `outputs` rows of variate v.
  static std::vector<float> row(const std::vector<float>& heads, int outputs, int v, int i) {
    const std::size_t stride = heads.size() / (kVariates * outputs);
    const auto first = heads.begin() + static_cast<std::ptrdiff_t>((v * outputs + i) * stride);
    return {first, first + static_cast<std::ptrdiff_t>(stride)};
  }

  static constexpr int kCapacity = kKeyPanel;
  ThreadPool pool_{2};
  Checkpoint checkpoint_ = Checkpoint::open(TOTO_SOURCE_DIR "/tests/golden/variate_labels");
  std::unique_ptr<PackedWeights> weights_ =
      checkpoint_.architecture().pack(checkpoint_, DType::f32, kernels_for(Isa::automatic), pool_);
  std::unique_ptr<Network> network_ =
      checkpoint_.architecture().network(*weights_, DType::f32, kernels_for(Isa::automatic), pool_);
  std::vector<std::vector<float>> cache_ = std::vector<std::vector<float>>(
      kVariates, std::vector<float>(network_->kv_layout().floats(kCapacity)));
  std::vector<float> positions_, inputs_;
};

TEST_F(PassTest, ComputesTheLastRowsOfARun) {
  constexpr int kOutputs = 3;
  const std::vector<float> together = run({.outputs = kOutputs});
  for (int i = 0; i < kOutputs; ++i) {
    const std::vector<float> alone = run({.last = kTokens - kOutputs + 1 + i});
    for (int v = 0; v < kVariates; ++v) {
      EXPECT_EQ(row(together, kOutputs, v, i), row(alone, 1, v, 0)) << v << " " << i;
    }
  }
  EXPECT_NE(row(together, kOutputs, 0, 0), row(together, kOutputs, 0, 1));
}

TEST_F(PassTest, AcceptsConstantRowsAtAnyPlace) {
  const std::vector<float> whole = run({});
  EXPECT_NE(run({.constant = 1}), whole) << "the vector matters";
  // Alone in a pass, first of a pass, last of a pass.
  for (const auto& cuts : {std::vector{3, 4, kTokens}, {3, kTokens}, {4, kTokens}}) {
    int first = 0;
    std::vector<float> last;
    for (const int cut : cuts) {
      last = run({.first = first, .last = cut});
      first = cut;
    }
    EXPECT_EQ(last, whole) << cuts.size();
  }
}

TEST_F(PassTest, SkipsPositions) {
  const int places[kTokens] = {0, 1, 2, 3, 5, 6, 8};
  const std::vector<float> whole = run({.places = places});
  EXPECT_NE(run({}), whole) << "positions matter";
  const std::size_t floats = network_->shape().position_floats;
  std::vector<float> chosen;
  for (const int place : places) {
    const auto from = positions_.begin() + static_cast<std::ptrdiff_t>(place * floats);
    chosen.insert(chosen.end(), from, from + static_cast<std::ptrdiff_t>(floats));
  }
  chosen.resize(positions_.size());
  positions_ = chosen;
  EXPECT_EQ(run({}), whole);
}

}  // namespace
}  // namespace toto
