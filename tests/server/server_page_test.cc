// The service for the page: files under a strict policy, also for a browser without a key, and
// tables read as by the command line.
#include "server_fixture.h"

namespace toto::server {
namespace {

class ServerPage : public ServerTest {
 protected:
  Reply read(std::string_view csv, std::string_view more = "") const {
    io::JsonWriter text(io::JsonLayout::compact);
    text.value(csv);
    std::string quoted = text.take();
    quoted.pop_back();  // the line end
    return post("/v1/series", fmt::format(R"({{"csv": {}, "name": "a.csv"{}}})", quoted, more));
  }
  void expect_complaint(const Reply& reply, std::string_view fragment) const {
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_NE(reply.error().find(fragment), std::string::npos) << reply.body;
  }
};

TEST_F(ServerPage, FilesComeUnderAStrictPolicy) {
  service_options_.report_sources = {.script = "sha256-abc=", .style = "sha256-def="};
  start();
  for (const char* path : {"/", "/web/app.js", "/web/style.css", "/web/AAPL.csv"}) {
    Reply reply = get(path);
    EXPECT_EQ(reply.status, 200) << path;
    const std::string& policy = reply.headers["content-security-policy"];
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
    for (const char* part :
         {"default-src 'none'", "connect-src 'self'", "script-src 'self' 'sha256-abc=';",
          "style-src 'self' 'sha256-def=';", "frame-ancestors 'none'", "base-uri 'none'"}) {
      EXPECT_NE(policy.find(part), std::string::npos) << policy;
    }
    EXPECT_EQ(reply.headers["x-content-type-options"], "nosniff");
  }
  EXPECT_EQ(get("/web/app.js").headers["content-type"], "text/javascript; charset=utf-8");
  EXPECT_EQ(get("/web/..").status, 404);
  // The page needs no laxer policy and no other server.
  const std::string html = get("/").body;
  for (const char* part : {"<style", "style=", "onclick", "http://", "https://", "<script>"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
}

// Everything but health needs the key. A browser cannot send it with an address: it gets the page,
// which asks for it, and the status is still 401.
TEST_F(ServerPage, ABrowserWithoutAKeyGetsThePageThatAsksForIt) {
  service_options_.access.api_key = "right-key";
  start();
  Reply page = get("/", "Accept: text/html,application/xhtml+xml\r\n");
  EXPECT_EQ(page.status, 401);
  EXPECT_EQ(page.headers["content-type"], "text/html; charset=utf-8");
  EXPECT_EQ(page.headers["www-authenticate"], "Bearer");
  EXPECT_NE(page.headers["content-security-policy"].find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.body.find("id=\"key-dialog\""), std::string::npos);
  EXPECT_EQ(get("/", "Accept: application/json\r\n").error().find("the request has no API key"),
            0u);
  EXPECT_EQ(get("/web/app.js").status, 200);
  for (const char* path : {"/v1/status", "/metrics", "/openapi.json", "/web"}) {
    const Reply reply = get(path, "Accept: text/html\r\n");
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.body.find("<html"), std::string::npos) << path;
  }
  EXPECT_EQ(post("/", "{}", "Accept: text/html\r\n").body.find("<html"), std::string::npos);
  EXPECT_EQ(get("/", "Authorization: Bearer right-key\r\n").status, 200);
}

TEST_F(ServerPage, TablesAreReadAsTheCommandLineReadsThem) {
  start();
  const Json wide = parsed(read("date,a,b\n2024-01-01,1,\n2024-01-02,2,5\n2024-01-04,3,NA\n"));
  EXPECT_EQ(at(wide, "format").string, "wide");
  EXPECT_NE(at(wide, "description").string.find("2 daily series"), std::string::npos);
  ASSERT_EQ(at(wide, "series").array.size(), 2u);
  const Json& first = at(wide, "series").array[0];
  EXPECT_EQ(at(first, "id").string, "a");
  EXPECT_EQ(at(first, "freq").string, "D");
  ASSERT_EQ(at(first, "timestamps").array.size(), 4u);
  EXPECT_EQ(at(first, "timestamps").array[2].string, "2024-01-03");
  EXPECT_EQ(at(first, "values").array[2].kind, Json::Kind::null);
  ASSERT_EQ(at(wide, "warnings").array.size(), 2u) << "a gap dropped, a day inserted";
  EXPECT_TRUE(at(wide, "warnings").array[0].string.starts_with("absent timestamps are inserted"))
      << "without the name of the file";
  EXPECT_EQ(floats(at(at(wide, "series").array[1], "values"))[0], 5) << "leading gaps are dropped";

  const std::string bars =
      "Date,Open,High,Low,Close,Volume\n2024-01-01,1,3,0.5,2,10\n2024-01-02,2,4,1,3,20\n";
  const Json ohlcv = parsed(read(bars));
  EXPECT_EQ(at(ohlcv, "format").string, "ohlcv");
  EXPECT_EQ(floats(at(at(ohlcv, "series").array.at(0), "values")), (std::vector<float>{2, 3}));
  EXPECT_EQ(at(ohlcv, "columns").array.size(), 5u);
  const Json volume = parsed(read(bars, R"(, "columns": ["Volume"])"));
  EXPECT_EQ(floats(at(at(volume, "series").array.at(0), "values")), (std::vector<float>{10, 20}));

  const Json steps = parsed(read("step,a\n7,1\n8,2\n9,3\n"));
  EXPECT_EQ(at(steps, "series").array[0].find("freq"), nullptr);
  EXPECT_EQ(at(at(steps, "series").array[0], "timestamps").array[0].string, "7");
  const Json named = parsed(read("unique_id,ds,y\nx,2024-01,1\nx,2024-02,2\n", R"(, "freq": "M")"));
  EXPECT_EQ(at(named, "format").string, "long");
}

// The page reads a file by /v1/series and sends all values back: the bits of the command, also
// where the context begins in a gap that an earlier value fills.
TEST_F(ServerPage, AFileHasTheSameForecastAsByTheCommand) {
  start();
  std::string text = "date,a\n";
  for (int i = 0; i < 4300; ++i) {
    const bool gap = i >= 190 && i < 230;  // 4300 - 4096 is 204
    text += fmt::format(
        "{},{}\n", tables::format_time(tables::midnight({.year = 2010}) + i * tables::kDay, {}),
        gap ? "" : fmt::format("{}", 100 + i % 17 + 0.01 * i));
  }
  const Json table = parsed(read(text));
  EXPECT_EQ(at(table, "warnings").array.size(), 0u);
  const Json& series = at(table, "series").array[0];
  std::string values;
  for (const Json& value : at(series, "values").array) {
    values += (values.empty() ? "" : ",") +
              (value.kind == Json::Kind::null ? "null" : fmt::format("{}", float(value.real)));
  }
  const Json answer = parsed(
      post("/v1/forecast",
           fmt::format(R"({{"series": [{{"id": "a", "values": [{}]}}], "horizon": 4}})", values)));
  io::MemorySource source(text);
  const tables::InputData data = tables::read_series(source, "a.csv", {});
  const Forecast right = expected({.id = "a", .values = data.series[0].values}, {.horizon = 4});
  EXPECT_EQ(floats(at(at(answer, "series").array[0], "mean")), right.mean);
  EXPECT_EQ(at(at(answer, "series").array[0], "context_length").integer, 4096);
  ASSERT_GE(at(answer, "warnings").array.size(), 2u);
}

TEST_F(ServerPage, ErrorsInTablesAreNamed) {
  service_options_.limits.max_answer_bytes = 4096;
  start();
  expect_complaint(read("date,a\n2024-01-01,1\n2024-01-02,abc\n"), "a.csv: line 3, column 2");
  expect_complaint(read(""), "a.csv");
  expect_complaint(read("date,a\n2024-01-01,1\n", R"(, "columns": ["z"])"), "z");
  expect_complaint(read("date,a\n2024-01-01,1\n", R"(, "column": "a")"), "columns");
  expect_complaint(post("/v1/series", R"({"csv": "date,a\n", "name": "a\nb"})"), "name is");
  expect_complaint(post("/v1/series", R"({"csv": 7})"), "csv is 7");
  expect_complaint(post("/v1/series", "{}"), "csv is missing");
  std::string large = "step,a\n";
  for (int i = 0; i < 100; ++i) large += fmt::format("{},1\n", i);
  expect_complaint(read(large), "1 series with 100 values are more than one answer holds");
}

// With holidays the time of the last value does not follow from the first time and the length.
TEST_F(ServerPage, EndSaysWhenTheLastValueWas) {
  start();
  const auto first_step = [&](const char* when) {
    const Json answer = parsed(
        post("/v1/forecast",
             fmt::format(R"({{"series": [{{"values": [1, 2, 3], {}}}], "horizon": 2}})", when)));
    return at(at(answer, "series").array.at(0), "timestamps").array.at(0).string;
  };
  EXPECT_EQ(first_step(R"("start": "2024-01-01", "freq": "B")"), "2024-01-04");
  EXPECT_EQ(first_step(R"("end": "2024-01-05", "freq": "B")"), "2024-01-08");
  EXPECT_EQ(first_step(R"("end": "2024-01-31", "freq": "M")"), "2024-02-29");
  const auto refuse = [&](const char* when, const char* fragment) {
    expect_complaint(
        post("/v1/forecast", fmt::format(R"({{"series": [{{"values": [1], {}}}]}})", when)),
        fragment);
  };
  refuse(R"("start": "2024-01-01", "end": "2024-01-05")", "series[0] has a start and an end");
  refuse(R"("end": "soon", "freq": "D")", "series[0].end: ");
  refuse(R"("end": "7", "freq": "D")", "series[0].end is a step number");
  refuse(R"("freq": "D")", "without series[0].start or series[0].end");
  refuse(R"("start": "2024-01-01")", "series[0].start is given without series[0].freq");
  // A Monday without a bar.
  EXPECT_EQ(first_step(R"("timestamps": ["2024-01-11", "2024-01-12", "2024-01-16"], "freq": "B")"),
            "2024-01-17");
  refuse(R"("timestamps": ["2024-01-01", "2024-01-02"], "freq": "D")", "has 2 times");
  refuse(R"("timestamps": ["2024-01-01"], "end": "2024-01-01", "freq": "D")", "one of them");
  const Reply unordered = post("/v1/forecast", R"({"series": [{"values": [1, 2], "freq": "D",
      "timestamps": ["2024-01-02", "2024-01-01"]}]})");
  expect_complaint(unordered, "series[0].timestamps[1]");
}

}  // namespace
}  // namespace toto::server
