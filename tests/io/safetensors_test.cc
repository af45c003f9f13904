#include "io/safetensors.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "base/error.h"
#include "io_fixture.h"

// Replaces libc's pread: interrupted and with short reads if enabled.
namespace {
thread_local bool interrupt_reads = false;
thread_local int num_reads = 0;
}  // namespace

extern "C" ssize_t pread(int fd, void* data, std::size_t size, off_t offset) {
  static const auto real = reinterpret_cast<decltype(&pread)>(dlsym(RTLD_NEXT, "pread"));
  if (interrupt_reads) {
    if (num_reads++ % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    if (size > 1000) size = 1000;
  }
  return real(fd, data, size, offset);
}

namespace toto::io {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

// The expected error for each bad_*.safetensors of the corpus, which tools/make_corpus.py
// generates.
const std::map<std::string, std::vector<std::string_view>> kBadCheckpoints = {
    {"bad_empty_file", {"holds 0 bytes, expected at least 8"}},
    {"bad_five_bytes", {"holds 5 bytes, expected at least 8"}},
    {"bad_length_0", {"the header's length is 0"}},
    {"bad_length_past_end", {"the header's length is 3, but only 2 bytes follow"}},
    {"bad_length_2_63", {"the header's length is 9223372036854775808, but only 2 bytes"}},
    {"bad_length_2_64_minus_1", {"the header's length is 18446744073709551615, but only 2"}},
    {"bad_length_2_64_minus_4", {"the header's length is 18446744073709551612, but only 2"}},
    {"bad_git_lfs_pointer", {"Git LFS pointer"}},
    {"bad_pytorch_zip", {"PyTorch checkpoint"}},
    {"bad_header_is_array", {"its header begins with \"[\", expected a JSON object"}},
    {"bad_header_begins_with_space", {"its header begins with \" \", expected a JSON object"}},
    {"bad_header_truncated", {"header: line 1", "does not end with its closing bracket"}},
    {"bad_header_zero_padded", {"header: line 1", "does not end with its closing bracket"}},
    {"bad_bytes_after_json", {"header: line 1, column 3: more text after the end"}},
    {"bad_bytes_after_data", {"3 bytes after the last tensor"}},
    {"bad_truncated_by_one", {"tensor \"a\"", "ends at byte 8", "holds 7", "truncated"}},
    {"bad_utf8", {"header: line 1, column 4: this byte is not valid UTF-8"}},
    {"bad_depth", {"header: line 1", "nested deeper than 64"}},
    {"bad_duplicate_name", {"header: line 1", "duplicate key \"a\""}},
    {"bad_duplicate_escaped_name", {"header: line 1", "duplicate key \"a\""}},
    {"bad_metadata_number", {"__metadata__ holds 12 for \"layers\", expected a string"}},
    {"bad_metadata_array", {"__metadata__ is an array of 1, expected an object"}},
    {"bad_name_too_long", {"tensor \"nnn", "(5000 bytes)", "longer than 4096 bytes"}},
    {"bad_entry_not_object", {"tensor \"a\"", "its entry is an array of 1, expected an object"}},
    {"bad_entry_unknown_field", {"tensor \"a\"", "unknown field \"strides\""}},
    {"bad_entry_without_dtype", {"tensor \"a\"", "has no dtype"}},
    {"bad_entry_without_shape", {"tensor \"a\"", "has no shape"}},
    {"bad_entry_without_offsets", {"tensor \"a\"", "has no data_offsets"}},
    {"bad_dtype_unknown", {"tensor \"a\"", "its dtype is \"F33\", expected one of F32"}},
    {"bad_dtype_lower_case", {"tensor \"a\"", "its dtype is \"f32\", expected one of F32"}},
    {"bad_dtype_number", {"tensor \"a\"", "its dtype is 32, expected one of F32"}},
    {"bad_dtype_f8_e4m3", {"tensor \"a\"", "its dtype F8_E4M3 cannot be read here"}},
    {"bad_dtype_f8_e5m2", {"tensor \"a\"", "its dtype F8_E5M2 cannot be read here"}},
    {"bad_dtype_f4", {"tensor \"a\"", "its dtype F4 cannot be read here"}},
    {"bad_dtype_c64", {"tensor \"a\"", "its dtype C64 cannot be read here"}},
    {"bad_shape_wraps", {"tensor \"a\"", "its shape [4294967296, 4294967296] is too large"}},
    {"bad_shape_wraps_in_bytes", {"tensor \"a\"", "its shape [4611686018427387904] is too large"}},
    {"bad_shape_wraps_beside_zero", {"tensor \"a\"", "0] is too large"}},
    {"bad_shape_zero_with_data", {"tensor \"a\"", "span 8 bytes, but F32 of shape [0, 2] takes 0"}},
    {"bad_shape_65_dimensions", {"tensor \"a\"", "65 dimensions, expected at most 64"}},
    {"bad_shape_number", {"tensor \"a\"", "its shape is 2, expected an array"}},
    {"bad_dimension_negative", {"tensor \"a\"", "dimension 0 of its shape is -2"}},
    {"bad_dimension_float", {"tensor \"a\"", "dimension 0 of its shape is the real number 2"}},
    {"bad_dimension_string", {"tensor \"a\"", "dimension 0 of its shape is \"2\""}},
    {"bad_dimension_2_64", {"tensor \"a\"", "dimension 0 of its shape is the real number 1.8"}},
    {"bad_offsets_reversed", {"tensor \"a\"", "data_offsets [8, 0] are reversed"}},
    {"bad_offsets_negative", {"tensor \"a\"", "data_offsets holds -8"}},
    {"bad_offsets_one", {"tensor \"a\"", "data_offsets is an array of 1, expected an array of 2"}},
    {"bad_offsets_three", {"tensor \"a\"", "data_offsets is an array of 3"}},
    {"bad_offsets_number", {"tensor \"a\"", "data_offsets is 8"}},
    {"bad_offsets_float", {"tensor \"a\"", "data_offsets holds the real number 8.5"}},
    {"bad_offsets_past_end", {"tensor \"a\"", "ends at byte 12", "holds 8"}},
    {"bad_offsets_2_64_minus_1", {"tensor \"a\"", "data_offsets holds the real number 1.8"}},
    {"bad_offsets_overlap", {"tensor \"b\"", "begins at byte 4", "overlaps", "ends at 8"}},
    {"bad_offsets_same_data_twice", {"tensor \"b\"", "begins at byte 0", "overlaps"}},
    {"bad_offsets_empty_inside", {"tensor \"z\"", "begins at byte 4", "overlaps"}},
    {"bad_offsets_hole", {"tensor \"b\"", "4 bytes before its data belong to no tensor"}},
    {"bad_offsets_hole_at_start", {"tensor \"a\"", "4 bytes before its data belong to no tensor"}},
    {"bad_span_unequal_shape", {"tensor \"a\"", "span 8 bytes, but F32 of shape [3] takes 12"}},
    {"bad_span_unequal_dtype", {"tensor \"a\"", "span 8 bytes, but F64 of shape [2] takes 16"}},
};

std::string corpus(std::string_view name) {
  return fmt::format("{}/tests/corpus/safetensors/{}.safetensors", TOTO_SOURCE_DIR, name);
}

// A whole file: the length, the JSON, `data_size` zero bytes.
std::string file_bytes(std::string_view header, std::size_t data_size) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header).append(data_size, '\0');
}

