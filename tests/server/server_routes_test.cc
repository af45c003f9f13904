// Every route of the service, its answers compared to the bit with the engine's own.
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "gzipped.h"
#include "server/decompress.h"
#include "server/web.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::walk;

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1));
  return out;
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class Routes : public ServerTest {
 protected:
  Routes() { start(); }
};

TEST_F(Routes, HealthMetadataAndPage) {
  EXPECT_EQ(get("/health").body, "{\"status\":\"ok\"}\n");
  EXPECT_EQ(get("/v2/health/live").status, 200);
  EXPECT_EQ(get("/v2/health/ready").status, 200);
  EXPECT_EQ(at(parsed(get("/v2")), "extensions").array.at(0).string, "binary_tensor_data");
  EXPECT_EQ(at(parsed(get("/v2/models/small")), "name").string, "small");
  EXPECT_EQ(get("/v2/models/small/versions/1/ready").status, 200);
  EXPECT_EQ(get("/v2/models/small/versions/2").status, 404);
  EXPECT_NE(get("/v2/models/other").error().find("small"), std::string::npos);
  for (const char* name : {"..", "%2e%2e", "..%2fsmall", "../small", "small/../small"}) {
    EXPECT_EQ(get(fmt::format("/v2/models/{}", name)).status, 404) << name;
    EXPECT_EQ(post(fmt::format("/v2/models/{}/infer", name), "{}").status, 404) << name;
  }
  EXPECT_EQ(get("/").headers["content-type"], "text/html; charset=utf-8");
  EXPECT_EQ(get("/nothing").status, 404);
  EXPECT_EQ(get("/web/nothing.js").status, 404);
  EXPECT_EQ(get("/v1/forecast").status, 404);
}

TEST_F(Routes, ForecastsLikeTheEngine) {
  Series series = walk(1, 100);
  series.values[0] = NAN;
  series.values[50] = NAN;
  const std::string body = fmt::format(
      R"({{"series": [{{"id": "a", "start": "2024-01-01", "freq": "D", "values": {}}}],
          "horizon": 20, "quantiles": [0.05, 0.95], "samples": 32, "seed": 7, "point": "median",
          "emit": "samples"}})",
      values_text(series.values));
  const Json json = parsed(post("/v1/forecast", body));
  const Json& answer = at(json, "series").array.at(0);
  series.values.erase(series.values.begin());
  const Forecast right = expected(series, {.horizon = 20,
                                           .quantiles = {0.05, 0.95},
                                           .num_samples = 32,
                                           .point = parse_point("median"),
                                           .seed = 7,
                                           .keep_samples = true});
  EXPECT_EQ(floats(at(answer, "mean")), right.mean);
  EXPECT_EQ(floats(at(answer, "median")), right.median);
  EXPECT_EQ(floats(at(answer, "point")), right.point);
  EXPECT_EQ(floats(at(at(answer, "quantiles"), "0.95")),
            std::vector<float>(right.quantiles.begin() + 20, right.quantiles.end()));
  EXPECT_EQ(at(answer, "samples").array.size(), 32u);
  EXPECT_EQ(at(answer, "timestamps").array.at(0).string, "2024-04-10");
  EXPECT_EQ(at(at(json, "engine"), "model").string, "model-1");
  EXPECT_EQ(at(at(json, "engine"), "seed").integer, 7);
}

TEST_F(Routes, VariatesAndKnownFutures) {
  const Series both = walk(2, 64, 2), known = walk(3, 64);
  const auto part = [](const Series& series, std::size_t v) {
    const auto length = static_cast<std::ptrdiff_t>(series.length());
    const auto from = series.values.begin() + static_cast<std::ptrdiff_t>(v) * length;
    return std::vector<float>(from, from + length);
  };
  Series right = both;
  right.id = "a";
  right.num_variates = 3;
  right.num_exogenous = 1;
  right.values.insert(right.values.end(), known.values.begin(), known.values.end());
  right.future_exogenous = {1, 2, 3};
  const std::string body = fmt::format(
      R"({{"multivariate": true, "horizon": 3, "series": [{{"id": "a", "values": {}}},
          {{"id": "k", "values": {}, "future": [1, 2, 3]}}, {{"id": "b", "values": {}}}]}})",
      values_text(part(both, 0)), values_text(known.values), values_text(part(both, 1)));
  const Json json = parsed(post("/v1/forecast", body));
  const Forecast forecast = expected(right, {.horizon = 3});
  ASSERT_EQ(at(json, "series").array.size(), 2u);
  EXPECT_EQ(at(at(json, "series").array[1], "id").string, "b");
  EXPECT_EQ(floats(at(at(json, "series").array[1], "mean")),
            std::vector<float>(forecast.mean.begin() + 3, forecast.mean.begin() + 6));
}

