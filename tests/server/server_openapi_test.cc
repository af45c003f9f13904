// The OpenAPI document matches the service: routes, their statuses, the form of answers, and
// examples of requests.
#include <algorithm>
#include <cctype>
#include <set>

#include "json_schema.h"
#include "serve_fixture.h"
#include "server/router.h"
#include "server_fixture.h"

namespace toto::server {
namespace {

using testing::JsonSchema;

constexpr std::string_view kKey = "Authorization: Bearer k\r\n";

struct Operation {
  std::string method, path;  // "POST", "/v1/sessions/{id}/append"
  const Json* spec = nullptr;

  std::string name() const { return method + " " + path; }
  bool has_names() const { return path.find('{') != path.npos; }
  // The path with names put in.
  std::string at(const std::map<std::string, std::string>& names) const {
    std::string real = path;
    for (const auto& [name, value] : names) {
      const std::size_t open = real.find(name);
      if (open != real.npos) real.replace(open, name.size(), value);
    }
    return real;
  }
  const Json* content(std::string_view type) const {
    const Json* body = spec->find("requestBody");
    const Json* all = body == nullptr ? nullptr : body->find("content");
    return all == nullptr ? nullptr : all->find(type);
  }
  std::vector<std::string> examples() const {
    const Json* json = content("application/json");
    if (json == nullptr) return {""};
    std::vector<std::string> texts;
    const Json* all = json->find("examples");
    EXPECT_NE(all, nullptr) << name();
    for (const Json::Member& example : all->object) {
      io::JsonWriter writer(io::JsonLayout::compact);
      writer.value(*example.second.find("value"));
      texts.push_back(writer.take());
    }
    return texts;
  }
  std::set<int> statuses() const {
    std::set<int> all;
    for (const Json::Member& response : spec->find("responses")->object) {
      all.insert(std::stoi(response.first));
    }
    return all;
  }
};

class Document {
 public:
  explicit Document(const std::string& text) : json_(io::parse_json(text, "openapi.json")) {
    for (const Json::Member& path : json_.find("paths")->object) {
      for (const Json::Member& item : path.second.object) {
        std::string method = item.first;
        std::transform(method.begin(), method.end(), method.begin(), ::toupper);
        operations_.push_back({method, path.first, &item.second});
      }
    }
  }
  Document(const Document&) = delete;  // operations point into it
  Document& operator=(const Document&) = delete;
  const std::vector<Operation>& operations() const { return operations_; }

  void expect_request_fits(const Operation& operation, const std::string& body) const {
    const Json* schema = operation.content("application/json")->find("schema");
    EXPECT_EQ(JsonSchema(json_, *schema).complaint(io::parse_json(body, "example")), "")
        << operation.name() << body;
  }
  // The answer has a documented status, type and form.
  void expect_answer_fits(const Operation& operation, const Reply& reply) const {
    const Json* given = operation.spec->find("responses")->find(std::to_string(reply.status));
    ASSERT_NE(given, nullptr) << operation.name() << ": " << reply.status << reply.body;
    const Json& response = JsonSchema::resolve(json_, given);
    const std::string& whole = reply.headers.at("content-type");
    const std::string type = whole.substr(0, whole.find(';'));
    // A file may have any content type.
    const bool any = operation.path == "/web/{file}" && reply.status == 200;
    const Json* media = response.find("content")->find(any ? "application/octet-stream" : type);
    ASSERT_NE(media, nullptr) << operation.name() << ": " << reply.status << " is " << type;
    if (type != "application/json") return;
    const Json body = io::parse_json(reply.body, "answer");
    EXPECT_EQ(JsonSchema(json_, *media->find("schema")).complaint(body), "")
        << operation.name() << ": " << reply.status;
  }

 private:
  const Json json_;
  std::vector<Operation> operations_;
};

// The checker of the document reports errors by their place.
TEST(JsonSchemaTest, ComplainsByPlace) {
  const Json document = io::parse_json(
      R"({"a": {"type": "object", "required": ["x"], "additionalProperties": false, "properties":
          {"x": {"type": ["integer", "null"], "minimum": 2}, "y": {"type": "array", "maxItems": 2,
           "items": {"$ref": "#/b"}}, "z": {"pattern": "x"}}}, "b": {"oneOf": [{"enum": ["p", 1]},
           {"type": "number", "exclusiveMaximum": 1}]}})",
      "schema");
  const auto complaint = [&](std::string_view text) {
    return JsonSchema(document, *document.find("a")).complaint(io::parse_json(text, "value"));
  };
  EXPECT_EQ(complaint(R"({"x": 2, "y": ["p", 0.5]})"), "");
  EXPECT_EQ(complaint(R"({"x": null})"), "");
  for (const auto& [value, place] :
       {std::pair("[]", "$ is"), std::pair("{}", "\"x\""), std::pair(R"({"x": 1})", "$.x is 1"),
        std::pair(R"({"x": 2.5})", "$.x"), std::pair(R"({"x": 2, "w": 1})", "$.w"),
        std::pair(R"({"x": 2, "y": ["p", "q"]})", "$.y[1]"),
        std::pair(R"({"x": 2, "y": [1, 1, 1]})", "maxItems"),
        std::pair(R"({"x": 2, "z": "x"})", "does not check")}) {
    EXPECT_NE(complaint(value).find(place), std::string::npos) << value << complaint(value);
  }
}

