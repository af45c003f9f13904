
#include "io/json.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "io_fixture.h"

namespace toto::io {
namespace {

// The expected error for each bad_*.json of the corpus, which tools/make_corpus.py generates.
const std::map<std::string, std::string_view> kBadJson = {
    {"bad_empty", "line 1, column 1: there is no value"},
    {"bad_blank", "there is no value"},
    {"bad_only_byte_order_mark", "there is no value"},
    {"bad_utf16", "line 1, column 1: this byte is not valid UTF-8"},
    {"bad_utf8_in_string", "line 2, column 4: this byte is not valid UTF-8"},
    {"bad_utf8_overlong", "line 1, column 3: this byte is not valid UTF-8"},
    {"bad_utf8_surrogate", "line 1, column 3: this byte is not valid UTF-8"},
    {"bad_zero_byte", "does not end with its closing bracket"},
    {"bad_control_in_string", "line 1, column 12: a control character in a string"},
    {"bad_unclosed_string", "line 1, column 7: this string has no closing quote"},
    {"bad_unclosed_object", "does not end with its closing bracket"},
    {"bad_unclosed_array", "does not end with its closing bracket"},
    {"bad_unclosed_inner", "not valid JSON"},
    {"bad_unclosed_empty_inner", "not valid JSON"},
    {"bad_mismatched", "does not end with its closing bracket"},
    {"bad_trailing_comma", "line 2, column 1: not valid JSON"},
    {"bad_trailing_comma_array", "line 1, column 8: \"]\" is not a JSON value"},
    {"bad_missing_comma", "line 1, column 4: not valid JSON"},
    {"bad_missing_colon", "line 1, column 6: not valid JSON"},
    {"bad_missing_value", "line 1, column 7: \"}\" is not a JSON value"},
    {"bad_key_not_string", "not valid JSON"},
    {"bad_single_quotes", "not valid JSON"},
    {"bad_comment", "does not end with its closing bracket"},
    {"bad_two_documents", "line 2, column 1: more text after the end"},
    {"bad_two_scalars", "\"1 2\" is not a JSON value"},
    {"bad_bracket_after_end", "line 1, column 3: more text after the end"},
    {"bad_escape", "line 1, column 2: this string holds an invalid escape sequence"},
    {"bad_lone_high_surrogate", "line 1, column 2: this string holds an invalid escape sequence"},
    {"bad_lone_low_surrogate", "line 1, column 2: this string holds an invalid escape sequence"},
    {"bad_literal_nan", "line 1, column 7: \"NaN\" is not a JSON value"},
    {"bad_literal_infinity", "\"-Infinity\" is not a JSON value"},
    {"bad_literal_upper_case", "\"True\" is not a JSON value"},
    {"bad_literal_cut", "\"nul\" is not a JSON value"},
    {"bad_number_leading_zero", "\"01\" is not a JSON value"},
    {"bad_number_leading_plus", "\"+1\" is not a JSON value"},
    {"bad_number_no_fraction", "\"1.\" is not a JSON value"},
    {"bad_number_no_whole", "\".5\" is not a JSON value"},
    {"bad_number_no_exponent", "\"1e\" is not a JSON value"},
    {"bad_number_hex", "\"0x10\" is not a JSON value"},
    {"bad_number_only_minus", "\"-\" is not a JSON value"},
    {"bad_number_too_large", "line 1, column 11: the number \"1e400\" is too large"},
    {"bad_number_too_large_negative_exponent", "is too large"},
    {"bad_duplicate_key", "line 2, column 2: duplicate key \"dim\""},
    {"bad_duplicate_escaped_key", "line 1, column 10: duplicate key \"a\""},
    {"bad_duplicate_inner_key", "line 1, column 17: duplicate key \"b\""},
    {"bad_depth_65", "nested deeper than 64 levels"},
    {"bad_depth_mixed", "nested deeper than 64 levels"},
};

std::string seed(std::string_view name) {
  return contents_of(std::string(TOTO_SOURCE_DIR "/tests/corpus/json/").append(name) + ".json");
}

TEST(Json, RefusesEveryBadFileOfTheCorpusAndAcceptsTheRest) {
  std::size_t num_bad = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(TOTO_SOURCE_DIR "/tests/corpus/json")) {
    const std::string name = file.path().stem().string();
    SCOPED_TRACE(name);
    if (name.starts_with("ok_")) {
      EXPECT_NO_THROW(parse_json(seed(name), name));
      continue;
    }
    ++num_bad;
    ASSERT_TRUE(kBadJson.contains(name));
    expect_error(ErrorCode::corrupt_file, {name, "line ", kBadJson.at(name)},
                 [&] { parse_json(seed(name), name); });
  }
  EXPECT_EQ(num_bad, kBadJson.size());
}

TEST(Json, KeepsKindsAndOrder) {
  const Json json = parse_json(seed("ok_object"), "seed");
  ASSERT_EQ(json.kind, Json::Kind::object);
  ASSERT_EQ(json.object.size(), 4U);
  EXPECT_EQ(json.object[0].first, "patch_size");
  EXPECT_EQ(json.find("patch_size")->kind, Json::Kind::integer);
  EXPECT_EQ(json.find("patch_size")->integer, 64);
  EXPECT_EQ(json.find("patch_size")->real, 64.0);
  EXPECT_EQ(json.find("dropout")->kind, Json::Kind::real);
  EXPECT_EQ(json.find("dropout")->real, 0.1);
  const Json& list = *json.find("list");
  ASSERT_EQ(list.array.size(), 4U);
  EXPECT_EQ(list.array[0].string, "a");
  EXPECT_EQ(list.array[1].kind, Json::Kind::null);
  EXPECT_TRUE(list.array[2].boolean);
  EXPECT_FALSE(list.array[3].boolean);
  EXPECT_EQ(list.array[3].kind, Json::Kind::boolean);
  EXPECT_EQ(json.find("n")->kind, Json::Kind::object);
  EXPECT_EQ(json.find("absent"), nullptr);
  EXPECT_EQ(list.find("a"), nullptr);
}

TEST(Json, ReadsNumbersExactly) {
  const Json integers = parse_json(seed("ok_integers"), "seed");
  EXPECT_EQ(integers.array[0].integer, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integers.array[1].integer, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integers.array[1].kind, Json::Kind::integer);
  EXPECT_EQ(integers.array[2].kind, Json::Kind::real);
  EXPECT_EQ(integers.array[2].real, 0x1p63);
  EXPECT_EQ(integers.array[3].real, 1e30);
  const Json reals = parse_json(seed("ok_reals"), "seed");
  EXPECT_EQ(reals.array[0].real, DBL_MAX);
  EXPECT_EQ(reals.array[1].real, 0x1p-1074);
  EXPECT_EQ(reals.array[2].real, DBL_MIN);
  EXPECT_EQ(reals.array[3].real, 0.0);
  EXPECT_TRUE(std::signbit(reals.array[4].real));
  const Json zeros = parse_json(seed("ok_long_zero"), "seed");
  EXPECT_EQ(zeros.array[0].real, 0.0);
  EXPECT_EQ(zeros.array[1].real, 1.0);
  EXPECT_EQ(zeros.array[2].real, 0.0);
  EXPECT_TRUE(std::signbit(parse_json("-0", "text").real));
}

TEST(Json, ReadsStrings) {
  const Json json = parse_json(seed("ok_escapes"), "seed");
  EXPECT_EQ(json.array[0].string,
            std::string("\" \\ / \b \f \n \r \t \xC3\xBC \xF0\x9F\x98\x80 \0", 25));
  EXPECT_EQ(json.array[1].string, "\xC3\xBC\xF0\x9F\x98\x80");
  EXPECT_EQ(parse_json(seed("ok_string"), "seed").string, "alone");
}

TEST(Json, BoundsDepthAndNumberOfValues) {
  for (const int depth : {1'000, 100'000}) {  // far deeper than any stack could follow
    const std::string text(static_cast<std::size_t>(depth), '[');
    expect_error(ErrorCode::corrupt_file, {"text"}, [&] { parse_json(text, "text"); });
    expect_error(ErrorCode::corrupt_file, {"text", "column 66", "deeper than 64"},
                 [&] { parse_json(text + std::string(text.size(), ']'), "text"); });
  }
  EXPECT_EQ(parse_json("[1,2,3]", "text", 3).array.size(), 3U);
  expect_error(ErrorCode::corrupt_file, {"text", "column 8", "more than 3 values"},
               [] { parse_json("[1,2,3,4]", "text", 3); });
  std::string many = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) many += ",0";
  expect_error(ErrorCode::corrupt_file, {"text", "more than 4000000 values"},
               [&] { parse_json(many + "]", "text"); });
}

