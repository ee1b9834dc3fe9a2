// Reads and writes NumPy's .npy files, versions 1 to 3: arrays of numbers, and of rows with named
// fields (structured arrays).
//
//   const NpyFile steps = NpyFile::Open("pack/steps.npy");
//   for (const StepRow& row : steps.Rows<StepRow>(StepLayout())) ...   // Mapped, not copied.
//
//   NpyWriter writer("train_planes.npy", NpyLayout::Of(DType::kU8), {13, 8, 8});
//   writer.Append(std::as_bytes(std::span(planes)));                   // As often as needed.
//   writer.Commit();                                                   // Now the count is known.
//
// Only C order and little-endian numbers; errors say how to convert other files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/atomic_file.h"
#include "base/check.h"
#include "io/bytes/tensor.h"

namespace kibitz::io {

// A named part of a row.
struct NpyField {
  std::string name;
  DType type = DType::kF32;
  std::vector<int64_t> shape = {};  // Empty for one number.
  size_t offset = 0;                // From the start of the row.

  bool operator==(const NpyField&) const = default;
  size_t Bytes() const;
};

// The type of an element: a number, or a row of fields, perhaps with gaps.
struct NpyLayout {
  std::vector<NpyField> fields;  // In the order of the bytes. A number is one field without a name.
  size_t row_bytes = 0;

  static NpyLayout Of(DType type);
  // Fields in order without gaps; `offset` is filled in.
  static NpyLayout Packed(std::vector<NpyField> fields);
  // As a C struct of these fields lies in memory, and numpy's align=True.
  static NpyLayout Aligned(std::vector<NpyField> fields);

  bool IsNumber() const { return fields.size() == 1 && fields[0].name.empty(); }
  bool operator==(const NpyLayout&) const = default;
  // "uint8", or "{run_id uint32 @0, board uint64 @8, branch_evs float32 [4] @32; 48 bytes}".
  std::string Text() const;
};

class NpyFile {
 public:
  // Maps the file and checks all of its header. Throws Error.
  static NpyFile Open(const std::string& path);
  // The same over bytes in memory, which `owner` keeps; `name` is for messages.
  static NpyFile Parse(std::span<const std::byte> file, std::string name,
                       std::shared_ptr<const void> owner = nullptr);

  const NpyLayout& layout() const { return layout_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  // Rows along the first axis; 1 for a single number.
  uint64_t rows() const;
  // The elements, one after another.
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

  // An array of numbers. Throws Error when it has fields.
  Tensor AsTensor() const;
  // One field of every element as a tensor of its own: (shape..., field shape...). Copies.
  Tensor CopyField(std::string_view field) const;

  // A list of rows as structs, in place. Throws Error when the file's layout is another than
  // `expected`, the shape is not (N,), or the rows do not lie on the struct's alignment.
  template <typename Row>
  std::span<const Row> Rows(const NpyLayout& expected) const {
    static_assert(std::is_trivially_copyable_v<Row>);
    CHECK(expected.row_bytes == sizeof(Row));
    CheckRows(expected, alignof(Row));
    return {reinterpret_cast<const Row*>(bytes_.data()), bytes_.size() / sizeof(Row)};
  }

 private:
  NpyFile() = default;
  void CheckRows(const NpyLayout& expected, size_t alignment) const;

  std::string name_;
  NpyLayout layout_;
  std::vector<int64_t> shape_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

// Writes an array whose number of rows is known only at the end; any size.
class NpyWriter {
 public:
  // `row_shape` is the shape after the first axis: {13, 8, 8} makes (N, 13, 8, 8).
  NpyWriter(const std::string& path, NpyLayout layout, std::vector<int64_t> row_shape = {});

  // Whole rows, one or many. CHECKs the size.
  void Append(std::span<const std::byte> rows);
  uint64_t rows() const { return rows_; }
  // Writes the count into the header and renames the file into place. Without it the file is
  // removed.
  void Commit();

 private:
  std::string path_;
  NpyLayout layout_;
  std::vector<int64_t> row_shape_;
  size_t row_bytes_ = 0;  // Of one row along the first axis.
  uint64_t rows_ = 0;
  AtomicFile file_;
};

// A whole tensor at once, with its own shape.
void WriteNpy(const std::string& path, const Tensor& tensor);

// The bytes before the data: magic, version, length, text padded to 64. Files with the same layout
// and number of axes have headers of the same length, whatever the first axis is.
std::string NpyHeader(const NpyLayout& layout, std::span<const int64_t> shape);

}  // namespace kibitz::io
