#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "students/decoder/data/annotate.h"
#include "students/decoder/data/batch.h"
#include "students/decoder/data/source.h"
#include "students/decoder/data/thinking_sequence.h"

namespace kibitz::cli {
namespace {

using decoder::Annotation;
using decoder::Sequence;
using decoder::TokenName;
using Json = nlohmann::ordered_json;

struct DumpOptions {
  std::string variations;
  std::string games;
  uint64_t row = 0;
  uint64_t seed = 42;
  uint64_t epoch = 0;
  std::vector<int> ranking;
  std::vector<int> depths;
  bool all = false;
  decoder::ThinkingOptions thinking;
  double skip_board_prob = 0;
};

Fields FieldsOf(DumpOptions& options) {
  Fields fields;
  fields.Add("variations", options.variations, "a Parquet file of searches", {.metavar = "FILE"});
  fields.Add("games", options.games, "or a Parquet file of games", {.metavar = "FILE"});
  fields.Add("row", options.row, "row of the searches, or number of the game, from 0");
  fields.Add("seed", options.seed,
             "seed that draws the order and depths of variations, as in training");
  fields.Add("epoch", options.epoch, "epoch that draws them, from 0");
  fields.Add("ranking", options.ranking, "fix the order: ranks by visits, such as 2,1",
             {.metavar = "N,N,..."});
  fields.Add("depths", options.depths,
             "fix the depth of each variation, in that order, such as 2,1", {.metavar = "N,N,..."});
  fields.Add("all", options.all, "print every token, also each square of a board");
  fields.Add("max_seq_len", options.thinking.max_seq_len, "max tokens in a sequence",
             {.min = decoder::kBoardTokens, .max = 1 << 20});
  fields.AddAll(FieldsOf(options.thinking));
  fields.Add("skip_board_prob", options.skip_board_prob,
             "with --games: probability that a board is left out", {.min = 0, .max = 1});
  return fields;
}

struct Sample {
  Sequence sequence;
  std::vector<decoder::ThinkingAttempt> attempts;  // Of a thinking sequence.
};

Sample ReadThought(const DumpOptions& options) {
  const decoder::SearchRow row = decoder::ReadSearch(options.variations, options.row);
  Rng rng({.seed = options.seed,
           .epoch = options.epoch,
           .sample = options.row,
           .purpose = Purpose("thought")});
  decoder::ThinkingResult result =
      decoder::Think(row, options.thinking, rng, {options.ranking, options.depths});
  if (!result.sequence) {
    throw Error("{}, row {}: its shortest sequence has more than {} tokens; raise --max-seq-len",
                options.variations, options.row, options.thinking.max_seq_len);
  }
  return {*std::move(result.sequence), std::move(result.attempts)};
}

Sample ReadGame(const DumpOptions& options) {
  const auto source = decoder::OpenGames(
      {options.games},
      {.max_seq_len = options.thinking.max_seq_len, .skip_board_prob = options.skip_board_prob});
  if (options.row >= source->size()) {
    throw Error("{}: found no game {}, expected 0 to {}", options.games, options.row,
                source->size() - 1);
  }
  uint64_t within = options.row;
  size_t unit = 0;
  while (within >= source->unit_sizes()[unit]) within -= source->unit_sizes()[unit++];
  const auto loaded = source->Load(unit);
  if (!loaded->Usable(within)) {
    throw Error("{}, game {}: found no valid row; try another --row", options.games, options.row);
  }
  Rng rng({.seed = options.seed,
           .epoch = options.epoch,
           .sample = options.row,
           .purpose = Purpose("game")});
  return {loaded->Make(within, rng), {}};
}

std::string TargetText(const Annotation& at) {
  if (!at.board_target) return "-";
  return fmt::format("{} [{}]", TokenName(decoder::BoardToken(*at.board_target)),
                     at.overridden ? 'O' : 'N');
}

std::string MoveText(const Annotation& at) {
  return at.move ? std::string(TokenName(static_cast<decoder::TokenId>(at.move->move))) : "-";
}

std::string ValueText(const Annotation& at) {
  if (!at.wl && !at.d) return "";
  if (!at.valid) return "not known";
  return at.wl ? fmt::format("{:+.3f}", *at.wl) : fmt::format("{:.3f}", *at.d);
}

void PrintLine(const Annotation& at) {
  std::string masks = fmt::format("{}", fmt::join(at.Masks(), " "));
  fmt::print("{:>4}  {:18}  {:22}  {:8}  {:>5}  {:9}  {}\n", at.position, TokenName(at.token),
             TargetText(at), MoveText(at), at.block ? std::to_string(*at.block) : "-",
             ValueText(at), masks);
}

// Whether this is a square after the first of a board: those share one line unless --all.
bool IsInnerSquare(const std::vector<Annotation>& list, size_t i) {
  const auto is_square = [&](size_t at) {
    return list[at].block &&
           (list[at].token == decoder::kEmpty || list[at].token <= decoder::kBlackPawn);
  };
  return i > 0 && i + 1 < list.size() && is_square(i) && is_square(i - 1) && is_square(i + 1);
}

void PrintTable(const Sample& sample, bool all) {
  const Sequence& sequence = sample.sequence;
  if (!sample.attempts.empty()) {
    const decoder::ThinkingAttempt& used = sample.attempts.back();
    fmt::print(
        "thinking sequence of {} tokens: ranking {}, depths {}, first variation is {}the best{}\n",
        sequence.size(), fmt::join(used.ranking, ","), fmt::join(used.depths, ","),
        sequence.first_is_not_best ? "not " : "",
        sample.attempts.size() > 1
            ? fmt::format(", shortened {} times to fit", sample.attempts.size() - 1)
            : "");
  } else {
    fmt::print("game sequence of {} tokens\n", sequence.size());
  }
  fmt::print("{:>4}  {:18}  {:22}  {:8}  {:>5}  {:9}  {}\n", "pos", "token", "board target", "move",
             "block", "value", "masks");
  const std::vector<Annotation> list = decoder::Annotate(sequence);
  for (size_t i = 0; i < list.size(); ++i) {
    size_t end = i;
    while (!all && end < list.size() && IsInnerSquare(list, end)) ++end;
    if (end > i + 1) {
      fmt::print("{:>4}  {:18}  {:22}  {:8}  {:>5}  {:9}  {}\n", "...",
                 fmt::format("({} squares)", end - i),
                 list[i].board_target ? "(next square) [N]" : "-", "-", *list[i].block, "",
                 list[i].board_target ? "board_mask" : "");
      i = end - 1;
      continue;
    }
    PrintLine(list[i]);
  }
  fmt::print("[N] target is the next token, [O] target differs from it\n");
}

Json Positions(const std::vector<uint8_t>& mask) {
  Json positions = Json::array();
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) positions.push_back(i);
  }
  return positions;
}

