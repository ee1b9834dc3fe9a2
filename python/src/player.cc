#include "player.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "game.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "players/make_player.h"
#include "players/networks.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::python {
namespace {

namespace py = pybind11;
using chess::Board;
using chess::Move;

constexpr auto kSignalPause = std::chrono::milliseconds(20);
constexpr size_t kPolicyBatch = 256;
constexpr size_t kDecoderBatch = 64;

py::dict WdlDict(const oracles::Wdl& wdl) {
  py::dict dict;
  dict["win"] = wdl.win;
  dict["draw"] = wdl.draw;
  dict["loss"] = wdl.loss;
  return dict;
}

py::list LineOf(const Board& root, const std::vector<Move>& moves) {
  py::list texts;
  Board board = root;
  for (const Move move : moves) {
    texts.append(ToText(board, move));
    board = board.After(move);
  }
  return texts;
}

py::dict AnswerDict(const Board& board, const players::Answer& answer) {
  py::dict dict;
  dict["move"] = answer.move ? py::object(py::str(ToText(board, *answer.move))) : py::none();
  dict["wdl"] = answer.wdl ? py::object(WdlDict(*answer.wdl)) : py::none();
  py::list moves;
  for (const players::MoveInfo& info : answer.moves) {
    py::dict move;
    move["move"] = ToText(board, info.move);
    move["probability"] = info.probability;
    move["visits"] = info.visits;
    move["wdl"] = info.wdl ? py::object(WdlDict(*info.wdl)) : py::none();
    moves.append(move);
  }
  dict["moves"] = moves;
  py::list lines;
  for (const players::Line& line : answer.lines) {
    py::dict shown;
    shown["pv"] = LineOf(board, line.pv);
    shown["wdl"] = line.wdl ? py::object(WdlDict(*line.wdl)) : py::none();
    lines.append(shown);
  }
  dict["lines"] = lines;
  dict["nodes"] = answer.nodes;
  return dict;
}

// A thought under way on a thread of its own. Events are plain values: the thread never needs
// Python.
class ThinkStream {
 public:
  using Make = std::function<py::dict()>;  // Called with the interpreter lock.
  using Emit = std::function<void(Make)>;

  explicit ThinkStream(std::function<void(const Emit&, std::stop_token)> work)
      : thread_([this, work = std::move(work)](std::stop_token stop) {
          try {
            work([this](Make make) { Push(std::move(make)); }, stop);
          } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = std::current_exception();
          }
          const std::lock_guard lock(mutex_);
          done_ = true;
          wake_.notify_all();
        }) {}
  ~ThinkStream() {
    const py::gil_scoped_release release;
    thread_ = {};  // Asks it to stop, and waits.
  }

  py::dict Next() {
    Make make = Wait();
    if (make) return make();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    throw py::stop_iteration();
  }
  void Close() { thread_.request_stop(); }

