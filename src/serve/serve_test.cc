// The interface: requests in, JSON and events out, and nothing outside the folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/text.h"
#include "serve/api.h"
#include "serve/page.h"
#include "tests/support/test_data.h"

namespace kibitz::serve {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    std::ofstream(folder_.File("metrics.jsonl")) << R"({"step":1,"kind":"train","loss":2.5})"
                                                 << "\n"
                                                 << R"({"step":2,"kind":"train","lo)";
    api_ = std::make_unique<Api>(ApiOptions{
        .catalog = {.models = {testing::GoldenPath("decoder/tiny.pt"),
                               testing::ModelPath("policy-small"),
                               testing::ModelPath("twenty48-small")},
                    .data = {testing::SourcePath("examples"), testing::GoldenPath("twenty48")},
                    .runs = {folder_.path()}},
        .desk = {.engines = {"stockfish"}},
        .jobs = {.running = 1, .waiting = 2}});
  }

  Reply Ask(const std::string& method, const std::string& path, const Json& body = nullptr) {
    Request request{.method = method, .path = path};
    const size_t question = path.find('?');
    if (question != std::string::npos) {
      request.path = path.substr(0, question);
      for (std::string_view pair : Split(std::string_view(path).substr(question + 1), '&')) {
        const auto parts = Split(pair, '=');
        request.query[std::string(parts.at(0))] = parts.at(1);
      }
    }
    if (!body.is_null()) request.body = body.dump();
    return api_->Handle(request);
  }
  Json Get(const std::string& path) {
    return Json::parse(Ask("GET", "/api/v1/" + path).response.body);
  }
  Json Post(const std::string& path, const Json& body) {
    return Json::parse(Ask("POST", "/api/v1/" + path, body).response.body);
  }
  std::string Fault(const std::string& path, const Json& body) {
    return testing::MessageOf([&] { Post(path, body); });
  }

  // All events of a stream, by name.
  static std::vector<std::pair<std::string, Json>> Events(const Reply& reply) {
    EventLog::Piece piece;
    for (int i = 0; i < 3000 && !piece.end; ++i) {
      piece = reply.events->Read(0, EventLog::kMaxBytes);
      if (!piece.end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(piece.end);
    std::vector<std::pair<std::string, Json>> events;
    for (std::string_view line : Split(piece.bytes, '\n')) {
      if (line.starts_with("event: ")) events.emplace_back(line.substr(7), nullptr);
      if (line.starts_with("data: ")) events.back().second = Json::parse(line.substr(6));
    }
    return events;
  }
  std::vector<std::pair<std::string, Json>> Stream(const std::string& path, const Json& body) {
    const Reply reply = Ask("POST", "/api/v1/" + path, body);
    EXPECT_NE(reply.events, nullptr) << reply.response.body;
    return Events(reply);
  }

  testing::TempFolder folder_;
  std::unique_ptr<Api> api_;
};

TEST_F(ApiTest, ReadsPositions) {
  const Json game = Post("position", {{"moves", {"e4", "e7e5", "Ke2"}}});
  EXPECT_EQ(game["turn"], "black");
  EXPECT_EQ(game["moves"][2]["san"], "Ke2");
  EXPECT_EQ(game["legal"].size(), 29u);
  const Json mate = Post("position", {{"text", "1. f3 e5 2. g4 Qh4#"}});
  EXPECT_EQ(mate["ending"], "checkmate");
  EXPECT_EQ(mate["result"], "0-1");
  EXPECT_EQ(mate["check"], "e1");
  EXPECT_THAT(Fault("position", {{"text", "8/8/8/8/8/8/8/8 w - - 0 1"}}), HasSubstr("king"));
  EXPECT_THAT(Fault("position", {{"moves", {"e5"}}}), HasSubstr("move 1"));
  EXPECT_THAT(Fault("position", {{"moves", 7}}), HasSubstr("moves"));
  EXPECT_NE(Fault("position", {{"text", "<script>alert(1)</script>"}}), "");
  EXPECT_THAT(Fault("position", {{"start", 5}}), HasSubstr("FEN"));
}

TEST_F(ApiTest, StreamsAThought) {
  const auto events =
      Stream("think", {{"model", "tiny.pt"}, {"max_variations", 2}, {"max_depth", 2}});
  ASSERT_GE(events.size(), 6u);
  EXPECT_EQ(events.front().first, "job");
  EXPECT_EQ(events.back().second["state"], "done");
  int nodes = 0;
  int boards = 0;
  int drafted = 0;
  int kept = 0;
  size_t tokens = 0;
  for (const auto& [name, data] : events) {
    nodes += name == "node" ? 1 : 0;
    if (data.contains("tokens")) tokens += data["tokens"].size();
    if (name == "root") {
      EXPECT_GT(data["instinct"].size(), 5u);
    }
    if (name != "board") continue;
    ++boards;
    drafted += data["drafted"].get<int>();
    kept += data["kept"].get<int>();
    int differing = 0;
    for (size_t i = 0; i < 64; ++i) {
      const auto written = data["written"].get<std::string>();
      differing += written[i] != data["rules"].get<std::string>()[i] ? 1 : 0;
    }
    EXPECT_EQ(data["wrong"].size(), static_cast<size_t>(differing));
  }
  EXPECT_GE(nodes, 2);
  EXPECT_EQ(nodes, boards);
  EXPECT_EQ(drafted, events[events.size() - 2].second["stats"]["drafted"]);
  EXPECT_EQ(kept, events[events.size() - 2].second["stats"]["accepted"]);
  const Json& final = events[events.size() - 2].second;
  EXPECT_EQ(events[events.size() - 2].first, "final");
  EXPECT_EQ(final["end"], "finished");
  EXPECT_EQ(final["stats"]["tokens"].get<size_t>() + 68, tokens);
  EXPECT_THAT(Fault("think", {{"model", "tiny.pt"}, {"max_depth", 1000}}), HasSubstr("max_depth"));
}

TEST_F(ApiTest, AsksPlayers) {
  const auto events = Stream("move", {{"player", "policy-small"}, {"lines", 2}});
  const Json& answer = events[events.size() - 2].second;
  EXPECT_EQ(events[events.size() - 2].first, "answer");
  EXPECT_EQ(answer["moves"].size(), 20u);
  EXPECT_EQ(answer["lines"].size(), 2u);
  EXPECT_EQ(Stream("move", {{"player", "random"}}).back().second["state"], "done");
}

TEST_F(ApiTest, OpensOnlyWhatItIsAllowedTo) {
  EXPECT_THAT(Fault("move", {{"player", "engine:/bin/sh"}}), HasSubstr("--engines"));
  EXPECT_THAT(Fault("move", {{"player", "/bin/sh"}}), HasSubstr("no model"));
  EXPECT_THAT(Fault("move", {{"player", "policy:" + testing::ModelPath("policy-small")}}),
              HasSubstr("no model"));
  EXPECT_THAT(Fault("move", {{"player", "stockfish?option=Debug Log File=/tmp/x"}}),
              HasSubstr("option"));
  EXPECT_THAT(Fault("move", {{"player", "search:policy-small?cache=100000000"}}),
              HasSubstr("cache"));
  EXPECT_THAT(Fault("move", {{"player", "search:policy-small?nodes=1e9"}}), HasSubstr("at most"));
  EXPECT_THAT(Fault("think", {{"model", "../tiny.pt"}}), HasSubstr("no model"));
  EXPECT_THAT(testing::MessageOf([&] { Get("runs/..%2f/metrics"); }), HasSubstr("no run"));
}

TEST_F(ApiTest, DoesNotFollowLinksOutOfItsFolders) {
  testing::TempFolder models;
  fs::create_symlink(testing::GoldenPath("decoder/tiny.pt"), models.File("out.pt"));
  fs::copy_file(testing::GoldenPath("decoder/tiny.pt"), models.File("in.pt"));
  Catalog catalog({.models = {models.path()}});
  std::vector<std::string> ids;
  for (const ModelEntry& entry : catalog.Models()) ids.push_back(entry.id);
  EXPECT_THAT(ids, ElementsAre("in.pt"));
}

TEST_F(ApiTest, ListsModels) {
  std::map<std::string, std::string> kinds;
  const Json models = Get("models");
  for (const Json& model : models["models"]) kinds[model["id"]] = model["kind"];
  const std::map<std::string, std::string> expected = {
      {"tiny.pt", "decoder"}, {"policy-small", "policy"}, {"twenty48-small", "2048"}};
  EXPECT_EQ(kinds, expected);
  EXPECT_THAT(Get("models/policy-small")["card"].get<std::string>(), HasSubstr("chess policy"));
}

TEST_F(ApiTest, ReadsMetricsAsTheyGrow) {
  const std::string id = Get("runs")["runs"][0]["id"];
  const Json first = Get("runs/" + id + "/metrics?from=0");
  ASSERT_EQ(first["lines"].size(), 1u);  // The unfinished line is left for later.
  std::ofstream(folder_.File("metrics.jsonl"), std::ios::app) << "ss\":2.25}\n";
  const Json second = Get(fmt::format("runs/{}/metrics?from={}", id, first["next"].get<int64_t>()));
  ASSERT_EQ(second["lines"].size(), 1u);
  EXPECT_EQ(second["lines"][0]["loss"], 2.25);
  EXPECT_EQ(Get("runs/" + id + "/metrics?from=99999")["lines"].size(), 2u);
  EXPECT_TRUE(second["timing"]["lines"].empty());
  std::ofstream(folder_.File("timing.jsonl")) << R"({"step":1,"tokens_per_second":500})"
                                              << "\n";
  const Json timed = Get("runs/" + id + "/metrics?timing_from=0");
  EXPECT_EQ(timed["timing"]["lines"][0]["tokens_per_second"], 500);
}

TEST_F(ApiTest, ThinksWithTheNewestCheckpointOfARun) {
  const std::string id = Get("runs")["runs"][0]["id"];
  EXPECT_FALSE(Get("runs/" + id + "/metrics").contains("newest"));
  for (const char* name :
       {"best.pt", "checkpoint_step_000000010.pt", "checkpoint_step_000000020.pt"}) {
    fs::copy_file(testing::GoldenPath("decoder/tiny.pt"), folder_.File(name));
  }
  const Json newest = Get("runs/" + id + "/metrics")["newest"];
  EXPECT_EQ(newest["id"], id + "/checkpoint_step_000000020.pt");
  EXPECT_EQ(newest["kind"], "decoder");
  const auto events =
      Stream("think", {{"model", newest["id"]}, {"max_variations", 1}, {"max_depth", 1}});
  EXPECT_EQ(events.back().second["state"], "done");
  EXPECT_THAT(Fault("think", {{"model", id + "/checkpoint_step_000000010.pt"}}),
              HasSubstr("no model"));
}

TEST_F(ApiTest, ShowsDecoderRowsAndPacks) {
  const Json row = Get("data/decoder/searches.parquet/sequence?row=0");
  EXPECT_EQ(row["tokens"][0]["token"], "start_pos");
  EXPECT_GT(row["tokens"].size(), 68u);
  const Json steps = Get("data/pack/steps?game=0");
  ASSERT_GT(steps["steps"].size(), 1u);
  EXPECT_EQ(steps["steps"][0]["board"].size(), 16u);
  int64_t score = 0;
  for (const Json& step : steps["steps"]) {
    EXPECT_GE(step["score"].get<int64_t>(), score);
    score = step["score"];
  }
  EXPECT_GT(score, 0);
  EXPECT_LE(score, steps["score"].get<int64_t>());
}

TEST_F(ApiTest, Plays2048TheSameForTheSameSeed) {
  const Json start = Post("2048/prefer", {{"seed", 7}, {"player", "twenty48-small"}});
  EXPECT_EQ(start["preference"]["scores"].size(), 4u);
  Json body = {{"seed", 7}, {"board", start["board"]}, {"player", "oracle:heuristic"}};
  const Json next = Post("2048/step", body);
  EXPECT_EQ(next["moves"], 1);
  EXPECT_EQ(Post("2048/step", body), next);
  body["board"] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  body["move"] = "left";
  EXPECT_THAT(Fault("2048/step", body), HasSubstr("nothing slides"));
  body["board"] = {99};
  EXPECT_THAT(Fault("2048/step", body), HasSubstr("board"));
}

TEST_F(ApiTest, StopsWorkThatNobodyWatches) {
  const Reply first =
      Ask("POST", "/api/v1/move", {{"player", "stockfish?movetime=30000"}, {"seed", 1}});
  ASSERT_NE(first.events, nullptr);
  while (Get("jobs")["jobs"][0]["state"] == "waiting") {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const Reply second = Ask("POST", "/api/v1/move", {{"player", "random"}});
  const Reply third = Ask("POST", "/api/v1/move", {{"player", "random"}});
  ASSERT_NE(third.events, nullptr);
  const Reply fourth = Ask("POST", "/api/v1/move", {{"player", "random"}});
  EXPECT_EQ(fourth.response.status, 503);  // One runs, two wait.
  first.on_leave();                        // The client of the long one goes away.
  EXPECT_EQ(Events(second).back().second["state"], "done");
  EXPECT_EQ(Events(first).back().second["state"], "stopped");
}

TEST_F(ApiTest, PlaysASeries) {
  const auto events = Stream("series", {{"first", "negamax?depth=1"},
                                        {"second", "random"},
                                        {"pairs", 2},
                                        {"openings", "named"},
                                        {"max_plies", 20}});
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const auto& event) { return event.first == "game"; }),
            4);
  const std::string id = Get("series")["series"][0]["id"];
  const Json summary = Get("series/" + id);
  EXPECT_EQ(summary["games"], 4);
  EXPECT_EQ(summary["wins"].get<int>() + summary["draws"].get<int>() + summary["losses"].get<int>(),
            4);
  EXPECT_EQ(summary["openings"].size(), 2u);
  const std::string pgn = Ask("GET", "/api/v1/series/" + id + "/pgn").response.body;
  EXPECT_THAT(pgn, HasSubstr("[White \"random\"]"));
  EXPECT_THAT(Fault("series", {{"first", "random"}, {"second", "random"}, {"openings", "/etc/x"}}),
              HasSubstr("openings"));
  EXPECT_FALSE(Get("openings?q=berlin")["openings"].empty());
}

