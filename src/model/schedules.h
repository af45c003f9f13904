// How the matrix products of a forward pass are cut into tasks. It never changes their bits.
#pragma once

#include <cstdint>
#include <vector>

#include "base/size_class.h"
#include "model/layers.h"

namespace toto {

// The matrix products of a forward pass that matter: those of a layer, and the head's.
enum class Product : std::uint8_t { qkv, out, gate_up, down, head };
inline constexpr Product kProducts[] = {Product::qkv, Product::out, Product::gate_up, Product::down,
                                        Product::head};

// What was measured to be best, by product and number of rows.
class Schedules {
 public:
  struct Entry {
    Product product;
    int rows;  // a size_class
    Schedule schedule;
  };

  // What fits `rows` rows; the usual one where nothing was measured. Allocates nothing.
  Schedule find(Product product, int rows) const noexcept {
    const Entry* entry = entry_of(product, size_class(rows));
    return entry != nullptr ? entry->schedule : Schedule{};
  }
  bool has(Product product, int rows) const noexcept {
    return entry_of(product, size_class(rows)) != nullptr;
  }
  void add(const Entry& entry) { entries_.push_back(entry); }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const Entry* entry_of(Product product, int rows) const noexcept {
    for (const Entry& entry : entries_) {
      if (entry.product == product && entry.rows == rows) return &entry;
    }
    return nullptr;
  }
  std::vector<Entry> entries_;
};

}  // namespace toto
