#include "players/one_ply.h"

#include <algorithm>
#include <utility>

#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/search/negamax.h"

namespace kibitz::players {
namespace {

using chess::Ending;
using chess::Move;

constexpr double kWonBy = 0.1;       // Win minus loss from which a draw is worth avoiding.
constexpr int kWonByMaterial = 100;  // Centipawns, for players that tell no chances.

class OnePlyPlayer final : public Player {
 public:
  explicit OnePlyPlayer(std::unique_ptr<Player> player) : player_(std::move(player)) {}

  Answer Play(const Request& request, const OnProgress& on_progress) override {
    return AfterOnePlyRule(request, player_->Play(request, on_progress));
  }
  std::string name() const override { return player_->name(); }
  void NewGame() override { player_->NewGame(); }

 private:
  std::unique_ptr<Player> player_;
};

Ending EndingAfter(std::vector<chess::Board>& boards, Move move) {
  boards.push_back(boards.back().After(move));
  const Ending ending = chess::EndingOf(boards);
  boards.pop_back();
  return ending;
}

bool IsWon(const Answer& answer, const chess::Board& board) {
  if (answer.wdl) return answer.wdl->win - answer.wdl->loss > kWonBy;
  return oracles::QuietScore(board, oracles::Material::kPieces) >= kWonByMaterial;
}

// Whether the opponent could mate at once.
bool AllowsMate(const chess::Board& after) {
  return std::ranges::any_of(chess::LegalMoves(after),
                             [&](Move reply) { return chess::IsCheckmate(after.After(reply)); });
}

void Replace(Answer& answer, Move move, const chess::Board& board, std::string why) {
  answer.remarks.push_back(fmt::format("one-ply rule: {} instead of {}, {}",
                                       chess::ToText(board, move),
                                       chess::ToText(board, *answer.move), why));
  answer.move = move;
  const auto line = std::ranges::find_if(
      answer.lines, [&](const Line& candidate) { return candidate.pv.front() == move; });
  if (line != answer.lines.end()) {
    std::rotate(answer.lines.begin(), line, line + 1);
    return;
  }
  const auto info = std::ranges::find(answer.moves, move, &MoveInfo::move);
  Line added{.pv = {move}, .wdl = answer.wdl};
  if (info != answer.moves.end() && info->wdl) added.wdl = info->wdl;
  answer.lines.insert(answer.lines.begin(), std::move(added));
}

}  // namespace

std::unique_ptr<Player> WithOnePlyRule(std::unique_ptr<Player> player) {
  return std::make_unique<OnePlyPlayer>(std::move(player));
}

Answer AfterOnePlyRule(const Request& request, Answer answer) {
  if (!answer.move) return answer;
  std::vector<chess::Board> boards = request.game.Boards();
  const chess::Board board = boards.back();
  const std::vector<Move> allowed = AllowedMoves(request);
  const Ending ending = EndingAfter(boards, *answer.move);
  if (ending == Ending::kCheckmate) return answer;
  for (Move move : allowed) {
    if (!chess::IsCheckmate(board.After(move))) continue;
    Replace(answer, move, board, "which mates");
    answer.lines.front() = {.pv = {move},
                            .wdl = oracles::Wdl{.win = 1},
                            .mate = oracles::Mate{.wins = true, .moves = 1}};
    return answer;
  }
  if (ending == Ending::kNone || !IsWon(answer, board)) return answer;
  // The player's own order first, then whatever else may be played.
  std::vector<Move> others;
  for (const MoveInfo& info : answer.moves) others.push_back(info.move);
  others.insert(others.end(), allowed.begin(), allowed.end());
  for (Move move : others) {
    if (EndingAfter(boards, move) != Ending::kNone || AllowsMate(board.After(move))) continue;
    Replace(answer, move, board, fmt::format("a draw by {}", chess::NameOf(ending)));
    break;
  }
  return answer;
}

}  // namespace kibitz::players
