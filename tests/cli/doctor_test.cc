// `toto doctor`: each finding has a line that names it and says what to do; a healthy machine has
// none. What is checked in what order is in cli_model_test.cc.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "cli_fixture.h"

namespace toto::cli {
namespace {

class DoctorTest : public CliTest {
 protected:
  struct Line {
    std::string status, value, advice;
  };
  // The check of this name, by the JSON.
  Line line(const Result& result, std::string_view name) {
    const io::Json json = io::parse_json(result.out, "stdout");
    for (const io::Json& check : at(json, "checks").array) {
      if (at(check, "name").string == name) {
        return {at(check, "status").string, at(check, "value").string, at(check, "advice").string};
      }
    }
    ADD_FAILURE() << "no check " << name << "\n" << result.out;
    return {};
  }
  Result doctor(const std::vector<std::string>& flags = {}, const Environment& environment = {}) {
    std::vector<std::string> words = {"doctor", "--json", "-"};
    words.insert(words.end(), flags.begin(), flags.end());
    return run(words, environment);
  }
};

TEST_F(DoctorTest, SaysWhichInstructionSetAndWhy) {
  EXPECT_TRUE(has(line(doctor(), "instruction set").value, "the best of this CPU"));
  const Line plain = line(doctor({}, {{"TOTO_ISA", "reference"}}), "instruction set");
  EXPECT_EQ(plain.status, "warn");
  EXPECT_TRUE(has(plain.value, "reference, TOTO_ISA"));
  EXPECT_TRUE(has(plain.advice, "--isa auto"));
}

TEST_F(DoctorTest, NamesModelFilesByTheirHashes) {
  const Line files = line(doctor(), "model files");
  EXPECT_EQ(files.status, "ok");
  const Result sums =
      shell("cd '" TOTO_SOURCE_DIR
            "/models/toto-mini' && sha256sum config.json model.safetensors | cut -c1-64");
  EXPECT_TRUE(has(files.value, "config.json") && has(files.value, sums.out.substr(0, 64)));
  EXPECT_TRUE(has(files.value, sums.out.substr(65, 64))) << files.value;
}

TEST_F(DoctorTest, ShowsTheActiveConfig) {
  EXPECT_TRUE(has(line(doctor(), "config").value, "no config file"));
  file("toto.conf", "seed = 4\nthreads = 1\n");
  const Line config = line(doctor({"--seed", "5"}), "config");
  EXPECT_EQ(config.value,
            "file toto.conf, threads 1 (toto.conf:2: threads), seed 5 (--seed); 1 overridden, see "
            "`toto config show`");
  file("toto.conf", "sead = 4\n");
  const Result wrong = doctor();
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(line(wrong, "settings").status, "fail");
  EXPECT_TRUE(has(line(wrong, "settings").value, "did you mean seed?"));
}

TEST_F(DoctorTest, LooksAtThePlansOfModesThatKeepThem) {
  EXPECT_TRUE(has(line(doctor(), "plan cache").value, "mode default keeps no plans"));
  for (const char* mode : {"reduce-overhead", "max-autotune"}) {
    const Line plans = line(doctor({"--mode", mode, "--plan-cache-size", "7"}), "plan cache");
    EXPECT_EQ(plans.status, "ok");
    EXPECT_TRUE(has(plans.value, "up to 7 plans (--plan-cache-size)")) << plans.value;
    EXPECT_TRUE(has(plans.value, "0 made again")) << plans.value;
  }
}

TEST_F(DoctorTest, WarnsOfTightLimits) {
  const Result result = shell("ulimit -n 48; ulimit -f 1000; toto doctor --json -");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Line limits = line(result, "limits");
  EXPECT_EQ(limits.status, "warn");
  EXPECT_TRUE(has(limits.value, "open files 48")) << limits.value;
  EXPECT_TRUE(has(limits.advice, "ulimit -n") && has(limits.advice, "ulimit -f"));
}

TEST_F(DoctorTest, LooksIntoTheCacheFolder) {
  std::filesystem::create_directories(path("cache/weights"));
  file("cache/weights/model-0123-f32-1.packed", "not packed weights at all, and too short");
  Line cache = line(doctor({"--cache-dir", "cache"}), "cache folder");
  EXPECT_EQ(cache.status, "warn");
  EXPECT_TRUE(has(cache.advice, "1 of them damaged")) << cache.advice;
  EXPECT_TRUE(std::filesystem::exists(path("cache/weights/model-0123-f32-1.packed")))
      << "the doctor changes nothing";
  std::filesystem::remove(path("cache/weights/model-0123-f32-1.packed"));
  cache = line(doctor({"--cache-dir", "cache"}), "cache folder");
  EXPECT_EQ(cache.advice.find("damaged"), std::string::npos);
  ASSERT_EQ(chmod(path("cache").c_str(), 0777), 0);
  cache = line(doctor({"--cache-dir", "cache"}), "cache folder");
  EXPECT_EQ(cache.status, "warn");
  EXPECT_TRUE(has(cache.advice, "chmod go-w cache")) << cache.advice;
  ASSERT_EQ(chmod(path("cache").c_str(), 0770), 0);
  EXPECT_TRUE(has(line(doctor({"--cache-dir", "cache"}), "cache folder").advice, "chmod go-w"));
  ASSERT_EQ(chmod(path("cache").c_str(), 0700), 0);
  EXPECT_FALSE(has(line(doctor({"--cache-dir", "cache"}), "cache folder").advice, "chmod"));
  ASSERT_EQ(chmod(path("cache/weights").c_str(), 0777), 0);
  EXPECT_TRUE(has(line(doctor({"--cache-dir", "cache"}), "cache folder").advice,
                  "chmod go-w cache/weights"));
  std::filesystem::create_directory_symlink(path("cache"), path("cache/forecasts"));
  EXPECT_TRUE(has(line(doctor({"--cache-dir", "cache"}), "cache folder").advice,
                  "cache/forecasts is a symbolic link"));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path("cache").c_str(), 12345, 0), 0);
    EXPECT_TRUE(has(line(doctor({"--cache-dir", "cache"}), "cache folder").advice,
                    "cache belongs to user 12345"));
  }
}

