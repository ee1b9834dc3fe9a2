#include "players/engine_player.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/movegen.h"

namespace kibitz::players {
namespace {

constexpr double kLookSeconds = 0.002;  // Between looks at the stop token.
constexpr double kStopSeconds = 5;      // To answer after "stop".
constexpr int64_t kDefaultMilliseconds = 1000;

std::vector<std::string> WordsOf(const std::string& command) {
  std::vector<std::string> words;
  for (std::string_view word : SplitWords(command)) words.emplace_back(word);
  // Debian puts engines into /usr/games, which is not on everybody's PATH.
  if (!words.empty()) {
    if (const std::string found = oracles::FindProgram(words[0]); !found.empty()) words[0] = found;
  }
  return words;
}

oracles::EngineSpec SpecOf(const EngineOptions& options) {
  oracles::EngineSpec spec{.command = WordsOf(options.command)};
  const std::string program = oracles::FindProgram(spec.command.at(0));
  if (!program.empty()) spec.command[0] = program;
  if (options.elo) {
    spec.options = {{"UCI_LimitStrength", "true"}, {"UCI_Elo", std::to_string(*options.elo)}};
  }
  spec.options.insert(spec.options.end(), options.uci.begin(), options.uci.end());
  return spec;
}

Line LineOf(const oracles::AnswerLine& from) {
  Line line{.pv = from.pv};
  if (!from.score) return line;
  line.centipawns = from.score->centipawns;
  line.mate = from.score->mate;
  if (const auto& wdl = from.score->wdl) {
    line.wdl = oracles::Wdl{wdl->win / 1000.0, wdl->draw / 1000.0, wdl->loss / 1000.0};
  } else if (line.mate) {
    line.wdl = line.mate->wins ? oracles::Wdl{.win = 1} : oracles::Wdl{.loss = 1};
  }
  return line;
}

}  // namespace

EnginePlayer::EnginePlayer(const EngineOptions& options)
    : options_(options), client_(std::make_unique<oracles::UciClient>(SpecOf(options))) {
  if (client_->FindOption("UCI_ShowWDL") != nullptr) client_->SetOption("UCI_ShowWDL", "true");
}

std::string EnginePlayer::name() const {
  return options_.elo ? fmt::format("{} ({} Elo)", client_->name(), *options_.elo)
                      : client_->name();
}

void EnginePlayer::NewGame() {
  try {
    client_->NewGame();
  } catch (const Error&) {
    client_->Restart();
  }
}

oracles::Limits EnginePlayer::LimitsOf(const Request& request) const {
  oracles::Limits limits = request.limits;
  limits.ponder = false;  // Whoever asks us keeps the ponder clock.
  const bool limited = limits.nodes || limits.depth || limits.mate || limits.move_milliseconds ||
                       limits.clocks || limits.infinite || request.limits.ponder;
  if (limited) {
    limits.infinite = limits.infinite || request.limits.ponder;
    return limits;
  }
  limits.nodes = options_.nodes;
  if (options_.depth) limits.depth = static_cast<int>(*options_.depth);
  limits.move_milliseconds = options_.movetime;
  if (!limits.nodes && !limits.depth && !limits.move_milliseconds) {
    limits.move_milliseconds = kDefaultMilliseconds;
  }
  return limits;
}

Answer EnginePlayer::Play(const Request& request, const OnProgress& on_progress) {
  if (!chess::HasLegalMove(request.game.Current())) return {};
  try {
    return Ask(request, on_progress);
  } catch (const Error& error) {
    if (!options_.restart || request.stop.stop_requested()) throw;
    client_->Restart();
    multipv_ = 1;
    Answer answer = Ask(request, on_progress);
    answer.remarks.push_back(fmt::format("the engine was started again: {}", error.message()));
    return answer;
  }
}

Answer EnginePlayer::Ask(const Request& request, const OnProgress& on_progress) {
  if (request.lines != multipv_ && client_->FindOption("MultiPV") != nullptr) {
    client_->SetOption("MultiPV", std::to_string(request.lines));
    multipv_ = request.lines;
  }
  Answer answer;
  const auto on_info = [&](const oracles::Info& info) {
    if (!on_progress || info.pv.empty() || !info.score || info.multipv.value_or(1) > 1) return;
    const oracles::AnswerLine line{
        .depth = info.depth.value_or(0), .score = info.score, .pv = info.pv};
    Answer so_far{
        .move = info.pv.front(), .lines = {LineOf(line)}, .nodes = info.nodes.value_or(0)};
    so_far.wdl = so_far.lines.front().wdl;
    so_far.depth = info.depth.value_or(0);
    on_progress(so_far);
  };
  client_->Start(request.game, LimitsOf(request), on_info);
  std::optional<oracles::Answer> told;
  std::optional<oracles::Clock::time_point> patience;  // Set when it was told to stop.
  while (!told) {
    told = client_->Wait(kLookSeconds);
    if (told || !request.stop.stop_requested()) continue;
    if (!patience) {
      client_->Stop();
      patience = oracles::SecondsFromNow(kStopSeconds);
    } else if (oracles::Clock::now() > *patience) {
      throw Error("engine {}: it hangs: it was told to stop and gave no move for {} seconds",
                  client_->name(), kStopSeconds);
    }
  }
  answer.move = told->move;
  answer.nodes = told->nodes;
  for (const oracles::AnswerLine& line : told->candidates) {
    if (static_cast<int>(answer.lines.size()) == std::max(1, request.lines)) break;
    if (!line.pv.empty()) answer.lines.push_back(LineOf(line));
    answer.depth = std::max(answer.depth, line.depth);
  }
  if (answer.move && (answer.lines.empty() || answer.lines.front().pv.front() != *answer.move)) {
    answer.lines.insert(answer.lines.begin(), Line{.pv = {*answer.move}});
  }
  if (!answer.lines.empty()) answer.wdl = answer.lines.front().wdl;
  for (const Line& line : answer.lines) {
    // An engine has no policy: its lines are equally likely, its move first.
    answer.moves.push_back({.move = line.pv.front(),
                            .probability = 1.0 / static_cast<double>(answer.lines.size()),
                            .wdl = line.wdl});
  }
  return answer;
}

}  // namespace kibitz::players
