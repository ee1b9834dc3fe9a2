// PyTorch's .pt files without PyTorch: a zip of one pickle and the bytes of each storage.
//
//   const Value root = ReadPt("run.pt");             // Tensors point into the mapped file.
//   WritePt("out.pt", Value::Dict({{Value::String("step"), Value::Int(7)}}));
//
// Reading never runs code that the file names: plain Python values and tensors become plain values,
// everything else opaque nodes. Written files load with torch.load(weights_only=True).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/weights/value.h"

namespace kibitz::io {

// Any file that torch.save writes since 1.6 (its zip form). Throws Error, with the remedy, for the
// older form, TorchScript archives, big-endian files and damaged ones. Depth is at most 500, and
// values met again through sharing count each time: Limits().values of them (base/limits.h).
Value ReadPt(const std::string& path);
// The same from memory that `owner` keeps; `place` names it in errors.
Value ParsePt(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
              const std::string& place);
// Whether the bytes of a .pt file end with a checksum, as those that WritePt made do; files of
// PyTorch have none. Throws Error when it is wrong. ReadPt and ParsePt check it too.
bool HasChecksum(std::span<const std::byte> bytes, const std::string& place);
// A bare pickle, without tensors.
Value ParsePickle(std::span<const std::byte> bytes, const std::string& place);

// Tensors are written one after another from where they are, so memory does not grow with them.
// Every tensor gets a storage of its own. Throws Error for opaque values other than torch's
// dtypes and devices. `zip64_from`: see ZipWriter.
void WritePt(const std::string& path, const Value& root, uint64_t zip64_from = 0xffffffff);

// The entry that says that the file has a checksum.
inline constexpr std::string_view kChecksumEntry = "archive/kibitz";

}  // namespace kibitz::io
