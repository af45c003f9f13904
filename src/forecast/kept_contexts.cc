#include "forecast/kept_contexts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/size_class.h"

namespace toto {
namespace {

template <typename T>
bool same_bits(const T* a, const T* b, std::size_t count) noexcept {
  return std::memcmp(a, b, count * sizeof(T)) == 0;
}

}  // namespace

std::size_t KeptContexts::Context::bytes() const noexcept {
  return keys_and_values.bytes() + inputs.capacity() * sizeof(float) +
         ids.capacity() * sizeof(std::int64_t);
}

std::size_t KeptContexts::bytes() const noexcept {
  std::size_t total = 0;
  for (const Context& context : contexts_) total += context.bytes();
  return total;
}

// Writes and scales the context into next_, with the statistics that scale its forecast back.
void KeptContexts::read(const Series& series, const ForecastOptions& options,
                        std::span<const double> scale, const Network& network,
                        const ModelFacts& facts) {
  const int patch = facts.patch;
  next_.shape = context_shape(series, options.max_context, facts);
  const std::size_t variates = series.num_variates, padded = next_.shape.padded(patch);
  const std::size_t room = std::size_t(next_.shape.num_patches) * network.shape().input_width;
  next_.inputs.resize(variates * room);
  next_.ids.resize(variates * next_.shape.num_patches);
  next_.scalers.resize(variates);
  next_.loc.resize(variates * patch);
  next_.scale.resize(variates * patch);
  std::vector<std::uint8_t> mask(variates * padded);
  write_context(series, next_.shape, options.missing, scale, patch, room, next_.inputs.data(),
                mask.data(), next_.ids.data());
  for (std::size_t v = 0; v < variates; ++v) {
    next_.scalers[v] = network.read_context(
        {next_.inputs.data() + v * room, room}, {mask.data() + v * padded, padded},
        {.min_observed = options.min_observed,
         .cap = options.cap,
         .known_future = known_future(series, static_cast<int>(v), scale[v])},
        next_.loc.data() + v * patch, next_.scale.data() + v * patch);
  }
}

// The number of leading patches whose inputs and ids are equal in every variate.
int KeptContexts::common_patches(const Context& context, int num_variates,
                                 int input_width) const noexcept {
  const int most =
      std::min({context.valid_tokens - leading_, context.num_patches, next_.shape.num_patches});
  for (int p = 0; p < most; ++p) {
    for (int v = 0; v < num_variates; ++v) {
      const std::size_t ours = std::size_t(v) * next_.shape.num_patches + p;
      const std::size_t theirs = std::size_t(v) * context.num_patches + p;
      if (next_.ids[ours] != context.ids[theirs] ||
          !same_bits(next_.inputs.data() + ours * input_width,
                     context.inputs.data() + theirs * input_width, input_width)) {
        return p;
      }
    }
  }
  return std::max(most, 0);
}

// Drops contexts until `bytes` more fit: first those with another first point, then the latest. A
// series that grows point by point returns to each alignment in turn, so dropping the oldest would
// drop each one just before its next use.
bool KeptContexts::make_room(std::size_t bytes, std::uint64_t start, int patch) {
  std::erase_if(contexts_, [start](const Context& context) { return context.start != start; });
  while (!contexts_.empty() && (this->bytes() + bytes > max_bytes_ ||
                                contexts_.size() >= static_cast<std::size_t>(patch))) {
    contexts_.pop_back();
  }
  return this->bytes() + bytes <= max_bytes_;
}

// Moves the keys and values to memory for `capacity` positions per variate.
void KeptContexts::grow(Context& context, int capacity, int num_variates, const KvLayout& layout) {
  Buffer<float> larger(num_variates * layout.floats(capacity));
  for (int v = 0; v < num_variates; ++v) {
    const KvSpan from{context.keys_and_values.data() + v * layout.floats(context.capacity),
                      context.capacity};
    const KvSpan to{larger.data() + v * layout.floats(capacity), capacity};
    for (int layer = 0; layer < layout.num_time_layers; ++layer) {
      for (int head = 0; head < layout.num_heads; ++head) {
        std::copy_n(from.keys(layout, layer, head), std::size_t(context.capacity) * layout.head_dim,
                    to.keys(layout, layer, head));
        std::copy_n(from.values(layout, layer, head),
                    std::size_t(context.capacity) * layout.value_stride,
                    to.values(layout, layer, head));
      }
    }
  }
  context.keys_and_values = std::move(larger);
  context.capacity = capacity;
}

// The selected context is moved to the end of contexts_, where prefix(), begin() and commit()
// expect it.
bool KeptContexts::prepare(const Series& series, std::uint64_t origin,
                           const ForecastOptions& options, std::span<const double> scale, int room,
                           const Network& network, const ModelFacts& facts) {
  const KvLayout& layout = network.kv_layout();
  read(series, options, scale, network, facts);
  leading_ = network.shape().leading_rows;
  first_token_ = 0;

  int most = 0;
  std::size_t best = contexts_.size();
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    const int common =
        common_patches(contexts_[i], series.num_variates, network.shape().input_width);
    if (common <= most) continue;
    most = common;
    best = i;
  }
  Context chosen;
  if (best < contexts_.size()) {
    chosen = std::move(contexts_[best]);
    contexts_.erase(contexts_.begin() + static_cast<std::ptrdiff_t>(best));
    // The last token is always computed: its output is the forecast.
    first_token_ = leading_ + std::min(most, next_.shape.num_patches - 1);
  }
  chosen.start = origin + next_.shape.first;
  const int num_tokens = leading_ + next_.shape.num_patches;
  const int capacity = std::max(chosen.capacity, round_up_positions(size_class(num_tokens + room)));
  const std::size_t variates = series.num_variates;
  const std::size_t bytes = variates * layout.floats(capacity) * sizeof(float) +
                            next_.inputs.size() * sizeof(float) +
                            next_.ids.size() * sizeof(std::int64_t);
  if (!make_room(bytes, chosen.start, facts.patch)) return false;
  if (capacity > chosen.capacity) grow(chosen, capacity, series.num_variates, layout);
  floats_per_variate_ = layout.floats(capacity);
  contexts_.push_back(std::move(chosen));
  return true;
}

KvSpan KeptContexts::prefix(int variate) {
  Context& context = contexts_.back();
  return {context.keys_and_values.data() + variate * floats_per_variate_, context.capacity};
}

void KeptContexts::begin() noexcept { contexts_.back().valid_tokens = first_token_; }

void KeptContexts::commit() noexcept {
  Context& context = contexts_.back();
  context.num_patches = next_.shape.num_patches;
  context.valid_tokens = leading_ + context.num_patches;
  std::swap(context.inputs, next_.inputs);
  std::swap(context.ids, next_.ids);
}

}  // namespace toto
