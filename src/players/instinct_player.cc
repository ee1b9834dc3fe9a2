#include "players/instinct_player.h"

#include <algorithm>
#include <utility>

#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/search/tree.h"

namespace kibitz::players {

using chess::Move;
using oracles::Evaluation;
using oracles::GamePath;
using oracles::Question;

double TemperatureAt(double temperature, int temperature_moves, int fullmove) {
  if (temperature_moves == 0) return temperature;
  const double left = 1 - static_cast<double>(fullmove - 1) / temperature_moves;
  return temperature * std::max(0.0, left);
}

oracles::Wdl WdlOf(const Evaluation& evaluation) {
  return oracles::WdlFrom(static_cast<double>(evaluation.q), static_cast<double>(evaluation.draw));
}

std::vector<Line> LinesAfter(const GamePath& game, const std::vector<Move>& moves,
                             oracles::Evaluator& network, int64_t& nodes) {
  std::vector<Line> lines;
  std::vector<Question> questions;
  std::vector<size_t> asked;  // The line of each question.
  for (Move move : moves) {
    GamePath path = game;
    path.Push(game.last().After(move));
    Line& line = lines.emplace_back(Line{.pv = {move}});
    const chess::Ending ending = chess::EndingOf(path.boards());
    if (ending == chess::Ending::kCheckmate) {
      line.mate = oracles::Mate{.wins = true, .moves = 1};
      line.wdl = oracles::Wdl{.win = 1};
    } else if (ending != chess::Ending::kNone) {
      line.wdl = oracles::Wdl{.draw = 1};
    } else {
      asked.push_back(lines.size() - 1);
      questions.emplace_back(path, chess::LegalMoves(path.last()));
    }
  }
  std::vector<Evaluation> answers(questions.size());
  if (!questions.empty()) network.Evaluate(questions, answers);
  for (size_t i = 0; i < asked.size(); ++i) lines[asked[i]].wdl = WdlOf(answers[i]).Reversed();
  nodes += static_cast<int64_t>(questions.size());
  return lines;
}

InstinctPlayer::InstinctPlayer(std::shared_ptr<oracles::Evaluator> network,
                               const InstinctOptions& options)
    : network_(std::move(network)), options_(options) {}

Answer InstinctPlayer::Play(const Request& request, const OnProgress& on_progress) {
  Answer answer;
  const std::vector<Move> allowed = AllowedMoves(request);
  if (allowed.empty()) return answer;
  GamePath path(request.game.start);
  for (Move move : request.game.moves) path.Push(path.last().After(move));
  const Question question(path, chess::LegalMoves(path.last()));
  Evaluation evaluation;
  network_->Evaluate({&question, 1}, {&evaluation, 1});
  answer.nodes = 1;
  answer.wdl = WdlOf(evaluation);
  double sum = 0;
  for (size_t i = 0; i < question.moves().size(); ++i) {
    const Move move = question.moves()[i];
    if (std::ranges::find(allowed, move) == allowed.end()) continue;
    answer.moves.push_back({.move = move, .probability = evaluation.priors[i]});
    sum += answer.moves.back().probability;
  }
  for (MoveInfo& info : answer.moves) {
    info.probability = sum > 0 ? info.probability / sum : 1.0 / static_cast<double>(allowed.size());
  }
  std::ranges::stable_sort(answer.moves, std::greater(), &MoveInfo::probability);
  const size_t chosen =
      ChooseByTemperature(answer.moves,
                          TemperatureAt(options_.temperature, options_.temperature_moves,
                                        path.last().fullmove_number()),
                          request.seed);
  answer.move = answer.moves[chosen].move;
  answer.lines = {Line{.pv = {*answer.move}, .wdl = answer.wdl}};
  if (on_progress) on_progress(answer);
  if (request.lines <= 1 || request.stop.stop_requested()) return answer;

  std::vector<Move> shown = {*answer.move};
  for (const MoveInfo& info : answer.moves) {
    if (static_cast<int>(shown.size()) == request.lines) break;
    if (info.move != *answer.move) shown.push_back(info.move);
  }
  answer.lines = LinesAfter(path, shown, *network_, answer.nodes);
  return answer;
}

}  // namespace kibitz::players