// A file with the one tensor "a" that holds `values`.
template <typename T>
Safetensors with_tensor(const std::string& path, TensorType type, const std::vector<T>& values) {
  SafetensorsWriter writer(
      path, {{.name = "a", .type = type, .shape = {static_cast<std::int64_t>(values.size())}}}, {});
  writer.append(values.data(), values.size() * sizeof(T));
  writer.commit();
  return Safetensors::open(path);
}

class SafetensorsTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(SafetensorsTest, RefusesEveryBadFileOfTheCorpusAndAcceptsTheRest) {
  std::size_t num_bad = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(TOTO_SOURCE_DIR "/tests/corpus/safetensors")) {
    const std::string name = file.path().stem().string();
    const std::string path = corpus(name);
    SCOPED_TRACE(name);
    if (name.starts_with("ok_")) {
      EXPECT_NO_THROW(Safetensors::open(path));
      continue;
    }
    ++num_bad;
    ASSERT_TRUE(kBadCheckpoints.contains(name));
    const bool is_known_type = name.starts_with("bad_dtype_f") || name == "bad_dtype_c64";
    for (const std::string_view fragment : kBadCheckpoints.at(name)) {
      expect_error(is_known_type ? ErrorCode::unsupported : ErrorCode::corrupt_file,
                   {path, fragment}, [&] { Safetensors::open(path); });
    }
  }
  EXPECT_EQ(num_bad, kBadCheckpoints.size());
}

