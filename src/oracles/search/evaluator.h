// What evaluates positions for a search: a network, an engine, or one of these behind a cache.
//
//   std::vector<Question> questions = ...;
//   std::vector<Evaluation> answers(questions.size());
//   evaluator.Evaluate(questions, answers);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "games/chess/board.h"

namespace kibitz::oracles {

// The boards of a game along a search path, and how often each occurred before.
class GamePath {
 public:
  explicit GamePath(const chess::Board& root) { Push(root); }

  void Push(const chess::Board& board);
  // Drops the boards after the first `size`.
  void CutTo(size_t size);

  size_t size() const { return boards_.size(); }
  const chess::Board& last() const { return boards_.back(); }
  std::span<const chess::Board> boards() const { return boards_; }
  std::span<const int> repetitions() const { return repetitions_; }

 private:
  std::vector<chess::Board> boards_;
  std::vector<int> repetitions_;
};

// A position with the history that evaluators see.
class Question {
 public:
  static constexpr size_t kBoards = 8;

  // The last position of a game that is not over; `moves` are its legal moves.
  Question(const GamePath& game, const chess::MoveList& moves);

  const chess::Board& board() const { return boards_[count_ - 1]; }
  // Newest last; fewer than kBoards only when the first is the root of the game.
  std::span<const chess::Board> boards() const { return {boards_.data(), count_}; }
  // How often each of them occurred before, in the whole game.
  std::span<const int> repetitions() const { return {repetitions_.data(), count_}; }
  std::span<const chess::Move> moves() const { return moves_; }

 private:
  size_t count_;
  std::array<chess::Board, kBoards> boards_;
  std::array<int, kBoards> repetitions_{};
  std::vector<chess::Move> moves_;
};

// For the side to move.
struct Evaluation {
  float q = 0;                // Win minus loss.
  float draw = 0;             // The probability of a draw, at most 1 - |q|.
  std::vector<float> priors;  // Of the question's moves, in their order; sum 1.
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // Answers to all questions, in their order; each depends on its question alone. One call at a
  // time. Throws Error.
  virtual void Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) = 0;
  // The best number of questions in one call.
  virtual int batch() const = 0;
  // For people: "maia-1500.pb.gz (6 blocks ...)".
  virtual std::string name() const = 0;
};

// e^(logit / temperature) over their sum, in place.
void Softmax(std::span<float> logits, double temperature = 1);

}  // namespace kibitz::oracles