TEST_F(ApiTest, StopsASeriesWithinAGame) {
  const Reply reply = Ask("POST", "/api/v1/series",
                          {{"first", "negamax?depth=9"},
                           {"second", "negamax?depth=10"},
                           {"pairs", 1},
                           {"openings", "named"}});
  ASSERT_NE(reply.events, nullptr);
  Json job = Get("jobs")["jobs"].back();
  while (job["state"] == "waiting") {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    job = Get("jobs")["jobs"].back();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Ask("DELETE", "/api/v1/jobs/" + job["id"].get<std::string>());
  const auto events = Events(reply);
  EXPECT_EQ(events.back().second["state"], "stopped");
  EXPECT_TRUE(std::none_of(events.begin(), events.end(),
                           [](const auto& event) { return event.first == "game"; }));
}

TEST_F(ApiTest, AnswersUnknownAddresses) {
  EXPECT_EQ(Ask("GET", "/api/v1/nothing").response.status, 404);
  EXPECT_EQ(Ask("GET", "/api/v2/models").response.status, 404);
  EXPECT_EQ(Ask("GET", "/api/v1/think").response.status, 405);
  EXPECT_EQ(Ask("GET", "/etc/passwd").response.status, 404);
  EXPECT_EQ(Ask("POST", "/think").response.status, 405);
  EXPECT_NE(Fault("position", "text"), "");
  EXPECT_EQ(Ask("GET", "/think").response.type, "text/html; charset=utf-8");
}

TEST_F(ApiTest, ThePageIsSmall) {
  size_t bytes = 0;
  for (const PageFile& file : PageFiles()) bytes += file.bytes.size();
  EXPECT_LT(bytes, 500'000u);
}

}  // namespace
}  // namespace kibitz::serve