TEST(Json, StaysFastForManyAndLongKeys) {
  const auto object_of = [](int count, std::string_view prefix) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += fmt::format("\"{}{}\":{},", prefix, i, i);
    text.back() = '}';
    return text;
  };
  const double start = cpu_seconds();
  EXPECT_EQ(parse_json(object_of(300'000, "key"), "text").object.size(), 300'000U);
  EXPECT_EQ(parse_json(object_of(1'000, std::string(10'000, 'k')), "text").object.size(), 1'000U);
  std::string twice = object_of(300'000, "key");
  twice.back() = ',';
  expect_error(ErrorCode::corrupt_file, {"duplicate key \"key7\""},
               [&] { parse_json(twice + "\"key7\":0}", "text"); });
  EXPECT_LT(cpu_seconds() - start, kHangSeconds);  // 0.3 s; comparing all pairs would take minutes
}

TEST(Json, ShortensLongKeysInErrors) {
  const std::string key(1'000'000, 'k');
  expect_error(ErrorCode::corrupt_file, {"... (1000000 bytes); expected each key once"},
               [&] { parse_json(fmt::format("{{\"{0}\":1,\"{0}\":2}}", key), "text"); });
}

// ----------------------------------------------------------------------------------------- writer

template <typename T>
std::string written(T value) {
  std::string text = JsonWriter().value(value).take();
  EXPECT_EQ(text.back(), '\n');
  text.pop_back();
  return text;
}

TEST(JsonWriter, LaysDocumentsOut) {
  const auto write = [](JsonWriter writer) {
    writer.begin_object().field("name", "toto").field("count", 3).field("ok", true);
    writer.key("mean").begin_array().value(1.5F).value(std::nan("")).value(-2).end_array();
    writer.key("series").begin_array();
    writer.begin_object().field("id", std::string("a")).end_object();
    writer.begin_array().end_array();
    writer.value("text").null().end_array();
    writer.key("none").begin_object().end_object();
    return writer.end_object().take();
  };
  EXPECT_EQ(write(JsonWriter()), R"({
  "name": "toto",
  "count": 3,
  "ok": true,
  "mean": [1.5, null, -2],
  "series": [
    {
      "id": "a"
    },
    [],
    "text",
    null
  ],
  "none": {}
}
)");
  EXPECT_EQ(write(JsonWriter(JsonLayout::compact)),
            R"({"name":"toto","count":3,"ok":true,"mean":[1.5,null,-2],)"
            R"("series":[{"id":"a"},[],"text",null],"none":{}})"
            "\n");
}

TEST(JsonWriter, WritesTheShortestNumbers) {
  EXPECT_EQ(written(0.1F), "0.1");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(static_cast<double>(0.1F)), "0.10000000149011612");
  EXPECT_EQ(written(FLT_MAX), "3.4028235e+38");
  EXPECT_EQ(written(std::numeric_limits<float>::denorm_min()), "1e-45");
  EXPECT_EQ(written(1.0), "1");
  EXPECT_EQ(written(-0.0F), "-0");
  EXPECT_EQ(written(std::int64_t{std::numeric_limits<std::int64_t>::min()}),
            "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(written(7U), "7");
}

TEST(JsonWriter, WritesNullForNanAndInfinity) {
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(written(value), "null");
    EXPECT_EQ(written(static_cast<float>(value)), "null");
  }
}

