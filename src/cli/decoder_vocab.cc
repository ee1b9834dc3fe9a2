#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;
using decoder::TokenId;

enum class Part { kAll, kBoard, kMoves };

struct VocabOptions {
  Part part = Part::kAll;
};

Fields FieldsOf(VocabOptions& options) {
  Fields fields;
  fields.AddChoice("part", options.part, "all tokens, or those of one head",
                   {{"all", Part::kAll}, {"board", Part::kBoard}, {"moves", Part::kMoves}});
  return fields;
}

// The use of a token.
std::string_view KindOf(TokenId token) {
  if (decoder::IsMove(token)) return "move";
  if (token <= decoder::kBlackPawn) return "piece";
  if (token < decoder::kFirstCastling) return "mark";
  if (token <= decoder::kNoCastling) return "castling";
  return token == decoder::kEndVar ? "signal" : "target only";
}

bool InPart(TokenId token, Part part) {
  if (part == Part::kBoard) return decoder::BoardIndex(token) >= 0;
  return part == Part::kAll || decoder::IsMove(token);
}

// The board head's tokens in the head's own order.
template <typename Use>
void ForEachToken(Part part, Use use) {
  if (part == Part::kBoard) {
    for (int i = 0; i < decoder::kBoardVocabularySize; ++i) use(decoder::BoardToken(i));
    return;
  }
  for (TokenId token = 0; token < decoder::kVocabularySize; ++token) {
    if (InPart(token, part)) use(token);
  }
}

int Run(const VocabOptions& options, const Context& context) {
  if (context.json) {
    Json tokens = Json::array();
    ForEachToken(options.part, [&](TokenId token) {
      const int board = decoder::BoardIndex(token);
      tokens.push_back({{"id", token},
                        {"name", decoder::TokenName(token)},
                        {"kind", KindOf(token)},
                        {"board", board >= 0 ? Json(board) : Json()},
                        {"move", decoder::IsMove(token) ? Json(token) : Json()}});
    });
    PrintJson({{"size", decoder::kVocabularySize},
               {"board_size", decoder::kBoardVocabularySize},
               {"move_size", decoder::kMoveVocabularySize},
               {"tokens", std::move(tokens)}});
    return 0;
  }
  fmt::print("{:>5} {:20}{:13}{:>5} {:>5}\n", "id", "token", "kind", "board", "move");
  ForEachToken(options.part, [](TokenId token) {
    const int board = decoder::BoardIndex(token);
    fmt::print("{:>5} {:20}{:13}{:>5} {:>5}\n", token, decoder::TokenName(token), KindOf(token),
               board >= 0 ? std::to_string(board) : "-",
               decoder::IsMove(token) ? std::to_string(token) : "-");
  });
  return 0;
}

}  // namespace

Command DecoderVocab() {
  return MakeCommand<VocabOptions>(
      {.name = "decoder vocab",
       .group = "Decoder",
       .summary = "list the decoder's 1968 tokens and their indices in each head",
       .details = "The board head predicts 41 of the tokens, the policy heads the 1924 moves.",
       .example = "kibitz decoder vocab --part board"},
      Run);
}

}  // namespace kibitz::cli