TEST_F(Routes, EveryProtocolScalesSmallSeries) {
  Series small = walk(5, 64);
  for (float& value : small.values) value *= 0x1p-12f;
  const std::string values = values_text(small.values);
  const Forecast automatic = expected(small, {.horizon = 3}),
                 one = expected(small, {.horizon = 3, .scale = 1});
  ASSERT_GT(automatic.scale[0], 100);
  ASSERT_NE(automatic.mean, one.mean);
  const auto v1 = [&](const std::string& more) {
    return parsed(
        post("/v1/forecast",
             fmt::format(R"({{"horizon": 3, "series": [{{"values": {}}}]{}}})", values, more)));
  };
  for (const std::string more : {"", R"(, "scale": "auto")", R"(, "scale": 1)"}) {
    const Forecast& right = more.ends_with("1") ? one : automatic;
    const Json json = v1(more);
    const Json& entry = at(json, "series").array[0];
    EXPECT_EQ(floats(at(entry, "mean")), right.mean) << more;
    EXPECT_EQ(at(entry, "scale").real, right.scale[0]) << more;
  }
  const Json nixtla = parsed(post(
      "/v2/forecast",
      fmt::format(R"({{"series": {{"y": {}, "sizes": [64]}}, "h": 3, "freq": "D"}})", values)));
  EXPECT_EQ(floats(at(nixtla, "mean")), automatic.mean);
  const Json chronos = parsed(post(
      "/invocations",
      fmt::format(R"({{"inputs": [{{"target": {}}}], "parameters": {{"prediction_length": 3}}}})",
                  values)));
  EXPECT_EQ(floats(at(at(chronos, "predictions").array[0], "mean")), automatic.mean);
  const Json opened =
      parsed(post("/v1/sessions", fmt::format(R"({{"series": [{{"values": {}}}]}})", values)));
  const Json streamed = parsed(
      post("/v1/sessions/" + at(opened, "session").string + "/forecast", R"({"horizon": 3})"));
  EXPECT_EQ(floats(at(at(streamed, "series").array[0], "mean")), automatic.mean);
  EXPECT_EQ(at(at(streamed, "series").array[0], "scale").real, automatic.scale[0]);
}

