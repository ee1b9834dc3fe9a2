// Memory for numbers, at the start of a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace kibitz::nn {

inline constexpr size_t kCacheLine = 64;

constexpr int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Room for `size` numbers, all zero at first; pages that are never touched cost nothing.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivial_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t size) : size_(size) {
    if (size == 0) return;
    // calloc gives fresh pages without writing them; the line's start is found behind its own.
    block_.reset(std::calloc(static_cast<size_t>(size) * sizeof(T) + kCacheLine, 1));
    if (!block_) throw std::bad_alloc();
    const auto address = reinterpret_cast<uintptr_t>(block_.get());
    data_ = reinterpret_cast<T*>((address + kCacheLine - 1) / kCacheLine * kCacheLine);
  }
  AlignedArray(AlignedArray&& other) noexcept { *this = std::move(other); }
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    block_ = std::move(other.block_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  int64_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

  // At least `size` numbers, of any content.
  void Reserve(int64_t size) {
    if (size > size_) *this = AlignedArray(size);
  }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace kibitz::nn
