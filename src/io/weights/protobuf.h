// Reads the wire format of protocol buffers field by field, without a schema: the caller knows what
// a field number means.
//
//   ProtobufReader reader(bytes, "net.pb.gz");
//   while (reader.Next()) {
//     if (reader.field() == 10) ReadWeights(reader.Message());
//   }
//
// Damaged bytes throw Error with the place. Nothing is copied: `bytes` must outlive the readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kibitz::io {

class ProtobufReader {
 public:
  // `place` is for messages.
  ProtobufReader(std::string_view bytes, std::string place);

  // The next field; false at the end.
  bool Next();
  uint32_t field() const { return field_; }
  bool is_bytes() const { return wire_ == Wire::kBytes; }

  // The value of the field; an Error when its wire type is another.
  uint64_t Number();         // Varint: integers, enums, bool.
  uint32_t Fixed32();        //
  float Float();             // Fixed32.
  std::string_view Bytes();  // String or bytes.
  ProtobufReader Message();  // A nested message.

  // Bytes of this message read so far.
  size_t position() const { return position_; }

 private:
  enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void Need(Wire wire) const;
  uint64_t TakeVarint();
  std::string_view Take(uint64_t size);

  std::string_view bytes_;
  std::string place_;
  size_t position_ = 0;
  uint32_t field_ = 0;
  Wire wire_ = Wire::kVarint;
  uint64_t number_ = 0;       // Of a varint or fixed field.
  std::string_view content_;  // Of a field of bytes.
};

}  // namespace kibitz::io