class OpenApi : public ServerTest {
 protected:
  OpenApi() {
    service_options_.access.api_key = "k";
    service_options_.limits.max_body = http_options_.max_body = 100'000;
    http_options_.pause_timeout = milliseconds(1000);
    service_options_.scheduler.max_queued = 1;
    service_options_.backtest = [this](const Json&, const ActiveEngine&,
                                       const std::function<bool()>&) {
      gate_.get_future().wait();
      return BacktestFiles{.results_json = "{}", .report_html = "<html>"};
    };
    service_options_.signal = [](const Json&, const ActiveEngine&, const std::function<bool()>&) {
      return SignalAnswer{.json = "{}"};
    };
    names_ = {{"{model}", "small"}, {"{version}", "1"}, {"{file}", "app.js"}};
  }

  Document document() const { return Document(get("/openapi.json", kKey).body); }
  void open_session() {
    const Json opened = parsed(post("/v1/sessions", R"({"series": {"values": [1, 2, 3]}})", kKey));
    names_["{id}"] = at(opened, "session").string;
    // The request counts as queued until a moment after its answer.
    EXPECT_TRUE(eventually([this] { return service_->scheduler().depth() == 0; }));
  }
  // The answer to an attempt, which is as documented; its status is noted.
  void note(const Document& document, const Operation& operation, const Reply& reply) {
    document.expect_answer_fits(operation, reply);
    seen_[operation.name()].insert(reply.status);
  }
  // A request whose body never arrives.
  Client begin(const Operation& operation, std::size_t announced) const {
    Client client = connect();
    client.send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n",
                            operation.at(names_), kKey, announced));
    return client;
  }

  void try_while_loading() {
    std::promise<void> go;
    auto load = service_options_.load;
    service_options_.load = [gate = go.get_future().share(), load](Mode mode) {
      gate.wait();
      return load(mode);
    };
    start(false);
    names_["{id}"] = "x";
    const Document all = document();
    for (const Operation& operation : all.operations()) {
      const std::string body = operation.method == "POST" ? operation.examples().front() : "";
      const Reply reply = ask(operation.method, operation.at(names_), body, kKey);
      if (reply.status == 503) note(all, operation, reply);
    }
    go.set_value();
    stop();
    service_options_.load = std::move(load);
  }

  void try_refusals() {
    start();
    open_session();
    const Document all = document();
    std::vector<std::pair<const Operation*, Client>> waiting;  // for time to be over
    for (const Operation& operation : all.operations()) {
      const std::string path = operation.at(names_);
      const bool posts = operation.method == "POST";
      const std::string body = posts ? operation.examples().front() : "";
      const Reply without_key = ask(operation.method, path, body);
      if (without_key.status == 401) note(all, operation, without_key);
      if (operation.path == "/") note(all, operation, get("/", "Accept: text/html\r\n"));
      note(all, operation,
           ask(operation.method, path, body, std::string(kKey) + "Origin: https://x.org\r\n"));
      if (operation.has_names()) {
        const Operation unknown{operation.method, operation.path, operation.spec};
        const std::map<std::string, std::string> wrong = {
            {"{model}", "x"}, {"{version}", "1"}, {"{file}", "x"}, {"{id}", "x"}};
        note(all, operation, ask(operation.method, unknown.at(wrong), body, kKey));
      }
      if (!posts) continue;
      note(all, operation, ask("POST", path, "{", kKey));
      for (const char* header : {"Content-Encoding: br\r\n", "Expect: more\r\n"}) {
        note(all, operation, ask("POST", path, body, std::string(kKey) + header));
      }
      note(all, operation, begin(operation, http_options_.max_body + 1).receive());
      waiting.emplace_back(&operation, begin(operation, 10));
    }
    for (auto& [operation, client] : waiting) note(all, *operation, client.receive());
    stop();
  }

  // With an engine that is busy, and as many backtests as there may be.
  void try_when_busy() {
    start();
    open_session();
    const Document all = document();
    // The session's answer arrives before its place in the queue is free.
    ASSERT_TRUE(eventually([&] { return service_->scheduler().depth() == 0; }));
    std::optional<BusyEngine> busy(std::in_place, service_->scheduler());
    std::atomic<int> num_backtests{0};
    for (int i = 0; i < 4; ++i) {
      hand_over("/v1/backtest", R"({"csv": {}})",
                [&](const HttpResponse& answer) { num_backtests += answer.status == 200 ? 1 : 0; });
    }
    for (const Operation& operation : all.operations()) {
      // A switch of modes waits its turn before all others: there is no queue of them.
      if (operation.method != "POST" || operation.path == "/v1/mode") continue;
      Reply reply = ask("POST", operation.at(names_), operation.examples().front(), kKey);
      if (reply.status == 429) {
        EXPECT_EQ(reply.headers["retry-after"], "1");
        note(all, operation, reply);
      }
    }
    busy.reset();
    gate_.set_value();
    EXPECT_TRUE(eventually([&] { return num_backtests == 4; }));
    stop();
  }

  // The weights may be gone when a mode needs them again.
  void try_without_weights() {
    const auto load = service_options_.load;
    service_options_.load = [load](Mode mode) {
      if (mode == Mode::reference) throw Error(ErrorCode::not_found, "the model is not there");
      return load(mode);
    };
    start();
    const Document all = document();
    for (const Operation& operation : all.operations()) {
      if (operation.path != "/v1/mode") continue;
      note(all, operation, post("/v1/mode", operation.examples().front(), kKey));
    }
    stop();
  }

  std::map<std::string, std::string> names_;
  std::map<std::string, std::set<int>> seen_;

 private:
  struct Gate {
    std::promise<void> go;
    std::shared_future<void> future = go.get_future().share();
    const std::shared_future<void>& get_future() const { return future; }
    void set_value() { go.set_value(); }
  } gate_;
};

