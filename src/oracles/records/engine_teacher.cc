#include "oracles/records/engine_teacher.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Ending;

bool Has(const EngineTeacherOptions& options, std::string_view name) {
  return std::any_of(options.options.begin(), options.options.end(), [name](const auto& option) {
    return LowerCase(option.first) == LowerCase(name);
  });
}

// Adds the options, of those the engine has, that make searches reproducible.
void AddOwnOptions(EngineTeacherOptions& options, const UciClient& engine) {
  const auto add = [&](const std::string& name, const std::string& value) {
    if (engine.FindOption(name) != nullptr && !Has(options, name)) {
      options.options.emplace_back(name, value);
    }
  };
  add("Threads", "1");
  add("Hash", std::to_string(options.hash_megabytes));
  add("UCI_ShowWDL", "true");
  if (options.lines > 1 && engine.FindOption("MultiPV") == nullptr) {
    throw Error("engine {} has no option MultiPV, so it cannot give {} lines; use --multipv 1",
                engine.name(), options.lines);
  }
  add("MultiPV", std::to_string(options.lines));
}

EngineSpec SpecOf(const EngineTeacherOptions& options) {
  return {.command = options.command,
          .options = options.options,
          .answer_seconds = std::min(5.0, options.silence_seconds),
          .silence_seconds = options.silence_seconds};
}

std::string FaultOf(const Answer& answer) {
  if (!answer.move || !answer.candidates.empty()) return "";
  return "it gave a move but no line with an exact score; does it search at all, or are its limits "
         "too tight?";
}

// How the game ended, if it is over in the position.
std::optional<Wdl> WdlIfOver(const Board& board) {
  const Ending ending = chess::EndingOf(board);
  if (ending == Ending::kNone) return std::nullopt;
  return WdlOfEnding(ending == Ending::kCheckmate);
}

}  // namespace

EngineTeacher::EngineTeacher(EngineTeacherOptions options)
    : options_(std::move(options)), threads_(options_.engines) {
  EngineSpec look = SpecOf(options_);
  look.options.clear();
  const UciClient engine(look);
  name_ = engine.name();
  AddOwnOptions(options_, engine);
  tells_wdl_ = std::ranges::any_of(options_.options, [](const auto& option) {
    return LowerCase(option.first) == "uci_showwdl" && LowerCase(option.second) == "true";
  });
  pool_ = std::make_unique<UciPool>(SpecOf(options_),
                                    PoolOptions{.engines = options_.engines, .fault_of = FaultOf});
}

std::vector<std::optional<Lesson>> EngineTeacher::Teach(std::span<const GameSoFar> games) {
  std::vector<std::optional<Lesson>> lessons(games.size());
  const auto row = static_cast<size_t>(options_.new_game_every);
  threads_.ParallelFor((games.size() + row - 1) / row, [&](size_t i) {
    std::vector<size_t> places;
    std::vector<GameSoFar> questions;
    for (size_t k = i * row; k < std::min(games.size(), (i + 1) * row); ++k) {
      if (!chess::HasLegalMove(games[k].Current())) continue;
      places.push_back(k);
      questions.push_back(games[k]);
    }
    if (questions.empty()) return;
    const std::vector<Answer> answers = pool_->AskInOrder(questions, options_.limits);
    for (size_t k = 0; k < places.size(); ++k) {
      lessons[places[k]] = LessonOf(questions[k], answers[k]);
    }
  });
  return lessons;
}

Lesson EngineTeacher::LessonOf(const GameSoFar& game, const Answer& answer) {
  const Board root = game.Current();
  Lesson lesson;
  for (const AnswerLine& line : answer.candidates) {
    if (static_cast<int>(lesson.variations.size()) == options_.lines) break;
    if (lesson.variations.empty()) lesson.depth = line.depth;
    lesson.variations.push_back(MakeVariation(game, root, line));
  }
  const Variation& first = lesson.variations.front();
  lesson.best = first.nodes.front().move;
  lesson.score = first.score;
  lesson.wdl = WdlOf(first.score, options_.wdl_model);
  lesson.nodes = answer.nodes;
  WeighVariations(lesson);
  return lesson;
}

Variation EngineTeacher::MakeVariation(const GameSoFar& game, const Board& root,
                                       const AnswerLine& line) {
  Variation variation;
  variation.score = *line.score;
  Wdl wdl = WdlOf(variation.score, options_.wdl_model);
  Board board = root;
  GameSoFar played = game;
  const size_t plies = std::min(line.pv.size(), static_cast<size_t>(options_.line_plies));
  for (size_t ply = 0; ply < plies; ++ply) {
    board = board.After(line.pv[ply]);
    played.moves.push_back(line.pv[ply]);
    wdl = wdl.Reversed();
    const std::optional<Wdl> over = WdlIfOver(board);
    Wdl node_wdl = over.value_or(wdl);
    if (!over && options_.node_evals > 0) node_wdl = AskAbout(played);
    variation.nodes.push_back({line.pv[ply], node_wdl, 0});
    if (over) break;
  }
  return variation;
}

Wdl EngineTeacher::AskAbout(const GameSoFar& game) {
  const Answer answer = pool_->Ask(game, {.nodes = options_.node_evals});
  return WdlOf(*answer.candidates.front().score, options_.wdl_model);
}

void EngineTeacher::WeighVariations(Lesson& lesson) const {
  // A line of lower rank may have a higher score when the search stopped before it updated the
  // line; its score is capped at that of the line above.
  std::vector<double> weights;
  double ceiling = AsCentipawns(lesson.variations.front().score);
  const double best = ceiling;
  double sum = 0;
  for (const Variation& variation : lesson.variations) {
    ceiling = std::min(ceiling, AsCentipawns(variation.score));
    weights.push_back(std::exp((ceiling - best) / options_.fraction_temperature));
    sum += weights.back();
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    Variation& variation = lesson.variations[i];
    variation.fraction = weights[i] / sum;
    variation.prior = 1.0 / static_cast<double>(weights.size());
    variation.visits =
        std::max<int64_t>(1, std::llround(variation.fraction * static_cast<double>(lesson.nodes)));
    int64_t visits = variation.visits;
    for (VariationNode& node : variation.nodes) {
      node.visits = std::max<int64_t>(1, visits);
      visits /= 2;
    }
  }
}

nlohmann::ordered_json EngineTeacher::OptionsJson() const {
  nlohmann::ordered_json json = {{"kind", "engine"}, {"name", name_}};
  json["command"] = options_.command;
  for (const auto& [name, value] : options_.options) json["options"][name] = value;
  if (options_.limits.nodes) json["nodes"] = *options_.limits.nodes;
  if (options_.limits.depth) json["depth"] = *options_.limits.depth;
  if (options_.limits.move_milliseconds) json["movetime"] = *options_.limits.move_milliseconds;
  json["multipv"] = options_.lines;
  json["line_plies"] = options_.line_plies;
  json["fraction_temperature"] = options_.fraction_temperature;
  json["node_evals"] = options_.node_evals;
  if (options_.new_game_every > 1) json["new_game_every"] = options_.new_game_every;
  if (tells_wdl_) {
    json["wdl"] = "UCI_ShowWDL";
  } else {
    json["wdl"] = {{"even_centipawns", options_.wdl_model.even_centipawns},
                   {"spread_centipawns", options_.wdl_model.spread_centipawns}};
  }
  return json;
}

}  // namespace kibitz::oracles