// A network whose last layer is gone answers zeros: finite, the same bits, and not in order.
TEST_F(DoctorTest, FailsWhereTheLastLayerIsZero) {
  std::filesystem::copy(TOTO_SOURCE_DIR "/models/toto-mini", path("zeroed"));
  const std::string weights = path("zeroed/model.safetensors");
  std::string bytes = contents_of(weights);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const io::Json json = io::parse_json(std::string_view(bytes).substr(8, header), "header");
  for (const char* name : {"model.unembed.weight", "model.unembed.bias"}) {
    const io::Json& offsets = at(at(json, name), "data_offsets");
    const auto begin = 8 + header + static_cast<std::uint64_t>(offsets.array.at(0).integer);
    const auto end = 8 + header + static_cast<std::uint64_t>(offsets.array.at(1).integer);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
              bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
  }
  put(weights, bytes);
  const Line zeros = line(doctor({"--model", "zeroed"}), "weights");
  EXPECT_EQ(zeros.status, "warn");
  EXPECT_TRUE(has(zeros.advice, "only zeros: model.unembed.weight")) << zeros.advice;
  for (const char* mode : {"default", "reference"}) {
    const Result result = doctor({"--model", "zeroed", "--mode", mode});
    EXPECT_EQ(result.exit_code, 1) << mode;
    EXPECT_EQ(line(result, "forecast").status, "fail");
    EXPECT_TRUE(has(line(result, "forecast").value, "the same at every step"));
  }
}

// One bit of one weight: forecasts are finite, repeatable and wrong.
TEST_F(DoctorTest, KnowsTheBundledModelByItsHash) {
  EXPECT_EQ(line(doctor(), "weights").status, "ok");
  std::filesystem::copy(TOTO_SOURCE_DIR "/models/toto-mini", path("toto-mini"));
  const Line same = line(doctor({"--model", path("toto-mini")}), "weights");
  EXPECT_EQ(same.status, "ok");
  EXPECT_TRUE(has(same.value, "the bundled ones")) << same.value;
  std::string bytes = contents_of(path("toto-mini/model.safetensors"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put(path("toto-mini/model.safetensors"), bytes);
  const Result result = doctor({"--model", path("toto-mini")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(line(result, "forecast").status, "ok") << "what only the hash tells";
  const Line weights = line(result, "weights");
  EXPECT_EQ(weights.status, "fail");
  EXPECT_TRUE(has(weights.advice, "expected 98d15925")) << weights.advice;
  std::filesystem::rename(path("toto-mini"), path("mine"));
  EXPECT_EQ(line(doctor({"--model", "mine"}), "weights").status, "ok") << "a model of one's own";
}

TEST_F(DoctorTest, ReadsWhatTheCacheHolds) {
  file("in.csv", wide_csv(80));
  ASSERT_EQ(run({"forecast", "in.csv", "--horizon", "2", "--cache-dir", "cache"}).exit_code, 0);
  const Line sound = line(doctor({"--cache-dir", "cache"}), "cache folder");
  EXPECT_TRUE(has(sound.value, "1 packed models")) << sound.value;
  EXPECT_FALSE(has(sound.advice, "damaged"));
  EXPECT_FALSE(has(sound.value, "not compared")) << sound.value;
  const std::string entry =
      std::filesystem::directory_iterator(path("cache/weights"))->path().string();
  std::string bytes = contents_of(entry);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put(entry, bytes);
  const Line damaged = line(doctor({"--cache-dir", "cache"}), "cache folder");
  EXPECT_EQ(damaged.status, "warn");
  EXPECT_TRUE(has(damaged.advice, "do not match their checksum")) << damaged.advice;
}

TEST_F(DoctorTest, FailsWithoutAModel) {
  const Result result = doctor({"--model", "absent"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_FALSE(at(io::parse_json(result.out, "stdout"), "passed").boolean);
  EXPECT_EQ(line(result, "model").status, "fail");
}

}  // namespace
}  // namespace toto::cli