// What the command says about a series, without the name of a file.
TEST_F(Routes, WarningsAreThoseOfTheCommand) {
  const auto warnings = [&](const Json& json) {
    std::vector<std::string> sentences;
    for (const Json& sentence : at(json, "warnings").array) {
      if (sentence.string.find("is untrained") == std::string::npos) {
        sentences.push_back(sentence.string);
      }
    }
    return sentences;
  };
  const auto asked = [&](const std::string& series, const std::string& more = "") {
    return warnings(parsed(
        post("/v1/forecast", fmt::format(R"({{"horizon": 3, "series": [{}]{}}})", series, more))));
  };
  EXPECT_EQ(asked(R"({"values": [1, 20, 3, 40]})"), std::vector<std::string>{});
  EXPECT_EQ(asked(R"({"id": "a", "values": [null, null, 1, 20, null, 40]})"),
            (std::vector<std::string>{
                "leading missing values are dropped: 2 of the series \"a\"",
                "1 missing value of the series \"a\" is filled with the previous value; --missing "
                "linear interpolates, mask ignores"}));
  const std::vector<std::string> constant =
      asked(R"({"id": "a", "values": [7, 7, 7]}, {"id": "b", "values": [7, 7]})");
  ASSERT_EQ(constant.size(), 1u);
  EXPECT_TRUE(constant[0].starts_with("the series \"a\" and 1 more have always the same value"));
  const std::vector<std::string> flat =
      asked(R"({"id": "a", "values": [1, 1.01, 1, 1.02]})", R"(, "scale": 1)");
  ASSERT_EQ(flat.size(), 1u);
  EXPECT_TRUE(flat[0].starts_with("the series \"a\" varies by little")) << flat[0];
  const std::string long_values = values_text(walk(1, 5000).values);
  const std::string entry = fmt::format(R"({{"id": "a", "values": {}}})", long_values);
  EXPECT_EQ(asked(entry), std::vector<std::string>{"the latest 4096 of 5000 values are used of the "
                                                   "series \"a\"; --context N uses more"});
  EXPECT_EQ(asked(entry, R"(, "context": 100)"), std::vector<std::string>{}) << "asked for";

  const Json opened =
      parsed(post("/v1/sessions", R"({"series": [{"id": "s", "values": [5, 5, 5]}]})"));
  EXPECT_EQ(warnings(opened), std::vector<std::string>{});
  const std::string session = "/v1/sessions/" + at(opened, "session").string;
  const std::vector<std::string> streamed =
      warnings(parsed(post(session + "/forecast", R"({"horizon": 3})")));
  ASSERT_EQ(streamed.size(), 1u);
  EXPECT_TRUE(streamed[0].starts_with("the series \"s\" has always the same value"));
  const std::vector<std::string> grown =
      warnings(parsed(post(session + "/append", R"({"values": [9, 20], "horizon": 3})")));
  EXPECT_EQ(grown, std::vector<std::string>{});
  EXPECT_EQ(warnings(parsed(get("/v1/status"))), std::vector<std::string>{});
}

TEST_F(Routes, BadRequestsGetOneSentence) {
  const auto error = [&](std::string_view body) {
    const Reply reply = post("/v1/forecast", body);
    EXPECT_EQ(reply.status, 400) << body;
    return reply.error();
  };
  const auto expect = [&](std::string_view body, std::string_view fragment) {
    EXPECT_NE(error(body).find(fragment), std::string::npos) << error(body);
  };
  expect("{", "the request");
  expect("[]", "expected an object");
  expect(R"({"series": []})", "no series");
  expect(R"({"serie": []})", "series is missing");
  expect(R"({"series": [{"values": [1, 2]}], "horizons": 3})", "horizon");
  expect(R"({"series": [{"values": [1, "x"]}]})", "series[0].values[1]");
  expect(R"({"series": [{"values": [1, 1e300]}]})", "float32");
  expect(R"({"series": [{"values": [NaN]}]})", "the request");
  expect(R"({"series": [{"values": [null]}]})", "no value");
  expect(R"({"series": [{"values": [1]}], "horizon": 0})", "horizon is 0");
  expect(R"({"series": [{"values": [1]}], "horizon": 1000000000})", "100000");
  expect(R"({"series": [{"values": [1]}], "samples": 1000000000})", "samples");
  expect(R"({"series": [{"values": [1]}], "samples": 8, "paths": 9})",
         "paths is 9 and samples is 8, expected one of them");
  expect(R"({"series": [{"values": [1]}], "decode": "mean", "paths": 9})", "paths is 9 but decode");
  expect(R"({"series": [{"values": [1]}], "paths": 0})", "paths is 0");
  expect(R"({"series": [{"values": [1]}], "scale": 0})", "scale is 0, expected auto, or a finite");
  expect(R"({"series": [{"values": [1]}], "scale": "2"})", "scale is \"2\", expected auto");
  expect(R"({"series": [{"values": [1]}], "scale": 1e39})", "out of float32");
  expect(R"({"series": [{"values": [1]}], "quantiles": [1.5]})", "1.5");
  expect(R"({"series": [{"values": [1]}], "horizon": 100000, "samples": 1000000,
             "emit": "samples"})",
         "MB");
  expect(R"({"series": [{"values": [1], "freq": "D"}]})", "start");
  expect(R"({"series": [{"values": [1], "start": "yesterday", "freq": "D"}]})", "start");
  expect(R"({"series": [{"values": [1], "values": [2]}]})", "values");
  for (const std::size_t depth : {100, 100'000}) {
    EXPECT_NE(error(std::string(depth, '[') + std::string(depth, ']')).find("the request"),
              std::string::npos);
  }
}

