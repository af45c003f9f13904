#include "decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace toto::server {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

using Take = std::function<bool(std::size_t bytes)>;

[[noreturn]] void fail_format(std::string_view encoding, std::string_view reason) {
  fail(ErrorCode::invalid_argument, "Content-Encoding is {} but the body is not: {}", encoding,
       reason);
}

std::optional<std::string> inflate_body(const std::string& body, std::string_view encoding,
                                        int window_bits, const Take& take) {
  const bool has_members = encoding.ends_with("gzip");
  z_stream stream{};
  if (inflateInit2(&stream, window_bits) != Z_OK) {
    fail(ErrorCode::out_of_memory, "not enough memory to decompress the body");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  std::string out;
  std::array<char, kPiece> piece;
  const char* next = body.data();
  std::size_t left = body.size();
  for (int status = Z_OK; status != Z_STREAM_END;) {
    // Small pieces of input too: a stream may run for long without any output.
    const std::size_t given = std::min(left, kPiece);
    // zlib's interface predates const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next));
    stream.avail_in = static_cast<unsigned>(given);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = kPiece;
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) {
      fail_format(encoding, stream.msg != nullptr ? stream.msg : "it ends too early");
    }
    const std::size_t used = given - stream.avail_in, made = kPiece - stream.avail_out;
    if (!take(made)) return std::nullopt;
    out.append(piece.data(), made);
    next += used;
    left -= used;
    if (status == Z_OK && used == 0 && made == 0) fail_format(encoding, "it ends too early");
    // RFC 1952: a file is one member or several, and its contents are theirs one after the other.
    if (status == Z_STREAM_END && has_members && left > 0 && *next == '\x1f') {
      inflateReset(&stream);
      status = Z_OK;
    }
  }
  if (left > 0) fail_format(encoding, fmt::format("{} bytes follow its end", left));
  return out;
}

std::optional<std::string> unzstd(const std::string& body, const Take& take) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        ZSTD_freeDCtx);
  if (!context) fail(ErrorCode::out_of_memory, "not enough memory to decompress the body");
  // A frame may ask for a window of gigabytes; 128 MB is the most allowed here.
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27);
  std::string out;
  std::array<char, kPiece> piece;
  ZSTD_inBuffer in{body.data(), 0, 0};
  for (std::size_t status = 1; status != 0 || in.pos < body.size();) {
    const std::size_t before = in.pos;
    in.size = std::min(body.size(), before + kPiece);
    ZSTD_outBuffer made{piece.data(), piece.size(), 0};
    status = ZSTD_decompressStream(context.get(), &made, &in);
    if (ZSTD_isError(status) != 0) fail_format("zstd", ZSTD_getErrorName(status));
    if (!take(made.pos)) return std::nullopt;
    out.append(piece.data(), made.pos);
    if (status != 0 && in.pos == before && made.pos == 0) fail_format("zstd", "it ends too early");
  }
  return out;
}

}  // namespace

bool is_known_coding(std::string_view name) {
  return name == "gzip" || name == "x-gzip" || name == "zstd" || name == "deflate";
}

std::optional<std::string> decompress(const std::string& body, std::string_view encoding,
                                      const Take& take) {
  if (encoding == "gzip" || encoding == "x-gzip") {
    return inflate_body(body, encoding, 15 + 16, take);
  }
  if (encoding == "zstd") return unzstd(body, take);
  if (encoding == "deflate") {
    // RFC 9110 means zlib's format; some clients send the raw stream. The first two bytes tell.
    const bool zlib =
        body.size() >= 2 && (body[0] & 0x0f) == Z_DEFLATED &&
        (static_cast<unsigned char>(body[0]) * 256 + static_cast<unsigned char>(body[1])) % 31 == 0;
    return inflate_body(body, encoding, zlib ? 15 : -15, take);
  }
  fail(ErrorCode::internal, "the content coding {} is not known", quoted(encoding));
}

}  // namespace toto::server
