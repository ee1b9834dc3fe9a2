#include "students/decoder/data/source.h"

#include "base/check.h"
#include "base/error.h"

namespace kibitz::decoder {

void Source::AddUnit(uint64_t size) {
  CHECK(size > 0);
  unit_sizes_.push_back(size);
  size_ += size;
}

void Source::CheckNotEmpty() const {
  if (size_ > 0) return;
  throw Error("no {} to learn from: {}", name_, skipped_.Text());
}

SkipCounter Source::skipped() const {
  const std::scoped_lock lock(mutex_);
  return skipped_;
}

std::shared_ptr<const Unit> Source::Load(size_t unit) const {
  SkipCounter found;
  std::shared_ptr<const Unit> loaded = Decode(unit, found);
  const std::scoped_lock lock(mutex_);
  if (counted_.insert(unit).second) skipped_.MergeAndWarn(found);
  return loaded;
}

}  // namespace kibitz::decoder
