// Where --model looks: folders, bundled models, the local Hugging Face cache.
#include "cli_fixture.h"
#include "toto1_models.h"

namespace toto::cli {
namespace {

namespace fs = std::filesystem;

class LocateModelTest : public CliTest {
 protected:
  // What `toto inspect` finds under a name.
  struct Found {
    std::string name, folder;
  };
  Found find(const std::string& wanted, const Environment& environment = {}) {
    const io::Json json = json_of(run({"inspect", wanted, "--json", "-"}, environment));
    return {.name = at(json, "model").string, .folder = at(json, "path").string};
  }
  void make(const std::string& folder) const {
    Toto1Config config = mini_config();
    config.embed_dim = 16;
    config.num_heads = 2;
    config.mlp_hidden_dim = 16;
    make_model(config, 0, io::TensorType::f32, path(folder));
  }
  void make_cached(const std::string& hub, const std::string& revision) const {
    make(hub + "/models--acme--toto/snapshots/" + revision);
    fs::create_directories(path(hub + "/models--acme--toto/refs"));
    file(hub + "/models--acme--toto/refs/main", revision);
  }
};

TEST_F(LocateModelTest, AFolderIsUsedAsItIs) {
  make("models/mine");
  EXPECT_EQ(find("models/mine").name, "mine");
  EXPECT_EQ(find("models/mine/").name, "mine");
  EXPECT_EQ(find(path("models/mine")).folder, path("models/mine"));
  EXPECT_EQ(find("./models/../models/mine").name, "mine");
  // A folder of the name of a bundled model comes first, if it holds a model.
  fs::create_directory(path("toto-mini"));
  EXPECT_NE(find("toto-mini").folder, "toto-mini");
  make("toto-mini");
  EXPECT_EQ(find("toto-mini").folder, "toto-mini");
}

TEST_F(LocateModelTest, BundledModelsAreNextToTheCommand) {
  EXPECT_EQ(find("toto-mini").name, "toto-mini");
  // PREFIX/bin/toto and PREFIX/share/toto/models, as `make install` leaves them.
  fs::create_directories(path("prefix/bin"));
  fs::copy_file(TOTO_COMMAND, path("prefix/bin/toto"));
  make("prefix/share/toto/models/installed");
  command_ = path("prefix/bin/toto");
  EXPECT_EQ(find("installed").folder,
            (fs::canonical(path("prefix")) / "share/toto/models/installed").string());
  // build/toto and models/, as in the repository.
  make("prefix/models/built");
  EXPECT_EQ(find("built").folder, (fs::canonical(path("prefix")) / "models/built").string());
  expect_refusal(3, {"no model \"absent\"", "prefix/models/absent", "share/toto/models/absent"},
                 {"inspect", "absent"});
}

TEST_F(LocateModelTest, TheHubCacheIsSearchedByOwnerAndName) {
  make_cached("home/hub", "0123abc");
  make_cached("direct", "4567def");
  make_cached("xdg/huggingface/hub", "89ab");
  const Found by_home = find("acme/toto", {{"HF_HOME", path("home")}});
  EXPECT_EQ(by_home.name, "acme/toto");
  EXPECT_EQ(by_home.folder, path("home/hub/models--acme--toto/snapshots/0123abc"));
  EXPECT_TRUE(
      has(find("acme/toto", {{"HF_HUB_CACHE", path("direct")}, {"HF_HOME", path("home")}}).folder,
          "4567def"));
  EXPECT_TRUE(has(find("acme/toto", {{"XDG_CACHE_HOME", path("xdg")}}).folder, "89ab"));
  make_cached(".cache/huggingface/hub", "cdef");
  EXPECT_TRUE(has(find("acme/toto", {{"HOME", folder_.path()}}).folder, "cdef"));
  // A line end after the revision is fine.
  file("direct/models--acme--toto/refs/main", "4567def\n");
  EXPECT_TRUE(has(find("acme/toto", {{"HF_HUB_CACHE", path("direct")}}).folder, "4567def"));
  // The name of the report is the one that was asked for.
  file("in.csv", wide_csv(20));
  const io::Json json = json_of(run({"forecast", "in.csv", "--model", "acme/toto", "--json", "-"},
                                    {{"HF_HUB_CACHE", path("direct")}}));
  EXPECT_EQ(at(at(json, "engine"), "model").string, "acme/toto");
}

TEST_F(LocateModelTest, WhatIsMissingIsSaid) {
  const Environment environment = {{"HF_HUB_CACHE", path("hub")}};
  expect_refusal(3, {"acme/toto", "models--acme--toto", "never downloads"},
                 {"inspect", "acme/toto"}, environment);
  make_cached("hub", "0123");
  fs::remove(path("hub/models--acme--toto/refs/main"));
  expect_refusal(3, {"refs/main", "no such file"}, {"inspect", "acme/toto"}, environment);
  for (const char* revision : {"../../../etc", "", "a/b", ".."}) {
    file("hub/models--acme--toto/refs/main", revision);
    expect_refusal(3, {"refs/main", "expected the name of a revision"}, {"inspect", "acme/toto"},
                   environment);
  }
  file("hub/models--acme--toto/refs/main", "ffff");
  expect_refusal(3, {"snapshots/ffff", "incomplete"}, {"inspect", "acme/toto"}, environment);

  fs::create_directory(path("empty"));
  expect_refusal(3, {"empty", "holds no config.json"}, {"inspect", "empty"});
  file("weights.safetensors", "");
  expect_refusal(3, {"weights.safetensors", "is a file"}, {"inspect", "weights.safetensors"});
  expect_refusal(3, {"no model folder at a/b/c"}, {"inspect", "a/b/c"});
  expect_refusal(3, {"no model folder at ../up"}, {"inspect", "../up"});
  expect_refusal(2, {"name is empty"}, {"inspect", ""});
}

}  // namespace
}  // namespace toto::cli
