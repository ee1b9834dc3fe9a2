#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using decoder::TokenId;
using Json = nlohmann::ordered_json;

struct TokensOptions {
  FenInput position = {.for_decoder = true};
  std::vector<int> ids;
};

Fields FieldsOf(TokensOptions& options) {
  Fields fields = FieldsOf(options.position);
  fields.Add("ids", options.ids, "decode instead: 68 token ids of a position",
             {.min = 0, .max = 65535, .metavar = "N,N,..."});
  return fields;
}

Json Answer(const Board& board) {
  Json ids = Json::array();
  Json names = Json::array();
  for (TokenId token : decoder::BoardTokensOf(board)) {
    ids.push_back(token);
    names.push_back(decoder::TokenName(token));
  }
  return {{"fen", chess::ToFen(board)}, {"ids", std::move(ids)}, {"tokens", std::move(names)}};
}

int ShowPosition(const std::vector<int>& ids, const Context& context) {
  std::vector<TokenId> tokens;
  tokens.reserve(ids.size());
  for (int id : ids) tokens.push_back(static_cast<TokenId>(id));
  const Board board = decoder::BoardOf(tokens).OrThrow("--ids");
  if (context.json) {
    PrintJson(Answer(board));
  } else {
    fmt::print("{}\n", chess::ToFen(board));
  }
  return 0;
}

int Run(const TokensOptions& options, const Context& context) {
  if (!options.ids.empty()) {
    if (!options.position.fen.empty() || !options.position.fens.empty()) {
      throw Error::Usage("--ids and --fen exclude each other");
    }
    return ShowPosition(options.ids, context);
  }
  if (!options.position.fens.empty()) return AnswerEach(options.position, Answer);
  const Board board = BoardOf(options.position);
  if (context.json) {
    PrintJson(Answer(board));
    return 0;
  }
  fmt::print("{:>3}  {:>5}  {:20}{}\n", "pos", "id", "token", "square");
  int position = 0;
  for (TokenId token : decoder::BoardTokensOf(board)) {
    const bool square = position >= 1 && position <= 64;
    fmt::print("{:>3}  {:>5}  {:20}{}\n", position, token, decoder::TokenName(token),
               square ? chess::Square(position - 1).Name() : "");
    ++position;
  }
  return 0;
}

}  // namespace

Command DecoderTokens() {
  return MakeCommand<TokensOptions>(
      {.name = "decoder tokens",
       .group = "Decoder",
       .summary = "encode a position as the decoder's 68 tokens, or decode them",
       .details = "The tokens hold neither the en passant square nor the move counters. Castling "
                  "rights that\n"
                  "the pieces do not support are dropped.",
       .example = "kibitz decoder tokens --fen \"4k3/P7/8/8/8/8/8/4K2R w K - 0 1\""},
      Run);
}

}  // namespace kibitz::cli