Json Rows(const Sequence& sequence) {
  Json rows = Json::array();
  for (const Annotation& at : decoder::Annotate(sequence)) {
    Json row = {{"position", at.position}, {"token", TokenName(at.token)}};
    row["board_target"] =
        at.board_target ? Json(TokenName(decoder::BoardToken(*at.board_target))) : Json();
    row["target_kind"] = at.board_target ? Json(at.overridden ? "O" : "N") : Json();
    row["move_target"] = at.move ? Json(MoveText(at)) : Json();
    row["masks"] = at.Masks();
    row["block"] = at.block ? Json(*at.block) : Json();
    if (at.wl) row["wl"] = at.valid ? Json(*at.wl) : Json();
    if (at.d) row["d"] = at.valid ? Json(*at.d) : Json();
    rows.push_back(std::move(row));
  }
  return rows;
}

Json ToJson(const Sample& sample) {
  const Sequence& sequence = sample.sequence;
  const decoder::PaddedBatch dense =
      decoder::Pad(decoder::Pack(std::span(&sequence, 1)), sequence.size());
  Json out = {{"seq_len", sequence.size()}, {"thinking", sequence.thinking}};
  if (!sample.attempts.empty()) {
    out["ranking"] = sample.attempts.back().ranking;
    out["depths_used"] = sample.attempts.back().depths;
    out["first_is_not_best"] = sequence.first_is_not_best;
    out["attempts"] = Json::array();
    for (const decoder::ThinkingAttempt& attempt : sample.attempts) {
      out["attempts"].push_back({{"max_variations", attempt.max_variations},
                                 {"max_depth", attempt.max_depth},
                                 {"len", attempt.length},
                                 {"ranking", attempt.ranking},
                                 {"depths", attempt.depths}});
    }
  }
  out["ids"] = sequence.ids;
  out["board_target_ids"] = dense.board_target_ids;
  out["board_mask"] = Positions(dense.board_mask);
  out["move_target_ids"] = dense.move_target_ids;
  out["move_mask"] = Positions(dense.move_mask);
  out["thinking_move_mask"] = Positions(dense.thinking_move_mask);
  out["wl_positions"] = Positions(dense.wl_positions);
  out["d_positions"] = Positions(dense.d_positions);
  out["wl_targets_at_wl_positions"] = Json::array();
  out["d_targets_at_d_positions"] = Json::array();
  out["wdl_valid_at_wl_positions"] = Json::array();
  for (const decoder::ValueTarget& value : sequence.values) {
    out["wl_targets_at_wl_positions"].push_back(value.wl);
    out["d_targets_at_d_positions"].push_back(value.d);
    out["wdl_valid_at_wl_positions"].push_back(value.valid);
  }
  out["block_id"] = dense.block_id;
  out["board_blocks"] = Json::array();
  for (const decoder::Block& block : sequence.blocks) {
    out["board_blocks"].push_back({block.begin, block.end});
  }
  out["continue_var_mask"] = Positions(dense.continue_var_mask);
  out["new_variation_mask"] = Positions(dense.new_variation_mask);
  out["positions"] = Rows(sequence);
  return out;
}

int Run(const DumpOptions& options, const Context& context) {
  if (options.variations.empty() == options.games.empty()) {
    throw Error::Usage("give either --variations FILE or --games FILE");
  }
  if (!options.games.empty() && (!options.ranking.empty() || !options.depths.empty())) {
    throw Error::Usage("--ranking and --depths need --variations");
  }
  const Sample sample = options.games.empty() ? ReadThought(options) : ReadGame(options);
  if (context.json) {
    PrintJson(ToJson(sample));
  } else {
    PrintTable(sample, options.all);
  }
  return 0;
}

}  // namespace

Command DecoderDump() {
  return MakeCommand<DumpOptions>(
      {.name = "decoder dump",
       .group = "Decoder",
       .summary = "show the training sequence of one row, token by token",
       .details = "For each token: the target of the board head, the target of a policy head, the "
                  "masks, the\n"
                  "board block and the values. The same seed and epoch give the sequence that "
                  "training on\n"
                  "this one file sees. --json adds the tensors as lists.",
       .example = "kibitz decoder dump --variations examples/decoder/searches.parquet --row 0"},
      Run);
}

}  // namespace kibitz::cli
