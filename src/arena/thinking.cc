#include "arena/thinking.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "arena/watchdog.h"
#include "base/error.h"
#include "base/random.h"
#include "games/chess/move_text.h"
#include "players/decoder_player.h"
#include "players/networks.h"
#include "players/one_ply.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::arena {
namespace {

using chess::Board;
using chess::Move;

constexpr int kMostLost =
    1000;  // Centipawns of one move: a lost queen and a lost game count alike.

// A way to think: a limit of variations, or of time.
struct Budget {
  int variations = 0;
  int milliseconds = 0;  // 0: no limit.

  std::string Name() const {
    if (milliseconds > 0) return fmt::format("{} ms", milliseconds);
    if (variations == 0) return "own length";
    return fmt::format("{} variation{}", variations, variations == 1 ? "" : "s");
  }
};

std::vector<Budget> BudgetsOf(const ThinkingOptions& options) {
  std::vector<Budget> budgets;
  for (int variations : options.variations) budgets.push_back({.variations = variations});
  for (int time : options.times) budgets.push_back({.milliseconds = time});
  return budgets;
}

// The network of one thread, as the players that are compared.
class Mind {
 public:
  Mind(const ThinkingOptions& options, const std::vector<Budget>& budgets)
      : one_ply_(options.one_ply) {
    nn::NetworkOptions network{.path = players::FindModel(options.model), .threads = 1};
    if (!options.precision.empty()) {
      const std::string reason = FieldsOf(network).Set("precision", options.precision);
      if (!reason.empty()) throw Error::Usage("--precision: {}", reason);
    }
    network_ = decoder::Player::Load(network);
    instinct_ = Make({.think = false, .history = false});
    for (const Budget& budget : budgets) {
      thinkers_.push_back(Make({.think = true, .max_variations = budget.variations}));
    }
  }

  std::optional<Move> Instinct(const Board& board) {
    return instinct_->Play({.game = {.start = board}}).move;
  }
  players::Answer Think(size_t budget, const players::Request& request) {
    return thinkers_[budget]->Play(request);
  }
  decoder::Thought FreeThought(const Board& board, uint64_t seed, const std::stop_token& stop) {
    return network_->Think(board, {.legal_only = false, .seed = seed, .stop = stop});
  }

 private:
  std::unique_ptr<players::Player> Make(const players::DecoderPlayerOptions& options) {
    auto player = std::make_unique<players::DecoderPlayer>(network_, "decoder", options);
    if (!one_ply_) return player;
    return players::WithOnePlyRule(std::move(player));
  }