TEST(JsonWriter, NumbersReadBackTheSame) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    const auto real = std::bit_cast<double>(bits);
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(real)) {
      EXPECT_EQ(parse_json(written(real), "text").real, real);
    }
    if (std::isfinite(single)) {
      EXPECT_EQ(static_cast<float>(parse_json(written(single), "text").real), single);
    }
  }
}

TEST(JsonWriter, IsValidForAnyString) {
  EXPECT_EQ(written("q\" b\\ n\n \x01 /"), R"("q\" b\\ n\u000a \u0001 /")");
  EXPECT_EQ(written("\x7F \xC2\x9B \xC2\xA0"), "\"\\u007f \\u009b \xC2\xA0\"");
  EXPECT_EQ(written("</script>"), "\"</script>\"");
  // A byte that is not UTF-8 becomes U+FFFD: stray tail, overlong, surrogate, too high, cut short.
  for (const std::string_view bad : {"\x80", "\xC0", "\xFF", "\xC3"}) {
    EXPECT_EQ(written(bad), "\"\xEF\xBF\xBD\"");
  }
  for (const std::string_view bad : {"\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_EQ(written(bad).size(), 2 + 3 * bad.size());
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 2'000; ++i) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const std::string once = parse_json(written(std::string_view(text)), "text").string;
    EXPECT_EQ(parse_json(written(std::string_view(once)), "text").string, once);
  }
}

TEST(JsonWriter, RefusesInvalidCallSequences) {
  const auto refused = [](auto&& call) {
    expect_error(ErrorCode::internal, {"JSON writer"}, call);
  };
  refused([] { JsonWriter().take(); });
  refused([] { JsonWriter().begin_object().take(); });
  refused([] { JsonWriter().begin_object().value(1); });
  refused([] { JsonWriter().begin_object().end_array(); });
  refused([] { JsonWriter().begin_object().key("a").end_object(); });
  refused([] { JsonWriter().begin_object().key("a").key("b"); });
  refused([] { JsonWriter().begin_array().key("a"); });
  refused([] { JsonWriter().key("a"); });
  refused([] { JsonWriter().end_array(); });
  refused([] { JsonWriter().value(1).value(2); });
}

TEST(JsonWriter, IsEmptyAfterTake) {
  JsonWriter writer;
  EXPECT_EQ(writer.value(1).take(), "1\n");
  EXPECT_EQ(writer.begin_array().value(2).end_array().take(), "[2]\n");
}

// ---------------------------------------------------------------------------------- error messages

TEST(Quoted, IsShortAndOnOneLine) {
  EXPECT_EQ(quoted(std::string("plain")), "\"plain\"");
  EXPECT_EQ(quoted(std::string_view("a\nb\x1B[2J")), "\"a\\u000ab\\u001b[2J\"");
  EXPECT_EQ(quoted(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
  EXPECT_EQ(quoted(std::string(81, 'x')), "\"" + std::string(80, 'x') + "\"... (81 bytes)");
  // Cut before, not inside, the character that spans the limit.
  EXPECT_EQ(quoted(std::string(79, 'x') + "\xC3\xBCyz"),
            "\"" + std::string(79, 'x') + "\"... (83 bytes)");
  EXPECT_LT(quoted(std::string(1'000'000, '\x80')).size(), 300U);
}

TEST(OneLine, RemovesTerminalControls) {
  EXPECT_EQ(one_line("plain \xC3\xBC \xF0\x9F\x99\x82"), "plain \xC3\xBC \xF0\x9F\x99\x82");
  EXPECT_EQ(one_line("a\nb\tc\x1B[2Jd\x7F"
                     "e\r\n"),
            "a b c [2Jd e");
  EXPECT_EQ(one_line("C1: \xC2\x9B"
                     "31m \xC2\x80.\xC2\x9F.\xC2\xA0."),
            "C1:  31m  . .\xC2\xA0.");
  EXPECT_EQ(one_line("\xE2\x80\xAE"
                     "fdp.\xE2\x80\xA8.\xE2\x81\xA6.\xE2\x80\xA6"),
            " fdp. . .\xE2\x80\xA6")
      << "an ellipsis stays";
  EXPECT_EQ(one_line("raw \x9B"
                     "31m cut \xC3"),
            "raw \xEF\xBF\xBD"
            "31m cut \xEF\xBF\xBD");
  EXPECT_EQ(one_line(std::string_view("\0\n", 2)), "");
}

TEST(Described, DescribesValues) {
  const Json json = parse_json(R"([[1, 2], {"a": 1}, "s", -1, 2.5, true, null])", "text");
  EXPECT_EQ(described(json.array[0]), "an array of 2");
  EXPECT_EQ(described(json.array[1]), "an object of 1");
  EXPECT_EQ(described(json.array[2]), "\"s\"");
  EXPECT_EQ(described(json.array[3]), "-1");
  EXPECT_EQ(described(json.array[4]), "the real number 2.5");
  EXPECT_EQ(described(json.array[5]), "true");
  EXPECT_EQ(described(json.array[6]), "null");
}

}  // namespace
}  // namespace toto::io
