#include "games/chess/movegen.h"

#include <algorithm>

#include "games/chess/attacks.h"

namespace kibitz::chess {
namespace {

// Where moves go. A sink takes the moves of one piece (From), or of many pawns at once: one move
// for each target, from the square `target - delta`.
class ListSink {
 public:
  explicit ListSink(MoveList& moves) : moves_(moves), next_(moves.next()) {}
  ~ListSink() { moves_.EndAt(next_); }
  ListSink(const ListSink&) = delete;
  ListSink& operator=(const ListSink&) = delete;

  void From(Square from, Bitboard targets) {
    while (targets != 0) One(Move(from, TakeFirst(targets)));
  }
  template <int delta>
  void Pawns(Bitboard targets, Move::Kind kind) {
    while (targets != 0) {
      const Square to = TakeFirst(targets);
      One(Move(Square(to.index() - delta), to, kind));
    }
  }
  template <int delta>
  void Promotions(Bitboard targets) {
    while (targets != 0) {
      const Square to = TakeFirst(targets);
      for (PieceType type :
           {PieceType::kQueen, PieceType::kRook, PieceType::kBishop, PieceType::kKnight}) {
        One(Move(Square(to.index() - delta), to, Move::PromotionKind(type)));
      }
    }
  }
  void One(Move move) { *next_++ = move; }

 private:
  MoveList& moves_;
  Move* next_;  // Stays in a register while moves are added.
};

// The targets alone.
class TargetSink {
 public:
  void From(Square, Bitboard targets) { targets_ |= targets; }
  template <int delta>
  void Pawns(Bitboard targets, Move::Kind) {
    targets_ |= targets;
  }
  template <int delta>
  void Promotions(Bitboard targets) {
    targets_ |= targets;
  }
  void One(Move move) { targets_ |= move.to().bit(); }

  Bitboard targets() const { return targets_; }

 private:
  Bitboard targets_ = 0;
};

class CountSink {
 public:
  void From(Square, Bitboard targets) { count_ += PopCount(targets); }
  template <int delta>
  void Pawns(Bitboard targets, Move::Kind) {
    count_ += PopCount(targets);
  }
  template <int delta>
  void Promotions(Bitboard targets) {
    count_ += 4 * PopCount(targets);
  }
  void One(Move) { ++count_; }

  int count() const { return count_; }

 private:
  int count_ = 0;
};

// One position's generation, in named steps. `which` limits the pieces that move.
template <Color us>
class Generator {
 public:
  explicit Generator(const Board& board)
      : board_(board),
        occupied_(board.occupied()),
        mine_(board.pieces(us)),
        theirs_(occupied_ & ~mine_),
        king_(First(board.kings() & mine_)) {
    FindChecksAndPins();
  }

  template <typename Sink>
  void All(Sink& sink) {
    KingMoves(sink);
    if (double_check_) return;
    PawnMoves(sink);
    KnightMoves(sink);
    SliderMoves(sink);
    if (targets_ == ~mine_) CastlingMoves(sink);
  }

  // `type` is a type of piece.
  template <typename Sink>
  void OfType(PieceType type, Sink& sink, Bitboard which = ~Bitboard{0}) {
    if (type == PieceType::kKing && (which & king_.bit()) != 0) KingMoves(sink);
    if (double_check_) return;
    switch (type) {
      case PieceType::kPawn:
        return PawnMoves(sink, which);
      case PieceType::kKnight:
        return KnightMoves(sink, which);
      case PieceType::kKing:
        if (targets_ == ~mine_ && (which & king_.bit()) != 0) CastlingMoves(sink);
        return;
      default:
        return SliderMoves(sink, which & board_.pieces(type));
    }
  }

 private:
  // Squares the enemy attacks, seen through our king, so that it cannot step back along a line.
  // Asked for only when the king has somewhere to go.
  Bitboard Danger() {
    if (danger_ != 0) return danger_;  // Never empty: the enemy king attacks something.
    const Bitboard seen = occupied_ ^ king_.bit();
    danger_ =
        PawnAttacks(~us, board_.pawns() & theirs_) | KingAttacks(First(board_.kings() & theirs_));
    for (Bitboard b = board_.knights() & theirs_; b != 0;) danger_ |= KnightAttacks(TakeFirst(b));
    for (Bitboard b = board_.diagonal_sliders() & theirs_; b != 0;) {
      danger_ |= BishopAttacks(TakeFirst(b), seen);
    }
    for (Bitboard b = board_.straight_sliders() & theirs_; b != 0;) {
      danger_ |= RookAttacks(TakeFirst(b), seen);
    }
    return danger_;
  }

