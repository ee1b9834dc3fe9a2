#include "students/decoder/play/prefix_line.h"

#include <algorithm>

#include "base/check.h"

namespace kibitz::decoder {
namespace {

BoardPlace PlaceAfter(std::span<const Input> inputs) {
  BoardPlace places;
  for (const Input input : inputs) {
    if (input.row() < kVocabularySize) places.Next(static_cast<TokenId>(input.row()));
  }
  return places;
}

}  // namespace

PrefixLine::PrefixLine(Model& model, int capacity)
    : config_(model.config()),
      board_wanted_(BoardWanted(model.config())),
      cache_(model.TakeCache(capacity)) {}

void PrefixLine::Push(Input input) {
  inputs_.push_back(input);
  block_ends_.push_back(size());
}

void PrefixLine::PushBoard(std::span<const TokenId> tokens) {
  const int end = size() + static_cast<int>(tokens.size());
  BoardPlace places = PlaceAfter(inputs_);
  for (TokenId token : tokens) {
    inputs_.push_back(Input::At(places.Next(token), token));
    block_ends_.push_back(end);
  }
}

void PrefixLine::Truncate(int size) {
  CHECK(size <= this->size() && (size == 0 || block_ends_[static_cast<size_t>(size) - 1] <= size));
  inputs_.erase(inputs_.begin() + size, inputs_.end());
  block_ends_.resize(static_cast<size_t>(size));
  read_ = std::min(read_, size);
}

void PrefixLine::AddUnread(std::vector<Reading>& readings) {
  CHECK(read_ < size());
  const auto begin = static_cast<size_t>(read_);
  const std::vector<nn::RowView> views = ViewsFrom(config_, inputs_, begin);
  while (read_ < size()) {
    const int end = block_ends_[static_cast<size_t>(read_)];
    readings.push_back({.cache = cache_.get(),
                        .first = read_,
                        .inputs = {inputs_.begin() + read_, inputs_.begin() + end},
                        .block = true});
    if (!views.empty()) {
      const auto first = views.begin() + (read_ - static_cast<int>(begin));
      readings.back().views.assign(first, first + (end - read_));
    }
    read_ = end;
  }
  const auto last = static_cast<int>(readings.back().inputs.size()) - 1;
  readings.back().wanted = last + 1 == kBoardTokens ? board_wanted_ : std::vector<int>{last};
}

}  // namespace kibitz::decoder
