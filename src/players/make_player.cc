#include "players/make_player.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/shipped.h"
#include "base/text.h"
#include "players/decoder_player.h"
#include "players/engine_player.h"
#include "players/instinct_player.h"
#include "players/networks.h"
#include "players/one_ply.h"
#include "players/search_player.h"
#include "players/simple_players.h"
#include "players/strength.h"

namespace kibitz::players {
namespace {

namespace fs = std::filesystem;

void AddTemperatureFields(Fields& fields, double& temperature, int& moves) {
  fields.Add("temperature", temperature, "of the move played; 0: the best one",
             {.min = 0, .max = 10});
  fields.Add("temperature_moves", moves, "moves until the temperature has fallen to 0; 0: it stays",
             {.min = 0, .max = 1000});
}

void AddEloField(Fields& fields, std::optional<int64_t>& elo) {
  fields.Add("elo", elo, "playing strength: the temperature by the model's measured ratings",
             {.min = 0, .max = 5000});
}

// By ratings.json of the model. Throws Error when it has none.
double TemperatureOf(const std::string& path, double temperature, std::optional<int64_t> elo) {
  if (!elo) return temperature;
  const auto table = ReadStrengthTable(path);
  if (!table) {
    throw Error(
        "{}: has no ratings.json with measured ratings by temperature, which elo={} needs; set "
        "temperature instead",
        path, *elo);
  }
  return TemperatureFor(*table, static_cast<double>(*elo));
}

std::optional<EloRange> EloRangeOf(const std::string& path) {
  const auto table = ReadStrengthTable(path);
  if (!table) return std::nullopt;
  return EloRange{.min = static_cast<int>(table->points.back().elo),
                  .max = static_cast<int>(table->points.front().elo),
                  .how = "temperature by ratings against " + table->anchor};
}

void AddOnePlyField(Fields& fields, bool& one_ply) {
  fields.Add("one_ply", one_ply, "take a mate in one, do not draw a won game by one move");
}

std::unique_ptr<Player> Ruled(std::unique_ptr<Player> player, bool one_ply) {
  return one_ply ? WithOnePlyRule(std::move(player)) : std::move(player);
}

class DecoderMaker final : public PlayerMaker {
 public:
  explicit DecoderMaker(std::string path) : PlayerMaker("decoder", FindModel(path)) {}

  Fields fields() override {
    Fields fields;
    fields.Add("think", options_.think, "write variations before the move; else play by instinct");
    AddTemperatureFields(fields, options_.temperature, options_.temperature_moves);
    AddEloField(fields, elo_);
    fields.Add("thinking_temperature", options_.thinking_temperature,
               "of the moves in the variations", {.min = 0, .max = 10});
    fields.Add("max_variations", options_.max_variations, "at most so many; 0: no limit",
               {.min = 0, .max = 100});
    fields.Add("max_depth", options_.max_depth, "moves of a variation; 0: no limit",
               {.min = 0, .max = 100});
    fields.Add("legal", options_.legal, "only legal moves in the variations");
    fields.Add("distinct", options_.distinct, "no two variations begin with the same move");
    fields.Add("history", options_.history,
               "by instinct, read the game and not the position alone");
    AddOnePlyField(fields, one_ply_);
    fields.AddAll(FieldsOf(network_));
    return fields;
  }
  std::unique_ptr<Player> Make() override {
    network_.path = path();
    DecoderPlayerOptions options = options_;
    options.temperature = TemperatureOf(path(), options.temperature, elo_);
    return Ruled(
        std::make_unique<DecoderPlayer>(networks_.Decoder(network_), ModelName(path()), options),
        one_ply_);
  }
  std::optional<EloRange> elo_range() const override { return EloRangeOf(path()); }

 private:
  std::optional<int64_t> elo_;
  DecoderPlayerOptions options_;
  nn::NetworkOptions network_;
  bool one_ply_ = true;
  Networks networks_;
};

// A policy or an lc0 network, without search.
class InstinctMaker final : public PlayerMaker {
 public:
  InstinctMaker(std::string kind, const std::string& path)
      : PlayerMaker(std::move(kind), FindModel(path)) {}

