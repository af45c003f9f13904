#include "io/sha256.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

#include "io_fixture.h"

namespace toto::io {
namespace {

std::vector<Sha256::Code> all_codes() {
  std::vector<Sha256::Code> codes = {Sha256::Code::automatic, Sha256::Code::portable};
  if (Sha256::has_instructions()) codes.push_back(Sha256::Code::instructions);
  return codes;
}

std::string digest_of(std::string_view text, Sha256::Code code) {
  Sha256 hash(code);
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

// FIPS 180-4 and NIST's example files.
TEST(Sha256, AgreesWithTheStandard) {
  const std::string million(1'000'000, 'a');
  const std::vector<std::pair<std::string_view, std::string_view>> vectors = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "o"
       "pqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
      {std::string_view("\xBD"),
       "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
      {"\xC9\x8C\x8E\x55", "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504"}};
  for (const Sha256::Code code : all_codes()) {
    for (const auto& [text, digest] : vectors) EXPECT_EQ(digest_of(text, code), digest);
  }
}

TEST(Sha256, IsTheSameForAnyChunksAndImplementation) {
  std::mt19937_64 random(3);
  std::string text(5'000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  for (std::size_t length = 0; length < 300; ++length) {
    const std::string_view part = std::string_view(text).substr(0, length);
    const std::string expected = digest_of(part, Sha256::Code::portable);
    for (const Sha256::Code code : all_codes()) EXPECT_EQ(digest_of(part, code), expected);
  }
  const std::string expected = digest_of(text, Sha256::Code::portable);
  for (const Sha256::Code code : all_codes()) {
    Sha256 hash(code);
    for (int round = 0; round < 20; ++round) {  // the same object: a digest resets it
      for (std::string_view rest = text; !rest.empty();) {
        const std::size_t size = std::min<std::size_t>(random() % 200, rest.size());
        hash.update(std::as_bytes(std::span(rest.substr(0, size))));
        rest.remove_prefix(size);
      }
      EXPECT_EQ(hash.hex_digest(), expected);
    }
  }
}

TEST(Sha256, UsesInstructionsOnlyIfTheCpuHasThem) {
  if (Sha256::has_instructions()) {
    EXPECT_NO_THROW(digest_of("", Sha256::Code::instructions));
  } else {
    expect_error(ErrorCode::unsupported, {"SHA-256 instructions"},
                 [] { Sha256 hash(Sha256::Code::instructions); });
  }
}

}  // namespace
}  // namespace toto::io
