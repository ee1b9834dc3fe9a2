// The three ways something goes wrong, and their tools:
//   text that may be invalid  -> Result<T>: a value, or the reason there is none
//   a failure outside of us   -> throw Error: file, engine, disk, wrong usage; caught in main()
//   our own bug               -> CHECK (check.h)
//
//   Result<Board> board = ParseFen(text);
//   if (!board) throw Error("{}, line {}: {}", path, line, board.reason());
#pragma once

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace kibitz {

// Our only exception. The message gives place, found, expected and remedy.
class Error : public std::exception {
 public:
  enum class Kind { kFailed, kUsage, kInterrupted };

  explicit Error(std::string message, Kind kind = Kind::kFailed)
      : message_(std::move(message)), kind_(kind) {}
  template <typename First, typename... Rest>
  Error(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest)
      : message_(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  // The caller used the program wrongly; the process exits with 2.
  template <typename... Args>
  static Error Usage(fmt::format_string<Args...> format, Args&&... args) {
    return Error(fmt::format(format, std::forward<Args>(args)...), Kind::kUsage);
  }
  // For a failed system call: the message, then what errno says.
  static Error System(const std::string& message);

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }
  Kind kind() const { return kind_; }

 private:
  std::string message_;
  Kind kind_ = Kind::kFailed;
};

// The reason a Result has no value. `return Bad("{} is no square", text);`
class Bad {
 public:
  template <typename... Args>
  explicit Bad(fmt::format_string<Args...> format, Args&&... args)
      : reason_(fmt::format(format, std::forward<Args>(args)...)) {}

  std::string& reason() { return reason_; }

 private:
  std::string reason_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Bad bad) : reason_(std::move(bad.reason())) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const& {
    CHECK(value_.has_value());
    return *value_;
  }
  T&& operator*() && {
    CHECK(value_.has_value());
    return *std::move(value_);
  }
  const T* operator->() const { return &**this; }
  // Empty when there is a value.
  const std::string& reason() const { return reason_; }

  // The value, or an Error "place: reason".
  T OrThrow(std::string_view place) && {
    if (!value_) throw Error("{}: {}", place, reason_);
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
  std::string reason_;
};

}  // namespace kibitz
