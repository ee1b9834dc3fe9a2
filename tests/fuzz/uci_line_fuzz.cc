// Any lines as UCI commands: what is read of them is in range and legal, and what is said about the
// rest fits a line. The same bytes are also read as an engine's answers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "games/chess/movegen.h"
#include "oracles/engines/uci_text.h"
#include "uci/command.h"
#include "uci/options.h"
#include "uci/time_budget.h"

namespace kibitz {
namespace {

void CheckReason(const std::string& reason) { CHECK(!reason.empty() && reason.size() < 2000); }

void CheckGo(std::string_view rest, const chess::Board& board) {
  const uci::GoRequest go = uci::ParseGo(rest, board);
  for (chess::Move move : go.search_moves) CHECK(chess::IsLegal(board, move));
  for (const std::string& problem : go.problems) CheckReason(problem);
  for (const auto& count : {go.depth, go.nodes, go.moves_to_go}) CHECK(!count || *count >= 1);
  const auto budget = uci::TimeBudgetOf(go, board.side_to_move(), std::chrono::milliseconds(30));
  CHECK(!budget || (budget->soft.count() >= 0 && budget->soft <= budget->hard));
}

void CheckLine(std::string_view line, chess::Board& board, uci::OptionTable& table) {
  const uci::Command command = uci::ParseCommand(line);
  if (command.verb == uci::Verb::kGo) CheckGo(command.rest, board);
  if (command.verb == uci::Verb::kPosition) {
    const auto read = uci::ParsePosition(command.rest);
    if (read) {
      board = read->game.Current();
      CHECK(board.key() == board.ComputeKey());
    } else {
      CheckReason(read.reason());
    }
  }
  if (command.verb == uci::Verb::kSetOption) {
    if (const auto setting = uci::ParseSetOption(command.rest)) {
      table.Set(setting->name, setting->value);
    }
  }
}

void CheckAnswer(std::string_view line, const chess::Board& board) {
  const oracles::Info info = oracles::ParseInfo(line, board);
  chess::Board at = board;
  for (chess::Move move : info.pv) {
    CHECK(chess::IsLegal(at, move));
    at = at.After(move);
  }
  const auto best = oracles::ParseBestMove(line, board);
  if (best && best->move) CHECK(chess::IsLegal(board, *best->move));
  if (const auto option = oracles::ParseOption(line)) oracles::WhyNot(*option, line);
}

}  // namespace
}  // namespace kibitz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  chess::Board board;
  uci::EngineOptions options{.player = {.kind = "negamax"}};
  uci::OptionTable table(options);
  for (std::string_view line : Split(all, '\n')) {
    CheckLine(line, board, table);
    CHECK(options.multipv >= 1 && options.move_overhead >= 0);
    CheckAnswer(line, board);
  }
  return 0;
}