  // Lines from enemy sliders to the king: with nothing between, a check; with one piece of ours,
  // a pin. Two pieces of ours, or an enemy's own, are no concern.
  void FindLines(Bitboard snipers, Bitboard& pin_lines, Bitboard& checkers) {
    while (snipers != 0) {
      const Square sniper = TakeFirst(snipers);
      const Bitboard line = Through(king_, sniper);
      const Bitboard blockers = line & mine_;
      if (blockers == 0) {
        checkers |= sniper.bit();
      } else if ((blockers & (blockers - 1)) == 0) {
        pin_lines |= line;
      }
    }
  }

  void FindChecksAndPins() {
    Bitboard checkers = (KnightAttacks(king_) & board_.knights() & theirs_) |
                        (PawnAttacks(us, king_.bit()) & board_.pawns() & theirs_);
    FindLines(BishopAttacks(king_, theirs_) & board_.diagonal_sliders() & theirs_, diagonal_pins_,
              checkers);
    FindLines(RookAttacks(king_, theirs_) & board_.straight_sliders() & theirs_, straight_pins_,
              checkers);
    targets_ = ~mine_;
    if (checkers == 0) return;
    double_check_ = (checkers & (checkers - 1)) != 0;
    targets_ = Through(king_, First(checkers));
  }

  template <typename Sink>
  void KingMoves(Sink& sink) {
    const Bitboard steps = KingAttacks(king_) & ~mine_;
    if (steps != 0) sink.From(king_, steps & ~Danger());
  }

  template <typename Sink>
  void KnightMoves(Sink& sink, Bitboard which = ~Bitboard{0}) const {
    const Bitboard knights = board_.knights() & mine_ & which;
    for (Bitboard b = knights & ~(diagonal_pins_ | straight_pins_); b != 0;) {
      const Square from = TakeFirst(b);
      sink.From(from, KnightAttacks(from) & targets_);
    }
  }

  // A pinned slider stays on the lines of its kind of pin; it cannot reach another such line.
  template <typename Sink>
  void SliderMoves(Sink& sink, Bitboard which = ~Bitboard{0}) const {
    const Bitboard diagonal = board_.diagonal_sliders() & mine_ & which & ~straight_pins_;
    for (Bitboard b = diagonal & ~diagonal_pins_; b != 0;) {
      const Square from = TakeFirst(b);
      sink.From(from, BishopAttacks(from, occupied_) & targets_);
    }
    for (Bitboard b = diagonal & diagonal_pins_; b != 0;) {
      const Square from = TakeFirst(b);
      sink.From(from, BishopAttacks(from, occupied_) & targets_ & diagonal_pins_);
    }
    const Bitboard straight = board_.straight_sliders() & mine_ & which & ~diagonal_pins_;
    for (Bitboard b = straight & ~straight_pins_; b != 0;) {
      const Square from = TakeFirst(b);
      sink.From(from, RookAttacks(from, occupied_) & targets_);
    }
    for (Bitboard b = straight & straight_pins_; b != 0;) {
      const Square from = TakeFirst(b);
      sink.From(from, RookAttacks(from, occupied_) & targets_ & straight_pins_);
    }
  }

  static constexpr int kForward = us == Color::kWhite ? 8 : -8;
  static constexpr Bitboard kLastRank = BackRank(~us);
  static constexpr Bitboard kDoubleRank = RankOf(us == Color::kWhite ? 3 : 4);
  static constexpr Bitboard Forward(Bitboard set) {
    return us == Color::kWhite ? North(set) : South(set);
  }

  template <int delta, typename Sink>
  static void PawnTargets(Sink& sink, Bitboard targets) {
    sink.template Pawns<delta>(targets & ~kLastRank, Move::Kind::kNormal);
    if (const Bitboard last = targets & kLastRank; last != 0) {
      sink.template Promotions<delta>(last);
    }
  }

  template <typename Sink>
  void PawnMoves(Sink& sink, Bitboard which = ~Bitboard{0}) const {
    const Bitboard pawns = board_.pawns() & mine_ & which;
    const Bitboard empty = ~occupied_;

    const Bitboard pushers = pawns & ~diagonal_pins_;
    const Bitboard pushed = (Forward(pushers & ~straight_pins_) |
                             (Forward(pushers & straight_pins_) & straight_pins_)) &
                            empty;
    PawnTargets<kForward>(sink, pushed & targets_);
    sink.template Pawns<2 * kForward>(Forward(pushed) & empty & kDoubleRank & targets_,
                                      Move::Kind::kDoublePush);

    const Bitboard takers = pawns & ~straight_pins_;
    const Bitboard free = Forward(takers & ~diagonal_pins_);
    const Bitboard pinned = Forward(takers & diagonal_pins_);
    const Bitboard prey = theirs_ & targets_;
    PawnTargets<kForward + 1>(sink, (East(free) | (East(pinned) & diagonal_pins_)) & prey);
    PawnTargets<kForward - 1>(sink, (West(free) | (West(pinned) & diagonal_pins_)) & prey);

    if (const auto passed = board_.en_passant()) [[unlikely]] {
      for (Bitboard b = board_.EnPassantCapturers(*passed) & which; b != 0;) {
        sink.One(Move(TakeFirst(b), *passed, Move::Kind::kEnPassant));
      }
    }
  }

