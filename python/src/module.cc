// The extension kibitz._kibitz: boards, players, tokens, and checks of data. kibitz/__init__.py is
// what users import.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "game.h"
#include "player.h"
#include "students/decoder/data/tokens.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/target.h"
#include "students/twenty48/data/pack.h"

namespace kibitz::python {
namespace {

namespace py = pybind11;

// One position: (68,). A list of them: (N, 68).
py::array_t<decoder::TokenId> Tokens(py::handle positions) {
  const bool many = py::isinstance<py::list>(positions) || py::isinstance<py::tuple>(positions);
  std::vector<chess::Board> boards;
  if (!many) boards.push_back(GameOf(positions, py::none()).board());
  if (many) {
    for (const py::handle position : positions) {
      boards.push_back(GameOf(position, py::none()).board());
    }
  }
  const auto width = static_cast<size_t>(decoder::kBoardTokens);
  py::array_t<decoder::TokenId> array({boards.size(), width});
  for (size_t i = 0; i < boards.size(); ++i) {
    decoder::WriteBoardTokens(boards[i], std::span<decoder::TokenId, decoder::kBoardTokens>(
                                             array.mutable_data() + i * width, width));
  }
  if (many) return array;
  return array.attr("reshape")(-1);
}

Game BoardOfTokens(const std::vector<decoder::TokenId>& tokens) {
  const auto board = decoder::BoardOf(tokens);
  if (!board) throw Error::Usage("{}", board.reason());
  return Game(*board);
}

std::vector<std::string> TokenNames() {
  std::vector<std::string> names;
  for (int i = 0; i < decoder::kVocabularySize; ++i) {
    names.emplace_back(decoder::TokenName(static_cast<decoder::TokenId>(i)));
  }
  return names;
}

std::vector<std::string> MoveNames() {
  std::vector<std::string> names;
  const policy::Vocabulary& all = policy::Vocabulary::Full();
  for (int i = 0; i < all.size(); ++i) names.push_back(all[i].Text());
  return names;
}

// A position of a policy data set with its label.
py::tuple PolicySample(const policy::Dataset& data, const std::string& split, uint64_t index,
                       double temperature) {
  for (const policy::Split some : policy::kSplits) {
    if (policy::NameOf(some) != split) continue;
    const policy::SplitData& rows = data.split(some);
    if (index >= rows.size()) throw py::index_error("the split has fewer positions");
    std::vector<policy::Analysis> scratch;
    const policy::Sample sample = rows.At(index, scratch);
    policy::Target target;
    policy::MakeTarget(sample, data.vocabulary(), {.label = {.temperature = temperature}}, target);
    py::dict label;
    for (const policy::MoveShare& share : target.shares) {
      label[py::str(data.vocabulary()[share.move].Text())] = share.share;
    }
    return py::make_tuple(Game(policy::BoardOf(sample.position)), label);
  }
  throw Error::Usage("{}: expected train, val or test", split);
}

void AddErrors(py::module_& module) {
  static py::exception<Error> failed(module, "Error", PyExc_RuntimeError);
  failed.attr("__doc__") = "What went wrong outside of Python: a file, an engine, a network.";
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::kUsage) {
        PyErr_SetString(PyExc_ValueError, error.what());
      } else {
        failed(error.what());
      }
    }
  });
}

void AddData(py::module_& module) {
  py::class_<policy::Dataset>(module, "_PolicyFiles")
      .def(py::init(&policy::Dataset::Open))
      .def_property_readonly(
          "packed",
          [](const policy::Dataset& data) { return data.storage() == policy::Storage::kPacked; })
      .def("sample", PolicySample);
  py::class_<twenty48::Pack>(module, "_PackFiles")
      .def(py::init(&twenty48::Pack::Open))
      .def_property_readonly("valuation_types", &twenty48::Pack::valuation_types)
      .def_property_readonly("runs", [](const twenty48::Pack& pack) {
        py::list runs;
        for (const twenty48::RunInfo& run : pack.runs()) {
          py::dict dict;
          dict["id"] = run.id;
          dict["seed"] = run.seed;
          dict["steps"] = run.steps;
          dict["max_score"] = run.max_score;
          dict["highest_tile"] = run.highest_tile;
          runs.append(dict);
        }
        return runs;
      });
}

}  // namespace

PYBIND11_MODULE(_kibitz, module) {
  module.attr("__version__") = KIBITZ_VERSION;
  SetLogLevel(LogLevel::kWarn);
  AddErrors(module);
  AddBoard(module);
  AddPlayer(module);
  AddData(module);
  module.attr("MOVES") = MoveNames();
  module.attr("TOKENS") = TokenNames();
  module.def("tokens", Tokens, py::arg("positions"),
             "The decoder's 68 tokens of a position: (68,), or (N, 68) for a list.");
  module.def("board_of_tokens", BoardOfTokens, py::arg("tokens"),
             "The position of 68 tokens. Counters and en passant are not in them.");
}

}  // namespace kibitz::python
