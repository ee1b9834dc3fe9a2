#include "students/policy/data/planes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kibitz::policy {
namespace {

constexpr int kEnPassantPlane = 12;

// Calls use(plane, square) for each piece and for the en passant square.
template <typename Use>
void ForEachMark(const PackedPosition& position, const Use& use) {
  uint64_t bits = position.occupied_bits();
  for (unsigned i = 0; bits != 0 && i < 32; ++i, bits &= bits - 1) {
    const int code = position.pieces[i / 2] >> (4 * (i & 1)) & 15;
    use((code & 7) - 1 + (code >> 3) * 6, PackedPosition::SquareOf(std::countr_zero(bits)));
  }
  if (position.en_passant != 0) use(kEnPassantPlane, position.en_passant_square());
}

// The rights of one side after the other: White's first, or with `flip` the mover's.
std::array<float, 4> RightsOf(const PackedPosition& position, bool flip) {
  std::array<float, 4> rights;
  for (int i = 0; i < 4; ++i) {
    const int from = flip && position.black_to_move() ? i ^ 2 : i;
    rights[static_cast<size_t>(i)] = position.castling(from) ? 1.0F : 0.0F;
  }
  return rights;
}

// From channel `first` of a square on.
void WriteAttacks(const PackedPosition& position, int first, int channels, float* out) {
  for (chess::Bitboard squares : AttackPlanesOf(position)) {
    for (float* plane = out + first++; squares != 0; squares &= squares - 1) {
      plane[std::countr_zero(squares) * channels] = 1.0F;
    }
  }
}

void WriteChannels(const PackedPosition& position, const InputForm& form, float* out) {
  const int channels = form.channels();
  const bool mirrored = form.flip && position.black_to_move();
  std::array<float, kMeta> tail{};
  int tail_size = 0;
  if (!form.flip) tail[static_cast<size_t>(tail_size++)] = position.black_to_move() ? -1.0F : 1.0F;
  for (float right : RightsOf(position, form.flip)) tail[static_cast<size_t>(tail_size++)] = right;
  std::fill_n(out, 64 * channels, 0.0F);
  for (int square = 0; square < 64; ++square) {
    std::copy_n(tail.data(), tail_size, out + square * channels + kPlanes);
  }
  ForEachMark(position, [&](int plane, int square) {
    if (mirrored) {
      square ^= 56;
      if (plane != kEnPassantPlane) plane = plane < 6 ? plane + 6 : plane - 6;
    }
    out[square * channels + plane] = 1.0F;
  });
  if (form.attacks) WriteAttacks(position, kPlanes + tail_size, channels, out);
}

void WriteFlat(const PackedPosition& position, float* out) {
  std::fill_n(out, kPlaneBytes, 0.0F);
  ForEachMark(position, [&](int plane, int square) { out[plane * 64 + square] = 1.0F; });
  out[kPlaneBytes] = position.black_to_move() ? -1.0F : 1.0F;
  const std::array<float, 4> rights = RightsOf(position, false);
  std::copy(rights.begin(), rights.end(), out + kPlaneBytes + 1);
}

}  // namespace

PlaneBytes PlanesOf(const PackedPosition& position) {
  PlaneBytes planes{};
  ForEachMark(position,
              [&](int plane, int square) { planes[static_cast<size_t>(plane * 64 + square)] = 1; });
  return planes;
}

MetaBytes MetaOf(const PackedPosition& position) {
  MetaBytes meta;
  meta[0] = position.black_to_move() ? -1 : 1;
  for (int i = 0; i < 4; ++i) meta[static_cast<size_t>(i + 1)] = position.castling(i) ? 1 : 0;
  return meta;
}

chess::AttackPlanes AttackPlanesOf(const PackedPosition& position) {
  const bool black = position.black_to_move();
  std::array<chess::Bitboard, 16> sets{};  // By piece code.
  uint64_t bits = position.occupied_bits();
  for (unsigned i = 0; bits != 0 && i < 32; ++i, bits &= bits - 1) {
    const size_t code = position.pieces[i / 2] >> (4 * (i & 1)) & 15U;
    const int square = PackedPosition::SquareOf(std::countr_zero(bits));
    sets[code] |= uint64_t{1} << (black ? square ^ 56 : square);
  }
  chess::MenInView men;
  for (size_t kind = 0; kind < 6; ++kind) {
    men.own[kind] = sets[kind + (black ? 9 : 1)];
    men.enemy[kind] = sets[kind + (black ? 1 : 9)];
  }
  return chess::AttackPlanesOf(men);
}

Result<PackedPosition> FromPlanes(std::span<const uint8_t, kPlaneBytes> planes,
                                  std::span<const int8_t, kMeta> meta) {
  std::array<uint8_t, 64> codes{};  // By square.
  PackedPosition position;
  for (size_t word = 0; word < kPlaneBytes / 8; ++word) {
    uint64_t eight = 0;
    std::memcpy(&eight, planes.data() + word * 8, 8);
    if (eight == 0) continue;
    if ((eight & ~0x0101010101010101ULL) != 0) return Bad("a plane has values other than 0 and 1");
    const size_t plane = word / 8;
    for (; eight != 0; eight &= eight - 1) {
      const size_t square = word % 8 * 8 + static_cast<size_t>(std::countr_zero(eight)) / 8;
      if (plane == kEnPassantPlane) {
        position.en_passant = static_cast<uint8_t>(square % 8 + 1);
        continue;
      }
      if (codes[square] != 0) return Bad("two pieces stand on one square");
      codes[square] = static_cast<uint8_t>(plane % 6 + 1 + plane / 6 * 8);
    }
  }
  if (meta[0] != 1 && meta[0] != -1)
    return Bad("meta names {} as side to move, expected 1 or -1", meta[0]);
  position.state = meta[0] == -1 ? 1 : 0;
  for (size_t i = 0; i < 4; ++i) {
    if (meta[i + 1] != 0) position.state = static_cast<uint8_t>(position.state | 2U << i);
  }
  unsigned count = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const uint8_t code =
        codes[static_cast<size_t>(PackedPosition::SquareOf(static_cast<int>(bit)))];
    if (code == 0) continue;
    if (count == 32) return Bad("more than 32 pieces");
    position.occupied[bit / 32] |= 1U << (bit % 32);
    position.pieces[count / 2] =
        static_cast<uint8_t>(position.pieces[count / 2] | code << (4 * (count & 1)));
    ++count;
  }
  if (!IsSound(position))
    return Bad(
        "the planes are no position: not one king each, or a castling right without its rook");
  return position;
}

void WriteInputs(const PackedPosition& position, const InputForm& form, float* out) {
  if (form.flat) {
    WriteFlat(position, out);
  } else {
    WriteChannels(position, form, out);
  }
}

}  // namespace kibitz::policy