TEST_F(Routes, CompressedBodies) {
  const std::string body = R"({"series": [{"values": [1, 2, 3, 4]}], "horizon": 2})";
  const std::string plain = post("/v1/forecast", body).body;
  const auto series = [](const std::string& text) {
    return text.substr(0, text.find("timings_ms"));
  };
  EXPECT_EQ(series(post("/v1/forecast", gzipped(body), "Content-Encoding: gzip\r\n").body),
            series(plain));
  EXPECT_EQ(series(post("/v1/forecast", zstd(body), "Content-Encoding: zstd\r\n").body),
            series(plain));
  EXPECT_EQ(post("/v1/forecast", body, "Content-Encoding: gzip\r\n").status, 400);
  EXPECT_EQ(post("/v1/forecast", zstd(body).substr(0, 20), "Content-Encoding: zstd\r\n").status,
            400);
  EXPECT_EQ(post("/v1/forecast", body, "Content-Encoding: br\r\n").status, 415);
  // A gigabyte of blanks in a megabyte, or less.
  const std::string blanks(std::size_t{1} << 20, ' ');
  const auto most = [](std::size_t limit) {
    return [limit, taken = std::size_t{0}](std::size_t bytes) mutable {
      return (taken += bytes) <= limit;
    };
  };
  EXPECT_FALSE(decompress(gzipped(blanks), "gzip", most(blanks.size() - 1)));
  EXPECT_EQ(decompress(gzipped(blanks), "gzip", most(blanks.size())), blanks);
  EXPECT_FALSE(decompress(zstd(blanks), "zstd", most(1000)));
}

// Megabytes of blanks in some thousand bytes.
TEST_F(ServerTest, BombsAreRefused) {
  http_options_.max_body = service_options_.limits.max_body = std::size_t{1} << 20;
  start();
  const std::string blanks(std::size_t{4} << 20, ' ');
  const std::string gzip_bomb = gzipped(blanks), zstd_bomb = zstd(blanks);
  for (const char* route : {"/v1/forecast", "/v2/forecast", "/v2/models/small/infer"}) {
    EXPECT_EQ(post(route, gzip_bomb, "Content-Encoding: gzip\r\n").status, 413) << route;
    EXPECT_EQ(post(route, zstd_bomb, "Content-Encoding: zstd\r\n").status, 413) << route;
  }
}

TEST_F(Routes, OpenInferenceProtocol) {
  const Series a = walk(4, 40, 2), b = walk(5, 40, 2);
  std::vector<float> all = a.values;
  all.insert(all.end(), b.values.begin(), b.values.end());
  all[3] = NAN;
  Series right = a;
  right.values[3] = NAN;
  const ForecastOptions options{
      .horizon = 5, .quantiles = {0.1, 0.5}, .num_samples = 8, .keep_samples = true};
  const Forecast first = expected(right, options), second = expected(b, options);
  const std::string header = fmt::format(
      R"({{"id": "7", "inputs": [{{"name": "target", "datatype": "FP32", "shape": [2, 2, 40],
          "parameters": {{"binary_data_size": {}}}}}], "parameters": {{"horizon": 5, "samples": 8,
          "quantiles": "0.1,0.5"}}, "outputs": [{{"name": "mean", "parameters":
          {{"binary_data": true}}}}, {{"name": "samples", "parameters": {{"binary_data": true}}}},
          {{"name": "quantiles"}}]}})",
      all.size() * 4);
  const Reply reply = post("/v2/models/small/infer", header + bytes_of(all),
                           fmt::format("Inference-Header-Content-Length: {}\r\n", header.size()));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::size_t json_size = std::stoul(reply.headers.at("inference-header-content-length"));
  const Json json = io::parse_json(reply.body.substr(0, json_size), "header");
  const std::string binary = reply.body.substr(json_size);
  std::vector<float> numbers(binary.size() / 4);
  std::memcpy(numbers.data(), binary.data(), binary.size());
  ASSERT_EQ(numbers.size(), 20u + 160u);
  EXPECT_TRUE(std::equal(first.mean.begin(), first.mean.end(), numbers.begin()));
  EXPECT_TRUE(std::equal(second.mean.begin(), second.mean.end(), numbers.begin() + 10));
  // samples [B, V, H, S] of [variate][sample][step]: batch 1, variate 1, step 2, sample 3.
  EXPECT_EQ(numbers[20 + ((1 * 2 + 1) * 5 + 2) * 8 + 3], second.samples[(1 * 8 + 3) * 5 + 2]);
  const std::vector<float> levels = floats(at(at(json, "outputs").array.at(2), "data"));
  ASSERT_EQ(levels.size(), 40u);
  EXPECT_TRUE(std::equal(first.quantiles.begin(), first.quantiles.begin() + 10, levels.begin()));
  EXPECT_TRUE(
      std::equal(second.quantiles.begin(), second.quantiles.begin() + 10, levels.begin() + 10));
  EXPECT_EQ(at(json, "id").string, "7");
}