  Fields fields() override {
    Fields fields;
    AddTemperatureFields(fields, options_.temperature, options_.temperature_moves);
    AddEloField(fields, elo_);
    AddOnePlyField(fields, one_ply_);
    if (kind() == "policy") {
      fields.Add("mirror", network_.mirror,
                 "where nobody may castle, also look at the mirrored board; takes twice as long");
    }
    fields.AddAll(FieldsOf(network_.network));
    return fields;
  }
  std::unique_ptr<Player> Make() override {
    network_.network.path = path();
    InstinctOptions options = options_;
    options.temperature = TemperatureOf(path(), options.temperature, elo_);
    return Ruled(std::make_unique<InstinctPlayer>(networks_.Evaluator(network_), options),
                 one_ply_);
  }
  std::optional<EloRange> elo_range() const override { return EloRangeOf(path()); }

 private:
  std::optional<int64_t> elo_;
  InstinctOptions options_;
  EvaluatorOptions network_;
  bool one_ply_ = true;
  Networks networks_;
};

class SearchMaker final : public PlayerMaker {
 public:
  explicit SearchMaker(const std::string& path) : PlayerMaker("search", FindModel(path)) {
    network_.policy_temperature = 1.359;  // As lc0 searches by default.
    network_.cache = 100000;
  }

  Fields fields() override {
    Fields fields;
    fields.Add("nodes", options_.nodes, "visits of the root, where no other limit is given",
               {.min = 2, .max = 1e9});
    AddTemperatureFields(fields, options_.temperature, options_.temperature_moves);
    fields.Add("cpuct", options_.tree.cpuct, "weight of priors against results", {.min = 0});
    fields.Add("fpu_reduction", options_.tree.fpu_reduction,
               "how much worse a move without visits counts", {.min = 0});
    fields.Add("policy_temperature", network_.policy_temperature,
               "priors are a softmax of the policy at this temperature", {.min = 0.01, .max = 100});
    fields.Add("leaves", options_.tree.leaves,
               "positions evaluated together; 0: by the number of nodes", {.min = 0, .max = 4096});
    fields.Add("cache", network_.cache, "positions to remember; 0: none", {.min = 0, .max = 1e8});
    AddOnePlyField(fields, one_ply_);
    fields.AddAll(FieldsOf(network_.network));
    return fields;
  }
  std::unique_ptr<Player> Make() override {
    network_.network.path = path();
    return Ruled(std::make_unique<SearchPlayer>(networks_.Evaluator(network_), options_), one_ply_);
  }

 private:
  SearchOptions options_;
  EvaluatorOptions network_;
  bool one_ply_ = true;
  Networks networks_;
};

class EngineMaker final : public PlayerMaker {
 public:
  explicit EngineMaker(const std::string& command) : PlayerMaker("engine", command) {}

  Fields fields() override {
    Fields fields;
    fields.Add("nodes", options_.nodes, "for each move, where no other limit is given", {.min = 1});
    fields.Add("depth", options_.depth, "likewise", {.min = 1, .max = 1000});
    fields.Add("movetime", options_.movetime, "milliseconds, likewise; with no limit at all 1000",
               {.min = 1});
    fields.Add("elo", options_.elo, "playing strength, where the engine has UCI_Elo",
               {.min = 0, .max = 5000});
    fields.Add("option", uci_, "a UCI option of the engine, NAME=VALUE; may be repeated",
               {.metavar = "NAME=VALUE"});
    fields.Add("restart", options_.restart,
               "start it again after a crash and ask once more; else the crash is an error");
    return fields;
  }
  std::unique_ptr<Player> Make() override {
    options_.command = path();
    options_.uci.clear();
    for (const std::string& text : uci_) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos) {
        throw Error::Usage("{}: option: found {}, expected NAME=VALUE", path(), Quoted(text));
      }
      options_.uci.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return std::make_unique<EnginePlayer>(options_);
  }
  std::optional<EloRange> elo_range() const override {
    return EloRange{.min = 0, .max = 5000, .how = "the engine's own UCI_Elo"};
  }

 private:
  EngineOptions options_;
  std::vector<std::string> uci_;
};

class NegamaxMaker final : public PlayerMaker {
 public:
  NegamaxMaker() : PlayerMaker("negamax", "") {}

  Fields fields() override {
    Fields fields;
    fields.Add("depth", options_.depth, "plies", {.min = 1, .max = 10});
    fields.AddChoice(
        "eval", options_.material, "piece values, or piece-square tables",
        {{"pieces", oracles::Material::kPieces}, {"tables", oracles::Material::kTables}});
    fields.Add("temperature", options_.temperature,
               "of a draw by softmax(score / 200); 0: the best move", {.min = 0, .max = 10});
    return fields;
  }
  std::unique_ptr<Player> Make() override { return std::make_unique<NegamaxPlayer>(options_); }

