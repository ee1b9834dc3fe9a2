// Writes one thought, token by token: says what the network must read next, and takes its hidden
// states. Many thoughts can share the passes of one network.
//
//   ThoughtProcess process(model, root, options, listener);
//   while (!process.done()) {
//     const std::vector<Reading> readings = process.Next();
//     process.Take(model.Read(readings));
//   }
//   Thought thought = process.Finish();
//
// The states are MOVE, WL_D, BOARD, AFTER_BOARD, AFTER_END_VAR and FINAL of the reference. The
// causal stream writes boards and decides where variations end; it is read only when needed, so
// that moves and values share the pass of the next board.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nn/transformer/attention.h"
#include "students/decoder/play/choose.h"
#include "students/decoder/play/model.h"
#include "students/decoder/play/prefix_line.h"
#include "students/decoder/play/thought.h"

namespace kibitz::decoder {

class ThoughtProcess {
 public:
  ThoughtProcess(Model& model, const chess::Board& root, const ThinkOptions& options,
                 const ThoughtListener& listener);

  bool done() const { return state_ == State::kDone; }
  std::vector<Reading> Next();
  // The hidden states that Next asked for, one after another.
  void Take(const float* hidden);
  void Cancel();

  // With the move to play and the counts; seconds are the caller's.
  Thought Finish();

 private:
  enum class State {
    kRoot,
    kRootWl,    // Of the instinct's move, ...
    kRootD,     // ... likewise.
    kWl,        // Of a variation's move, ...
    kD,         // ... and after it.
    kBoard,     // Writing it.
    kBoardEnd,  // Written, but not read whole.
    kAfterEndVar,
    kFinal,
    kFinalWl,
    kFinalD,
    kDone,
  };

  int size() const { return static_cast<int>(thought_.tokens.size()); }
  bool full() const { return size() >= max_size_; }
  ThoughtNode& node() { return thought_.variations.back().nodes.back(); }

  void Push(TokenId token, Input input, int block);
  void PushOfBoard(TokenId token);
  void LeaveOutTried(std::vector<Candidate>& candidates) const;
  void PushAlone(TokenId token) { PushAlone(token, Input::Of(token)); }
  void PushAlone(TokenId token, Input input);
  // Enters this state, or ends the thought when it is full.
  void Continue(State state);
  Reading CausalReading(std::span<const TokenId> drafted);

  // What each state does with its hidden states.
  void TakeRoot(const float* hidden);
  void TakeRootWl(const float* hidden);
  void TakeRootD(const float* hidden);
  void TakeWl(const float* hidden, State next);
  void TakeD(const float* hidden);
  void TakeBoard(const float* hidden);
  void TakeBoardEnd(const float* hidden);
  void TakeAfterEndVar(const float* hidden);
  void TakeFinal(const float* hidden);
  // The final move, by these logits and the variations' votes.
  void WriteFinal(std::vector<float> logits);

  // The token that the script has next, if there is one.
  std::optional<TokenId> Scripted() const;
  Candidate ChooseMove(std::span<const Candidate> candidates, double temperature) const;

  // The states that need no pass of their own.
  void BeginVariations();
  // `squares` is added to the logits; `states` are Model::SquareStates of the board.
  void WriteMove(const float* prefix_hidden, std::span<const float> squares,
                 std::span<const float> states);
  void StartBoard();
  void WriteBoardToken(TokenId token);
  void FinishBoard();
  // board_hidden: of the prefix stream, what BoardWanted names.
  void AfterBoard(std::span<const float> board_logits, const float* board_hidden);
  TokenId ChooseStructure(std::span<const float> board_logits) const;
  void AdaptDraft(int accepted, bool rejected);
  std::span<const TokenId> DraftWindow() const;

  Model& model_;
  const ThinkOptions options_;
  const ThoughtListener& listener_;
  const int max_size_;
  State state_ = State::kRoot;
  Thought thought_;

  std::vector<Input> inputs_;  // Of all tokens.
  const std::vector<int> board_wanted_;
  PrefixLine prefix_;
  CachePtr causal_;
  int causal_read_ = 0;              // Tokens.
  std::vector<float> start_hidden_;  // Of start_think.
  std::vector<float> root_logits_;   // Of the policy at the root, before the thought.
  // Model::PolicySquares and ThinkingSquares of the root.
  std::vector<float> root_policy_squares_;
  std::vector<float> root_thinking_squares_;

  // Model::SquareStates of the root and of the last board, and of the one that the last move of a
  // variation was for.
  std::vector<float> root_states_;
  std::vector<float> board_states_;
  std::span<const float> move_states_;

  int next_single_ = 10001;  // Block of the next token outside boards.
  int next_board_ = 0;
  BoardPlace places_;
  std::optional<chess::Board> line_;  // By the rules from the root, while moves are legal.
  // The position that the next move is chosen for. With legal_only: by the rules, as line_. Else as
  // the last board was written, where that is a position.
  std::optional<chess::Board> position_;
  BoardTokens last_board_;  // The same as tokens.
  BoardTokens draft_;       // Of the board being written.
  int board_size_ = 0;      // Its tokens so far.
  int window_ = 0;          // How many tokens of the draft to try.
  int matched_ = 0;         // Tokens equal to the draft since the last that differed.
};

}  // namespace kibitz::decoder
