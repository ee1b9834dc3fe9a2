#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"
#include "students/policy/play/player.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using policy::Prediction;
using Json = nlohmann::ordered_json;

constexpr size_t kBatch = 256;

struct PolicyPredictOptions {
  nn::NetworkOptions network;
  FenInput position;
  int show = 5;
};

Fields FieldsOf(PolicyPredictOptions& options) {
  Fields fields;
  fields.Add("model", options.network.path,
             "model folder, .pt, .safetensors, or the name of a model that ships",
             {.required = true, .metavar = "PATH"});
  fields.AddAll(FieldsOf(options.position));
  fields.Add("show", options.show, "moves to list", {.min = 1, .max = 512});
  fields.Add("threads", options.network.threads, "threads; 0: one for each core",
             {.min = 0, .max = 1024});
  return fields;
}

size_t Shown(const Prediction& prediction, const PolicyPredictOptions& options) {
  return std::min(prediction.moves.size(), static_cast<size_t>(options.show));
}

Json Answer(const Board& board, const Prediction& prediction, const PolicyPredictOptions& options) {
  Json moves = Json::array();
  for (size_t i = 0; i < Shown(prediction, options); ++i) {
    const policy::LikelyMove& move = prediction.moves[i];
    moves.push_back({{"move", ToText(board, move.move)},
                     {"san", chess::ToSan(board, move.move)},
                     {"probability", move.probability}});
  }
  return {{"fen", chess::ToFen(board)},
          {"move", moves.empty() ? Json() : moves[0]["move"]},
          {"legal_mass", prediction.legal_mass},
          {"moves", std::move(moves)}};
}

void Print(const Board& board, const Prediction& prediction, const PolicyPredictOptions& options) {
  if (prediction.moves.empty()) {
    fmt::print("no legal move in {}\n", chess::ToFen(board));
    return;
  }
  for (size_t i = 0; i < Shown(prediction, options); ++i) {
    const policy::LikelyMove& move = prediction.moves[i];
    fmt::print("  {:>5.1f}%  {:7} {:6} {}\n", 100 * move.probability,
               chess::ToSan(board, move.move), ToText(board, move.move),
               std::string(static_cast<size_t>(std::lround(move.probability * 40)), '#'));
  }
}

int Run(const PolicyPredictOptions& options, const Context& context) {
  policy::Player player(options.network);
  if (!options.position.fens.empty()) {
    return AnswerInBatches(options.position, kBatch, [&](std::span<const Board> boards, size_t) {
      const std::vector<Prediction> predictions = player.PredictAll(boards);
      std::vector<Json> answers;
      for (size_t i = 0; i < boards.size(); ++i) {
        answers.push_back(Answer(boards[i], predictions[i], options));
      }
      return answers;
    });
  }
  const Board board = BoardOf(options.position);
  const auto start = std::chrono::steady_clock::now();
  const Prediction prediction = player.Predict(board);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (context.json) {
    Json answer = Answer(board, prediction, options);
    answer["seconds"] = seconds;
    PrintJson(answer);
  } else {
    Print(board, prediction, options);
    fmt::print("  {:.1f} ms\n", seconds * 1e3);
  }
  return 0;
}

}  // namespace

Command PolicyPredict() {
  return MakeCommand<PolicyPredictOptions>(
      {.name = "policy predict",
       .group = "Policy",
       .summary = "predict the move of a policy, with probabilities of the legal moves",
       .details = "Probabilities are a softmax over the legal moves. legal_mass is the share of "
                  "probability\n"
                  "that the network gives to legal moves in a softmax over all moves. --fens runs "
                  "positions in\n"
                  "batches.",
       .example = "kibitz policy predict --model models/policy-small --fen \"" +
                  std::string(chess::kStartFen) + "\""},
      Run);
}

}  // namespace kibitz::cli