TEST_F(SafetensorsTest, ReadsWhatTheHeaderSays) {
  const Safetensors types = Safetensors::open(corpus("ok_all_types"));
  ASSERT_EQ(types.tensors().size(), 13U);
  for (const TensorInfo& tensor : types.tensors()) {
    EXPECT_EQ(tensor.name, fmt::format("t.{}", name_of(tensor.type)));
    EXPECT_EQ(tensor.bytes, 2 * size_of(tensor.type));
    EXPECT_EQ(tensor.num_elements(), 2U);
    EXPECT_EQ(shape_text(tensor.shape), "[2, 1]");
    EXPECT_EQ(types.find(tensor.name), &tensor);
  }
  EXPECT_EQ(types.find("t.F3"), nullptr);
  EXPECT_EQ(types.find("zzz"), nullptr);
  const Safetensors unordered = Safetensors::open(corpus("ok_header_not_in_file_order"));
  EXPECT_EQ(unordered.tensors()[0].name, "a");
  float value = 0;
  unordered.read_floats(*unordered.find("b"), 0, std::span(&value, 1));
  EXPECT_EQ(value, 2.0F);
  const Safetensors metadata = Safetensors::open(corpus("ok_metadata"));
  EXPECT_EQ(*metadata.metadata("format"), "pt");
  EXPECT_EQ(*metadata.metadata("note"), "\xC3\xBC\n");
  EXPECT_EQ(metadata.metadata("absent"), nullptr);
  EXPECT_EQ(metadata.tensors().size(), 1U);
  const Safetensors empty = Safetensors::open(corpus("ok_zero_size"));
  EXPECT_EQ(empty.find("z")->num_elements(), 0U);
  empty.read_floats(*empty.find("z"), 0, {});
  EXPECT_EQ(Safetensors::open(corpus("ok_scalar")).tensors()[0].num_elements(), 1U);
}

TEST_F(SafetensorsTest, RefusesAHeaderOverTheLimitBeforeReadingIt) {
  std::string start = file_bytes("{}", 0);
  const std::uint64_t length = 100'000'001;
  std::memcpy(start.data(), &length, sizeof length);
  put(folder_ / "large", start);
  std::filesystem::resize_file(folder_ / "large", 8 + length);  // a hole, no disk used
  expect_error(ErrorCode::corrupt_file,
               {folder_ / "large", "100000001, expected at most 100000000"},
               [&] { Safetensors::open(folder_ / "large"); });
}

TEST_F(SafetensorsTest, ParsesOnlyACompleteHeader) {
  const std::string bytes = file_bytes("{}", 0);
  EXPECT_TRUE(Safetensors::parse_header(bytes, bytes.size(), "whole").tensors().empty());
  expect_error(ErrorCode::internal, {"part", "1 bytes of a header of 2"}, [&] {
    Safetensors::parse_header(std::string_view(bytes).substr(0, 9), bytes.size(), "part");
  });
}

TEST_F(SafetensorsTest, RefusesNonFilesWithoutBlocking) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const auto refused = [](ErrorCode code, const std::string& path, std::string_view why) {
    expect_error(code, {path, why}, [&] { Safetensors::open(path); });
  };
  refused(ErrorCode::corrupt_file, folder_ / "pipe", "a FIFO");
  refused(ErrorCode::corrupt_file, folder_.path(), "a folder");
  refused(ErrorCode::corrupt_file, "/dev/zero", "a device");
  refused(ErrorCode::not_found, folder_ / "absent", "no such file");
}