TEST_F(Routes, OpenInferenceProtocolRefusals) {
  const auto expect = [&](std::string_view fragment, std::string_view body,
                          std::string_view headers = {}) {
    const Reply reply = post("/v2/models/small/infer", body, headers);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_NE(reply.error().find(fragment), std::string::npos) << reply.error();
  };
  const auto target = [](std::string_view rest) {
    return fmt::format(R"({{"inputs": [{{"name": "target", "datatype": "FP32", {}}}]}})", rest);
  };
  expect("at most the 2 bytes", "{}", "Inference-Header-Content-Length: 3\r\n");
  expect("-1", "{}", "Inference-Header-Content-Length: -1\r\n");
  expect("target", R"({"inputs": []})");
  expect("elements", target(R"("shape": [1, 1, 3], "data": [1, 2])"));
  expect("elements", target(R"("shape": [1, 1, 3], "data": [1, 2, 3, 4])"));
  expect("whole number", target(R"("shape": [1, 1, -3], "data": [1])"));
  expect("elements", target(R"("shape": [4294967296, 4294967296, 0], "data": [])"));
  expect("elements", target(R"("shape": [4294967296, 4294967296, 4294967296], "data": [1])"));
  expect("shape", target(R"("shape": [3], "data": [1, 2, 3])"));
  expect("binary_data_size",
         target(R"("shape": [1, 1, 3], "parameters": {"binary_data_size": 8})"));
  expect("bytes", target(R"("shape": [1, 1, 3], "parameters": {"binary_data_size": 12})"));
  expect("datatype", R"({"inputs": [{"name": "target", "datatype": "BYTES", "shape": [1]}]})");
  const std::string good =
      R"({"name": "target", "datatype": "FP32", "shape": [1, 1, 2], "data": [1, 2]})";
  expect("twice",
         fmt::format(R"({{"inputs": [{}], "outputs": [{{"name": "mean"}}, {{"name": "mean"}}]}})",
                     good));
  expect("no output", fmt::format(R"({{"inputs": [{}], "outputs": [{{"name": "loc"}}]}})", good));
  expect("the request", target(R"("shape": [1, 1, 2], "data": [1, NaN])"));
  for (const int count : {65, 5000}) {
    std::string many;
    for (int i = 0; i < count; ++i) many += std::string(i > 0 ? "," : "") + R"({"name": "mean"})";
    expect("at most 64", fmt::format(R"({{"inputs": [{}], "outputs": [{}]}})", good, many));
  }
  expect("twice", fmt::format(R"({{"inputs": [{}, {}]}})", good, good));
  std::string many = good;
  for (int i = 0; i < 16; ++i) many += "," + good;
  expect("17 entries, expected at most 16", fmt::format(R"({{"inputs": [{}]}})", many));
}

