// UCI engines as a teacher.
//
//   EngineTeacher teacher({.command = {"stockfish"}, .limits = {.nodes = 10000}, .lines = 3});
//
// Every question is asked as if it were the first (ucinewgame, one thread, a fixed hash), so a
// lesson by nodes or depth is the same with any number of engines. Where its parts come from:
//
// | part         | from the engine                                                             |
// |--------------|-----------------------------------------------------------------------------|
// | wdl          | UCI_ShowWDL where it has it, else wdl_model.h                               |
// | variations   | its MultiPV lines, last exact scores, cut where the game is over            |
// | fraction     | softmax of the lines' centipawns over `fraction_temperature`                |
// | visits       | the fraction of the nodes searched; halved with each further node of a line |
// | prior        | the same for all lines                                                      |
// | a node's wdl | the line's, seen from alternate sides; or asked for, with `node_evals`      |
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
  Limits limits = {};                                             // Of a question.
  int lines = 1;                                                  // MultiPV.
  int engines = 1;                                                // At work at the same time.
  int line_plies = 10;               // Longer lines are cut, the root move counted.
  double fraction_temperature = 50;  // Centipawns.
  int64_t node_evals = 0;            // Nodes to ask about each position of a line with; 0: do not.
  int hash_megabytes = 4;            // Where the options do not say it.
  double silence_seconds = 30;       // After which an engine that says nothing is taken for dead.
  WdlModel wdl_model = {};           // For engines without UCI_ShowWDL.
};

class EngineTeacher : public Teacher {
 public:
  // Starts an engine to see what it can do. Throws Error.
  explicit EngineTeacher(EngineTeacherOptions options);

  std::vector<std::optional<Lesson>> Teach(std::span<const GameSoFar> games) override;
  nlohmann::ordered_json OptionsJson() const override;
  int failures() const override { return pool_->failures(); }

 private:
  std::optional<Lesson> TeachOne(const GameSoFar& game);
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