TEST_F(SafetensorsTest, StaysFastForHugeHeaders) {
  const auto refused = [](const std::string& header, std::string_view why) {
    const std::string bytes = file_bytes(header, 4);
    expect_error(ErrorCode::corrupt_file, {"huge", why},
                 [&] { Safetensors::parse_header(bytes, bytes.size(), "huge"); });
  };
  const double start = cpu_seconds();
  std::string dimensions = "1";
  for (int i = 1; i < 1'000'000; ++i) dimensions += ",1";
  refused(fmt::format(R"({{"a":{{"dtype":"F32","shape":[{}],"data_offsets":[0,4]}}}})", dimensions),
          "1000000 dimensions");
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  refused(fmt::format(R"({{"{}":{}}})", std::string(1'000'000, 'n'), entry), "longer than 4096");
  std::string zeros = "0";
  for (int i = 0; i < 5'000'000; ++i) zeros += ",0";
  refused(fmt::format(R"({{"a":[{}]}})", zeros), "more than 4000000 values");
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) {
    many += fmt::format(R"("t{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}},)", i, 4 * i,
                        4 * i + 4);
  }
  many.back() = '}';
  const std::string bytes = file_bytes(many, 0);
  const Safetensors file = Safetensors::parse_header(bytes, bytes.size() + 400'000, "many");
  ASSERT_EQ(file.tensors().size(), 100'000U);
  for (const TensorInfo& tensor : file.tensors()) ASSERT_EQ(file.find(tensor.name), &tensor);
  EXPECT_LT(cpu_seconds() - start, kHangSeconds);  // 2 s in all; 10^5 squared would take minutes
}

// ------------------------------------------------------------------------------------------- data

// The definition, in double: sign, exponent, mantissa of a half.
double value_of_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1F;
  const int mantissa = half & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST_F(SafetensorsTest, ConvertsEveryFiniteHalfExactly) {
  std::vector<std::uint16_t> f16;
  std::vector<std::uint16_t> bf16;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((half & 0x7C00) != 0x7C00) f16.push_back(half);
    if ((half & 0x7F80) != 0x7F80) bf16.push_back(half);
  }
  std::vector<float> values(f16.size());
  const Safetensors first = with_tensor(folder_ / "f16", TensorType::f16, f16);
  first.read_floats(first.tensors()[0], 0, values);
  for (std::size_t i = 0; i < f16.size(); ++i) {
    ASSERT_EQ(static_cast<double>(values[i]), value_of_half(f16[i])) << f16[i];
    ASSERT_EQ(std::signbit(values[i]), (f16[i] & 0x8000) != 0) << f16[i];
  }
  values.resize(bf16.size());
  const Safetensors second = with_tensor(folder_ / "bf16", TensorType::bf16, bf16);
  second.read_floats(second.tensors()[0], 0, values);
  for (std::size_t i = 0; i < bf16.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::uint32_t{bf16[i]} << 16);
  }
}

TEST_F(SafetensorsTest, ReadsAnyPartOfATensorLargerThanOneChunk) {
  std::vector<float> values(700'000);  // 2.8 MB: read in three pieces
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5F;
  const Safetensors file = with_tensor(folder_ / "file", TensorType::f32, values);
  const TensorInfo& tensor = file.tensors()[0];
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{262'144}}) {
    std::vector<float> part(values.size() - first - 3);
    file.read_floats(tensor, first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), values.begin() + static_cast<long>(first)));
  }
  std::vector<std::byte> bytes(tensor.bytes);
  file.read_bytes(tensor, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), values.data(), bytes.size()), 0);
}

