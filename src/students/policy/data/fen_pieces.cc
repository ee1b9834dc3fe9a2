#include "students/policy/data/fen_pieces.h"

#include <algorithm>
#include <array>
#include <bit>

#include "students/policy/data/men.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512VBMI__) && \
    defined(__AVX512VBMI2__)
#define KIBITZ_FEN_VECTORS 1
#include <immintrin.h>
#else
#define KIBITZ_FEN_VECTORS 0
#endif

namespace kibitz::policy {
namespace {

// What a letter of a FEN's first field does.
struct Letter {
  uint8_t code = 0;     // A piece's, or 0.
  uint8_t squares = 0;  // How far it goes.
  uint8_t piece = 0;    // 1 for one of these.
  uint8_t digit = 0;
  uint8_t slash = 0;
  uint8_t known = 0;  // Any of the three.
};

constexpr std::array<Letter, 256> MakeLetters() {
  std::array<Letter, 256> letters{};
  constexpr std::string_view kPieces = "PNBRQK";
  for (size_t i = 0; i < kPieces.size(); ++i) {
    const auto white = static_cast<unsigned char>(kPieces[i]);
    letters[white] = {static_cast<uint8_t>(i + 1), 1, 1, 0, 0, 1};
    letters[white | 0x20U] = {static_cast<uint8_t>(i + 9), 1, 1, 0, 0, 1};
  }
  for (uint8_t digit = 1; digit <= 8; ++digit) letters['0' + digit] = {0, digit, 0, 1, 0, 1};
  letters['/'] = {0, 0, 0, 0, 1, 1};
  return letters;
}
constexpr std::array<Letter, 256> kLetters = MakeLetters();

#if KIBITZ_FEN_VECTORS

// GCC 12 takes the undefined operands of its own intrinsics for variables without a value.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Piece codes by the low six bits of a letter: of '@' to DEL.
alignas(64) constexpr std::array<uint8_t, 64> kCodes = [] {
  std::array<uint8_t, 64> codes{};
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = kLetters[64 + i].code;
  return codes;
}();

// A field of at most 63 letters, one in each byte. Sets of letters are masks.
struct Field {
  __m512i letters;
  size_t length;
  uint64_t all;
  uint64_t digits;
  uint64_t slashes;
  uint64_t pieces;
  __m512i codes;  // Of pieces.

  explicit Field(std::string_view fen) {
    const uint64_t loaded =
        _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(std::min<size_t>(fen.size(), 64)));
    letters = _mm512_maskz_loadu_epi8(loaded, fen.data());
    length = static_cast<size_t>(
        std::countr_zero(_mm512_cmpeq_epi8_mask(letters, _mm512_set1_epi8(' '))));
    all = _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(length));
    const __m512i from_one = _mm512_sub_epi8(letters, _mm512_set1_epi8('1'));
    digits = all & _mm512_cmple_epu8_mask(from_one, _mm512_set1_epi8(7));
    slashes = all & _mm512_cmpeq_epi8_mask(letters, _mm512_set1_epi8('/'));
    codes = _mm512_permutexvar_epi8(letters, _mm512_load_si512(kCodes.data()));
    const uint64_t of_letters = _mm512_cmpge_epi8_mask(letters, _mm512_set1_epi8('@'));
    pieces = all & of_letters & _mm512_test_epi8_mask(codes, codes);
  }

  uint64_t Those(char letter) const {
    return all & _mm512_cmpeq_epi8_mask(letters, _mm512_set1_epi8(letter));
  }
  // Nothing but these, and no two digits in a row.
  bool Clean() const { return (digits | slashes | pieces) == all && (digits & digits << 1) == 0; }
  // As Men::Sound; with seven slashes.
  bool Sound() const {
    const uint64_t black = pieces & _mm512_test_epi8_mask(codes, _mm512_set1_epi8(8));
    const uint64_t white_pawns = Those('P');
    const uint64_t black_pawns = Those('p');
    const uint64_t first_rank = slashes ^ (slashes - 1);
    const uint64_t last_rank = ~(~uint64_t{0} >> std::countl_zero(slashes));
    return std::has_single_bit(Those('K')) && std::has_single_bit(Those('k')) &&
           ((white_pawns | black_pawns) & (first_rank | last_rank)) == 0 &&
           std::popcount(pieces ^ black) <= 16 && std::popcount(black) <= 16 &&
           std::popcount(white_pawns) <= 8 && std::popcount(black_pawns) <= 8;
  }
};

// Squares up to each letter, that letter included: sums within eight letters, then those of the
// eights before them. 63 letters without two digits in a row cover at most 287 squares, too few for
// a sum that overflows its byte to look like 64 again.
struct Squares {
  __m512i ends;
  uint64_t total;