 private:
  void Push(Make make) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(make));
    wake_.notify_all();
  }

  // The next event; nothing at the end.
  Make Wait() {
    while (true) {
      {
        const py::gil_scoped_release release;
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, kSignalPause, [&] { return done_ || !events_.empty(); });
        if (!events_.empty()) {
          Make make = std::move(events_.front());
          events_.pop_front();
          return make;
        }
        if (done_) return nullptr;
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Make> events_;     // Guarded by mutex_.
  bool done_ = false;           // Guarded by mutex_.
  std::exception_ptr failure_;  // Guarded by mutex_ until done_.
  std::jthread thread_;
};

// "policy-small" with keywords as options: "policy-small?temperature=0.5".
std::unique_ptr<players::PlayerMaker> MakerOf(const std::string& name, const py::kwargs& options) {
  const auto parsed = players::ParsePlayerName(name);
  if (!parsed) throw Error::Usage("{}", parsed.reason());
  auto maker = players::MakerFor(*parsed);
  for (const auto& [key, value] : options) {
    const std::string text = py::isinstance<py::bool_>(value)
                                 ? (py::cast<bool>(value) ? "true" : "false")
                                 : py::cast<std::string>(py::str(value));
    const std::string fault = maker->fields().Set(py::cast<std::string>(key), text);
    if (!fault.empty()) throw Error::Usage("{}: {}", py::cast<std::string>(key), fault);
  }
  return maker;
}

class PyPlayer {
 public:
  PyPlayer(const std::string& name, const py::kwargs& options) : maker_(MakerOf(name, options)) {
    if (maker_->kind() == "decoder" || maker_->kind() == "policy") {
      network_.path = maker_->path();
      Fields fields = nn::FieldsOf(network_);
      for (const FieldInfo& field : maker_->fields().Describe()) {
        for (const std::string& own : fields.Names()) {
          if (own == field.name && !field.value.empty()) fields.Set(own, field.value);
        }
      }
    }
    RunUnlocked([&](const std::stop_token&) { MakeAll(); });
  }

  std::string Name() { return maker_->ToText(); }
  const std::string& kind() const { return maker_->kind(); }

  py::dict Answer(py::handle position, py::handle moves, const oracles::Limits& limits, int lines,
                  uint64_t seed) {
    const Game game = GameOf(position, moves);
    players::Answer answer;
    RunUnlocked([&](const std::stop_token& stop) {
      const std::lock_guard lock(*mutex_);
      answer = Seat().Play(
          {.game = game.so_far(), .limits = limits, .lines = lines, .seed = seed, .stop = stop});
    });
    return AnswerDict(game.board(), answer);
  }

  // One row a position, one column a move of the vocabulary; 0 where a move is not legal.
  py::array_t<float> PolicyArray(const std::vector<Board>& boards) {
    const auto moves = static_cast<size_t>(policy::kFullVocabularySize);
    py::array_t<float> array({boards.size(), moves});
    float* rows = array.mutable_data();
    RunUnlocked([&](const std::stop_token& stop) {
      const std::lock_guard lock(*mutex_);
      std::fill_n(rows, boards.size() * moves, 0.0F);
      FillPolicies(boards, rows, stop);
    });
    return array;
  }

  std::unique_ptr<ThinkStream> Think(py::handle position, py::handle moves,
                                     const py::kwargs& options);

 private:
  // Network and seat share the weights' file, not the memory: the seat is made when first asked.
  void MakeAll() {
    if (kind() == "decoder") decoder_ = networks_.Decoder(network_);
    if (kind() == "policy") policy_ = networks_.Policy(network_);
    if (!decoder_ && !policy_) seat_ = maker_->Make();
  }
  players::Player& Seat() {
    if (!seat_) seat_ = maker_->Make();
    return *seat_;
  }

  static void SetShare(Move move, double probability, float* row) {
    const uint16_t index = policy::Vocabulary::Full().IndexOf(policy::WordOf(move));
    if (index != policy::kNoMove) row[index] = static_cast<float>(probability);
  }

  void FillPolicies(std::span<const Board> boards, float* rows, const std::stop_token& stop) {
    const size_t batch = policy_ ? kPolicyBatch : decoder_ ? kDecoderBatch : 1;
    for (size_t first = 0; first < boards.size() && !stop.stop_requested(); first += batch) {
      const auto some = boards.subspan(first, std::min(batch, boards.size() - first));
      const auto row = [&](size_t i) {
        return rows + (first + i) * static_cast<size_t>(policy::kFullVocabularySize);
      };
      if (policy_) {
        const auto predictions = policy_->PredictAll(some);
        for (size_t i = 0; i < some.size(); ++i) {
          for (const auto& likely : predictions[i].moves) {
            SetShare(likely.move, likely.probability, row(i));
          }
        }
      } else if (decoder_) {
        const auto predictions = decoder_->PredictAll(some, {.stop = stop});
        for (size_t i = 0; i < some.size(); ++i) {
          for (const auto& candidate : predictions[i].candidates) {
            if (candidate.move) SetShare(*candidate.move, candidate.probability, row(i));
          }
        }
      } else {
        const players::Answer answer = Seat().Play({.game = {.start = some[0]}, .stop = stop});
        for (const players::MoveInfo& info : answer.moves) {
          SetShare(info.move, info.probability, row(0));
        }
      }
    }
  }

  void ThinkDecoder(const Game& game, const decoder::ThinkOptions& options,
                    const ThinkStream::Emit& emit);

  std::unique_ptr<players::PlayerMaker> maker_;
  nn::NetworkOptions network_;  // Of a decoder or policy.
  players::Networks networks_;
  std::shared_ptr<decoder::Player> decoder_;
  std::shared_ptr<policy::Player> policy_;
  std::unique_ptr<players::Player> seat_;
  // One call at a time; streams keep it.
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
};

py::dict Event(const char* type) {
  py::dict dict;
  dict["type"] = type;
  return dict;
}

py::dict ValueEvent(const decoder::ThoughtNode& node, const std::string& move, size_t variation,
                    size_t ply) {
  py::dict dict = Event("move");
  dict["variation"] = variation;
  dict["ply"] = ply;
  dict["move"] = move;
  dict["legal"] = node.move.has_value();
  dict["probability"] = node.probability;
  if (node.value) {
    dict["wl"] = node.value->wl;
    dict["d"] = node.value->d;
  }
  return dict;
}

py::dict EndEvent(const decoder::Thought& thought) {
  py::dict dict = Event("end");
  dict["move"] =
      thought.move ? py::object(py::str(ToText(thought.root, *thought.move))) : py::none();
  dict["tokens"] =
      py::array_t<uint16_t>(static_cast<py::ssize_t>(thought.tokens.size()), thought.tokens.data());
  dict["by_instinct"] = thought.by_instinct;
  dict["wdl"] = py::none();
  if (thought.final_value) {
    const decoder::Wdl wdl = decoder::WdlOf(*thought.final_value);
    dict["wdl"] = WdlDict({wdl.win, wdl.draw, wdl.loss});
  }
  dict["seconds"] = thought.stats.seconds;
  return dict;
}

std::string NodeMove(const decoder::Thought& thought) {
  const decoder::Variation& variation = thought.variations.back();
  const decoder::ThoughtNode& node = variation.nodes.back();
  const size_t ply = variation.nodes.size() - 1;
  const Board* before = &thought.root;
  if (ply > 0) before = variation.nodes[ply - 1].after ? &*variation.nodes[ply - 1].after : nullptr;
  if (before != nullptr && node.move) return ToText(*before, *node.move);
  return std::string(decoder::TokenName(node.token));
}

void PyPlayer::ThinkDecoder(const Game& game, const decoder::ThinkOptions& options,
                            const ThinkStream::Emit& emit) {
  decoder::ThoughtListener listener;
  listener.on_token = [&](decoder::TokenId token, int at) {
    emit([token, at] {
      py::dict dict = Event("token");
      dict["token"] = std::string(decoder::TokenName(token));
      dict["id"] = token;
      dict["position"] = at;
      return dict;
    });
  };
  listener.on_value = [&](const decoder::Thought& thought) {
    const decoder::Variation& variation = thought.variations.back();
    emit([node = variation.nodes.back(), move = NodeMove(thought),
          number = thought.variations.size() - 1,
          ply = variation.nodes.size() - 1] { return ValueEvent(node, move, number, ply); });
  };
  listener.on_board = [&](const decoder::Thought& thought) {
    const decoder::Variation& variation = thought.variations.back();
    emit([node = variation.nodes.back(), number = thought.variations.size() - 1,
          ply = variation.nodes.size() - 1] {
      py::dict dict = Event("board");
      dict["variation"] = number;
      dict["ply"] = ply;
      const auto board = decoder::BoardOf(node.board);
      dict["fen"] = board ? py::object(py::str(ToFen(*board))) : py::none();
      dict["board_true"] = node.board_true;
      return dict;
    });
  };
  const std::lock_guard lock(*mutex_);
  const decoder::Thought thought = decoder_->Think(game.board(), options, listener);
  emit([thought] { return EndEvent(thought); });
}

// Keywords as the options of 'kibitz decoder think'.
decoder::ThinkOptions ThinkOptionsOf(const py::kwargs& given) {
  decoder::ThinkOptions options;
  Fields fields;
  fields.Add("thinking_temperature", options.thinking_temperature, "", {.min = 0, .max = 100});
  fields.Add("final_temperature", options.final_temperature, "", {.min = 0, .max = 100});
  fields.Add("structure_temperature", options.structure_temperature, "", {.min = 0, .max = 100});
  fields.Add("top_k", options.top_k, "", {.min = 0, .max = decoder::kMoveVocabularySize});
  fields.Add("max_variations", options.max_variations, "", {.min = 0, .max = 1000});
  fields.Add("max_depth", options.max_depth, "", {.min = 0, .max = 1000});
  fields.Add("max_seq_len", options.max_seq_len, "", {.min = 0, .max = 1 << 20});
  fields.Add("legal", options.legal_only, "");
  fields.Add("distinct", options.distinct, "");
  fields.Add("draft", options.draft, "");
  fields.Add("seed", options.seed, "");
  for (const auto& [key, value] : given) {
    const std::string text = py::isinstance<py::bool_>(value)
                                 ? (py::cast<bool>(value) ? "true" : "false")
                                 : py::cast<std::string>(py::str(value));
    const std::string fault = fields.Set(py::cast<std::string>(key), text);
    if (!fault.empty()) throw Error::Usage("{}: {}", py::cast<std::string>(key), fault);
  }
  return options;
}

std::unique_ptr<ThinkStream> PyPlayer::Think(py::handle position, py::handle moves,
                                             const py::kwargs& options) {
  const Game game = GameOf(position, moves);
  if (decoder_) {
    const decoder::ThinkOptions think = ThinkOptionsOf(options);
    return std::make_unique<ThinkStream>(
        [this, game, think](const ThinkStream::Emit& emit, const std::stop_token& stop) {
          decoder::ThinkOptions stoppable = think;
          stoppable.stop = stop;
          ThinkDecoder(game, stoppable, emit);
        });
  }
  if (!options.empty()) throw Error::Usage("options of think() are for decoders");
  return std::make_unique<ThinkStream>(
      [this, game](const ThinkStream::Emit& emit, const std::stop_token& stop) {
        const auto tell = [&](const char* type, const players::Answer& answer) {
          emit([type, answer, board = game.board()] {
            py::dict dict = AnswerDict(board, answer);
            dict["type"] = type;
            return dict;
          });
        };
        const std::lock_guard lock(*mutex_);
        tell("end", Seat().Play({.game = game.so_far(), .stop = stop},
                                [&](const players::Answer& so_far) { tell("progress", so_far); }));
      });
}

// A list of positions of any kinds; a FEN is no list.
std::vector<Board> BoardsOf(py::handle positions) {
  std::vector<Board> boards;
  for (const py::handle position : positions) {
    boards.push_back(GameOf(position, py::none()).board());
  }
  return boards;
}

bool IsMany(py::handle positions) {
  return py::isinstance<py::list>(positions) || py::isinstance<py::tuple>(positions) ||
         py::isinstance<py::array>(positions);
}

py::object Policy(PyPlayer& player, py::handle position, py::handle moves, bool numpy) {
  if (IsMany(position)) return player.PolicyArray(BoardsOf(position));
  const Board board = GameOf(position, moves).board();
  const py::array_t<float> row = player.PolicyArray({board});
  if (numpy) return row.attr("reshape")(-1);
  std::vector<std::pair<float, std::string>> likely;
  for (const Move move : chess::LegalMoves(board)) {
    const uint16_t index = policy::Vocabulary::Full().IndexOf(policy::WordOf(move));
    if (index != policy::kNoMove) likely.emplace_back(-row.data()[index], ToText(board, move));
  }
  std::sort(likely.begin(), likely.end());
  py::dict dict;
  for (const auto& [share, text] : likely) dict[py::str(text)] = -share;
  return dict;
}

oracles::Limits LimitsOf(std::optional<int64_t> nodes, std::optional<int> depth,
                         std::optional<double> seconds) {
  oracles::Limits limits{.nodes = nodes, .depth = depth};
  if (seconds) limits.move_milliseconds = static_cast<int64_t>(*seconds * 1000);
  return limits;
}

}  // namespace

