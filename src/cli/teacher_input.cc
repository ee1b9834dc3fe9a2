#include "cli/teacher_input.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "io/bytes/fingerprint.h"
#include "io/weights/model_file.h"
#include "oracles/engines/line_process.h"
#include "oracles/records/engine_teacher.h"
#include "oracles/records/search_teacher.h"

namespace kibitz::cli {
namespace {

void AddSession(Fields& fields, Session& session) {
  fields.Add("nodes", session.nodes, "nodes of a search; default 10000, or 800 with a network",
             {.min = 1});
  fields.Add("depth", session.depth, "depth of a search", {.min = 1, .max = 1000});
  fields.Add("movetime", session.movetime,
             "milliseconds of a search; the records are then not reproducible", {.min = 1});
  fields.Add("multipv", session.multipv, "lines the engine reports", {.min = 1, .max = 256});
}

oracles::Limits LimitsOf(const Session& session) {
  oracles::Limits limits;
  limits.nodes = session.nodes;
  if (session.depth) limits.depth = static_cast<int>(*session.depth);
  limits.move_milliseconds = session.movetime;
  constexpr int64_t kNodes = 10000;
  if (!limits.nodes && !limits.depth && !limits.move_milliseconds) limits.nodes = kNodes;
  return limits;
}

std::vector<std::string> CommandOf(const std::string& engine) {
  std::vector<std::string> command;
  for (std::string_view word : SplitWords(engine)) command.emplace_back(word);
  if (command.empty()) throw Error::Usage("--engine: expected a program");
  const bool is_path = command[0].find('/') != std::string::npos;
  const bool runs = is_path && access(command[0].c_str(), X_OK) == 0;
  const std::string path = runs      ? command[0]
                           : is_path ? std::string()
                                     : oracles::FindProgram(command[0]);
  if (path.empty()) {
    throw Error(
        "found no engine {}; install one (Debian: apt install stockfish) or name another with "
        "--engine",
        Quoted(command[0]));
  }
  command[0] = path;
  return command;
}

std::pair<std::string, std::string> OptionOf(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error::Usage("--engine-option {}: expected Name=Value", Quoted(text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void SetWord(Session& session, std::string_view word, const std::string& text) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string name(Trim(word.substr(0, equals)));
  const auto value = ParseInt(Trim(word.substr(std::min(equals + 1, word.size()))));
  if (!value || *value < 1) {
    throw Error::Usage("--sessions {}: {}: expected NAME=N with N at least 1", text, Quoted(word));
  }
  if (name == "nodes") {
    session.nodes = value;
  } else if (name == "depth") {
    session.depth = value;
  } else if (name == "movetime") {
    session.movetime = value;
  } else if (name == "multipv" && *value <= 256) {
    session.multipv = static_cast<int>(*value);
  } else {
    throw Error::Usage("--sessions {}: {}: expected nodes, depth, movetime, or multipv up to 256",
                       text, Quoted(word));
  }
}

constexpr int64_t kVisits = 800;
// Many positions are searched at once, so few leaves of each fill a batch.
constexpr int kMaxLeaves = 4;

oracles::SearchTeacherOptions SearchOptionsOf(const TeacherInput& input) {
  const Session& session = input.session;
  if (session.depth || session.movetime) {
    throw Error::Usage("a network takes --nodes, not --depth or --movetime");
  }
  oracles::SearchTeacherOptions options{.visits = session.nodes.value_or(kVisits),
                                        .tree = input.search.tree,
                                        .max_variations = session.multipv,
                                        .line_plies = input.line_plies};
  if (options.visits < 2) throw Error::Usage("a network needs --nodes of at least 2");
  if (options.tree.leaves == 0)
    options.tree.leaves = oracles::LeavesFor(options.visits, kMaxLeaves);
  return options;
}

// MCTS with the network of --net, which it owns.
class NetTeacher : public oracles::Teacher {
 public:
  explicit NetTeacher(const TeacherInput& input)
      : search_(input.search),
        network_(io::FingerprintOf(io::FindModel(search_.network.path))),
        evaluator_(LoadEvaluator(search_)),
        teacher_(*evaluator_, SearchOptionsOf(input)) {}

  std::vector<std::optional<oracles::Lesson>> Teach(
      std::span<const oracles::GameSoFar> games) override {
    return teacher_.Teach(games);
  }
  nlohmann::ordered_json OptionsJson() const override {
    nlohmann::ordered_json json = teacher_.OptionsJson();
    json["network"] = network_;
    json["precision"] = search_.network.precision == nn::Precision::kF32 ? "f32" : "int8";
    json["policy_temperature"] = search_.policy_temperature;
    json["lc0_rounding"] = search_.lc0_rounding;
    return json;
  }

 private:
  SearchInput search_;
  nlohmann::ordered_json network_;  // Its fingerprint.
  std::shared_ptr<oracles::Evaluator> evaluator_;
  oracles::SearchTeacher teacher_;
};

}  // namespace

Fields FieldsOf(TeacherInput& input) {
  Fields fields;
  fields.Add("engine", input.engine, "UCI engine: a program and its arguments", {.metavar = "CMD"});
  fields.Add("engine_option", input.engine_option, "UCI option of the engine",
             {.metavar = "NAME=VALUE"});
  if (!input.by_sessions) AddSession(fields, input.session);
  fields.Add("engines", input.engines, "engines to run in parallel; 0: one for each core",
             {.min = 0, .max = 1024});
  fields.Add("line_plies", input.line_plies, "max plies kept of a line", {.min = 1, .max = 256});
  fields.Add("fraction_temperature", input.fraction_temperature,
             "in centipawns: fractions of visits are a softmax of scores divided by this",
             {.min = 0.01, .max = 100000});
  if (!input.by_sessions) {
    fields.Add("node_evals", input.node_evals,
               "nodes to search each node of a line with; 0: use the line's value", {.min = 0});
  }
  if (input.in_rows) {
    fields.Add(
        "new_game_every", input.new_game_every,
        "positions an engine searches before ucinewgame clears its memory; at some hundred "
        "nodes 32 is nearly twice as fast as 1, and a label depends on the positions before it",
        {.min = 1, .max = 64});
  }
  fields.Add("engine_timeout", input.engine_timeout,
             "restart an engine after this many seconds of silence", {.min = 0.01});
  fields.AddAll(oracles::FieldsOf(input.wdl_model));
  fields.AddAll(FieldsOf(input.search));
  return fields;
}

int WorkersOf(const TeacherInput& input) {
  constexpr int kSearches = 8;  // Together their leaves fill a batch.
  if (!input.search.network.path.empty()) return kSearches;
  return input.engines == 0 ? HardwareThreads() : input.engines;
}

bool HasTeacher(const TeacherInput& input) {
  return !input.engine.empty() || !input.search.network.path.empty();
}

std::unique_ptr<oracles::Teacher> OpenTeacher(const TeacherInput& input) {
  if (!input.search.network.path.empty()) return std::make_unique<NetTeacher>(input);
  oracles::EngineTeacherOptions options{.command = CommandOf(input.engine),
                                        .limits = LimitsOf(input.session)};
  for (const std::string& text : input.engine_option) options.options.push_back(OptionOf(text));
  options.lines = input.session.multipv;
  options.engines = WorkersOf(input);
  options.line_plies = input.line_plies;
  options.fraction_temperature = input.fraction_temperature;
  options.node_evals = input.node_evals;
  options.new_game_every = input.new_game_every;
  options.silence_seconds = input.engine_timeout;
  options.wdl_model = input.wdl_model;
  return std::make_unique<oracles::EngineTeacher>(std::move(options));
}

std::vector<Session> ParseSessions(const std::string& text) {
  std::vector<Session> sessions;
  for (std::string_view part : Split(text, ';')) {
    if (Trim(part).empty()) continue;
    Session& session = sessions.emplace_back();
    for (std::string_view word : Split(part, ',')) SetWord(session, Trim(word), text);
  }
  if (sessions.empty())
    throw Error::Usage("--sessions: expected at least one, such as nodes=10000");
  return sessions;
}

}  // namespace kibitz::cli
