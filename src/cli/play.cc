#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "cli/player_input.h"
#include "games/chess/diagram.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/pgn_writer.h"
#include "games/chess/rules.h"
#include "games/chess/san.h"
#include "players/make_player.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using chess::Color;
using chess::Move;
using players::Answer;
using Json = nlohmann::ordered_json;

enum class Side { kWhite, kBlack };

struct PlayOptions {
  std::string name;
  std::string player;
  std::string opponent;
  FenInput position;
  Side side = Side::kWhite;
  std::string pgn;
  int show = 5;
  double seconds = 0;
  int64_t max_plies = 400;
  std::optional<int64_t> seed;
};

Fields FieldsOf(PlayOptions& options) {
  Fields fields;
  fields.Add("name", options.name, "who plays against you; default: the best model that ships",
             {.positional = true, .metavar = "PLAYER"});
  fields.Add("player", options.player, "the same as a flag", {.metavar = "PLAYER"});
  fields.Add("opponent", options.opponent, "a second player in your place: watch a game",
             {.metavar = "NAME"});
  fields.AddChoice("side", options.side, "the side you play",
                   {{"white", Side::kWhite}, {"black", Side::kBlack}});
  fields.AddAll(FieldsOf(options.position));
  fields.Add("pgn", options.pgn, "write the game here, after every move", {.metavar = "FILE"});
  fields.Add("show", options.show, "moves of the player's thought to show; 0: none",
             {.min = 0, .max = 50});
  fields.Add("seconds", options.seconds, "for each move of the player; 0: its own limit",
             {.min = 0});
  fields.Add("max_plies", options.max_plies, "a watched game ends here as a draw",
             {.min = 1, .max = 100000});
  fields.Add("seed", options.seed, "of random draws; default: another in each run", {.min = 0});
  return fields;
}

constexpr std::string_view kHelp = R"(  e4, Nf3, e2e4, O-O   your move, in SAN or UCI
  back                 take back your last move
  hint                 what the player would play for you
  board, fen, moves    the position, its FEN, the legal moves
  pgn                  the game so far
  resign, quit         end)";

// A stop that comes by itself after so many seconds.
class Deadline {
 public:
  explicit Deadline(double seconds) {
    if (seconds <= 0) return;
    timer_ = std::jthread([this, seconds](const std::stop_token& quit) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
      while (!quit.stop_requested() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      stop_.request_stop();
    });
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::jthread timer_;
};

std::string PvText(Board board, const std::vector<Move>& pv) {
  std::string text;
  for (Move move : pv) {
    text += (text.empty() ? "" : " ") + chess::ToSan(board, move);
    board = board.After(move);
  }
  return text;
}

std::string ValueText(const players::Line& line) {
  if (line.mate)
    return fmt::format("mate in {}", line.mate->wins ? line.mate->moves : -line.mate->moves);
  if (!line.wdl) return line.centipawns ? fmt::format("{:+.2f}", *line.centipawns / 100.0) : "";
  return fmt::format("win {:.0f}% draw {:.0f}% loss {:.0f}%", 100 * line.wdl->win,
                     100 * line.wdl->draw, 100 * line.wdl->loss);
}

class Session {
 public:
  Session(const PlayOptions& options, const Context& context)
      : options_(options), context_(context), terminal_(isatty(STDIN_FILENO) != 0) {
    game_.start = BoardOf(options.position);
    seed_ = options.seed ? static_cast<uint64_t>(*options.seed) : std::random_device()();
    const std::string name = ChosenPlayer({options.name, options.player});
    player_ = players::MakePlayer(name);
    if (!options.opponent.empty()) opponent_ = players::MakePlayer(options.opponent);
  }

  int Run() {
    Introduce();
    while (!over_ && !Interrupted()) {
      const chess::Ending ending = chess::EndingOf(Boards());
      if (ending != chess::Ending::kNone) {
        End(ending);
      } else if (opponent_ != nullptr &&
                 static_cast<int64_t>(game_.moves.size()) >= options_.max_plies) {
        Finish(chess::GameResult::kDraw, fmt::format("{} plies", options_.max_plies));
      } else if (IsPersons()) {
        ReadLine();
      } else {
        LetPlay(IsFirstPlayers() ? *player_ : *opponent_);
      }
    }
    Save();
    return Interrupted() ? kExitInterrupted : 0;
  }

