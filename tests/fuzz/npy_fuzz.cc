// .npy files: any bytes give an Error or an array whose every field can be read and written again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "io/tables/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz::io;
  try {
    const NpyFile file = NpyFile::Parse(std::as_bytes(std::span(data, size)), "fuzz.npy");
    file.layout().Text();
    for (const NpyField& field : file.layout().fields) {
      const Tensor tensor = file.CopyField(field.name);
      if (tensor.bytes.size() < (1 << 16)) ToFloats(tensor);
    }
    std::string again = NpyHeader(file.layout(), file.shape());
    again.append(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    const NpyFile copy = NpyFile::Parse(std::as_bytes(std::span(again)), "again.npy");
    CHECK(copy.layout() == file.layout());
    CHECK(copy.shape() == file.shape());
  } catch (const kibitz::Error&) {  // What broken bytes should end in.
  }
  return 0;
}
