// Data sets: positions of a policy data set with their labels, sequences of the decoder, steps of
// 2048 packs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/twenty48/slide.h"
#include "io/tables/parquet.h"
#include "serve/api.h"
#include "serve/chess_json.h"
#include "students/decoder/data/annotate.h"
#include "students/decoder/data/source.h"
#include "students/decoder/data/thinking_sequence.h"
#include "students/policy/data/dataset.h"
#include "students/twenty48/data/pack.h"

namespace kibitz::serve {
namespace {

using chess::Board;

Json DataJson(const DataEntry& entry) {
  return {{"id", entry.id}, {"kind", entry.kind}, {"changed", entry.changed}};
}

Reply DataSets(Office& office, const Request&, const std::string&) {
  Json list = Json::array();
  for (const DataEntry& entry : office.catalog.Data()) list.push_back(DataJson(entry));
  return JsonReply({{"data", std::move(list)}, {"folders", office.catalog.options().data}});
}

void CheckKind(const DataEntry& entry, std::string_view kind) {
  if (!entry.kind.starts_with(kind)) {
    throw Error::Usage("{} is a data set of kind {}", entry.id, entry.kind);
  }
}

// --- Policy ---

policy::Split SplitIn(const Request& request) {
  const std::string_view name = request.Query("split");
  for (const policy::Split split : policy::kSplits) {
    if (name.empty() || NameOf(split) == name) return split;
  }
  throw Error::Usage("split: expected train, val or test");
}

policy::LabelOptions LabelIn(const Request& request) {
  policy::LabelOptions options;
  Fields fields = FieldsOf(options);
  options.temperature = QueryNumber(request, "temperature", options.temperature, 0.1, 10000);
  const std::string_view strategy = request.Query("strategy");
  if (!strategy.empty()) {
    const std::string reason = fields.Set("strategy", strategy);
    if (!reason.empty()) throw Error::Usage("strategy: {}", reason);
  }
  return options;
}

// A move of the vocabulary on this board: UCI, and SAN where it is legal.
Json WordJson(const Board& board, const policy::Vocabulary& words, uint16_t move) {
  if (move >= words.size()) return {{"uci", fmt::format("({})", move)}};
  const std::string text = words[move].Text();
  const auto legal = chess::ParseMove(board, text, chess::MoveStyle::kUciRook);
  return legal ? MoveJson(board, *legal) : Json{{"uci", text}};
}

// Analyses with the same depth and nodes are lines of one search.
Json SessionsJson(const Board& board, const policy::Vocabulary& words,
                  std::span<const policy::Analysis> analyses) {
  Json sessions = Json::array();
  for (const policy::Analysis& analysis : analyses) {
    Json line = WordJson(board, words, analysis.move);
    line[analysis.is_mate() ? "mate" : "cp"] = analysis.score;
    const bool same = !sessions.empty() && sessions.back()["depth"] == analysis.depth() &&
                      sessions.back()["knodes"] == analysis.knodes;
    if (!same) {
      sessions.push_back(
          {{"depth", analysis.depth()}, {"knodes", analysis.knodes}, {"lines", Json::array()}});
    }
    sessions.back()["lines"].push_back(std::move(line));
  }
  return sessions;
}

Json LabelJson(const Board& board, const policy::Vocabulary& words, const policy::Sample& sample,
               const policy::LabelOptions& options) {
  std::vector<policy::MoveShare> shares;
  AppendLabel(sample.analyses, sample.position.black_to_move(), options, shares);
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  Json list = Json::array();
  for (const policy::MoveShare& share : shares) {
    Json move = WordJson(board, words, share.move);
    move["probability"] = share.share;
    list.push_back(std::move(move));
  }
  return list;
}

// The next position, from `index` on in this direction, whose deepest analysis has this depth;
// looks at a bounded number.
uint64_t WithDepth(const policy::SplitData& split, uint64_t index, int min_depth, bool back) {
  std::vector<policy::Analysis> scratch;
  const uint64_t begin = index;
  for (int looked = 0; looked < 20000; ++looked) {
    if (policy::DeepestOf(split.At(index, scratch).analyses) >= min_depth) return index;
    if (back ? index == 0 : index + 1 == split.size()) break;
    index = back ? index - 1 : index + 1;
  }
  throw Error::Usage("no position of depth {} or more within 20000 of {}", min_depth, begin);
}

Reply PolicyPosition(Office& office, const Request& request, const std::string& id) {
  const DataEntry entry = office.catalog.DataSet(id);
  CheckKind(entry, "policy");
  const auto seat = office.desk.Policy(entry);
  const policy::Dataset& data = *seat;
  const policy::Split which = SplitIn(request);
  const policy::SplitData& split = data.split(which);
  Json sizes = Json::object();
  for (const policy::Split each : policy::kSplits) {
    sizes[std::string(NameOf(each))] = data.split(each).size();
  }
  if (split.size() == 0) return JsonReply({{"sizes", sizes}, {"empty", true}});
  const auto last = static_cast<int64_t>(split.size() - 1);
  uint64_t index = 0;
  if (request.Query("index") == "random") {
    index = Rng({.seed = static_cast<uint64_t>(QueryInt(request, "seed", 0, 0, int64_t{1} << 53)),
                 .purpose = Purpose("serve random")})
                .Below(split.size());
  } else {
    index = static_cast<uint64_t>(QueryInt(request, "index", 0, 0, last));
  }
  const auto min_depth = static_cast<int>(QueryInt(request, "min_depth", 0, 0, 1000));
  if (min_depth > 0) index = WithDepth(split, index, min_depth, request.Query("back") == "1");
  std::vector<policy::Analysis> scratch;
  const policy::Sample sample = split.At(index, scratch);
  const Board board = BoardOf(sample.position);
  return JsonReply({{"sizes", sizes},
                    {"split", NameOf(which)},
                    {"index", index},
                    {"fen", chess::ToFen(board)},
                    {"max_depth", policy::DeepestOf(sample.analyses)},
                    {"label", LabelJson(board, data.vocabulary(), sample, LabelIn(request))},
                    {"sessions", SessionsJson(board, data.vocabulary(), sample.analyses)}});
}

// --- Decoder ---

struct DecoderRow {
  decoder::Sequence sequence;
  uint64_t rows = 0;
};

DecoderRow ReadSearchRow(const DataEntry& entry, uint64_t row) {
  const std::string path = entry.path.string();
  const uint64_t rows = io::ParquetReader({path}, {.threads = 1}).CountRows();
  if (row >= rows) throw Error::Usage("row: found {}, expected 0 to {}", row, rows - 1);
  Rng rng({.seed = 42, .sample = row, .purpose = Purpose("thought")});
  decoder::ThinkingOptions options;
  options.max_seq_len = 1024;
  auto result = decoder::Think(decoder::ReadSearch(path, row), options, rng, {});
  if (!result.sequence) throw Error::Usage("row {}: its shortest sequence is too long", row);
  return {*std::move(result.sequence), rows};
}

DecoderRow ReadGameRow(const DataEntry& entry, uint64_t row) {
  const auto source = decoder::OpenGames({entry.path.string()}, {.max_seq_len = 1024});
  if (row >= source->size()) {
    throw Error::Usage("row: found {}, expected 0 to {}", row, source->size() - 1);
  }
  uint64_t within = row;
  size_t unit = 0;
  while (within >= source->unit_sizes()[unit]) within -= source->unit_sizes()[unit++];
  const auto loaded = source->Load(unit);
  if (!loaded->Usable(within)) throw Error::Usage("row {}: has no valid sequence", row);
  Rng rng({.seed = 42, .sample = row, .purpose = Purpose("game")});
  return {loaded->Make(within, rng), source->size()};
}

Json AnnotationJson(const decoder::Annotation& at) {
  Json json = {{"token", decoder::TokenName(at.token)}};
  if (at.block) json["block"] = *at.block;
  if (at.move) {
    json["move"] = decoder::TokenName(static_cast<decoder::TokenId>(at.move->move));
  }
  if (at.board_target) json["target"] = decoder::TokenName(decoder::BoardToken(*at.board_target));
  if (at.overridden) json["overridden"] = true;
  if (at.wl && at.valid) json["wl"] = *at.wl;
  if (at.d && at.valid) json["d"] = *at.d;
  json["masks"] = at.Masks();
  return json;
}

Reply DecoderSequence(Office& office, const Request& request, const std::string& id) {
  const DataEntry entry = office.catalog.DataSet(id);
  CheckKind(entry, "decoder");
  const auto row = static_cast<uint64_t>(QueryInt(request, "row", 0, 0, int64_t{1} << 50));
  const DecoderRow read =
      entry.kind == "decoder-searches" ? ReadSearchRow(entry, row) : ReadGameRow(entry, row);
  Json tokens = Json::array();
  for (const decoder::Annotation& at : decoder::Annotate(read.sequence)) {
    tokens.push_back(AnnotationJson(at));
  }
  return JsonReply({{"row", row}, {"rows", read.rows}, {"tokens", std::move(tokens)}});
}

// --- 2048 ---

constexpr size_t kMaxSteps = 5000;  // Of a game, in one reply.

// `score`: before the move.
Json StepJson(const twenty48::StepRow& row, int64_t score) {
  Json values = Json::object();
  const twenty48::Board board = BoardOf(row);
  const unsigned legal = twenty48::LegalMoves(board);
  for (const twenty48::Move move : twenty48::kMoves) {
    const auto i = static_cast<size_t>(move);
    const bool known = (legal >> i & row.ev_legal >> i & 1) != 0;
    values[std::string(NameOf(move))] = known ? Json(row.branch_evs[i]) : Json();
  }
  return {{"board", board.Ranks()},
          {"step", row.step_index},
          {"score", score},
          {"move", NameOf(static_cast<twenty48::Move>(row.move_dir & 3))},
          {"values", std::move(values)}};
}

Reply PackSteps(Office& office, const Request& request, const std::string& id) {
  const DataEntry entry = office.catalog.DataSet(id);
  CheckKind(entry, "2048");
  const auto seat = office.desk.Pack(entry);
  const twenty48::Pack& pack = seat->pack;
  const auto run = static_cast<size_t>(
      QueryInt(request, "game", 0, 0, static_cast<int64_t>(pack.runs().size()) - 1));
  const twenty48::RunInfo& info = pack.runs()[run];
  Json steps = Json::array();
  int64_t score = 0;
  for (const OpenPack::Rows& part : seat->rows[info.id]) {
    for (uint64_t i = part.begin; i < part.end && steps.size() < kMaxSteps; ++i) {
      const twenty48::StepRow row = pack.Row(i);
      steps.push_back(StepJson(row, score));
      score += Slide(BoardOf(row), static_cast<twenty48::Move>(row.move_dir & 3)).points;
    }
  }
  return JsonReply({{"games", pack.runs().size()},
                    {"game", run},
                    {"score", info.max_score},
                    {"highest_tile", info.highest_tile},
                    {"steps", std::move(steps)}});
}

}  // namespace

std::vector<Route> DataRoutes() {
  return {{"GET", "data", DataSets},
          {"GET", "data/*/position", PolicyPosition},
          {"GET", "data/*/sequence", DecoderSequence},
          {"GET", "data/*/steps", PackSteps}};
}

}  // namespace kibitz::serve
