// How the matrix products of a forward pass are divided into tasks. It does not change their bits.
#pragma once

#include <cstdint>
#include <vector>

#include "base/size_class.h"
#include "model/layers.h"

namespace toto {

// The matrix products whose schedule matters: those of a layer, and the head.
enum class Product : std::uint8_t { qkv, out, gate_up, down, head };
inline constexpr Product kProducts[] = {Product::qkv, Product::out, Product::gate_up, Product::down,
                                        Product::head};

struct MeasuredSchedule {
  Product product;
  int rows;  // a size_class
  Schedule schedule;
};

// The fastest schedule measured for each product and number of rows.
class Schedules {
 public:
  // The schedule for `rows` rows; the default one if nothing was measured. Does not allocate.
  Schedule find(Product product, int rows) const noexcept {
    const MeasuredSchedule* entry = entry_of(product, size_class(rows));
    return entry != nullptr ? entry->schedule : Schedule{};
  }
  bool has(Product product, int rows) const noexcept {
    return entry_of(product, size_class(rows)) != nullptr;
  }
  void add(const MeasuredSchedule& entry) { entries_.push_back(entry); }
  const std::vector<MeasuredSchedule>& entries() const { return entries_; }

 private:
  const MeasuredSchedule* entry_of(Product product, int rows) const noexcept {
    for (const MeasuredSchedule& entry : entries_) {
      if (entry.product == product && entry.rows == rows) return &entry;
    }
    return nullptr;
  }
  std::vector<MeasuredSchedule> entries_;
};

}  // namespace toto