TEST_F(SafetensorsTest, RefusesNanAndInfinityNamingTheElement) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto refused = [&](const Safetensors& file, std::string_view why) {
    std::vector<float> values(file.tensors()[0].num_elements());
    expect_error(ErrorCode::corrupt_file, {file.path(), "tensor \"a\"", why, "finite"},
                 [&] { file.read_floats(file.tensors()[0], 0, values); });
    values.resize(1);
    EXPECT_NO_THROW(file.read_floats(file.tensors()[0], 0, values));  // the rest is fine
  };
  std::vector<float> values(600'000, 1.0F);
  values[599'999] = std::nanf("");
  refused(with_tensor(folder_ / "nan", TensorType::f32, values), "element 599999 is nan");
  values[300'000] = -inf;
  refused(with_tensor(folder_ / "inf", TensorType::f32, values), "element 300000 is -inf");
  using Halves = std::vector<std::uint16_t>;
  refused(with_tensor(folder_ / "h1", TensorType::f16, Halves{0, 0x7C00}), "element 1 is inf");
  refused(with_tensor(folder_ / "h2", TensorType::f16, Halves{0, 0, 0x7E00}), "element 2 is nan");
  refused(with_tensor(folder_ / "b1", TensorType::bf16, Halves{0, 0xFF80}), "element 1 is -inf");
  refused(with_tensor(folder_ / "b2", TensorType::bf16, Halves{0, 0x7FC0}), "element 1 is nan");
}

TEST_F(SafetensorsTest, ConvertsOnlyFloats) {
  const Safetensors file = with_tensor(folder_ / "i64", TensorType::i64, std::vector<long>{1, 2});
  std::vector<float> values(2);
  expect_error(ErrorCode::unsupported, {file.path(), "tensor \"a\"", "its dtype is I64"},
               [&] { file.read_floats(file.tensors()[0], 0, values); });
}

TEST_F(SafetensorsTest, RefusesElementsOutOfRange) {
  const Safetensors file = with_tensor(folder_ / "f", TensorType::f32, std::vector<float>{1, 2});
  const TensorInfo& tensor = file.tensors()[0];
  std::vector<float> values(2);
  std::vector<std::byte> bytes(7);
  for (const std::uint64_t first : {std::uint64_t{1}, std::uint64_t{3}, ~std::uint64_t{0}}) {
    expect_error(ErrorCode::internal, {file.path(), "tensor \"a\"", "but it has 2"},
                 [&] { file.read_floats(tensor, first, values); });
  }
  expect_error(ErrorCode::internal, {file.path(), "tensor \"a\"", "7 bytes read, but it has 8"},
               [&] { file.read_bytes(tensor, bytes); });
}

TEST_F(SafetensorsTest, SurvivesTruncationAndReplacementWhileInUse) {
  const std::vector<float> ones(1'000, 1.0F);
  const std::string path = folder_ / "file";
  const Safetensors file = with_tensor(path, TensorType::f32, ones);
  std::vector<float> values(1'000);
  const Safetensors newer = with_tensor(path, TensorType::f32, std::vector<float>(10, 2.0F));
  file.read_floats(file.tensors()[0], 0, values);  // replaced: the old one is still open
  EXPECT_EQ(values, ones);
  std::filesystem::resize_file(path, newer.file_size() - 1);
  std::vector<std::byte> bytes(40);
  const std::string_view why = "truncated while in use";
  expect_error(ErrorCode::corrupt_file, {path, "tensor \"a\"", why},
               [&] { newer.read_floats(newer.tensors()[0], 0, std::span(values).first(10)); });
  expect_error(ErrorCode::corrupt_file, {path, "tensor \"a\"", why},
               [&] { newer.read_bytes(newer.tensors()[0], bytes); });
  newer.read_floats(newer.tensors()[0], 0, std::span(values).first(9));  // what is left is read
  EXPECT_EQ(values[8], 2.0F);
}

TEST_F(SafetensorsTest, SurvivesShortAndInterruptedReads) {
  std::vector<float> values(50'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  with_tensor(folder_ / "file", TensorType::f32, values);
  std::vector<float> read(values.size());
  interrupt_reads = true;
  const Safetensors file = Safetensors::open(folder_ / "file");
  file.read_floats(file.tensors()[0], 0, read);
  interrupt_reads = false;
  EXPECT_GT(num_reads, 400);
  EXPECT_EQ(read, values);
}

TEST_F(SafetensorsTest, ReadsFromSeveralThreads) {
  const std::vector<float> values(400'000, 1.5F);
  const Safetensors file = with_tensor(folder_ / "file", TensorType::f32, values);
  std::vector<float> other(values.size());
  std::vector<float> own(values.size());
  std::thread thread([&] { file.read_floats(file.tensors()[0], 0, other); });
  file.read_floats(file.tensors()[0], 0, own);
  thread.join();
  EXPECT_EQ(own, values);
  EXPECT_EQ(other, values);
}

// ----------------------------------------------------------------------------------------- writer

TEST_F(SafetensorsTest, RoundTrips) {
  const std::vector<TensorInfo> tensors = {
      {.name = "weight \"q\"\n\xC3\xBC", .type = TensorType::f32, .shape = {2, 1}},
      {.name = "empty", .type = TensorType::i64, .shape = {0, 3}},
      {.name = "flags", .type = TensorType::boolean, .shape = {3}},
      {.name = "scalar", .type = TensorType::f64, .shape = {}}};
  const Metadata metadata = {{"trained", "false"}, {"note", "line\nbreak"}};
  SafetensorsWriter writer(folder_ / "new", tensors, metadata);
  const float weight[] = {1.5F, -2.0F};
  const char flags[] = {1, 0, 1};
  const double scalar = 0.1;
  writer.append(weight, sizeof weight);
  writer.append(flags, sizeof flags);
  writer.append(&scalar, sizeof scalar);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  writer.commit();
  const Safetensors file = Safetensors::open(folder_ / "new");
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(file.tensors()[i].name, tensors[i].name);
    EXPECT_EQ(file.tensors()[i].type, tensors[i].type);
    EXPECT_EQ(file.tensors()[i].shape, tensors[i].shape);
  }
  EXPECT_EQ(file.tensors()[0].begin % 8, 0U);
  double read = 0;
  file.read_bytes(*file.find("scalar"), std::as_writable_bytes(std::span(&read, 1)));
  EXPECT_EQ(read, scalar);
}

TEST_F(SafetensorsTest, WriterRefusesUnreadableNamesAndShapes) {
  const std::string path = folder_ / "new";
  const auto refused = [&](ErrorCode code, std::vector<TensorInfo> tensors, std::string_view why) {
    expect_error(code, {path, why}, [&] { SafetensorsWriter(path, std::move(tensors), {}); });
  };
  const auto named = [](std::string name) {
    return TensorInfo{.name = std::move(name), .type = TensorType::f32, .shape = {1}};
  };
  refused(ErrorCode::corrupt_file, {named("a"), named("a")}, "duplicate key \"a\"");
  refused(ErrorCode::corrupt_file, {named("__metadata__")}, "__metadata__");
  refused(ErrorCode::corrupt_file, {named(std::string(5'000, 'n'))}, "longer than 4096");
  refused(ErrorCode::invalid_argument, {named("a\xFF")}, "not valid UTF-8");
  TensorInfo large = named("large");
  large.shape = {std::int64_t{1} << 32, std::int64_t{1} << 32};
  refused(ErrorCode::invalid_argument, {large}, "tensor \"large\": its shape [4294967296, 42");
  large.shape = {-1};
  refused(ErrorCode::invalid_argument, {large}, "its shape [-1] is negative");
  large.shape = {std::int64_t{1} << 61};  // twice this is 2^64 bytes
  refused(ErrorCode::invalid_argument, {large, large}, "too large");
  EXPECT_EQ(folder_.num_entries(), 0U);
}

TEST_F(SafetensorsTest, WriterRequiresTheDeclaredSize) {
  const std::vector<TensorInfo> tensors = {{.name = "a", .type = TensorType::f32, .shape = {2}}};
  const float values[] = {1, 2, 3};
  SafetensorsWriter writer(folder_ / "new", tensors, {});
  expect_error(ErrorCode::internal, {folder_ / "new", "4 bytes", "more than declared"},
               [&] { writer.append(values, sizeof values); });
  writer.append(values, 4);
  expect_error(ErrorCode::internal, {folder_ / "new", "4 bytes", "fewer than declared"},
               [&] { writer.commit(); });
  {
    const SafetensorsWriter abandoned(folder_ / "other", tensors, {});
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
}

}  // namespace
}  // namespace toto::io
