#include "cache/text_entry.h"

#include <cstddef>
#include <span>

#include "base/error.h"
#include "io/sha256.h"

namespace toto::cache {
namespace {

// Three parts: a line with format and key digest, the text, and the digest of both.
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::string digest_of(std::string_view text) {
  io::Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

std::string first_line(std::string_view key) {
  return fmt::format("toto cache 1 {}\n", digest_of(key));
}

}  // namespace

TextEntry read_text_entry(const io::CacheFile& entry, std::string_view key) {
  std::string file;
  try {
    file = io::read_file(entry.open(), kMaxBytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::out_of_memory) throw;
    if (error.code() == ErrorCode::not_found) return {};
    return {.text = {}, .invalid = error.what()};
  }
  const std::size_t digest_line = digest_of({}).size() + 1;
  const std::string begin = first_line(key);
  const std::size_t body = file.size() < digest_line ? 0 : file.size() - digest_line;
  const std::string_view hashed = std::string_view(file).substr(0, body);
  if (std::string_view(file).substr(body) != digest_of(hashed) + "\n") {
    return {.text = {}, .invalid = entry.path() + ": its checksum does not match its contents"};
  }
  if (!hashed.starts_with(begin)) return {};
  return {.text = std::string(hashed.substr(begin.size())), .invalid = {}};
}

void write_text_entry(const io::CacheFile& entry, std::string_view key, std::string_view text) {
  std::string file = first_line(key);
  file += text;
  file += digest_of(file) + "\n";
  io::AtomicFile written = entry.replace();
  written.write(file);
  written.commit();
}

}  // namespace toto::cache
