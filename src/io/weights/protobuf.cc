#include "io/weights/protobuf.h"

#include <bit>
#include <span>
#include <utility>

#include "base/error.h"
#include "io/bytes/little_endian.h"

namespace kibitz::io {

ProtobufReader::ProtobufReader(std::string_view bytes, std::string place)
    : bytes_(bytes), place_(std::move(place)) {}

uint64_t ProtobufReader::TakeVarint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (position_ == bytes_.size()) throw Error("{}: ends inside a number", place_);
    const auto byte = static_cast<unsigned char>(bytes_[position_++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  throw Error("{}, byte {}: a number of more than 64 bits", place_, position_);
}

std::string_view ProtobufReader::Take(uint64_t size) {
  if (size > bytes_.size() - position_) {
    throw Error(
        "{}, byte {}: field {} claims {} bytes, {} are left; the file was cut short or is "
        "no protocol buffer",
        place_, position_, field_, size, bytes_.size() - position_);
  }
  const std::string_view taken = bytes_.substr(position_, size);
  position_ += size;
  return taken;
}

bool ProtobufReader::Next() {
  if (position_ == bytes_.size()) return false;
  const uint64_t tag = TakeVarint();
  if (tag >> 3 == 0 || tag >> 32 != 0) {
    throw Error("{}, byte {}: {} is not a field", place_, position_, tag);
  }
  field_ = static_cast<uint32_t>(tag >> 3);
  wire_ = static_cast<Wire>(tag & 7);
  switch (wire_) {
    case Wire::kVarint:
      number_ = TakeVarint();
      return true;
    case Wire::kFixed64:
      number_ = LoadLittle<uint64_t>(std::as_bytes(std::span(Take(8))));
      return true;
    case Wire::kFixed32:
      number_ = LoadLittle<uint32_t>(std::as_bytes(std::span(Take(4))));
      return true;
    case Wire::kBytes:
      content_ = Take(TakeVarint());
      return true;
  }
  throw Error("{}, byte {}: field {} has wire type {}, which does not exist", place_, position_,
              field_, tag & 7);
}

void ProtobufReader::Need(Wire wire) const {
  if (wire_ == wire) return;
  throw Error("{}: field {} has wire type {}, expected {}", place_, field_, static_cast<int>(wire_),
              static_cast<int>(wire));
}

uint64_t ProtobufReader::Number() {
  Need(Wire::kVarint);
  return number_;
}

uint32_t ProtobufReader::Fixed32() {
  Need(Wire::kFixed32);
  return static_cast<uint32_t>(number_);
}

float ProtobufReader::Float() { return std::bit_cast<float>(Fixed32()); }

std::string_view ProtobufReader::Bytes() {
  Need(Wire::kBytes);
  return content_;
}

ProtobufReader ProtobufReader::Message() { return {Bytes(), place_}; }

}  // namespace kibitz::io
