#include "players/decoder_player.h"

#include <algorithm>
#include <utility>

#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "players/instinct_player.h"
#include "players/thought_lines.h"

namespace kibitz::players {
namespace {

using chess::Move;
using decoder::Candidate;
using decoder::Thought;

// The candidates that may be played, their probabilities made to sum to 1.
std::vector<MoveInfo> MovesOf(const std::vector<Candidate>& candidates,
                              const std::vector<Move>& allowed) {
  std::vector<MoveInfo> moves;
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.move || std::ranges::find(allowed, *candidate.move) == allowed.end()) continue;
    moves.push_back({.move = *candidate.move, .probability = candidate.probability});
    sum += candidate.probability;
  }
  for (MoveInfo& info : moves) {
    info.probability = sum > 0 ? info.probability / sum : 1.0 / static_cast<double>(moves.size());
  }
  return moves;
}

// The smaller of two limits, where 0 is none.
int Smaller(int option, std::optional<int> limit) {
  if (!limit) return option;
  return option == 0 ? *limit : std::min(option, *limit);
}

// What a thought says so far, with `best` as the move to play.
Answer AnswerOf(const Thought& thought, const std::vector<Move>& allowed,
                std::optional<Move> best) {
  Answer answer;
  answer.moves = MovesOf(thought.instinct, allowed);
  if (answer.moves.empty()) return answer;
  answer.move = best ? best : answer.moves.front().move;
  answer.lines = LinesOf(thought, allowed, answer.move);
  auto& wdl = answer.lines.front().wdl;
  if (!wdl && thought.instinct_value) wdl = WdlFrom(*thought.instinct_value);
  answer.wdl = wdl;
  answer.nodes = 1 + NodesOf(thought);
  return answer;
}

// The lines of moves that have none yet, as many as asked for.
void AddOtherLines(const Answer& from, int lines, Answer& to) {
  for (const Line& line : from.lines) {
    if (static_cast<int>(to.lines.size()) >= lines) return;
    const bool known = std::ranges::any_of(
        to.lines, [&](const Line& other) { return other.pv.front() == line.pv.front(); });
    if (!known) to.lines.push_back(line);
  }
}

}  // namespace

DecoderPlayer::DecoderPlayer(std::shared_ptr<decoder::Player> network, std::string name,
                             const DecoderPlayerOptions& options)
    : network_(std::move(network)), name_(std::move(name)), options_(options) {}

Answer DecoderPlayer::Play(const Request& request, const OnProgress& on_progress) {
  if (!chess::HasLegalMove(request.game.Current())) return {};
  if (options_.think) return Think(request, on_progress);
  Answer answer = Instinct(request);
  if (!answer.move) return answer;
  if (on_progress) on_progress(answer);
  if (request.stop.stop_requested()) return answer;
  AddLines(request, answer);
  return answer;
}

decoder::GameReader* DecoderPlayer::Follow(const oracles::GameSoFar& game) {
  if (!options_.history || options_.think || game.moves.empty()) return nullptr;
  const bool follows = reader_ != nullptr && read_.start == game.start &&
                       read_.moves.size() <= game.moves.size() &&
                       std::equal(read_.moves.begin(), read_.moves.end(), game.moves.begin());
  const size_t known = follows ? read_.moves.size() : 0;
  if (!follows) reader_ = network_->Read(game.start);
  if (game.moves.size() > static_cast<size_t>(reader_->max_moves())) {
    reader_.reset();  // The game is longer than the network can read.
    return nullptr;
  }
  for (size_t i = known; i < game.moves.size(); ++i) reader_->Play(game.moves[i]);
  read_ = game;
  return reader_.get();
}

