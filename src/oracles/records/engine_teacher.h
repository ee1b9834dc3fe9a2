// UCI engines as a teacher.
//
//   EngineTeacher teacher({.command = {"stockfish"}, .limits = {.nodes = 10000}, .lines = 3});
//
// Searches start afresh (ucinewgame, one thread, a fixed hash), so a lesson by nodes or depth is
// the same with any number of engines. Clearing an engine's memory takes longer than a search of
// some hundred nodes; with `new_game_every` several positions in a row are searched between two.
// Where a lesson's parts come from:
//
// | part         | from the engine                                                             |
// |--------------|-----------------------------------------------------------------------------|
// | wdl          | UCI_ShowWDL where it has it, else wdl_model.h                               |
// | variations   | its MultiPV lines, last exact scores, truncated where the game ends         |
// | fraction     | softmax of the lines' centipawns over `fraction_temperature`                |
// | visits       | the fraction of the nodes searched; halved with each further node of a line |
// | prior        | the same for all lines                                                      |
// | a node's wdl | the line's, for alternate sides; or searched for, with `node_evals`         |
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "oracles/engines/uci_pool.h"
#include "oracles/records/teacher.h"
#include "oracles/records/wdl_model.h"

namespace kibitz::oracles {

struct EngineTeacherOptions {
  std::vector<std::string> command;                               // Program and its arguments.
  std::vector<std::pair<std::string, std::string>> options = {};  // UCI options, set in this order.
  Limits limits = {};                                             // Of a search.
  int lines = 1;                                                  // MultiPV.
  int engines = 1;                                                // In parallel.
  int line_plies = 10;                                            // Max, the root move included.
  double fraction_temperature = 50;                               // Centipawns.
  int64_t node_evals = 0;  // Nodes to search each position of a line with; 0: none.
  int hash_megabytes = 4;  // Unless `options` set it.
  // Searches between two ucinewgame. With more than 1, a lesson also depends on the positions
  // before it in its row of so many, counted from the first of a call of Teach.
  int new_game_every = 1;
  double silence_seconds = 30;  // After which a silent engine counts as dead.
  WdlModel wdl_model = {};      // For engines without UCI_ShowWDL.
};

class EngineTeacher : public Teacher {
 public:
  // Starts an engine to read its options. Throws Error.
  explicit EngineTeacher(EngineTeacherOptions options);

  std::vector<std::optional<Lesson>> Teach(std::span<const GameSoFar> games) override;
  nlohmann::ordered_json OptionsJson() const override;
  int failures() const override { return pool_->failures(); }

 private:
  Lesson LessonOf(const GameSoFar& game, const Answer& answer);
  Variation MakeVariation(const GameSoFar& game, const chess::Board& root, const AnswerLine& line);
  Wdl AskAbout(const GameSoFar& game);
  void WeighVariations(Lesson& lesson) const;

  EngineTeacherOptions options_;
  std::string name_;  // As the engine names itself.
  bool tells_wdl_ = false;
  std::unique_ptr<UciPool> pool_;
  ThreadPool threads_;
};

}  // namespace kibitz::oracles