  explicit Squares(const Field& field) {
    const __m512i values = _mm512_sub_epi8(field.letters, _mm512_set1_epi8('0'));
    __m512i sums =
        _mm512_mask_mov_epi8(_mm512_maskz_set1_epi8(field.pieces, 1), field.digits, values);
    sums = _mm512_add_epi8(sums, _mm512_slli_epi64(sums, 8));
    sums = _mm512_add_epi8(sums, _mm512_slli_epi64(sums, 16));
    sums = _mm512_add_epi8(sums, _mm512_slli_epi64(sums, 32));
    const __m128i of_eights = _mm512_cvtepi64_epi8(_mm512_srli_epi64(sums, 56));
    const uint64_t all = static_cast<uint64_t>(_mm_cvtsi128_si64(of_eights)) * 0x0101010101010101;
    total = all >> 56;
    const __m512i before = _mm512_srlv_epi64(_mm512_set1_epi64(static_cast<int64_t>(all << 8)),
                                             _mm512_setr_epi64(0, 8, 16, 24, 32, 40, 48, 56));
    ends = _mm512_add_epi8(
        sums, _mm512_shuffle_epi8(before, _mm512_set4_epi32(0x08080808, 0x08080808, 0, 0)));
  }
  // Whether each rank has eight.
  bool Fit(const Field& field) const {
    const __m512i at_slashes = _mm512_maskz_compress_epi8(field.slashes, ends);
    return total == 64 && std::popcount(field.slashes) == 7 &&
           _mm_cvtsi128_si64(_mm512_castsi512_si128(at_slashes)) == 0x0038302820181008;
  }
  // Max 32 pieces.
  uint64_t Occupied(const Field& field) const {
    const auto those = static_cast<uint32_t>(
        _bzhi_u64(~uint64_t{0}, static_cast<unsigned>(std::popcount(field.pieces))));
    const __m256i last = _mm512_castsi512_si256(_mm512_maskz_compress_epi8(field.pieces, ends));
    const __m256i bits = _mm256_sub_epi8(last, _mm256_set1_epi8(1));
    const auto eight = [&](__m128i of, unsigned from) {
      return _mm512_maskz_sllv_epi64(static_cast<__mmask8>(those >> from), _mm512_set1_epi64(1),
                                     _mm512_cvtepu8_epi64(of));
    };
    const __m128i low = _mm256_castsi256_si128(bits);
    const __m128i high = _mm256_extracti128_si256(bits, 1);
    const __m512i sets =
        _mm512_or_si512(_mm512_or_si512(eight(low, 0), eight(_mm_srli_si128(low, 8), 8)),
                        _mm512_or_si512(eight(high, 16), eight(_mm_srli_si128(high, 8), 24)));
    return static_cast<uint64_t>(_mm512_reduce_or_epi64(sets));
  }
};

// Two codes in each byte.
void PutPieces(const Field& field, uint8_t* to) {
  const __m256i codes =
      _mm512_castsi512_si256(_mm512_maskz_compress_epi8(field.pieces, field.codes));
  const __m256i pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtepi16_epi8(pairs));
}

#endif

}  // namespace

#if KIBITZ_FEN_VECTORS
size_t ReadPieces(std::string_view fen, PackedPosition& position) {
  const Field field(fen);
  if (field.length == 64) return ReadPiecesPlain(fen, position);
  const Squares squares(field);
  if (!field.Clean() || !squares.Fit(field) || !field.Sound()) return 0;
  const uint64_t occupied = squares.Occupied(field);
  position.occupied = {static_cast<uint32_t>(occupied), static_cast<uint32_t>(occupied >> 32)};
  PutPieces(field, position.pieces.data());
  return field.length;
}
#pragma GCC diagnostic pop
#else
size_t ReadPieces(std::string_view fen, PackedPosition& position) {
  return ReadPiecesPlain(fen, position);
}
#endif

// Without branches on the letters, which cannot be predicted: faults are summed up.
size_t ReadPiecesPlain(std::string_view fen, PackedPosition& position) {
  std::array<uint8_t, 128> codes;  // Of pieces in turn; more than 32 are seen at the end.
  uint64_t occupied = 0;
  unsigned count = 0;
  unsigned bit = 0;
  unsigned row_end = 8;
  unsigned after_digit = 0;
  unsigned wrong = 0;
  const size_t last = std::min<size_t>(fen.size(), 100);
  size_t at = 0;
  for (; at != last; ++at) {
    const Letter& letter = kLetters[static_cast<unsigned char>(fen[at])];
    if (letter.known == 0) break;
    wrong |= letter.slash & static_cast<unsigned>(bit != row_end);
    wrong |= letter.digit & after_digit;
    after_digit = letter.digit;
    codes[count] = letter.code;
    count += letter.piece;
    occupied |= uint64_t{letter.piece} << (bit & 63);
    bit += letter.squares;
    row_end += 8U * letter.slash;
    wrong |= static_cast<unsigned>(bit > row_end);
  }
  wrong |= static_cast<unsigned>(at != fen.size() && fen[at] != ' ');
  if (wrong != 0 || bit != 64 || row_end != 64 || count > 32) return 0;
  Men men;
  for (unsigned i = 0; i < count; ++i, occupied &= occupied - 1) {
    men.Add(codes[i], static_cast<unsigned>(std::countr_zero(occupied)));
  }
  if (!men.Sound()) return 0;
  men.PutInto(position);
  return at;
}

}  // namespace kibitz::policy
