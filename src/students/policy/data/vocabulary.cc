#include "students/policy/data/vocabulary.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "io/tables/npy.h"

namespace kibitz::policy {
namespace {

constexpr std::string_view kPromotions = " nbrq";

// Whether a queen or a knight on an empty board could go there.
bool CanGo(int from, int to) {
  const int files = std::abs((from & 7) - (to & 7));
  const int ranks = std::abs((from >> 3) - (to >> 3));
  if (files == 0 && ranks == 0) return false;
  return files == 0 || ranks == 0 || files == ranks || files * ranks == 2;
}

bool CanPromote(int from, int to) {
  const int rank = from >> 3;
  const int last = to >> 3;
  return std::abs((from & 7) - (to & 7)) <= 1 &&
         ((rank == 6 && last == 7) || (rank == 1 && last == 0));
}

std::vector<MoveWord> AllWords() {
  std::vector<MoveWord> words;
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      if (!CanGo(from, to)) continue;
      const int kinds = CanPromote(from, to) ? 5 : 1;
      for (int promotion = 0; promotion < kinds; ++promotion) {
        words.push_back({static_cast<uint8_t>(from), static_cast<uint8_t>(to),
                         static_cast<uint8_t>(promotion)});
      }
    }
  }
  return words;
}

bool IsWord(const MoveWord& word) {
  return word.from < 64 && word.to < 64 && word.promotion < 5 && CanGo(word.from, word.to) &&
         (word.promotion == 0 || CanPromote(word.from, word.to));
}

}  // namespace

std::optional<MoveWord> MoveWord::FromText(std::string_view text) {
  if (text.size() != 4 && text.size() != 5) return std::nullopt;
  // Files and ranks from 0 to 7, else more.
  const auto from_file = static_cast<unsigned>(text[0] - 'a');
  const auto from_rank = static_cast<unsigned>(text[1] - '1');
  const auto to_file = static_cast<unsigned>(text[2] - 'a');
  const auto to_rank = static_cast<unsigned>(text[3] - '1');
  if ((from_file | from_rank | to_file | to_rank) > 7) return std::nullopt;
  size_t promotion = 0;
  if (text.size() == 5) {
    promotion = kPromotions.find(text[4], 1);
    if (promotion == std::string_view::npos) return std::nullopt;
  }
  return MoveWord{static_cast<uint8_t>(from_rank * 8 + from_file),
                  static_cast<uint8_t>(to_rank * 8 + to_file), static_cast<uint8_t>(promotion)};
}

std::string MoveWord::Text() const {
  std::string text = chess::Square(from).Name() + chess::Square(to).Name();
  if (promotion != 0) text += kPromotions[promotion];
  return text;
}

MoveWord WordOf(chess::Move move) {
  const int promotion = move.is_promotion() ? static_cast<int>(move.promotion()) -
                                                  static_cast<int>(chess::PieceType::kPawn)
                                            : 0;
  return {static_cast<uint8_t>(move.from().index()), static_cast<uint8_t>(move.to().index()),
          static_cast<uint8_t>(promotion)};
}

const Vocabulary& Vocabulary::Full() {
  static const Vocabulary full(AllWords());
  return full;
}

Vocabulary::Vocabulary(std::vector<MoveWord> words)
    : words_(std::move(words)), index_(size_t{64} * 64 * 5, kNoMove) {
  std::sort(words_.begin(), words_.end());
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  if (words_.empty()) throw Error("a vocabulary without moves; expected at least one");
  for (size_t i = 0; i < words_.size(); ++i) {
    const MoveWord& word = words_[i];
    if (!IsWord(word)) {
      throw Error(
          "the vocabulary has ({}, {}, {}), which no piece can play; expected from, to, "
          "promotion as 'kibitz policy vocab' writes them",
          word.from, word.to, word.promotion);
    }
    index_[(size_t{word.from} * 64 + word.to) * 5 + word.promotion] = static_cast<uint16_t>(i);
  }
  for (const MoveWord& word : words_) flipped_.push_back(IndexOf(word.Flipped()));
}

Vocabulary Vocabulary::Read(const std::string& path) {
  const io::NpyFile file = io::NpyFile::Open(path);
  const bool bytes = file.layout() == io::NpyLayout::Of(io::DType::kU8);
  if (!bytes || file.shape().size() != 2 || file.shape()[1] != 3) {
    throw Error("{}: holds {} {}, expected a vocabulary: uint8 [N, 3]", path, file.layout().Text(),
                io::ShapeText(file.shape()));
  }
  std::vector<MoveWord> words(file.rows());
  std::memcpy(words.data(), file.bytes().data(), file.bytes().size());
  if (!std::is_sorted(words.begin(), words.end()) ||
      std::adjacent_find(words.begin(), words.end()) != words.end()) {
    throw Error(
        "{}: the moves are not in order, so their numbers would change; write it with "
        "'kibitz policy vocab'",
        path);
  }
  return Vocabulary(std::move(words));
}

void Vocabulary::Write(const std::string& path) const {
  io::NpyWriter writer(path, io::NpyLayout::Of(io::DType::kU8), {3});
  writer.Append(std::as_bytes(std::span(words_)));
  writer.Commit();
}

}  // namespace kibitz::policy
