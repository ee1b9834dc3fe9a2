#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "cli/player_input.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"
#include "students/decoder/play/player.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using decoder::Candidate;
using decoder::Prediction;
using Json = nlohmann::ordered_json;

struct DecoderPredictOptions {
  nn::NetworkOptions network;
  FenInput position = {.for_decoder = true};
  std::string moves;
  double temperature = 0;
  bool any = false;
  int top_k = 0;
  bool value = false;
  int show = 5;
  uint64_t seed = 0;
};

Fields FieldsOf(DecoderPredictOptions& options) {
  Fields fields = ModelFields(options.network);
  fields.AddAll(FieldsOf(options.position));
  AddMoves(fields, options.moves,
           "moves played from the position, in UCI or SAN; the network reads the whole game");
  fields.Add("temperature", options.temperature, "sampling temperature; 0: the most likely move",
             {.min = 0, .max = 100});
  fields.Add("any", options.any, "also list moves that are not legal");
  fields.Add("top_k", options.top_k, "sample only among the k most likely moves; 0: all",
             {.min = 0, .max = decoder::kMoveVocabularySize});
  fields.Add("value", options.value, "also predict win, draw and loss after the move");
  fields.Add("show", options.show, "moves to list",
             {.min = 0, .max = decoder::kMoveVocabularySize});
  fields.Add("seed", options.seed, "random seed; the n-th position uses seed + n");
  return fields;
}

decoder::PredictOptions PredictOptionsOf(const DecoderPredictOptions& options,
                                         const StopOnInterrupt& interrupt) {
  return {.temperature = options.temperature,
          .legal_only = !options.any,
          .top_k = options.top_k,
          .value = options.value,
          .seed = options.seed,
          .stop = interrupt.token()};
}

Json ValueJson(decoder::NodeValue value) {
  const decoder::Wdl wdl = decoder::WdlOf(value);
  return {
      {"wl", value.wl}, {"d", value.d}, {"win", wdl.win}, {"draw", wdl.draw}, {"loss", wdl.loss}};
}

Json Answer(const Board& board, const Prediction& prediction, int show) {
  Json moves = Json::array();
  const auto count = std::min(prediction.candidates.size(), static_cast<size_t>(show));
  for (size_t i = 0; i < count; ++i) {
    const Candidate& candidate = prediction.candidates[i];
    moves.push_back({{"move", TextOf(board, candidate)},
                     {"legal", candidate.move.has_value()},
                     {"probability", candidate.probability}});
  }
  Json answer = {{"fen", chess::ToFen(board)}};
  if (prediction.chosen) {
    answer["move"] = TextOf(board, *prediction.chosen);
    answer["legal"] = prediction.chosen->move.has_value();
    answer["probability"] = prediction.chosen->probability;
  } else {
    answer["move"] = nullptr;  // No legal move.
  }
  if (prediction.value) answer["value"] = ValueJson(*prediction.value);
  answer["moves"] = std::move(moves);
  return answer;
}

std::string Percent(double part) { return fmt::format("{:.1f}%", 100 * part); }

std::string ValueText(decoder::NodeValue value) {
  const decoder::Wdl wdl = decoder::WdlOf(value);
  return fmt::format("win {}  draw {}  loss {}", Percent(wdl.win), Percent(wdl.draw),
                     Percent(wdl.loss));
}

std::string MoveText(const Board& board, const Candidate& candidate) {
  if (!candidate.move) return fmt::format("{} (not legal)", TextOf(board, candidate));
  return fmt::format("{:7} {}", chess::ToSan(board, *candidate.move), TextOf(board, candidate));
}

void Print(const Board& board, const Prediction& prediction, int show) {
  if (!prediction.chosen) {
    fmt::print("no legal move in {}\n", chess::ToFen(board));
    return;
  }
  fmt::print("{}\n", MoveText(board, *prediction.chosen));
  if (prediction.value) fmt::print("  {}, for the side to move\n", ValueText(*prediction.value));
  const auto count = std::min(prediction.candidates.size(), static_cast<size_t>(show));
  for (size_t i = 0; i < count; ++i) {
    const Candidate& candidate = prediction.candidates[i];
    const auto bar = static_cast<size_t>(std::lround(candidate.probability * 40));
    fmt::print("  {:>6}  {:24} {}\n", Percent(candidate.probability), MoveText(board, candidate),
               std::string(bar, '#'));
  }
}

int PredictGame(decoder::Player& player, const DecoderPredictOptions& options,
                const Context& context) {
  const StopOnInterrupt interrupt;
  const Board start = BoardOf(options.position);
  const std::vector<chess::Move> moves = MovesOf(start, options.moves);
  const auto reader = player.Read(start);
  Json history = Json::array();
  for (chess::Move move : moves) {
    ThrowIfInterrupted();
    const Board before = reader->board();
    reader->Play(move);
    const decoder::NodeValue value = reader->values().back();
    history.push_back({{"move", chess::ToText(before, move)}});
    history.back().update(ValueJson(value));
    if (!context.json) {
      fmt::print("{:7} {}, for the side that moved\n", chess::ToSan(before, move),
                 ValueText(value));
    }
  }
  const Prediction prediction = reader->Predict(PredictOptionsOf(options, interrupt));
  if (prediction.cancelled) ThrowIfInterrupted();
  if (context.json) {
    Json answer = Answer(reader->board(), prediction, options.show);
    answer["history"] = std::move(history);
    PrintJson(answer);
  } else {
    Print(reader->board(), prediction, options.show);
  }
  return 0;
}

int Run(const DecoderPredictOptions& options, const Context& context) {
  const auto player = decoder::Player::Load(options.network);
  if (!options.moves.empty()) {
    if (!options.position.fens.empty()) {
      throw Error::Usage("--moves needs one position, not --fens");
    }
    return PredictGame(*player, options, context);
  }
  const StopOnInterrupt interrupt;
  decoder::PredictOptions predict = PredictOptionsOf(options, interrupt);
  if (!options.position.fens.empty()) {
    const uint64_t seed = predict.seed;
    return AnswerInBatches(options.position, 64, [&](std::span<const Board> boards, size_t first) {
      predict.seed = seed + first;
      const auto predictions = player->PredictAll(boards, predict);
      ThrowIfInterrupted();
      std::vector<Json> answers;
      answers.reserve(boards.size());
      for (size_t i = 0; i < boards.size(); ++i) {
        answers.push_back(Answer(boards[i], predictions[i], options.show));
      }
      return answers;
    });
  }
  const Board board = BoardOf(options.position);
  const auto start = std::chrono::steady_clock::now();
  const Prediction prediction = player->Predict(board, predict);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (prediction.cancelled) ThrowIfInterrupted();
  if (context.json) {
    Json answer = Answer(board, prediction, options.show);
    answer["seconds"] = seconds;
    PrintJson(answer);
  } else {
    Print(board, prediction, options.show);
    fmt::print("  {:.1f} ms\n", seconds * 1e3);
  }
  return 0;
}

}  // namespace

Command DecoderPredict() {
  return MakeCommand<DecoderPredictOptions>(
      {.name = "decoder predict",
       .group = "Decoder",
       .summary = "predict the move of a decoder without thinking, with its value on request",
       .details = "With --moves the network reads the whole game from --fen on and prints the "
                  "value of each\n"
                  "move. Each further move costs only its own tokens. --fens runs positions in "
                  "batches. Values\n"
                  "are for the side to move.",
       .example =
           "kibitz decoder predict --model tests/golden/decoder/tiny.pt --moves \"e4 e5\" --value"},
      Run);
}

}  // namespace kibitz::cli