TEST_F(Routes, Nixtla) {
  const Series a = walk(6, 50), b = walk(7, 30);
  std::vector<float> y = a.values;
  y.insert(y.end(), b.values.begin(), b.values.end());
  const std::string series = fmt::format(R"("series": {{"y": {}, "sizes": [50, 30], "X": null,
      "X_future": null, "start_datetime": ["2024-01-01", "2024-01-01"]}}, "model": "timegpt-1", "freq": "D", "finetune_steps": 0)",
                                         values_text(y));
  const Json json =
      parsed(post("/v2/forecast", fmt::format(R"({{{}, "h": 4, "level": [80, 90]}})", series)));
  const ForecastOptions options{.horizon = 4, .quantiles = {0.1, 0.9, 0.05, 0.95}};
  const Forecast first = expected(a, options), second = expected(b, options);
  std::vector<float> mean = first.mean;
  mean.insert(mean.end(), second.mean.begin(), second.mean.end());
  EXPECT_EQ(floats(at(json, "mean")), mean);
  const std::vector<float> low = floats(at(at(json, "intervals"), "lo-80"));
  EXPECT_TRUE(std::equal(low.begin(), low.begin() + 4, first.quantiles.begin()));
  EXPECT_TRUE(std::equal(low.begin() + 4, low.end(), second.quantiles.begin()));
  EXPECT_EQ(at(json, "input_tokens").integer, 80);
  for (const char* key : {"weights_x", "feature_contributions", "finetune_tokens"}) at(json, key);

  const Json cv = parsed(post(
      "/v2/cross_validation",
      fmt::format(R"({{{}, "h": 4, "n_windows": 2, "step_size": 3, "level": null}})", series)));
  Series cut = a;
  cut.values.resize(43);
  const std::vector<float> windows = floats(at(cv, "mean"));
  ASSERT_EQ(windows.size(), 16u);
  const Forecast window = expected(cut, {.horizon = 4, .quantiles = {}});
  EXPECT_TRUE(std::equal(window.mean.begin(), window.mean.end(), windows.begin()));
  EXPECT_EQ(at(cv, "idxs").array[0].integer, 43);
  EXPECT_EQ(at(cv, "idxs").array[8].integer, 50 + 23);
  EXPECT_EQ(at(cv, "sizes").array[0].integer, 8);
  EXPECT_EQ(at(cv, "intervals").kind, Json::Kind::null);

  const Json anomalies =
      parsed(post("/v2/anomaly_detection", fmt::format(R"({{{}, "level": 99}})", series)));
  EXPECT_EQ(at(anomalies, "anomaly").array.size(), at(anomalies, "mean").array.size());
  EXPECT_EQ(at(anomalies, "sizes").array[0].integer, 50 - 8);  // a patch of 8 first
  EXPECT_EQ(at(at(parsed(get("/model_params?model=x&freq=D")), "detail"), "input_size").integer,
            4096);
  EXPECT_EQ(at(parsed(get("/validate_api_key")), "detail").kind, Json::Kind::string);
  EXPECT_EQ(post("/v2/forecast", R"({"series": {"y": [1, 2], "sizes": [3]}, "h": 1})").status, 400);
  EXPECT_EQ(
      post("/v2/forecast", R"({"series": {"y": [1, 2], "sizes": [2]}, "h": 1, "level": [100]})")
          .status,
      400);
  EXPECT_EQ(post("/v2/forecast", R"({"series": {"y": [1, 2], "sizes": [2]}, "finetune_steps": 3})")
                .status,
            400);
}

TEST_F(Routes, NixtlaExogenous) {
  const Series y = walk(8, 40), past = walk(9, 40), known = walk(10, 40);
  Series right = y;
  right.num_variates = 3;
  right.num_exogenous = 1;
  right.values.insert(right.values.end(), past.values.begin(), past.values.end());
  right.values.insert(right.values.end(), known.values.begin(), known.values.end());
  right.future_exogenous = {1, 2};
  const Json json = parsed(post(
      "/v2/forecast",
      fmt::format(
          R"({{"series": {{"y": {}, "sizes": [40], "X": [{}, {}], "X_future": [[1, 2]]}}, "h": 2}})",
          values_text(y.values), values_text(known.values), values_text(past.values))));
  const Forecast forecast = expected(right, {.horizon = 2, .quantiles = {}});
  EXPECT_EQ(floats(at(json, "mean")),
            std::vector<float>(forecast.mean.begin(), forecast.mean.begin() + 2));
}

