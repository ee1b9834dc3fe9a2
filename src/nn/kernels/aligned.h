// Arrays aligned to cache lines.
//
//   AlignedArray<float> x(1024);    // 1024 zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace kibitz::nn {

inline constexpr size_t kCacheLine = 64;

constexpr int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Asks for huge pages where the system has them: fewer TLB misses on weights that are read from end
// to end again and again. Does nothing for blocks below a few megabytes.
void PreferLargePages(void* block, size_t bytes);

// `size` numbers, zero at first; pages that are never touched take no memory.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivial_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t size) : size_(size) {
    if (size == 0) return;
    // calloc returns fresh pages without writing them; the alignment is ours.
    block_.reset(std::calloc(static_cast<size_t>(size) * sizeof(T) + kCacheLine, 1));
    if (!block_) throw std::bad_alloc();
    const auto beyond = reinterpret_cast<uintptr_t>(block_.get()) % kCacheLine;
    data_ = reinterpret_cast<T*>(static_cast<char*>(block_.get()) + (kCacheLine - beyond));
  }
  // The same in huge pages.
  static AlignedArray InLargePages(int64_t size) {
    AlignedArray array(size);
    PreferLargePages(array.block_.get(), static_cast<size_t>(size) * sizeof(T));
    return array;
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

  // Makes room for at least `size` numbers; their content is undefined afterwards.
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

// Many arrays that share huge pages: the weights of a network's layers, each too small for a page
// of its own.
class FloatPool {
 public:
  // `size` zeros, aligned to a cache line; they live as long as the pool.
  float* Take(int64_t size);

 private:
  std::vector<AlignedArray<float>> blocks_;
  int64_t used_ = 0;  // Numbers of the last block.
};

}  // namespace kibitz::nn
