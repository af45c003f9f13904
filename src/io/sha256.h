// SHA-256 (FIPS 180-4), used to identify weights, configs and inputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace toto::io {

// Not thread-safe.
class Sha256 {
 public:
  enum class Code { automatic, portable, instructions };  // instructions: the CPU's own, x86 only

  // Asking for instructions this CPU does not have is an Error(unsupported).
  explicit Sha256(Code code = Code::automatic);
  static bool has_instructions() noexcept;

  void update(std::span<const std::byte> bytes) noexcept;
  using Digest = std::array<std::byte, 32>;
  Digest digest() noexcept;  // resets the hash
  std::string hex_digest();  // the same as 64 characters

 private:
  using HashState = std::array<std::uint32_t, 8>;
  static constexpr std::size_t kBlock = 64;

  void compress(const std::byte* blocks, std::size_t count) noexcept;
  void reset() noexcept;

  bool use_instructions_;
  HashState state_;
  std::uint64_t length_;  // bytes so far
  alignas(16) std::array<std::byte, kBlock> pending_;
};

}  // namespace toto::io
