#include "students/decoder/play/thought_process.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "games/chess/movegen.h"
#include "students/decoder/play/draft.h"

namespace kibitz::decoder {
namespace {

int LongestOf(const Model& model, const ThinkOptions& options) {
  const int longest = model.config().max_seq_len;
  return options.max_seq_len > 0 ? std::min(options.max_seq_len, longest) : longest;
}

}  // namespace

ThoughtProcess::ThoughtProcess(Model& model, const chess::Board& root, const ThinkOptions& options,
                               const ThoughtListener& listener)
    : model_(model),
      options_(options),
      listener_(listener),
      max_size_(std::max(kBoardTokens, LongestOf(model, options))),
      board_wanted_(BoardWanted(model.config())),
      prefix_(model, max_size_ + 1),
      causal_(model.TakeCache(max_size_ + 1)),
      line_(root),
      position_(root),
      last_board_(BoardTokensOf(root)) {
  thought_.root = root;
  for (TokenId token : last_board_) PushOfBoard(token);
  ++next_board_;
  prefix_.PushBoard(last_board_);
  if (!full()) PushAlone(kStartThink);
}

void ThoughtProcess::Push(TokenId token, Input input, int block) {
  thought_.tokens.push_back(token);
  thought_.blocks.push_back(block);
  inputs_.push_back(input);
  if (listener_.on_token) listener_.on_token(token, size() - 1);
}

void ThoughtProcess::PushOfBoard(TokenId token) {
  Push(token, Input::At(places_.Next(token), token), next_board_);
}

void ThoughtProcess::PushAlone(TokenId token, Input input) {
  places_.Next(token);
  Push(token, input, next_single_++);
  prefix_.Push(input);
}

void ThoughtProcess::Continue(State state) {
  state_ = state;
  if (full()) {
    thought_.end = ThoughtEnd::kNoRoom;
    state_ = State::kDone;
  }
}

// All of the causal stream that is not read yet, and a draft behind it. Wanted: the last token and
// the drafted ones.
Reading ThoughtProcess::CausalReading(std::span<const TokenId> drafted) {
  Reading reading = {.cache = causal_.get(),
                     .first = causal_read_,
                     .inputs = {inputs_.begin() + causal_read_, inputs_.end()}};
  int last = static_cast<int>(reading.inputs.size()) - 1;
  reading.wanted.push_back(last);
  BoardPlace places = places_;
  for (TokenId token : drafted) {
    reading.inputs.push_back(Input::At(places.Next(token), token));
    reading.wanted.push_back(++last);
  }
  reading.views = ViewsFrom(model_.config(), inputs_, static_cast<size_t>(causal_read_),
                            std::span(reading.inputs).last(drafted.size()));
  causal_read_ = size();
  return reading;
}

std::span<const TokenId> ThoughtProcess::DraftWindow() const {
  const int count = std::min({window_, kBoardTokens - board_size_, max_size_ - size()});
  return std::span(draft_).subspan(static_cast<size_t>(board_size_), static_cast<size_t>(count));
}

std::vector<Reading> ThoughtProcess::Next() {
  std::vector<Reading> readings;
  switch (state_) {
    case State::kRoot: {
      // Both the board's last token and start_think are asked for.
      prefix_.AddUnread(readings);
      readings.front().wanted = board_wanted_;
      break;
    }
    case State::kBoard: {
      const std::span<const TokenId> window = DraftWindow();
      readings.push_back(CausalReading(window));
      thought_.stats.drafted_tokens += static_cast<int>(window.size());
      const bool whole = board_size_ + static_cast<int>(window.size()) == kBoardTokens;
      if (whole && !window.empty()) {
        // The other stream reads the board in the same pass, as if the draft held.
        BoardTokens board = draft_;
        std::copy(thought_.tokens.end() - board_size_, thought_.tokens.end(), board.begin());
        prefix_.PushBoard(board);
        prefix_.AddUnread(readings);
      }
      break;
    }
    case State::kBoardEnd:
    case State::kAfterEndVar:
      readings.push_back(CausalReading({}));
      prefix_.AddUnread(readings);
      break;
    default:
      prefix_.AddUnread(readings);
      break;
  }
  ++thought_.stats.passes;
  for (const Reading& reading : readings) {
    thought_.stats.rows += static_cast<int64_t>(reading.inputs.size());
  }
  return readings;
}

void ThoughtProcess::Take(const float* hidden) {
  switch (state_) {
    case State::kRoot:
      return TakeRoot(hidden);
    case State::kRootWl:
      return TakeRootWl(hidden);
    case State::kRootD:
      return TakeRootD(hidden);
    case State::kWl:
      return TakeWl(hidden, State::kD);
    case State::kD:
      return TakeD(hidden);
    case State::kBoard:
      return TakeBoard(hidden);
    case State::kBoardEnd:
      return TakeBoardEnd(hidden);
    case State::kAfterEndVar:
      return TakeAfterEndVar(hidden);
    case State::kFinal:
      return TakeFinal(hidden);
    case State::kFinalWl:
      return TakeWl(hidden, State::kFinalD);
    case State::kFinalD:
      return TakeD(hidden);
    case State::kDone:
      break;
  }
  CHECK(false);
}

void ThoughtProcess::Cancel() {
  if (state_ == State::kRootD) thought_.instinct_value.reset();  // Half of it is known.
  thought_.end = ThoughtEnd::kCancelled;
  state_ = State::kDone;
}

// --- States ---

void ThoughtProcess::TakeRoot(const float* hidden) {
  std::vector<float> logits;
  model_.BoardPolicy(hidden, 1, logits);
  thought_.instinct = LegalCandidates(thought_.root, logits);
  root_logits_ = std::move(logits);
  root_policy_squares_ = model_.PolicySquares(hidden);
  root_thinking_squares_ = model_.ThinkingSquares(hidden);
  root_states_ = model_.SquareStates(hidden);
  const int width = model_.config().embed_dim;
  const float* start = hidden + board_wanted_.size() * static_cast<size_t>(width);
  start_hidden_.assign(start, start + (full() ? 0 : width));
  if (options_.root_value && !full() && !thought_.instinct.empty()) {
    // Behind the board as in a game; start_think takes its place again afterwards.
    prefix_.Truncate(kBoardTokens);
    prefix_.Push(Input::Of(thought_.instinct.front().token));
    state_ = State::kRootWl;
    return;
  }
  BeginVariations();
}

void ThoughtProcess::TakeRootWl(const float* hidden) {
  const PlayedMove move = {.token = thought_.instinct.front().token, .squares = root_states_};
  const int bucket = model_.WlBuckets(hidden, {&move, 1}).front();
  thought_.instinct_value = NodeValue{.wl = model_.WlOf(bucket)};
  prefix_.Push(Input::Wl(bucket));
  state_ = State::kRootD;
}

void ThoughtProcess::TakeRootD(const float* hidden) {
  thought_.instinct_value->d = model_.DOf(model_.DBuckets(hidden, 1).front());
  prefix_.Truncate(kBoardTokens);
  prefix_.Push(Input::Of(kStartThink));
  BeginVariations();
}

void ThoughtProcess::BeginVariations() {
  if (listener_.on_root) listener_.on_root(thought_);
  if (full()) return Continue(State::kDone);
  if (options_.legal_only && thought_.instinct.empty()) {
    thought_.end = ThoughtEnd::kFinished;
    state_ = State::kDone;
    return;
  }
  WriteMove(start_hidden_.data(), root_thinking_squares_, root_states_);
}

static void AddTo(std::vector<float>& logits, std::span<const float> add) {
  for (size_t i = 0; i < add.size(); ++i) logits[i] += add[i];
}

// Moves that a variation began with already, unless there is no other.
void ThoughtProcess::LeaveOutTried(std::vector<Candidate>& candidates) const {
  const auto tried = [&](const Candidate& candidate) {
    return std::ranges::any_of(thought_.variations, [&](const Variation& variation) {
      return !variation.nodes.empty() && variation.nodes.front().token == candidate.token;
    });
  };
  if (!std::ranges::all_of(candidates, tried)) std::erase_if(candidates, tried);
}

void ThoughtProcess::WriteMove(const float* prefix_hidden, std::span<const float> squares,
                               std::span<const float> states) {
  move_states_ = states;
  std::vector<float> logits;
  model_.ThinkingLogits(prefix_hidden, 1, logits);
  AddTo(logits, squares);
  const bool first = thought_.variations.empty() || thought_.variations.back().ended;
  if (first) {
    thought_.variations.emplace_back();
    line_ = position_ = thought_.root;
    std::copy_n(thought_.tokens.begin(), kBoardTokens, last_board_.begin());
  }
  std::vector<Candidate> candidates =
      options_.legal_only ? LegalCandidates(*position_, logits)
                          : AllCandidates(position_ ? &*position_ : nullptr, logits);
  if (first && options_.distinct) LeaveOutTried(candidates);
  const Candidate chosen = ChooseMove(candidates, options_.thinking_temperature);
  thought_.variations.back().nodes.push_back(
      {.token = chosen.token, .probability = chosen.probability});
  if (line_) {
    if (const auto legal = MoveOf(*line_, chosen.token)) {
      node().move = *legal;
      line_ = line_->After(*legal);
      node().after = line_;
    } else {
      line_.reset();
    }
  }
  if (position_) {
    position_ = chosen.move ? std::optional(position_->After(*chosen.move)) : std::nullopt;
  }
  draft_ = DraftBoard(last_board_, chosen.token, position_);
  PushAlone(chosen.token);
  Continue(State::kWl);
}

void ThoughtProcess::TakeWl(const float* hidden, State next) {
  const bool final_move = state_ == State::kFinalWl;
  const PlayedMove move = {.token = thought_.tokens.back(),
                           .squares = final_move ? root_states_ : move_states_};
  const int bucket = model_.WlBuckets(hidden, {&move, 1}).front();
  thought_.wl_entries.push_back({size(), model_.WlOf(bucket)});
  PushAlone(kWlValue, Input::Wl(bucket));
  state_ = next;  // The pair is written whole, even where it is one token too long.
}

void ThoughtProcess::TakeD(const float* hidden) {
  const int bucket = model_.DBuckets(hidden, 1).front();
  thought_.d_entries.push_back({size(), model_.DOf(bucket)});
  const NodeValue value = {.wl = thought_.wl_entries.back().value, .d = model_.DOf(bucket)};
  PushAlone(kDValue, Input::D(bucket, model_.config().n_buckets));
  if (state_ == State::kFinalD) {
    thought_.final_value = value;
    state_ = State::kDone;
    return;
  }
  node().value = value;
  if (listener_.on_value) listener_.on_value(thought_);
  StartBoard();
  Continue(State::kBoard);
}

void ThoughtProcess::StartBoard() {
  board_size_ = 0;
  matched_ = 0;
  window_ = options_.draft ? kBoardTokens : 0;
}

std::optional<TokenId> ThoughtProcess::Scripted() const {
  const auto position = static_cast<size_t>(size());
  if (position >= options_.script.size()) return std::nullopt;
  return options_.script[position];
}

Candidate ThoughtProcess::ChooseMove(std::span<const Candidate> candidates,
                                     double temperature) const {
  if (const auto token = Scripted()) {
    const auto found = std::ranges::find(candidates, *token, &Candidate::token);
    if (found != candidates.end()) return *found;
  }
  return Choose(candidates, {.temperature = temperature,
                             .top_k = options_.top_k,
                             .seed = options_.seed,
                             .position = static_cast<uint64_t>(size())});
}

TokenId ThoughtProcess::ChooseStructure(std::span<const float> board_logits) const {
  if (const auto token = Scripted()) return *token;
  const size_t index = Choose(board_logits, {.temperature = options_.structure_temperature,
                                             .seed = options_.seed,
                                             .position = static_cast<uint64_t>(size())});
  return BoardToken(static_cast<int>(index));
}

void ThoughtProcess::WriteBoardToken(TokenId token) {
  PushOfBoard(token);
  node().board.push_back(token);
  ++board_size_;
}

// The network's own tokens one after another, as far as the draft held: the hidden state behind a
// drafted token counts only while all before it were the network's own choice.
void ThoughtProcess::TakeBoard(const float* hidden) {
  const std::span<const TokenId> window = DraftWindow();
  const int first = size();
  const bool whole = board_size_ + static_cast<int>(window.size()) == kBoardTokens;
  const bool prefix_read = whole && !window.empty();
  const auto rows = static_cast<int64_t>(window.size()) + 1;
  const auto width = static_cast<size_t>(model_.config().board_vocab_size);
  std::vector<float> logits;
  model_.BoardLogits(hidden, rows, logits);
  const auto logits_at = [&](size_t row) { return std::span(logits).subspan(row * width, width); };

  size_t accepted = 0;
  bool rejected = false;
  while (board_size_ < kBoardTokens && !full() && accepted <= window.size() && !rejected) {
    const TokenId token = ChooseStructure(logits_at(accepted));
    const bool as_drafted = token == draft_[static_cast<size_t>(board_size_)];
    WriteBoardToken(token);
    matched_ = as_drafted ? matched_ + 1 : 0;
    if (accepted == window.size()) break;  // One more than was drafted.
    rejected = !as_drafted;
    if (!rejected) ++accepted;
  }
  thought_.stats.accepted_tokens += static_cast<int>(accepted);
  causal_read_ = first + static_cast<int>(accepted);
  const bool finished = board_size_ == kBoardTokens;
  const bool held = finished && accepted == window.size() && prefix_read;
  if (prefix_read && !held)
    prefix_.Truncate(first - (kBoardTokens - static_cast<int>(window.size())));
  if (!finished) {
    AdaptDraft(static_cast<int>(accepted), rejected);
    return Continue(State::kBoard);
  }
  FinishBoard();
  if (!held) {
    prefix_.PushBoard(last_board_);
    return Continue(State::kBoardEnd);
  }
  AfterBoard(logits_at(accepted), hidden + rows * model_.config().embed_dim);
}

// Short drafts where they fail, long ones where they hold.
void ThoughtProcess::AdaptDraft(int accepted, bool rejected) {
  if (!options_.draft) return;
  if (rejected) {
    window_ = accepted >= 8 ? 2 * accepted : window_ / 4;
  } else if (matched_ > 0) {
    window_ = std::max(1, 4 * window_);
  }
}

void ThoughtProcess::TakeBoardEnd(const float* hidden) {
  std::vector<float> logits;
  model_.BoardLogits(hidden, 1, logits);
  AfterBoard(logits, hidden + model_.config().embed_dim);
}

void ThoughtProcess::FinishBoard() {
  ++next_board_;
  ThoughtNode& written = node();
  std::ranges::copy(written.board, last_board_.begin());
  written.board_true = written.after && BoardTokensOf(*written.after) == last_board_;
  if (!options_.legal_only && (!position_ || BoardTokensOf(*position_) != last_board_)) {
    const auto sound = BoardOf(last_board_);
    position_ = sound ? std::optional(*sound) : std::nullopt;
  }
  if (listener_.on_board) listener_.on_board(thought_);
}

void ThoughtProcess::AfterBoard(std::span<const float> board_logits, const float* board_hidden) {
  if (full()) return Continue(State::kDone);
  Variation& variation = thought_.variations.back();
  const bool deep =
      options_.max_depth > 0 && variation.nodes.size() >= static_cast<size_t>(options_.max_depth);
  const bool over = options_.legal_only && !chess::HasLegalMove(*position_);
  if (!deep && !over && ChooseStructure(board_logits) != kEndVar) {
    const size_t before =
        (board_wanted_.size() - 1) * static_cast<size_t>(model_.config().embed_dim);
    board_states_ = model_.SquareStates(board_hidden);
    return WriteMove(board_hidden + before, model_.ThinkingSquares(board_hidden), board_states_);
  }
  PushAlone(kEndVar);
  variation.ended = true;
  if (listener_.on_variation_end) listener_.on_variation_end(thought_);
  Continue(State::kAfterEndVar);
}

void ThoughtProcess::TakeAfterEndVar(const float* hidden) {
  std::vector<float> logits;
  model_.BoardLogits(hidden, 1, logits);
  const float* end = hidden + model_.config().embed_dim;  // Of end_var in the prefix stream.
  const std::vector<ThoughtNode>& line = thought_.variations.back().nodes;
  const auto wl_of = [&](size_t ply) { return RootView(*line[ply].value, ply).wl; };
  const TokenId first = line.front().token;
  thought_.votes.push_back({.move = first,
                            .end_vote = model_.LineVote(end),
                            .first_wl = wl_of(0),
                            .last_wl = wl_of(line.size() - 1),
                            .logit = root_logits_[static_cast<size_t>(first)]});
  const bool enough = options_.max_variations > 0 &&
                      thought_.variations.size() >= static_cast<size_t>(options_.max_variations);
  if (!enough && ChooseStructure(logits) != kEndThink) {
    return WriteMove(end, root_thinking_squares_, root_states_);
  }
  PushAlone(kEndThink);
  Continue(State::kFinal);
  // The policy of the root is known.
  if (state_ == State::kFinal && model_.config().compared_votes) WriteFinal(root_logits_);
}

void ThoughtProcess::TakeFinal(const float* hidden) {
  std::vector<float> logits;
  model_.PolicyLogits(hidden, 1, logits);
  AddTo(logits, root_policy_squares_);
  WriteFinal(std::move(logits));
}

void ThoughtProcess::WriteFinal(std::vector<float> logits) {
  const std::vector<float> votes = VotesOf(thought_.votes, model_.vote_weights());
  for (size_t i = 0; i < votes.size(); ++i) {
    logits[static_cast<size_t>(thought_.votes[i].move)] += votes[i];
  }
  thought_.candidates = LegalCandidates(thought_.root, logits);
  const std::vector<Candidate> all =
      options_.legal_only ? thought_.candidates : AllCandidates(&thought_.root, logits);
  thought_.final_move = ChooseMove(all, options_.final_temperature);
  thought_.end = ThoughtEnd::kFinished;
  PushAlone(thought_.final_move->token);
  state_ = full() ? State::kDone : State::kFinalWl;
}

Thought ThoughtProcess::Finish() {
  CHECK(done());
  thought_.stats.written_tokens = size() - kBoardTokens;
  if (thought_.candidates.empty()) thought_.candidates = thought_.instinct;
  thought_.by_instinct = !thought_.final_move;
  if (thought_.final_move && thought_.final_move->move) {
    thought_.move = thought_.final_move->move;
  } else if (!thought_.candidates.empty()) {
    thought_.move = thought_.candidates.front().move;
  }
  return std::move(thought_);
}

}  // namespace kibitz::decoder
