// TensorBoard event files: the curves of a run, one number per tag and step.
//
//   TensorBoardWriter board("runs/a", {.wall_time = now});
//   board.Write(step, now, {{"train/loss", 2.31}, {"train/lr", 3e-4}});
//
//   ScalarReader reader(board.path());
//   while (auto scalar = reader.Next()) Use(scalar->tag, scalar->step, scalar->value);
//
// A folder holds one file of ours. A resumed run continues it: records after the step it resumes
// from, and an incomplete last record, are cut off first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/bytes/mapped_file.h"

namespace kibitz::io {

struct Scalar {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;  // Seconds since 1970.
  float value = 0;
};

struct TensorBoardOptions {
  double wall_time = 0;  // Of the start, seconds since 1970.
  std::optional<int64_t> resume_step =
      {};  // Records of later steps are cut off; nothing: all are kept.
};

class TensorBoardWriter {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  // Creates the folder, continues its newest file or starts one. Throws Error.
  explicit TensorBoardWriter(const std::string& folder, const TensorBoardOptions& options);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  // Writes one event. A kill after the call does not lose it.
  void Write(int64_t step, double wall_time, const Values& values);
  const std::string& path() const { return path_; }

 private:
  void WriteRecord(std::string_view event);

  std::string path_;
  int descriptor_ = -1;
};

// Scalars in the order of the file. Tensors, images, histograms and graphs are skipped.
class ScalarReader {
 public:
  // Throws Error when the file does not start with an event record.
  explicit ScalarReader(const std::string& path);

  // Nothing at the end, and where a record is cut off by the end of the file. Throws Error with the
  // byte where a checksum or an event is wrong.
  std::optional<Scalar> Next();
  // Whether the file ended inside a record, as after a kill; known at the end.
  bool torn() const { return torn_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  size_t offset_ = 0;
  bool torn_ = false;
  std::vector<Scalar> pending_;  // Of the current event, last first.
};

}  // namespace kibitz::io