 private:
  Board Current() const {
    Board board = game_.start;
    for (Move move : game_.moves) board = board.After(move);
    return board;
  }
  std::vector<Board> Boards() const {
    std::vector<Board> boards = {game_.start};
    for (Move move : game_.moves) boards.push_back(boards.back().After(move));
    return boards;
  }
  Color PersonsColor() const {
    return options_.side == Side::kWhite ? Color::kWhite : Color::kBlack;
  }
  bool IsFirstPlayers() const { return Current().side_to_move() != PersonsColor(); }
  bool IsPersons() const { return opponent_ == nullptr && !IsFirstPlayers(); }

  void Introduce() {
    const std::string other = opponent_ ? opponent_->name() : "you";
    const bool white = PersonsColor() == Color::kWhite;
    game_.tags = {{"Event", "kibitz play"},
                  {"Date", chess::PgnDateOfToday()},
                  {"White", white ? other : player_->name()},
                  {"Black", white ? player_->name() : other}};
    if (context_.json) return;
    fmt::print("{} (White) against {} (Black)\n", game_.Tag("White"), game_.Tag("Black"));
    if (opponent_ == nullptr) fmt::print("type a move, or 'help'\n");
    ShowBoard();
  }

  void ShowBoard() {
    if (context_.json) return;
    std::optional<Move> last;
    if (!game_.moves.empty()) last = game_.moves.back();
    fmt::print("\n{}\n", Diagram(Current(), {.color = context_.color,
                                             .flipped = PersonsColor() == Color::kBlack,
                                             .last_move = last}));
  }

  Answer Ask(players::Player& player) {
    const Deadline deadline(options_.seconds);
    players::Request request{.game = {game_.start, game_.moves},
                             .lines = std::max(1, options_.show),
                             .stop = deadline.token()};
    if (options_.seconds > 0) {
      request.limits.move_milliseconds = std::llround(options_.seconds * 1000);
    }
    Rng rng({.seed = seed_, .sample = game_.moves.size(), .purpose = Purpose("play")});
    request.seed = rng.Next();
    return player.Play(request);
  }

  void LetPlay(players::Player& player) {
    const Board board = Current();
    const auto start = std::chrono::steady_clock::now();
    const Answer answer = Ask(player);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!answer.move) {
      throw Error("{} has no move in {}; give it more time (--seconds)", player.name(),
                  chess::ToFen(board));
    }
    if (context_.json) {
      PrintJson(ToJson(board, answer, seconds));
    } else {
      fmt::print("{} plays {}   ({:.2f} s)\n", player.name(), chess::ToSan(board, *answer.move),
                 seconds);
      ShowThought(board, answer);
    }
    Play(*answer.move, answer.lines.empty() ? "" : ValueText(answer.lines.front()));
  }

  void ShowThought(const Board& board, const Answer& answer) const {
    for (size_t i = 0; i < answer.lines.size() && i < static_cast<size_t>(options_.show); ++i) {
      const players::Line& line = answer.lines[i];
      const auto info = std::ranges::find(answer.moves, line.pv.front(), &players::MoveInfo::move);
      const std::string share =
          info == answer.moves.end() ? "" : fmt::format("{:.1f}%", 100 * info->probability);
      fmt::print("  {:>6}  {:34}  {}\n", share, ValueText(line), PvText(board, line.pv));
    }
    for (const std::string& remark : answer.remarks) fmt::print("  ({})\n", remark);
  }

  static Json ToJson(const Board& board, const Answer& answer, double seconds) {
    Json lines = Json::array();
    for (const players::Line& line : answer.lines) {
      Json item = {{"pv", PvText(board, line.pv)}};
      if (line.wdl) item["wdl"] = {line.wdl->win, line.wdl->draw, line.wdl->loss};
      if (line.mate) item["mate"] = line.mate->wins ? line.mate->moves : -line.mate->moves;
      lines.push_back(std::move(item));
    }
    return {{"fen", chess::ToFen(board)},
            {"move", chess::ToText(board, *answer.move)},
            {"san", chess::ToSan(board, *answer.move)},
            {"nodes", answer.nodes},
            {"seconds", seconds},
            {"lines", std::move(lines)}};
  }

