// The teacher of the oracle commands: which engine or network, and its limits. Every command that
// writes records takes it this way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "cli/search_input.h"
#include "oracles/records/teacher.h"
#include "oracles/records/wdl_model.h"

namespace kibitz::cli {

// Limits of a search. Without any: 10,000 nodes of an engine, 800 visits with a network.
struct Session {
  std::optional<int64_t> nodes = {};
  std::optional<int64_t> depth = {};
  std::optional<int64_t> movetime = {};  // Milliseconds.
  int multipv = 1;
};

struct TeacherInput {
  std::string engine = "stockfish";  // Program and arguments; "": none.
  std::vector<std::string> engine_option = {};
  Session session = {};
  int engines = 0;
  int line_plies = 10;
  double fraction_temperature = 50;
  int64_t node_evals = 0;
  int new_game_every = 1;
  double engine_timeout = 30;
  oracles::WdlModel wdl_model = {};
  SearchInput search = {.net_required = false};  // A network replaces the engine.
  bool by_sessions = false;                      // Set by the command: --sessions has the limits.
  bool in_rows =
      false;  // Set by the command: positions come in an order that options alone decide.
};

Fields FieldsOf(TeacherInput& input);

// Engines or searches in parallel.
int WorkersOf(const TeacherInput& input);

// Whether an engine or a network is named.
bool HasTeacher(const TeacherInput& input);

// Throws Error when the engine is missing or does not support what the options ask for.
std::unique_ptr<oracles::Teacher> OpenTeacher(const TeacherInput& input);

// "nodes=2000;nodes=20000,multipv=3": sessions separated by semicolons. Throws Error::Usage.
std::vector<Session> ParseSessions(const std::string& text);

}  // namespace kibitz::cli
