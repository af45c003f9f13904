#include "decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/error.h"
#include "io/csv.h"
#include "io/json.h"
#include "message.h"

namespace toto::server {
namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;

// What comes out, within its limits.
class CappedOutput {
 public:
  CappedOutput(std::size_t max_bytes, const std::function<bool(std::size_t)>& take)
      : max_bytes_(max_bytes), take_(take) {}
  void append(const char* data, std::size_t size) {
    if (size > max_bytes_ - bytes_.size()) {
      fail(ErrorCode::out_of_memory,
           "the decompressed body is larger than {} bytes; send fewer series at once", max_bytes_);
    }
    if (take_ && !take_(size)) fail(ErrorCode::out_of_memory, "{}", kTooManyBodies);
    bytes_.append(data, size);
  }
  std::string take_bytes() { return std::move(bytes_); }

 private:
  const std::size_t max_bytes_;
  const std::function<bool(std::size_t)>& take_;
  std::string bytes_;
};

[[noreturn]] void fail_format(std::string_view encoding, std::string_view reason) {
  fail(ErrorCode::invalid_argument, "Content-Encoding is {} but the body is not: {}", encoding,
       reason);
}

std::string inflate_body(const std::string& body, std::string_view encoding, int window_bits,
                         CappedOutput out) {
  z_stream stream{};
  if (inflateInit2(&stream, window_bits) != Z_OK) {
    fail(ErrorCode::out_of_memory, "not enough memory to decompress the body");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  std::array<char, kPiece> piece;
  const char* next = body.data();
  std::size_t left = body.size();
  for (int status = Z_OK; status != Z_STREAM_END;) {
    // Little at a time on this side too: a stream may go on for long without any output.
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
    out.append(piece.data(), made);
    next += used;
    left -= used;
    if (status == Z_OK && used == 0 && made == 0) fail_format(encoding, "it ends too early");
  }
  if (left > 0) fail_format(encoding, fmt::format("{} bytes follow its end", left));
  return out.take_bytes();
}

std::string unzstd(const std::string& body, CappedOutput out) {
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                        ZSTD_freeDCtx);
  if (!context) fail(ErrorCode::out_of_memory, "not enough memory to decompress the body");
  // A frame may ask for a window of gigabytes; ours are at most 128 MB.
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 27);
  std::array<char, kPiece> piece;
  ZSTD_inBuffer in{body.data(), 0, 0};
  for (std::size_t status = 1; status != 0 || in.pos < body.size();) {
    const std::size_t before = in.pos;
    in.size = std::min(body.size(), before + kPiece);
    ZSTD_outBuffer made{piece.data(), piece.size(), 0};
    status = ZSTD_decompressStream(context.get(), &made, &in);
    if (ZSTD_isError(status) != 0) fail_format("zstd", ZSTD_getErrorName(status));
    out.append(piece.data(), made.pos);
    if (status != 0 && in.pos == before && made.pos == 0) fail_format("zstd", "it ends too early");
  }
  return out.take_bytes();
}

}  // namespace

std::string decompress(const std::string& body, std::string_view encoding, std::size_t max_bytes,
                       const std::function<bool(std::size_t)>& take) {
  const CappedOutput out(max_bytes, take);
  const std::string name = io::lower_case(io::trimmed(encoding));
  if (name.empty() || name == "identity") return body;
  if (name == "gzip" || name == "x-gzip") return inflate_body(body, name, 15 + 16, out);
  if (name == "zstd") return unzstd(body, out);
  if (name == "deflate") {
    // The standard means zlib's format; some clients send the raw stream. The first byte tells.
    const bool zlib =
        body.size() >= 2 && (body[0] & 0x0f) == Z_DEFLATED &&
        (static_cast<unsigned char>(body[0]) * 256 + static_cast<unsigned char>(body[1])) % 31 == 0;
    return inflate_body(body, name, zlib ? 15 : -15, out);
  }
  fail(ErrorCode::invalid_argument,
       "Content-Encoding is {}, expected gzip, deflate, zstd or identity", io::quoted(encoding));
}

}  // namespace toto::server