// Where windows cover the history, a feature counts as far as it was known before each.
TEST_F(Routes, NixtlaExogenousAlongTheHistory) {
  const Series y = walk(8, 40), x = walk(9, 40);
  const std::string series =
      fmt::format(R"("series": {{"y": {}, "sizes": [40], "X": [{}]}}, "level": [80])",
                  values_text(y.values), values_text(x.values));
  Series right;  // before the second window; a patch of 8 comes first
  right.num_variates = 2;
  right.values.assign(y.values.begin(), y.values.begin() + 16);
  right.values.insert(right.values.end(), x.values.begin(), x.values.begin() + 16);
  const Forecast forecast = expected(right, {.horizon = 8, .quantiles = {0.1, 0.9}});
  for (const std::string& reply :
       {post("/v2/anomaly_detection", "{" + series + "}").body,
        post("/v2/cross_validation", "{" + series + R"(, "full_history": true})").body}) {
    const Json json = io::parse_json(reply, "the reply");
    const std::vector<float> mean = floats(at(json, "mean"));
    ASSERT_EQ(mean.size(), 32u) << reply;
    EXPECT_EQ(std::vector<float>(mean.begin() + 8, mean.begin() + 16),
              std::vector<float>(forecast.mean.begin(), forecast.mean.begin() + 8));
  }
}

TEST_F(Routes, Chronos) {
  const Series series = walk(11, 40), promotion = walk(12, 40);
  const Json json = parsed(post(
      "/invocations",
      fmt::format(
          R"({{"inputs": [{{"target": {}, "item_id": "x"}}, {{"target": [{}, {}]}}],
           "parameters": {{"prediction_length": 3, "quantile_levels": [0.2]}}}})",
          values_text(series.values), values_text(series.values), values_text(promotion.values))));
  const Forecast right = expected(series, {.horizon = 3, .quantiles = {0.2}});
  const Json& first = at(json, "predictions").array.at(0);
  EXPECT_EQ(floats(at(first, "mean")), right.mean);
  EXPECT_EQ(floats(at(first, "0.2")), right.quantiles);
  EXPECT_EQ(at(first, "item_id").string, "x");
  Series both = series;
  both.num_variates = 2;
  both.values.insert(both.values.end(), promotion.values.begin(), promotion.values.end());
  const Forecast joint = expected(both, {.horizon = 3, .quantiles = {0.2}});
  const Json& second = at(at(json, "predictions").array.at(1), "mean");
  ASSERT_EQ(second.array.size(), 2u);
  EXPECT_EQ(floats(second.array[1]), std::vector<float>(joint.mean.begin() + 3, joint.mean.end()));
  EXPECT_EQ(post("/invocations", R"({"inputs": [{"target": [1, 2],
      "future_covariates": {"p": [1]}}], "parameters": {"prediction_length": 1}})")
                .status,
            400);
}

TEST_F(Routes, SessionsAreExact) {
  const Series whole = walk(13, 120);
  Series history = whole;
  history.values.resize(100);
  const Json opened = parsed(
      post("/v1/sessions",
           fmt::format(
               R"({{"series": {{"id": "s", "start": "2024-01-01", "freq": "D", "values": {}}}}})",
               values_text(history.values))));
  const std::string id = at(opened, "session").string;
  EXPECT_EQ(at(opened, "length").integer, 100);
  for (std::size_t next = 100; next < 120; next += 4) {
    const std::vector<float> points(whole.values.begin() + static_cast<std::ptrdiff_t>(next),
                                    whole.values.begin() + static_cast<std::ptrdiff_t>(next + 4));
    const Json answer =
        parsed(post("/v1/sessions/" + id + "/append",
                    fmt::format(R"({{"values": {}, "horizon": 6}})", values_text(points))));
    Series now = whole;
    now.values.resize(next + 4);
    const Json& series = at(answer, "series").array.at(0);
    EXPECT_EQ(floats(at(series, "mean")), expected(now, {.horizon = 6}).mean) << next;
  }
  const Json last = parsed(post("/v1/sessions/" + id + "/forecast", R"({"horizon": 2})"));
  EXPECT_EQ(at(at(last, "series").array[0], "timestamps").array[0].string, "2024-04-30");
  EXPECT_EQ(post("/v1/sessions/" + id + "/append", R"({"values": [[1], [2]]})").status, 400);
  // The last of the points was later than the frequency says.
  const Json later = parsed(post("/v1/sessions/" + id + "/append",
                                 R"({"values": [1], "end": "2024-05-06", "horizon": 1})"));
  EXPECT_EQ(at(at(later, "series").array[0], "timestamps").array[0].string, "2024-05-07");
  for (const char* refused :
       {R"({"values": [1], "end": "2024-05-06"})", R"({"values": [1], "end": "x"})",
        R"({"values": [], "end": "2025-01-01"})"}) {
    EXPECT_EQ(post("/v1/sessions/" + id + "/append", refused).status, 400) << refused;
  }
  EXPECT_GT(
      at(parsed(post("/v1/sessions/" + id + "/append", R"({"values": [5]})")), "patches_reused")
          .integer,
      0);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id).status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/sessions/" + id).status, 404);
  EXPECT_EQ(post("/v1/sessions/" + id + "/forecast", "{}").status, 404);
  EXPECT_EQ(post("/v1/sessions", R"({"series": {"values": [null]}})").status, 400);
  EXPECT_NE(get("/metrics").body.find("\ntoto_sessions 0\n"), std::string::npos);
}

