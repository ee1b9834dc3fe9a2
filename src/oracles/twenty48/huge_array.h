// A large zeroed array for random access, in huge pages (2 MB) where the system has them. With 4 KB
// pages, a table of hundreds of megabytes misses the TLB at every access.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace kibitz::oracles {

namespace internal {
// Zeroed memory, released by the deleter. Throws Error when there is not enough.
std::shared_ptr<void> AllocateHuge(size_t bytes);
}  // namespace internal

template <typename T>
class HugeArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  HugeArray() = default;
  explicit HugeArray(size_t size)
      : memory_(internal::AllocateHuge(size * sizeof(T))),
        data_(static_cast<T*>(memory_.get())),
        size_(size) {}
  HugeArray(HugeArray&&) noexcept = default;
  HugeArray& operator=(HugeArray&&) noexcept = default;

  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kibitz::oracles