  template <typename Sink>
  void CastlingMoves(Sink& sink) {
    for (Bitboard b = board_.castling_rooks() & BackRank(us); b != 0;) {
      const Square rook = TakeFirst(b);
      if (CanCastle(rook)) sink.One(Move(king_, rook, Move::Kind::kCastle));
    }
  }

  // Not in check. All squares that king and rook cross are empty but for the two, the king's are
  // safe, and the rook's leaving opens no line on him (possible in Chess960 only).
  bool CanCastle(Square rook) {
    const auto side = rook > king_ ? CastlingSide::kKing : CastlingSide::kQueen;
    const auto target = CastlingTargetOf(us, side);
    const Bitboard others = occupied_ ^ king_.bit() ^ rook.bit();
    const Bitboard king_path = Through(king_, target.king);
    if (((king_path | Through(rook, target.rook)) & others) != 0) return false;
    if ((king_path & Danger()) != 0) return false;
    const Bitboard after = others | target.rook.bit();
    return (RookAttacks(target.king, after) & board_.straight_sliders() & theirs_) == 0;
  }

  const Board& board_;
  Bitboard occupied_;
  Bitboard mine_;
  Bitboard theirs_;
  Square king_;
  Bitboard danger_ = 0;
  Bitboard diagonal_pins_ = 0;  // Lines of pins, the pinning piece included, the king not.
  Bitboard straight_pins_ = 0;
  Bitboard targets_ = 0;  // Squares that a piece other than the king may move to.
  bool double_check_ = false;
};

template <typename Function>
auto WithSide(const Board& board, Function function) {
  return board.side_to_move() == Color::kWhite ? function(Generator<Color::kWhite>(board))
                                               : function(Generator<Color::kBlack>(board));
}

}  // namespace

template <Color us>
void AddLegalMoves(const Board& board, MoveList& moves) {
  ListSink sink(moves);
  Generator<us>(board).All(sink);
}

template <Color us>
int CountLegalMovesFor(const Board& board) {
  CountSink sink;
  Generator<us>(board).All(sink);
  return sink.count();
}

template void AddLegalMoves<Color::kWhite>(const Board&, MoveList&);
template void AddLegalMoves<Color::kBlack>(const Board&, MoveList&);
template int CountLegalMovesFor<Color::kWhite>(const Board&);
template int CountLegalMovesFor<Color::kBlack>(const Board&);

MoveList LegalMoves(const Board& board) {
  MoveList moves;
  if (board.side_to_move() == Color::kWhite) {
    AddLegalMoves<Color::kWhite>(board, moves);
  } else {
    AddLegalMoves<Color::kBlack>(board, moves);
  }
  return moves;
}

int CountLegalMoves(const Board& board) {
  return board.side_to_move() == Color::kWhite ? CountLegalMovesFor<Color::kWhite>(board)
                                               : CountLegalMovesFor<Color::kBlack>(board);
}

bool HasLegalMove(const Board& board) { return CountLegalMoves(board) > 0; }

bool IsLegal(const Board& board, Move move) {
  const MoveList moves = LegalMovesTo(board, board.PieceAt(move.from()).type(), move.to());
  return std::find(moves.begin(), moves.end(), move) != moves.end();
}

Bitboard LegalTargets(const Board& board, Square from) {
  const PieceType type = board.PieceAt(from).type();
  if (type == PieceType::kNone) return 0;
  TargetSink sink;
  WithSide(board, [&](auto generator) { generator.OfType(type, sink, from.bit()); });
  return sink.targets();
}

MoveList LegalMovesTo(const Board& board, PieceType type, Square to) {
  MoveList of_type;
  WithSide(board, [&](auto generator) {
    ListSink sink(of_type);
    if (type != PieceType::kNone) generator.OfType(type, sink);
  });
  MoveList moves;
  for (Move move : of_type) {
    if (move.to() == to) moves.Add(move);
  }
  return moves;
}

}  // namespace kibitz::chess