TEST_F(Routes, MetricsAndStatus) {
  post("/v1/forecast", R"({"series": [{"values": [1, 2, 3]}], "horizon": 2})");
  post("/v1/forecast", "{");
  // A request is counted after its answer was sent, perhaps after the client received it.
  constexpr const char* kBoth = "toto_request_duration_seconds_count{route=\"/v1/forecast\"} 2\n";
  std::string text;
  EXPECT_TRUE(eventually([&] {
    text = get("/metrics").body;
    return text.find(kBoth) != text.npos && text.find("\ntoto_queue_depth 0\n") != text.npos;
  }));
  for (const char* line :
       {"toto_requests_total{route=\"/v1/forecast\",status=\"200\"} 1\n",
        "toto_requests_total{route=\"/v1/forecast\",status=\"400\"} 1\n", kBoth,
        "toto_request_duration_seconds_bucket{route=\"/v1/forecast\",le=\"+Inf\"} 2\n",
        "toto_errors_total{kind=\"bad_request\"} 1\n", "toto_forecasts_total 1\n",
        "toto_batch_size_count 1\n", "toto_queue_depth 0\n", "toto_replans_total 0\n",
        "toto_shadow_deviation 0\n", "toto_ready 1\n", "toto_log_lines_lost_total 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("\ntoto_connections 0\n"), text.npos) << "this one is open";
  for (const char* name : {"toto_build_info{", "toto_model_info{", "process_resident_memory_bytes ",
                           "toto_request_duration_quantile_seconds{"}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
  const Json status = parsed(get("/v1/status"));
  EXPECT_EQ(at(status, "mode").string, "default");
  EXPECT_EQ(at(at(status, "latency_ms"), "count").integer, 1);
  EXPECT_EQ(post("/v1/mode", R"({"mode": "reference"})").status, 403);
}

// Every forecasting route is timed as a forecast; sessions are batches of one.
TEST_F(Routes, EveryForecastCounts) {
  const Json opened = parsed(post("/v1/sessions", R"({"series": {"values": [1, 2, 3]}})"));
  const std::string path = "/v1/sessions/" + at(opened, "session").string;
  parsed(post(path + "/append", R"({"values": [4], "horizon": 2})"));
  parsed(post(path + "/forecast", R"({"horizon": 2})"));
  const std::string series = R"({"series": {"y": [1, 2, 3, 4, 5, 6], "sizes": [6]}, "h": 1})";
  for (const char* route : {"/v2/cross_validation", "/v2/anomaly_detection"}) {
    parsed(post(route, series));
  }
  EXPECT_TRUE(eventually(
      [&] { return at(at(parsed(get("/v1/status")), "latency_ms"), "count").integer == 4; }));
  EXPECT_NE(get("/metrics").body.find("\ntoto_batch_size_count 4\n"), std::string::npos)
      << get("/metrics").body;
}

}  // namespace
}  // namespace toto::server
