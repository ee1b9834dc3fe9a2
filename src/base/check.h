// CHECK(condition): our own bugs. On in release; prints where and aborts. Nothing that must
// happen sits inside one.
#pragma once

namespace kibitz {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace kibitz

#undef CHECK  // torch brings another; ours takes no stream.
#define CHECK(condition) \
  ((condition) ? void() : ::kibitz::CheckFailed(__FILE__, __LINE__, #condition))