  bool one_ply_;
  std::shared_ptr<decoder::Player> network_;
  std::unique_ptr<players::Player> instinct_;
  std::vector<std::unique_ptr<players::Player>> thinkers_;
};

// Counts of one thought, in the order of ThoughtForm.
void CountNode(const decoder::ThoughtNode& node, ThoughtForm& form) {
  ++form.moves;
  if (!node.move || !node.after) return;
  ++form.legal_moves;
  if (node.board.size() != static_cast<size_t>(decoder::kBoardTokens)) return;
  ++form.boards;
  form.right_boards += node.board_true ? 1 : 0;
  const decoder::BoardTokens right = decoder::BoardTokensOf(*node.after);
  form.tokens += static_cast<int64_t>(right.size());
  for (size_t i = 0; i < right.size(); ++i) form.right_tokens += node.board[i] == right[i] ? 1 : 0;
}

ThoughtForm FormOf(const decoder::Thought& thought) {
  ThoughtForm form{.thoughts = 1};
  form.ended = thought.end == decoder::ThoughtEnd::kFinished ? 1 : 0;
  for (const decoder::Variation& variation : thought.variations) {
    ++form.variations;
    form.variations_ended += variation.ended ? 1 : 0;
    for (const decoder::ThoughtNode& node : variation.nodes) CountNode(node, form);
  }
  if (thought.final_move) {
    form.final_moves = 1;
    form.legal_final_moves = thought.final_move->move ? 1 : 0;
    form.moves += form.final_moves;
    form.legal_moves += form.legal_final_moves;
  }
  const bool whole = form.ended == 1 && form.variations_ended == form.variations &&
                     form.legal_moves == form.moves && form.right_boards == form.boards;
  form.well_formed = whole ? 1 : 0;
  return form;
}

using FormField = std::pair<const char*, int64_t ThoughtForm::*>;
constexpr FormField kFormFields[] = {{"thoughts", &ThoughtForm::thoughts},
                                     {"ended", &ThoughtForm::ended},
                                     {"variations", &ThoughtForm::variations},
                                     {"variations_ended", &ThoughtForm::variations_ended},
                                     {"moves", &ThoughtForm::moves},
                                     {"legal_moves", &ThoughtForm::legal_moves},
                                     {"final_moves", &ThoughtForm::final_moves},
                                     {"legal_final_moves", &ThoughtForm::legal_final_moves},
                                     {"boards", &ThoughtForm::boards},
                                     {"right_boards", &ThoughtForm::right_boards},
                                     {"tokens", &ThoughtForm::tokens},
                                     {"right_tokens", &ThoughtForm::right_tokens},
                                     {"well_formed", &ThoughtForm::well_formed}};

Json FormJson(const ThoughtForm& form) {
  Json json;
  for (const auto& [name, field] : kFormFields) json[name] = form.*field;
  return json;
}

// One position: the moves, what they are worth, and the form of a free thought.
std::optional<Json> Measure(const Board& board, Mind& mind, const std::vector<Budget>& budgets,
                            Judging& judge, const Piece& piece) {
  const uint64_t seed =
      Rng({.seed = 1, .sample = static_cast<uint64_t>(piece.number), .purpose = Purpose("think")})
          .Next();
  const std::optional<Move> instinct = mind.Instinct(board);
  if (!instinct) return Json{{"unknown", true}};
  std::vector<Move> moves = {*instinct};
  Json json = {{"budgets", Json::array()}};
  for (size_t i = 0; i < budgets.size(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    players::Request request{.game = {.start = board}, .seed = seed, .stop = piece.stop};
    std::optional<Watchdog> watchdog;
    if (budgets[i].milliseconds > 0) {
      watchdog.emplace(piece.stop);
      request.stop = watchdog->Arm(start + std::chrono::milliseconds(budgets[i].milliseconds));
    }
    const players::Answer answer = mind.Think(i, request);
    if (piece.stop.stop_requested()) return std::nullopt;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    moves.push_back(answer.move.value_or(*instinct));
    json["budgets"].push_back({{"move", chess::ToText(board, moves.back())},
                               {"ms", took.count()},
                               {"nodes", answer.nodes}});
  }
  const decoder::Thought thought = mind.FreeThought(board, seed, piece.stop);
  const auto verdict = judge.Judge(piece, board, moves);
  if (piece.stop.stop_requested()) return std::nullopt;
  if (!verdict) return Json{{"unknown", true}};
  json["instinct"] = chess::ToText(board, *instinct);
  json["best"] = verdict->best;
  json["scores"] = verdict->moves;
  json["form"] = FormJson(FormOf(thought));
  return json;
}

// Sums up the positions.
class Summary {
 public:
  Summary(const std::vector<Budget>& budgets, int equal) : equal_(equal), gains_(budgets.size()) {
    for (const Budget& budget : budgets) result_.budgets.push_back({.name = budget.Name()});
  }

  void Add(const Json& json) {
    if (json.contains("unknown")) {
      ++result_.unknown;
      return;
    }
    ++result_.positions;
    const int best = json.at("best");
    const auto& scores = json.at("scores");
    const auto loss = [&](int score) { return std::min(kMostLost, best - score); };
    const int instinct = scores[0];
    result_.instinct_loss += loss(instinct);
    for (size_t i = 0; i < result_.budgets.size(); ++i) {
      BudgetResult& budget = result_.budgets[i];
      const Json& told = json.at("budgets")[i];
      const int thinking = scores[i + 1];
      const bool changed = told.at("move") != json.at("instinct");
      ++budget.positions;
      budget.changed += changed ? 1 : 0;
      const bool alike = !changed || std::abs(thinking - instinct) <= equal_;
      ++(alike                 ? budget.equal
         : thinking > instinct ? budget.thinking_better
                               : budget.instinct_better);
      budget.loss += loss(thinking);
      budget.milliseconds += told.at("ms").get<double>();
      budget.nodes += told.at("nodes").get<double>();
      gains_[i].push_back(changed ? loss(instinct) - loss(thinking) : 0);
      if (i > 0)
        AddPair(told.at("move") != json.at("budgets")[0].at("move"),
                thinking - scores[1].get<int>(), budget);
    }
    for (const auto& [name, field] : kFormFields) {
      result_.form.*field += json.at("form").value(name, int64_t{0});
    }
  }

  ThinkingResult Finish() {
    const auto n = static_cast<double>(std::max<int64_t>(1, result_.positions));
    result_.instinct_loss /= n;
    for (size_t i = 0; i < result_.budgets.size(); ++i) {
      BudgetResult& budget = result_.budgets[i];
      budget.loss /= n;
      budget.milliseconds /= n;
      budget.nodes /= n;
      budget.p_value = McNemarExact(budget.thinking_better, budget.instinct_better);
      budget.gain = PairedBootstrap(gains_[i]);
      if (i == 0) continue;
      BudgetPair& pair = budget.versus_first;
      pair.p_value = McNemarExact(pair.better, pair.worse);
      std::vector<double> more = gains_[i];
      for (size_t k = 0; k < more.size(); ++k) more[k] -= gains_[0][k];
      pair.gain = PairedBootstrap(more);
    }
    return std::move(result_);
  }

 private:
  void AddPair(bool changed, int by, BudgetResult& budget) const {
    if (!changed || std::abs(by) <= equal_) return;
    ++(by > 0 ? budget.versus_first.better : budget.versus_first.worse);
  }

  int equal_;
  ThinkingResult result_;
  std::vector<std::vector<double>> gains_;  // By budget.
};

}  // namespace

Fields FieldsOf(ThinkingOptions& options) {
  Fields fields;
  fields.Add("variations", options.variations,
             "budgets: at most so many variations; 0: as many as the network wants",
             {.min = 0, .max = 100, .metavar = "N,N"});
  fields.Add("times", options.times, "further budgets: milliseconds",
             {.min = 1, .metavar = "MS,MS"});
  fields.Add("equal", options.equal, "centipawns within which two moves are equally good",
             {.min = 0, .max = 10000});
  fields.Add("precision", options.precision, "of the network: f32, int16 or int8; default f32");
  fields.Add("one_ply", options.one_ply,
             "take a mate in one and do not draw a won game by one move, by instinct and after "
             "thinking; else the bare network is measured");
  return fields;
}

ThinkingResult RunThinking(const std::vector<Board>& positions, const ThinkingOptions& options,
                           Judging& judge, const RunOptions& run, const Json& settings,
                           Progress* progress) {
  const std::vector<Budget> budgets = BudgetsOf(options);
  if (budgets.empty()) throw Error::Usage("give --variations or --times");
  const auto journal = OpenJournal(run, settings);
  std::vector<std::unique_ptr<Mind>> minds(static_cast<size_t>(run.threads()));
  Summary summary(budgets, options.equal);
  const auto work = [&](const Piece& piece) {
    auto& mind = minds[static_cast<size_t>(piece.worker)];
    if (mind == nullptr) mind = std::make_unique<Mind>(options, budgets);
    return Measure(positions[static_cast<size_t>(piece.number)], *mind, budgets, judge, piece);
  };
  DoInOrder(0, static_cast<int64_t>(positions.size()),
            {.threads = run.threads(), .journal = journal.get(), .progress = progress}, work,
            [&](int64_t, const Json& json) {
              summary.Add(json);
              return true;
            });
  ThinkingResult result = summary.Finish();
  result.model = options.model;
  result.judge = judge.name();
  result.one_ply = options.one_ply;
  result.headline = options.variations.empty() ? 0 : options.variations.size() - 1;
  return result;
}

Json ThinkingResult::ToJson() const {
  const BudgetResult& main = budgets[headline];
  Json json = {{"model", model},
               {"judge", judge},
               {"one_ply", one_ply},
               {"positions", positions},
               {"unknown", unknown},
               {"instinct_better", main.instinct_better},
               {"thinking_better", main.thinking_better},
               {"equal", main.equal},
               {"p_value", main.p_value},
               {"legal", ShareOf(form.legal_moves, form.moves)},
               {"final_legal", ShareOf(form.legal_final_moves, form.final_moves)},
               {"well_formed", ShareOf(form.well_formed, form.thoughts)},
               {"instinct_loss", instinct_loss},
               {"budgets", Json::array()}};
  for (const BudgetResult& budget : budgets) {
    json["budgets"].push_back({{"budget", budget.name},
                               {"changed", budget.changed},
                               {"thinking_better", budget.thinking_better},
                               {"instinct_better", budget.instinct_better},
                               {"equal", budget.equal},
                               {"p_value", budget.p_value},
                               {"loss", budget.loss},
                               {"gain", budget.gain.mean},
                               {"gain_low", budget.gain.interval.low},
                               {"gain_high", budget.gain.interval.high},
                               {"gain_p_value", budget.gain.p_value},
                               {"milliseconds", budget.milliseconds},
                               {"nodes", budget.nodes}});
    if (&budget == &budgets.front()) continue;
    const BudgetPair& pair = budget.versus_first;
    json["budgets"].back()["versus_first"] = {{"better", pair.better},
                                              {"worse", pair.worse},
                                              {"p_value", pair.p_value},
                                              {"gain", pair.gain.mean},
                                              {"gain_low", pair.gain.interval.low},
                                              {"gain_high", pair.gain.interval.high}};
  }
  json["thoughts"] = FormJson(form);
  return json;
}

std::string ThinkingResult::Text() const {
  std::string text = fmt::format("{}: {} positions, judged by {}; one-ply rule {}\n", model,
                                 positions, judge, one_ply ? "on" : "off");
  if (unknown > 0) text += fmt::format("{} positions left out: the judge has no score\n", unknown);
  text += fmt::format("by instinct: {:.1f} centipawns lost a move\n", instinct_loss);
  text += fmt::format("{:14} {:>8} {:>7} {:>7} {:>7} {:>8} {:>7}  {:24} {:>8}\n", "budget",
                      "changed", "better", "worse", "equal", "p", "loss", "gain (95%)", "ms");
  for (const BudgetResult& budget : budgets) {
    text += fmt::format("{:14} {:>8} {:>7} {:>7} {:>7} {:>8.3g} {:>7.1f}  {:24} {:>8.1f}\n",
                        budget.name, budget.changed, budget.thinking_better, budget.instinct_better,
                        budget.equal, budget.p_value, budget.loss,
                        fmt::format("{:+.1f} ({:+.1f} to {:+.1f})", budget.gain.mean,
                                    budget.gain.interval.low, budget.gain.interval.high),
                        budget.milliseconds);
  }
  for (size_t i = 1; i < budgets.size(); ++i) {
    const BudgetPair& pair = budgets[i].versus_first;
    text += fmt::format(
        "{} against {}: {} better, {} worse, p {:.3g}, gain {:+.1f} ({:+.1f} to {:+.1f})\n",
        budgets[i].name, budgets[0].name, pair.better, pair.worse, pair.p_value, pair.gain.mean,
        pair.gain.interval.low, pair.gain.interval.high);
  }
  text += fmt::format(
      "thoughts: {:.1f}% ended by themselves, {:.1f}% well formed; {:.2f}% of {} moves legal, "
      "{:.2f}% of the final ones\n"
      "boards: {:.2f}% of {} right, {:.3f}% of their tokens\n",
      100 * ShareOf(form.ended, form.thoughts), 100 * ShareOf(form.well_formed, form.thoughts),
      100 * ShareOf(form.legal_moves, form.moves), form.moves,
      100 * ShareOf(form.legal_final_moves, form.final_moves),
      100 * ShareOf(form.right_boards, form.boards), form.boards,
      100 * ShareOf(form.right_tokens, form.tokens));
  return text;
}

Page ThinkingResult::ToPage() const {
  Page page("Does thinking help? " + model);
  page.Verbatim(Text());
  std::vector<PlotBar> gains;
  std::vector<ShareBar> results;
  for (const BudgetResult& budget : budgets) {
    gains.push_back(
        {budget.name, budget.gain.mean, budget.gain.interval.low, budget.gain.interval.high});
    results.push_back({budget.name,
                       {{"better", static_cast<double>(budget.thinking_better)},
                        {"equal", static_cast<double>(budget.equal)},
                        {"worse", static_cast<double>(budget.instinct_better)}}});
  }
  page.Plot(BarPlot("Centipawns that thinking gains, with 95% intervals", gains));
  page.Plot(SharePlot("The move after thinking: better, equal, worse", results));
  return page;
}

}  // namespace kibitz::arena