 private:
  NegamaxPlayerOptions options_;
};

class RandomMaker final : public PlayerMaker {
 public:
  RandomMaker() : PlayerMaker("random", "") {}

  Fields fields() override { return {}; }
  std::unique_ptr<Player> Make() override { return std::make_unique<RandomPlayer>(); }
};

// Whether a command can be run: a path to a program, or one on the PATH.
bool IsProgram(const std::string& command) {
  const std::vector<std::string_view> words = SplitWords(command);
  if (words.empty()) return false;
  std::error_code error;
  return fs::is_regular_file(oracles::FindProgram(std::string(words.front())), error);
}

std::string KindOf(const std::string& path) {
  std::error_code error;
  const bool program = IsProgram(path);
  if (program && !fs::is_directory(path, error) && !path.ends_with(".pt") &&
      !path.ends_with(".safetensors") && !path.ends_with(".gz")) {
    return "engine";
  }
  switch (NetworkKindOf(io::ReadModel(FindModel(path)))) {
    case NetworkKind::kDecoder:
      return "decoder";
    case NetworkKind::kPolicy:
      return "policy";
    case NetworkKind::kLc0:
      return "lc0";
  }
  return "";
}

std::unique_ptr<PlayerMaker> BareMaker(const std::string& kind, const std::string& path) {
  const bool takes_path = kind != "negamax" && kind != "random";
  if (takes_path && path.empty()) {
    throw Error::Usage("{} wants a path: {}:PATH", kind, kind);
  }
  if (!takes_path && !path.empty()) {
    throw Error::Usage("{} takes no path, found {}", kind, Quoted(path));
  }
  if (kind == "decoder") return std::make_unique<DecoderMaker>(path);
  if (kind == "policy" || kind == "lc0") return std::make_unique<InstinctMaker>(kind, path);
  if (kind == "search") return std::make_unique<SearchMaker>(path);
  if (kind == "engine") return std::make_unique<EngineMaker>(path);
  if (kind == "negamax") return std::make_unique<NegamaxMaker>();
  CHECK(kind == "random");
  return std::make_unique<RandomMaker>();
}

}  // namespace

PlayerMaker::PlayerMaker(std::string kind, std::string path)
    : kind_(std::move(kind)), path_(std::move(path)) {}

std::string PlayerMaker::ToText() {
  PlayerName name{.kind = kind_, .path = path_};
  const std::vector<FieldInfo> now = fields().Describe();
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].value != defaults_[i].value) name.options.emplace_back(now[i].name, now[i].value);
  }
  return players::ToText(name);
}

std::unique_ptr<PlayerMaker> MakerFor(const PlayerName& name) {
  const std::string kind = name.kind.empty() ? KindOf(name.path) : name.kind;
  std::unique_ptr<PlayerMaker> maker = BareMaker(kind, name.path);
  Fields fields = maker->fields();
  maker->defaults_ = fields.Describe();
  for (const auto& [key, value] : name.options) {
    const std::string reason = fields.Set(key, value);
    if (!reason.empty()) throw Error::Usage("{}: {}", ToText(name), reason);
  }
  return maker;
}

std::unique_ptr<Player> MakePlayer(std::string_view name) {
  return MakerFor(ParsePlayerName(name).OrThrow("player"))->Make();
}

std::string DefaultPlayer() {
  for (const char* name : {"policy-small"}) {  // By their ratings, the best first.
    if (FindShipped(std::string("models/") + name)) return name;
  }
  throw Error("no model that ships is here; name a player: {}", PlayersHelp());
}

std::string PlayersHelp() {
  std::string help =
      "a player is KIND:PATH?key=value&...; KIND may be left out where the file tells\n";
  const std::pair<const char*, const char*> kinds[] = {
      {"decoder:PATH", "the network that thinks out loud (think=0: by instinct)"},
      {"policy:PATH", "a policy network"},
      {"lc0:PATH", "an lc0 network (.pb.gz), without search"},
      {"search:PATH", "tree search with any of these networks (nodes=800)"},
      {"engine:CMD", "a UCI engine (elo=1500, nodes=10000, movetime=100)"},
      {"negamax", "a plain search on piece values (depth=2)"},
      {"random", "any legal move"}};
  for (const auto& [name, what] : kinds) help += fmt::format("  {:14} {}\n", name, what);
  return help;
}

}  // namespace kibitz::players