void RunUnlocked(const std::function<void(std::stop_token)>& work) {
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::exception_ptr failure;
  bool interrupted = false;
  {
    const py::gil_scoped_release release;
    std::jthread thread([&](const std::stop_token& stop) {
      try {
        work(stop);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      wake.notify_all();
    });
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, kSignalPause, [&] { return done; })) {
      lock.unlock();
      {
        const py::gil_scoped_acquire acquire;
        if (!interrupted && PyErr_CheckSignals() != 0) {
          interrupted = true;
          thread.request_stop();
        }
      }
      lock.lock();
    }
  }
  if (interrupted) throw py::error_already_set();
  if (failure) std::rethrow_exception(failure);
}

void AddPlayer(py::module_& module) {
  py::class_<ThinkStream>(module, "Thought", "The events of a thought, as they come.")
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &ThinkStream::Next)
      .def("close", &ThinkStream::Close, "Stops the thought; its end is the last event.");
  py::class_<PyPlayer>(module, "Player", "Anything that plays chess. Made by player().")
      .def_property_readonly("name", &PyPlayer::Name, "The full name, options included.")
      .def_property_readonly("kind", &PyPlayer::kind, "'decoder', 'policy', 'search', ...")
      .def(
          "move",
          [](PyPlayer& player, py::handle position, py::handle moves, std::optional<int64_t> nodes,
             std::optional<int> depth, std::optional<double> seconds, uint64_t seed) {
            const py::dict answer =
                player.Answer(position, moves, LimitsOf(nodes, depth, seconds), 1, seed);
            return py::object(answer["move"]);
          },
          py::arg("position") = py::none(), py::arg("moves") = py::none(), py::kw_only(),
          py::arg("nodes") = py::none(), py::arg("depth") = py::none(),
          py::arg("seconds") = py::none(), py::arg("seed") = 0,
          "The move it plays, in UCI; None when there is no legal one.")
      .def(
          "answer",
          [](PyPlayer& player, py::handle position, py::handle moves, int lines,
             std::optional<int64_t> nodes, std::optional<int> depth, std::optional<double> seconds,
             uint64_t seed) {
            return player.Answer(position, moves, LimitsOf(nodes, depth, seconds), lines, seed);
          },
          py::arg("position") = py::none(), py::arg("moves") = py::none(), py::kw_only(),
          py::arg("lines") = 1, py::arg("nodes") = py::none(), py::arg("depth") = py::none(),
          py::arg("seconds") = py::none(), py::arg("seed") = 0,
          "All it knows: move, wdl for the side to move, moves, lines and nodes.")
      .def("policy", Policy, py::arg("position") = py::none(), py::arg("moves") = py::none(),
           py::kw_only(), py::arg("numpy") = false,
           "Probabilities of the legal moves without search: a dict, the most likely first; with "
           "numpy=True an array over MOVES; for a list of positions an array (positions, MOVES).")
      .def("think", &PyPlayer::Think, py::keep_alive<0, 1>(), py::arg("position") = py::none(),
           py::arg("moves") = py::none(),
           "Thinks on a thread of its own and yields events: of a decoder every token, move and "
           "board, of others their progress; the last has type 'end'. Keywords are those of "
           "'kibitz decoder think': max_variations, max_depth, legal, seed, ...");
  module.def(
      "player",
      [](const std::string& name, const py::kwargs& options) {
        return std::make_unique<PyPlayer>(name, options);
      },
      py::arg("name"),
      "A player by its name, as docs/PLAYERS.md has them: 'policy-small', 'decoder:m.pt', "
      "'stockfish'. Keywords are its options: temperature=0.5, think=False, threads=2.");
}

}  // namespace kibitz::python
