#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/write_lock.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/player_input.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "io/bytes/fingerprint.h"
#include "io/tables/parquet.h"
#include "students/decoder/play/player.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;
using io::ColumnType;

struct PriorsArguments {
  std::string in;
  std::string out;
  nn::NetworkOptions network;
};

Fields FieldsOf(PriorsArguments& options) {
  Fields fields;
  fields.Add("in", options.in, "searches, as 'oracle variations' writes them",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("out", options.out, "the same with other priors, .parquet",
             {.required = true, .metavar = "FILE"});
  fields.AddAll(ModelFields(options.network));
  return fields;
}

enum Columns : size_t { kFen, kVariations, kAction, kWin, kDraw, kLoss, kColumns };

const std::vector<io::ColumnSpec>& SearchColumns() {
  static const std::vector<io::ColumnSpec> columns = {
      {"fen", ColumnType::kText},         {"variations", ColumnType::kText},
      {"mcts_action", ColumnType::kText}, {"win", ColumnType::kDouble},
      {"draw", ColumnType::kDouble},      {"loss", ColumnType::kDouble}};
  return columns;
}

// The variations with the network's probability of each root move, of all legal ones.
std::string WithPriors(const std::string& place, const chess::Board& root,
                       const decoder::Prediction& prediction, std::string_view text) {
  Json variations = ParseJson(text);
  if (!variations.is_array()) {
    throw Error("{}: its variations are no JSON list; expected what 'oracle variations' writes",
                place);
  }
  for (Json& variation : variations) {
    const auto name = variation.find("root_move");
    const bool is_text = name != variation.end() && name->is_string();
    const auto move = chess::ParseMove(root, is_text ? name->get<std::string>() : std::string());
    if (!move) throw Error("{}: a variation's root_move: {}", place, move.reason());
    const auto found = std::ranges::find_if(
        prediction.candidates,
        [&](const decoder::Candidate& candidate) { return candidate.move == *move; });
    variation["prior"] = found == prediction.candidates.end() ? 0.0 : found->probability;
  }
  return variations.dump();
}

void WriteRows(const io::Chunk& chunk, const std::string& path, uint64_t first_row,
               decoder::Player& player, io::ParquetWriter& writer) {
  std::vector<chess::Board> roots;
  for (size_t row = 0; row < chunk.rows; ++row) {
    const auto board = chess::ParseFen(chunk.columns[kFen].texts[row]);
    if (!board) throw Error("{}, row {}: {}", path, first_row + row, board.reason());
    roots.push_back(*board);
  }
  const std::vector<decoder::Prediction> predictions = player.PredictAll(roots);
  for (size_t row = 0; row < chunk.rows; ++row) {
    const std::string place = fmt::format("{}, row {}", path, first_row + row);
    writer.SetText(kFen, chunk.columns[kFen].texts[row]);
    writer.SetText(kVariations, WithPriors(place, roots[row], predictions[row],
                                           chunk.columns[kVariations].texts[row]));
    writer.SetText(kAction, chunk.columns[kAction].texts[row]);
    for (size_t column = kWin; column < kColumns; ++column) {
      if (!chunk.IsNull(column, row)) writer.SetDouble(column, chunk.columns[column].doubles[row]);
    }
    writer.EndRow();
  }
}

int Run(const PriorsArguments& options, const Context& context) {
  if (!options.out.ends_with(".parquet")) {
    throw Error::Usage("--out is {}, expected a file that ends with .parquet", options.out);
  }
  const WriteLock lock = WriteLock::OfFile(options.out);
  const io::ParquetReader reader({options.in});
  const std::unique_ptr<decoder::Player> player = decoder::Player::Load(options.network);
  const Json kept = {{"command", "decoder priors"},
                     {"in", io::FingerprintOf(options.in)},
                     {"network", io::FingerprintOf(io::FindModel(options.network.path))}};
  io::ParquetWriter writer(options.out, SearchColumns(), {.metadata = {{"kibitz", kept.dump()}}});
  Progress progress("rows", reader.CountRows());
  io::ParquetScan scan = reader.Scan(SearchColumns());
  while (const io::Chunk* chunk = scan.Next()) {
    ThrowIfInterrupted();
    WriteRows(*chunk, options.in, writer.rows(), *player, writer);
    progress.Add(chunk->rows);
  }
  progress.Finish();
  const uint64_t rows = writer.rows();
  writer.Finish();
  if (context.json) {
    PrintJson({{"out", options.out}, {"rows", rows}});
  } else {
    fmt::print("{}: {} rows\n", options.out, rows);
  }
  return 0;
}

}  // namespace

Command DecoderPriors() {
  return MakeCommand<PriorsArguments>(
      {.name = "decoder priors",
       .group = "Decoder",
       .summary = "write a network's own policy into searches, as the priors of their root moves",
       .details = "With data.candidates_by_prior, finetuning then shows the variations that the "
                  "network itself\n"
                  "would begin with. When the teacher chooses them, being shown marks a move as "
                  "good, and the\n"
                  "network learns that instead of reading the values. A stopped run starts over.",
       .example = "kibitz decoder priors examples/decoder/searches.parquet --model "
                  "models/decoder-small --out own.parquet"},
      Run);
}

}  // namespace kibitz::cli