Answer DecoderPlayer::Instinct(const Request& request) {
  const chess::Board board = request.game.Current();
  const decoder::PredictOptions asked{.value = true, .stop = request.stop};
  decoder::GameReader* reader = Follow(request.game);
  const decoder::Prediction prediction =
      reader != nullptr ? reader->Predict(asked) : network_->Predict(board, asked);
  Answer answer;
  answer.moves = MovesOf(prediction.candidates, AllowedMoves(request));
  if (answer.moves.empty()) return answer;
  const double temperature = options_.think
                                 ? 0
                                 : TemperatureAt(options_.temperature, options_.temperature_moves,
                                                 board.fullmove_number());
  answer.move = answer.moves[ChooseByTemperature(answer.moves, temperature, request.seed)].move;
  if (prediction.value) answer.wdl = WdlFrom(*prediction.value);
  answer.lines = {Line{.pv = {*answer.move}, .wdl = answer.wdl}};
  MarkMate(board, answer.lines.front());
  answer.nodes = 1;
  return answer;
}

void DecoderPlayer::AddLines(const Request& request, Answer& answer) {
  const chess::Board board = request.game.Current();
  std::vector<Line*> valued;
  std::vector<chess::Board> boards;
  answer.lines.reserve(answer.moves.size());
  for (const MoveInfo& info : answer.moves) {
    if (static_cast<int>(answer.lines.size()) >= request.lines) break;
    if (info.move == *answer.move) continue;
    Line& line = answer.lines.emplace_back(Line{.pv = {info.move}});
    const chess::Board after = board.After(info.move);
    if (chess::IsCheckmate(after)) {
      MarkMate(board, line);
    } else if (chess::EndingOf(after) != chess::Ending::kNone) {
      line.wdl = oracles::Wdl{.draw = 1};
    } else {
      valued.push_back(&line);
      boards.push_back(after);
    }
  }
  if (boards.empty()) return;
  const auto predictions = network_->PredictAll(boards, {.value = true, .stop = request.stop});
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (predictions[i].value) valued[i]->wdl = WdlFrom(*predictions[i].value).Reversed();
  }
  std::erase_if(answer.lines, [](const Line& line) { return !line.wdl; });
  answer.nodes += static_cast<int64_t>(boards.size());
}

Answer DecoderPlayer::Think(const Request& request, const OnProgress& on_progress) {
  const chess::Board board = request.game.Current();
  const std::vector<Move> allowed = AllowedMoves(request);
  std::stop_source cut;  // By the caller's stop, or when there are nodes enough.
  const std::stop_callback forward(request.stop, [&] { cut.request_stop(); });
  Answer instinct;  // The moves it likes, for lines that the thought does not write.
  if (request.lines > 1) {
    instinct = Instinct(request);
    if (!instinct.move) return instinct;
    AddLines(request, instinct);
    if (on_progress) on_progress(instinct);
  }
  const auto tell = [&](const Thought& thought) {
    if (request.limits.nodes && NodesOf(thought) + 1 >= *request.limits.nodes) cut.request_stop();
    if (!on_progress) return;
    Answer answer = AnswerOf(thought, allowed, BestFinished(thought, allowed));
    AddOtherLines(instinct, request.lines, answer);
    if (answer.move) on_progress(answer);
  };
  const Thought thought = network_->Think(
      board,
      {.thinking_temperature = options_.thinking_temperature,
       .final_temperature =
           TemperatureAt(options_.temperature, options_.temperature_moves, board.fullmove_number()),
       .max_variations = options_.max_variations,
       .max_depth = Smaller(options_.max_depth, request.limits.depth),
       .legal_only = options_.legal,
       .distinct = options_.distinct,
       .root_value = true,
       .seed = request.seed,
       .stop = cut.get_token()},
      {.on_root = tell, .on_value = tell});
  Answer answer = AnswerOf(thought, allowed, MoveOf(thought, allowed));
  if (!answer.move) return instinct;
  AddOtherLines(instinct, request.lines, answer);
  if (thought.final_move && thought.move == answer.move) {
    answer.moves = MovesOf(thought.candidates, allowed);
  }
  return answer;
}

}  // namespace kibitz::players
