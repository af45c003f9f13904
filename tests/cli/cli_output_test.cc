// `toto forecast`: where the answer goes, and what happens when it cannot go there.
#include "cli_fixture.h"

namespace toto::cli {
namespace {

class OutputTest : public CliTest {
 protected:
  void SetUp() override { file("in.csv", wide_csv(40)); }
  Result forecast(std::vector<std::string> more) {
    std::vector<std::string> words = {"forecast", "in.csv", "--horizon", "3"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
    return found;
  }
};

TEST_F(OutputTest, FilesByExtension) {
  const Result result = forecast({"--output", "deep/er/out.csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "") << "the answer is in the file";
  const std::string csv = contents_of(path("deep/er/out.csv"));
  EXPECT_TRUE(csv.starts_with("unique_id,ds,mean,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9\na,")) << csv;
  EXPECT_EQ(count(csv, "\n"), 7u);

  EXPECT_EQ(forecast({"--output", "out.json"}).exit_code, 0);
  const io::Json json = io::parse_json(contents_of(path("out.json")), "out.json");
  EXPECT_EQ(at(json, "series").array.size(), 2u);

  EXPECT_EQ(forecast({"--output", "out.JSONL"}).exit_code, 0);
  const std::string lines = contents_of(path("out.JSONL"));
  EXPECT_EQ(count(lines, "\n"), 2u);
  const io::Json line = io::parse_json(lines.substr(0, lines.find('\n')), "line");
  EXPECT_TRUE(at(at(line, "engine"), "trained").boolean);
}

TEST_F(OutputTest, StandardOutputCarriesJsonAlone) {
  const io::Json output = json_of(forecast({"--output", "-"}));
  const io::Json json = json_of(forecast({"--json", "-"}));
  EXPECT_EQ(at(output, "series").array.size(), at(json, "series").array.size());
  EXPECT_EQ(json_of(forecast({"--json", "-", "--output", "-"})).object.size(), 5u);
  // Together with a file, both are written; a JSON file leaves the table on stdout.
  EXPECT_EQ(json_of(forecast({"--json", "-", "--output", "out.csv"})).object.size(), 5u);
  EXPECT_TRUE(contents_of(path("out.csv")).starts_with("unique_id"));
  const Result table = forecast({"--json", "report.txt"});
  EXPECT_TRUE(has(table.out, "a: 3 steps")) << table.out;
  EXPECT_EQ(io::parse_json(contents_of(path("report.txt")), "report").object.size(), 5u);
}

TEST_F(OutputTest, OldFilesSurviveAFailure) {
  file("out.csv", "old");
  file("bad.csv", "date,a\n2024-01-01,x\n");
  EXPECT_EQ(run({"forecast", "bad.csv", "--output", "out.csv"}).exit_code, 3);
  EXPECT_EQ(contents_of(path("out.csv")), "old");
  EXPECT_EQ(forecast({"--output", "out.csv", "--model", "absent"}).exit_code, 3);
  EXPECT_EQ(contents_of(path("out.csv")), "old");
  EXPECT_EQ(forecast({"--output", "out.csv"}).exit_code, 0);
  EXPECT_TRUE(contents_of(path("out.csv")).starts_with("unique_id"));
}

TEST_F(OutputTest, UnwritablePathsAreRefusedBeforeAnyWork) {
  for (const char* option : {"--output", "--json", "--plot"}) {
    const std::string extension = option == std::string("--plot") ? ".svg" : ".json";
    const std::string inside = "in.csv/x" + extension;
    expect_refusal(2, {inside, "Not a directory"}, {"forecast", "in.csv", option, inside});
  }
  std::filesystem::create_directory(path("folder.json"));
  expect_refusal(2, {"folder.json", "Is a directory"},
                 {"forecast", "in.csv", "--output", "folder.json"});
  expect_refusal(2, {"not a file name"}, {"forecast", "in.csv", "--json", ""});
  expect_refusal(2, {"\"new/\"", "not a file name"}, {"forecast", "in.csv", "--json", "new/"});
}

TEST_F(OutputTest, NothingReadOrWrittenIsOverwritten) {
  file("known.csv", "date,b\n2024-02-10,1\n");
  std::filesystem::create_symlink("known.csv", path("link.csv"));
  std::filesystem::create_directory_symlink(".", path("here"));
  expect_refusal(2, {"--output is ./in.csv", "INPUT"},
                 {"forecast", "in.csv", "--output", "./in.csv"});
  for (const char* output : {"known.csv", "./known.csv", "link.csv", "here/known.csv"}) {
    expect_refusal(2, {"--output is ", output, "--known-future"},
                   {"forecast", "in.csv", "--known-future", "known.csv", "--output", output});
  }
  expect_refusal(2, {"--json is new.csv", "the file that --output names"},
                 {"forecast", "in.csv", "--output", "new.csv", "--json", "new.csv"});
  expect_refusal(2, {"--plot is here/deep/a.svg", "--json"},
                 {"forecast", "in.csv", "--json", "deep/a.svg", "--plot", "here/deep/a.svg"});
  expect_refusal(2, {"--report is v.json", "--json"},
                 {"verify", "--json", "v.json", "--report", "v.json"});
  expect_refusal(2, {"--json is m/config.json", "config"},
                 {"make-model", "m", "--config", "mini", "--json", "m/config.json"});
  EXPECT_EQ(contents_of(path("in.csv")), wide_csv(40));
  EXPECT_EQ(forecast({"--json", "/dev/null", "--output", "a.csv"}).exit_code, 0);
}

TEST_F(OutputTest, AFileThatMayNotGrowIsAnError) {
  const Result forecast = shell(
      "ulimit -f 8; toto forecast in.csv --horizon 5000 --decode mean --output out.json; echo $?");
  EXPECT_EQ(forecast.out, "4\n");
  EXPECT_TRUE(has(forecast.err, "error: out.json: cannot write: File too large")) << forecast.err;
  const Result model = shell("ulimit -f 8; toto make-model m --config mini; echo $?");
  EXPECT_EQ(model.out, "4\n");
  EXPECT_TRUE(has(model.err, "File too large")) << model.err;
  EXPECT_EQ(folder_.num_entries(), 2u) << "the input and an empty folder";
  EXPECT_TRUE(std::filesystem::is_empty(path("m")));
}

TEST_F(OutputTest, ErrorsCannotDriveATerminal) {
  file("c1.csv",
       "date,a\n2024-01-01,\xC2\x9B"
       "31mRED\n");
  const Result result = run({"forecast", "c1.csv"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(has(result.err, "\xC2\x9B")) << result.err;
  const Result name = run({"forecast", "no\xC2\x9Bsuch\x9B.csv"});
  EXPECT_TRUE(has(error_line(name), "no such\xEF\xBF\xBD.csv")) << name.err;
}

TEST_F(OutputTest, ReadOnlyFolder) {
  namespace fs = std::filesystem;
  fs::permissions(folder_.path(),
                  fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  fs::copy(TOTO_SOURCE_DIR "/models/toto-mini", path("model"));
  fs::permissions(path("model"), fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::add);
  fs::create_directory(path("closed"));
  put(path("closed/out.json"), "old");
  fs::permissions(path("closed"), fs::perms::owner_read | fs::perms::owner_exec |
                                      fs::perms::others_read | fs::perms::others_exec);
  for (const char* name : {"closed/new.json", "closed/out.json", "closed/deep/new.json"}) {
    const Result result =
        start({"forecast", "in.csv", "--model", "model", "--output", name}, {}, {}, true).wait();
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(has(error_line(result), "Permission denied")) << result.err;
  }
  EXPECT_EQ(contents_of(path("closed/out.json")), "old");
  fs::permissions(path("closed"), fs::perms::owner_all);
}

TEST_F(OutputTest, ClosedAndFullStandardOutput) {
  const Result head = shell(
      "toto forecast in.csv --horizon 5000 --decode mean --json - | head -1; echo "
      "${PIPESTATUS[0]}");
  EXPECT_EQ(head.out, "{\n0\n") << head.err;
  EXPECT_EQ(count(head.err, "error"), 0u) << head.err;
  // What goes to files is complete even if the rest is not read.
  const Result both = shell("toto forecast in.csv --json - --output out.csv | true");
  EXPECT_TRUE(contents_of(path("out.csv")).starts_with("unique_id")) << both.err;
  const Result closed = shell("toto forecast in.csv >&-; echo $?");
  EXPECT_EQ(closed.out, "4\n");
  EXPECT_TRUE(has(closed.err, "error: cannot write to standard output")) << closed.err;
  const Result full = shell("toto forecast in.csv >/dev/full; echo $?");
  EXPECT_EQ(full.out, "4\n");
  EXPECT_TRUE(has(full.err, "No space left")) << full.err;
}

TEST_F(OutputTest, HostileIdsStayText) {
  file("ids.csv",
       "unique_id,ds,y\n=cmd|' /C calc'!A0,2024-01-01,1\n=cmd|' /C calc'!A0,2024-01-02,2\n"
       "<script>alert(1)</script>,2024-01-01,3\n<script>alert(1)</script>,2024-01-02,4\n");
  const Result result = run({"forecast", "ids.csv", "--horizon", "2", "--output", "out.csv",
                             "--json", "out.json", "--plot", "out.html"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(contents_of(path("out.csv")), "\n\"=cmd|' /C calc'!A0\",2024-01-03"));
  const io::Json json = io::parse_json(contents_of(path("out.json")), "out.json");
  EXPECT_EQ(at(at(json, "series").array.at(1), "id").string, "<script>alert(1)</script>");
  const std::string page = contents_of(path("out.html"));
  EXPECT_FALSE(has(page, "<script>alert"));
  EXPECT_TRUE(has(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST_F(OutputTest, ChartsSayWhatTheyShow) {
  const Result result = run({"forecast", data("AAPL.csv"), "--plot", "aapl.svg"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string svg = contents_of(path("aapl.svg"));
  EXPECT_TRUE(svg.starts_with("<svg")) << svg.substr(0, 80);
  for (const char* text : {"AAPL close, next 64 business days", "model toto-mini, mode default",
                           "toto.cpp 0.1.0, model toto-mini", "80 %", "50 %"}) {
    EXPECT_TRUE(has(svg, text)) << text;
  }
  EXPECT_FALSE(has(svg, "ntrained")) << svg;
  EXPECT_TRUE(has(result.out, "close: 64 steps")) << "the table stays";

  const auto title = [&](const std::string& file_name, std::vector<std::string> more) {
    std::vector<std::string> words = {"forecast", file_name, "--plot", "t.svg"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words).exit_code, 0);
    const std::string text = contents_of(path("t.svg"));
    const std::size_t begin = text.find(", next ");
    return text.substr(begin, text.find_first_of(".<", begin) - begin);
  };
  EXPECT_EQ(title(data("electricity.csv"), {"--horizon", "24"}), ", next 24 hours");
  EXPECT_EQ(title(data("AirPassengers.csv"), {"--horizon", "1"}), ", next month");
  EXPECT_EQ(title(data("BTCUSD.csv"), {"--horizon", "2"}), ", next 2 days");
  file("quarter.csv", "ts,a\n2024-01-01T00:00,1\n2024-01-01T00:15,2\n2024-01-01T00:30,3\n");
  EXPECT_EQ(title("quarter.csv", {"--horizon", "3"}), ", next 3 steps of 15 minutes");
  file("steps.csv", "ts,a\n1,1\n2,2\n3,3\n");
  EXPECT_EQ(title("steps.csv", {"--horizon", "3"}), ", next 3 steps");
}

TEST_F(OutputTest, QuantilesDecideTheBands) {
  // Labels of the bands, widest first.
  const auto bands = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--plot", "p.html"});
    EXPECT_EQ(forecast(more).exit_code, 0);
    const std::string page = contents_of(path("p.html"));
    std::vector<std::string> labels;
    const std::size_t begin = page.find("\"bands\":[");
    const io::Json json = io::parse_json(
        page.substr(begin + 8, page.find("]}]", begin) + 3 - begin - 8), "the bands");
    for (const io::Json& band : json.array) labels.push_back(at(band, "label").string);
    return labels;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(bands({}), (Labels{"80 %", "50 %"}));
  EXPECT_EQ(bands({"--quantiles", "0.05,0.5,0.95"}), Labels{"90 %"});
  EXPECT_EQ(bands({"--quantiles", "0.975,0.7,0.3,0.025"}), (Labels{"95 %", "40 %"}));
  EXPECT_EQ(bands({"--quantiles", "0.9"}), Labels{"80 %"}) << "with its mirror image";
  EXPECT_EQ(bands({"--quantiles", "0.0005,0.2"}), (Labels{"99.9 %", "60 %"}));
  EXPECT_EQ(bands({"--quantiles", "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9"}),
            (Labels{"80 %", "60 %", "40 %", "20 %"}));
  EXPECT_EQ(bands({"--quantiles", "0.01,0.02,0.05,0.1,0.2,0.3,0.4"}),
            (Labels{"98 %", "90 %", "60 %", "20 %"}))
      << "a few of many, the outermost among them";
  EXPECT_EQ(forecast({"--quantiles", "0.5", "--plot", "p.svg"}).exit_code, 0);
  EXPECT_FALSE(has(contents_of(path("p.svg")), " %<")) << "the median alone";
  EXPECT_EQ(forecast({"--quantiles", "1e-20", "--plot", "p.svg"}).exit_code, 0);
}

TEST_F(OutputTest, AxesNameTheColumn) {
  file("long.csv", "item_id,timestamp,target\ns,2024-01-01,1\ns,2024-01-02,2\n");
  file("wide.csv", "date,price\n2024-01-01,1\n2024-01-02,2\n");
  for (const auto& [name, column, title] :
       {std::tuple("long.csv", "target", "s, next"), {"wide.csv", "price", "wide price, next"}}) {
    EXPECT_EQ(run({"forecast", name, "--horizon", "2", "--plot", "p.svg"}).exit_code, 0);
    const std::string svg = contents_of(path("p.svg"));
    EXPECT_TRUE(has(svg, fmt::format(">{}</text>", column))) << svg.substr(0, 3000);
    EXPECT_TRUE(has(svg, title)) << name;
  }
}

TEST_F(OutputTest, PlotsOfManySeriesAreCapped) {
  std::string text = "unique_id,ds,y\n";
  for (int i = 0; i < 60; ++i) {
    text += "s" + std::to_string(i) + ",2024-01-01,1\ns" + std::to_string(i) + ",2024-01-02,2\n";
  }
  file("many.csv", text);
  const Result page = run({"forecast", "many.csv", "--horizon", "2", "--plot", "p.html"});
  EXPECT_EQ(page.exit_code, 0) << page.err;
  EXPECT_TRUE(has(page.err, "warning: p.html: shows the first 50 of 60 series")) << page.err;
  EXPECT_TRUE(has(contents_of(path("p.html")), "s49, next 2 days"));
  EXPECT_FALSE(has(contents_of(path("p.html")), "s50, next 2 days"));
  const Result svg = run({"forecast", "many.csv", "--horizon", "2", "--plot", "p.svg"});
  EXPECT_TRUE(has(svg.err, "warning: p.svg: shows the first of 60 series")) << svg.err;
  EXPECT_TRUE(has(contents_of(path("p.svg")), "s0, next 2 days"));
}

TEST_F(OutputTest, ExamplesOfTheHelpWork) {
  std::filesystem::create_directory_symlink(TOTO_SOURCE_DIR "/examples", path("examples"));
  for (const char* command : {"forecast", "bench", "inspect", "make-model", "doctor"}) {
    const std::string help = run({command, "--help"}).out;
    const std::size_t begin = help.find("Example:\n  ") + 11;
    const std::string example = help.substr(begin, help.find('\n', begin) - begin);
    EXPECT_TRUE(example.starts_with(std::string("toto ") + command)) << help;
    const Result result = shell(example);
    EXPECT_EQ(result.exit_code, 0) << example << "\n" << result.err;
  }
}

TEST_F(OutputTest, DemoDrawsItsCharts) {
  std::filesystem::create_directory_symlink(TOTO_SOURCE_DIR "/examples", path("examples"));
  const Result result = shell("'" TOTO_SOURCE_DIR "/tools/demo.sh' '" + command_ + "'");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "xdg-open demo/aapl.html")) << result.out;
  for (const char* name :
       {"aapl.svg", "aapl.html", "aapl.csv", "aapl.json", "electricity.html", "beijing_air.html"}) {
    EXPECT_GT(contents_of(path("demo/" + std::string(name))).size(), 1000u) << name;
  }
}

}  // namespace
}  // namespace toto::cli