  void Play(Move move, const std::string& comment = "") {
    game_.moves.push_back(move);
    if (!comment.empty()) game_.notes.push_back({.ply = game_.moves.size(), .comment = comment});
    Save();
    ShowBoard();
  }

  void ReadLine() {
    if (terminal_ && !context_.json) fmt::print("your move> ");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) {
      over_ = true;
      return;
    }
    const std::string word(Trim(line));
    if (word.empty()) return;
    if (!RunWord(word)) TryMove(word);
  }

  // Whether the word is one of the commands.
  bool RunWord(const std::string& word) {
    if (word == "quit" || word == "exit") {
      over_ = true;
    } else if (word == "help") {
      fmt::print("{}\n", kHelp);
    } else if (word == "board") {
      ShowBoard();
    } else if (word == "fen") {
      fmt::print("{}\n", chess::ToFen(Current()));
    } else if (word == "pgn") {
      fmt::print("{}", chess::ToPgn(game_));
    } else if (word == "moves") {
      for (Move move : chess::LegalMoves(Current()))
        fmt::print("{} ", chess::ToSan(Current(), move));
      fmt::print("\n");
    } else if (word == "hint") {
      const Answer answer = Ask(*player_);
      ShowThought(Current(), answer);
    } else if (word == "back" || word == "undo" || word == "takeback") {
      TakeBack();
    } else if (word == "resign") {
      Finish(PersonsColor() == Color::kWhite ? chess::GameResult::kBlackWins
                                             : chess::GameResult::kWhiteWins,
             "resignation");
    } else {
      return false;
    }
    return true;
  }

  // To the person's last move.
  void TakeBack() {
    if (game_.moves.size() < 2) {
      fmt::print("there is no move of yours to take back\n");
      return;
    }
    game_.moves.resize(game_.moves.size() - 2);
    std::erase_if(game_.notes,
                  [&](const chess::PgnNote& note) { return note.ply > game_.moves.size(); });
    player_->NewGame();
    Save();
    ShowBoard();
  }

  void TryMove(const std::string& word) {
    const Board board = Current();
    auto move = chess::ParseSan(board, word);
    if (!move) move = chess::ParseMove(board, word);
    if (move) {
      Play(*move);
    } else {
      fmt::print("{}; 'moves' lists the legal ones, 'help' the commands\n", move.reason());
    }
  }

  void End(chess::Ending ending) {
    chess::GameResult result = chess::GameResult::kDraw;
    if (ending == chess::Ending::kCheckmate) {
      result = Current().side_to_move() == Color::kWhite ? chess::GameResult::kBlackWins
                                                         : chess::GameResult::kWhiteWins;
    }
    Finish(result, std::string(chess::NameOf(ending)));
  }

  void Finish(chess::GameResult result, const std::string& why) {
    game_.result = result;
    game_.tags.emplace_back("Termination", why);
    over_ = true;
    if (context_.json) {
      PrintJson({{"result", chess::NameOf(result)}, {"termination", why}});
    } else {
      fmt::print("{}: {}\n", chess::NameOf(result), why);
    }
  }

  void Save() const {
    if (!options_.pgn.empty()) WriteFileAtomically(options_.pgn, chess::ToPgn(game_));
  }

  const PlayOptions& options_;
  const Context& context_;
  const bool terminal_;
  chess::PgnGame game_;
  uint64_t seed_ = 0;
  std::unique_ptr<players::Player> player_;
  std::unique_ptr<players::Player> opponent_;
  bool over_ = false;
};

int Run(const PlayOptions& options, const Context& context) {
  return Session(options, context).Run();
}

}  // namespace

Command Play() {
  return MakeCommand<PlayOptions>(
      {.name = "play",
       .group = "Play",
       .summary = "play chess against a network, a search or an engine",
       .details = "Shows what the player thinks of its move. Type 'help' during the game.\n\n" +
                  players::PlayersHelp(),
       .example = "kibitz play policy-small --side black --pgn game.pgn"},
      Run);
}

}  // namespace kibitz::cli