TEST_F(OpenApi, EveryRouteIsDocumentedAndTheReverse) {
  start();
  const Document all = document();
  std::vector<std::string> documented, served;
  for (const Route& route : routes()) {
    served.push_back(fmt::format("{} {}", route.method, route.pattern));
  }
  for (const Operation& operation : all.operations()) documented.push_back(operation.name());
  std::sort(documented.begin(), documented.end());
  std::sort(served.begin(), served.end());
  EXPECT_EQ(documented, served);
}

// Every refusal that is documented happens, and no other does.
TEST_F(OpenApi, DocumentedStatusesOccurAndNoOthers) {
  try_while_loading();
  try_refusals();
  try_when_busy();
  try_without_weights();
  start();
  const Document all = document();
  for (const Operation& operation : all.operations()) {
    std::set<int> seen = seen_[operation.name()];
    seen.insert(200);
    EXPECT_EQ(seen, operation.statuses()) << operation.name();
  }
}

}  // namespace
}  // namespace toto::server

namespace toto::cli {
namespace {

using server::Client;
using server::Document;
using server::kKey;
using server::Operation;
using server::Reply;
using server::request_text;

class OpenApiExamples : public ServeTest {
 protected:
  Reply ask(const std::string& method, const std::string& path, const std::string& body = {}) {
    Client client(port());
    client.send(request_text(method, path, body, kKey));
    return client.receive();
  }
};

// With the real model and the real backtest.
TEST_F(OpenApiExamples, AreAcceptedAndAnsweredAsDocumented) {
  serve({"--port", "0", "--api-key", "k"});
  const Document all(ask("GET", "/openapi.json").body);
  std::map<std::string, std::string> names = {
      {"{model}", "toto-mini"}, {"{version}", "1"}, {"{file}", "app.js"}};
  for (const Operation& operation : all.operations()) {
    for (const std::string& body : operation.examples()) {
      if (!body.empty()) all.expect_request_fits(operation, body);
      Reply reply = ask(operation.method, operation.at(names), body);
      ASSERT_EQ(reply.status, 200) << operation.name() << body << reply.body;
      all.expect_answer_fits(operation, reply);
      // Later ones ask for what this one made.
      if (operation.path == "/v1/sessions") {
        names["{id}"] = at(io::parse_json(reply.body, "answer"), "session").string;
      } else if (operation.path == "/v1/backtest") {
        const std::string location = reply.headers.at("location");
        names["{id}"] = location.substr(13, location.rfind('/') - 13);
      }
    }
    if (operation.content("application/octet-stream") == nullptr) continue;
    Reply binary = ask(
        "POST", operation.at(names),
        R"({"inputs": [{"name": "target", "datatype": "FP32", "shape": [1, 1, 2], "data": [1, 2]}],
                "parameters": {"binary_data_output": true}})");
    EXPECT_EQ(binary.headers["content-type"], "application/octet-stream");
    all.expect_answer_fits(operation, binary);
  }
}

}  // namespace
}  // namespace toto::cli
