#include "decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "io/csv.h"
#include "io/json.h"

namespace toto::server {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

void append(std::string& out, const char* data, std::size_t size, std::size_t max_bytes) {
  if (size > max_bytes - out.size()) {
    fail(ErrorCode::out_of_memory,
         "the decompressed body is larger than {} bytes; send fewer series at once", max_bytes);
  }
  out.append(data, size);
}

[[noreturn]] void fail_format(std::string_view encoding, std::string_view reason) {
  fail(ErrorCode::invalid_argument, "Content-Encoding is {} but the body is not: {}", encoding,
       reason);
}

std::string inflate_body(const std::string& body, std::string_view encoding, int window_bits,
                         std::size_t max_bytes) {
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
    const std::size_t given = std::min<std::size_t>(left, std::numeric_limits<unsigned>::max() / 2);
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
    append(out, piece.data(), made, max_bytes);
    next += used;
    left -= used;
    if (status == Z_OK && used == 0 && made == 0) fail_format(encoding, "it ends too early");
  }
  if (left > 0) fail_format(encoding, fmt::format("{} bytes follow its end", left));
  return out;
}

std::string unzstd(const std::string& body, std::size_t max_bytes) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        ZSTD_freeDCtx);
  if (!context) fail(ErrorCode::out_of_memory, "not enough memory to decompress the body");
  // A frame may ask for a window of gigabytes; ours are at most 128 MB.
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27);
  std::string out;
  std::array<char, kPiece> piece;
  ZSTD_inBuffer in{body.data(), body.size(), 0};
  for (std::size_t status = 1; status != 0 || in.pos < in.size;) {
    const std::size_t before = in.pos;
    ZSTD_outBuffer made{piece.data(), piece.size(), 0};
    status = ZSTD_decompressStream(context.get(), &made, &in);
    if (ZSTD_isError(status) != 0) fail_format("zstd", ZSTD_getErrorName(status));
    append(out, piece.data(), made.pos, max_bytes);
    if (status != 0 && in.pos == before && made.pos == 0) fail_format("zstd", "it ends too early");
  }
  return out;
}

}  // namespace

std::string decompress(std::string body, std::string_view encoding, std::size_t max_bytes) {
  const std::string name = io::lower_case(io::trimmed(encoding));
  if (name.empty() || name == "identity") return body;
  if (name == "gzip" || name == "x-gzip") return inflate_body(body, name, 15 + 16, max_bytes);
  if (name == "zstd") return unzstd(body, max_bytes);
  if (name == "deflate") {
    // The standard means zlib's format; some clients send the raw stream. The first byte tells.
    const bool zlib =
        body.size() >= 2 && (body[0] & 0x0f) == Z_DEFLATED &&
        (static_cast<unsigned char>(body[0]) * 256 + static_cast<unsigned char>(body[1])) % 31 == 0;
    return inflate_body(body, name, zlib ? 15 : -15, max_bytes);
  }
  fail(ErrorCode::invalid_argument,
       "Content-Encoding is {}, expected gzip, deflate, zstd or identity", io::quoted(encoding));
}

}  // namespace toto::server
