#include "students/twenty48/play/player.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "games/twenty48/slide.h"
#include "students/twenty48/data/augment.h"

namespace kibitz::twenty48 {
namespace {

// The softmax of some numbers, in place.
void Softmax(std::span<float> numbers) {
  const float max = *std::ranges::max_element(numbers);
  float sum = 0;
  for (float& number : numbers) sum += number = std::exp(number - max);
  for (float& number : numbers) number /= sum;
}

// The middle of each bin, by the binning stored with the weights. Throws Error.
std::vector<float> BinCenters(const io::ModelFile& file, int bins) {
  const std::optional<BinningOptions> binning = BinningOf(file);
  if (!binning) {
    throw Error(
        "{}: stores no binning, so the expected value of {} bins is unknown; add \"binning\": "
        "{{\"strategy\", \"special_zero_one\", \"edges\"}} to its config.json as in its training "
        "config, or use --rule best_bin",
        file.place, bins);
  }
  const Binner binner(*binning);
  if (binner.bins() != bins) {
    throw Error("{}: its binning has {} bins, its heads have {}; correct 'binning' in config.json",
                file.place, binner.bins(), bins);
  }
  std::vector<float> centers;
  for (int bin = 0; bin < bins; ++bin) centers.push_back(static_cast<float>(binner.CenterOf(bin)));
  return centers;
}

}  // namespace

Fields FieldsOf(PlayerOptions& options) {
  Fields fields = FieldsOf(options.network);
  fields.AddChoice("rule", options.rule,
                   "how binned heads score a move: probability of the last bin, or expected value",
                   {{"best_bin", BinnedRule::kBestBin}, {"expected", BinnedRule::kExpected}});
  return fields;
}

Player::Player(const PlayerOptions& options)
    : Player(io::ReadModel(options.network.path), options) {}

Player::Player(const io::ModelFile& file, const PlayerOptions& options)
    : options_(options), model_(file, options.network) {
  if (config().head_type == HeadType::kBinnedEv && options.rule == BinnedRule::kExpected) {
    centers_ = BinCenters(file, config().bins());
  }
}

Choice Player::ChoiceOf(const Board& board, const float* logits) const {
  Choice choice;
  choice.legal = LegalMoves(board);
  if (choice.legal == 0) return choice;
  const auto bins = static_cast<size_t>(config().bins());
  for (size_t move = 0; move < 4; ++move) {
    if (bins == 0) {
      choice.scores[move] = (choice.legal >> move & 1) != 0 ? logits[move] : -1e9F;
      continue;
    }
    std::vector<float> shares(logits + move * bins, logits + (move + 1) * bins);
    Softmax(shares);
    choice.scores[move] =
        options_.rule == BinnedRule::kBestBin
            ? shares.back()
            : std::inner_product(shares.begin(), shares.end(), centers_.begin(), 0.0F);
  }
  if (bins == 0) Softmax(choice.scores);
  float best = -1;
  for (Move move : kMoves) {
    float& score = choice.scores[static_cast<size_t>(move)];
    if ((choice.legal >> IndexOf(move) & 1) == 0) {
      score = 0;
    } else if (score > best) {
      best = score;
      choice.best = move;
    }
  }
  return choice;
}

namespace {

// The choice for a board, from the choice for the view of it that the network saw.
Choice MappedBack(const Choice& seen, const View& view) {
  const std::array<uint8_t, 4> map = MoveMap(view);
  Choice choice;
  for (Move move : kMoves) {
    const size_t there = map[static_cast<size_t>(move)];
    choice.scores[static_cast<size_t>(move)] = seen.scores[there];
    choice.legal |= (seen.legal >> there & 1U) << IndexOf(move);
    if (there == static_cast<size_t>(seen.best)) choice.best = move;
  }
  return choice;
}

}  // namespace

std::vector<Choice> Player::Choose(std::span<const Board> boards) {
  const auto answers = static_cast<size_t>(model_.answers());
  const bool canonical = config().canonical_view;
  std::vector<View> views;
  std::vector<Board> viewed;
  if (canonical) {
    for (const Board& board : boards) {
      views.push_back(CanonicalView(board));
      viewed.push_back(Seen(board, views.back()));
    }
    boards = viewed;
  }
  logits_.resize(boards.size() * answers);
  model_.Answer(boards, logits_.data());
  std::vector<Choice> choices;
  choices.reserve(boards.size());
  for (size_t i = 0; i < boards.size(); ++i) {
    choices.push_back(ChoiceOf(boards[i], logits_.data() + i * answers));
    if (canonical) choices.back() = MappedBack(choices.back(), views[i]);
  }
  return choices;
}

Move Drawn(const Choice& choice, double temperature, double draw) {
  if (temperature <= 0) return choice.best;
  const double max = choice.scores[static_cast<size_t>(choice.best)];
  std::array<double, 4> weights{};
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    if ((choice.legal >> i & 1) == 0) continue;
    sum += weights[i] = std::pow(std::max(double{choice.scores[i]}, 1e-30) / max, 1 / temperature);
  }
  double left = draw * sum;
  for (Move move : kMoves) {
    left -= weights[static_cast<size_t>(move)];
    if (left < 0 && (choice.legal >> IndexOf(move) & 1) != 0) return move;
  }
  return choice.best;
}

}  // namespace kibitz::twenty48
