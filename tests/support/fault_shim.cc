// A library to preload: lets one system call of a program fail.
//
//   KIBITZ_FAULT=write:17   the 17th write to a regular file fails (no space left)
//   KIBITZ_FAULT_LOG=FILE   how many calls of each kind there were, written at the end
//
// Kinds: write, sync, rename, mmap (of files), alloc (of 64 kB or more). Calls are counted from
// main on, over all threads of the process: what libraries do before main cannot be caught.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Kind { kWrite, kSync, kRename, kMap, kAlloc, kKinds };
constexpr const char* kNames[kKinds] = {"write", "sync", "rename", "mmap", "alloc"};
constexpr size_t kLarge = 64 << 10;

using Main = int(int, char**, char**);
Main* g_main = nullptr;
std::atomic<bool> g_in_main{false};
std::atomic<long> g_counts[kKinds];
std::atomic<int> g_kind{-2};  // -2: not read yet, -1: none.
std::atomic<long> g_number{0};

void ReadPlan() {
  const char* plan = std::getenv("KIBITZ_FAULT");
  int kind = -1;
  if (plan != nullptr) {
    for (int i = 0; i < kKinds; ++i) {
      const size_t size = std::strlen(kNames[i]);
      if (std::strncmp(plan, kNames[i], size) == 0 && plan[size] == ':') {
        kind = i;
        g_number = std::atol(plan + size + 1);
      }
    }
  }
  g_kind = kind;
}

// Counts the call; whether it is to fail.
bool Fails(Kind kind) {
  if (!g_in_main) return false;
  if (g_kind == -2) ReadPlan();
  const long number = ++g_counts[kind];
  return g_kind == kind && number == g_number;
}

bool IsRegular(int descriptor) {
  struct stat info = {};
  return fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void WriteLog() {
  const char* path = std::getenv("KIBITZ_FAULT_LOG");
  if (path == nullptr) return;
  char text[256];
  int size = 0;
  for (int i = 0; i < kKinds; ++i) {
    size += std::snprintf(text + size, sizeof(text) - static_cast<size_t>(size), "%s %ld\n",
                          kNames[i], g_counts[i].load());
  }
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  using Write = ssize_t(int, const void*, size_t);
  static Write* const real = Real<Write>("write");
  if (real(file, text, static_cast<size_t>(size)) < 0) std::abort();
  close(file);
}

int CountedMain(int count, char** words, char** environment) {
  g_in_main = true;
  return g_main(count, words, environment);
}

__attribute__((destructor)) void AtEnd() { WriteLog(); }

}  // namespace

extern "C" {

int __libc_start_main(Main* main, int count, char** words, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  g_main = main;
  return Real<Start>("__libc_start_main")(CountedMain, count, words, init, fini, loader_fini,
                                          stack_end);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static auto* const real = Real<ssize_t(int, const void*, size_t)>("write");
  if (IsRegular(descriptor) && Fails(kWrite)) return errno = ENOSPC, -1;
  return real(descriptor, bytes, size);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  static auto* const real = Real<ssize_t(int, const struct iovec*, int)>("writev");
  if (IsRegular(descriptor) && Fails(kWrite)) return errno = ENOSPC, -1;
  return real(descriptor, parts, count);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  static auto* const real = Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  if (IsRegular(descriptor) && Fails(kWrite)) return errno = ENOSPC, -1;
  return real(descriptor, bytes, size, offset);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t offset) {
  static auto* const real = Real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  if (IsRegular(descriptor) && Fails(kWrite)) return errno = ENOSPC, -1;
  return real(descriptor, bytes, size, offset);
}

int fsync(int descriptor) {
  static auto* const real = Real<int(int)>("fsync");
  if (IsRegular(descriptor) && Fails(kSync)) return errno = EIO, -1;
  return real(descriptor);
}

int fdatasync(int descriptor) {
  static auto* const real = Real<int(int)>("fdatasync");
  if (IsRegular(descriptor) && Fails(kSync)) return errno = EIO, -1;
  return real(descriptor);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = Real<int(const char*, const char*)>("rename");
  if (Fails(kRename)) return errno = EIO, -1;
  return real(from, to);
}

void* mmap(void* address, size_t size, int protection, int flags, int descriptor,
           off_t offset) noexcept {
  static auto* const real = Real<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (descriptor >= 0 && (protection & PROT_EXEC) == 0 && Fails(kMap)) {
    return errno = ENOMEM, MAP_FAILED;
  }
  return real(address, size, protection, flags, descriptor, offset);
}

void* mmap64(void* address, size_t size, int protection, int flags, int descriptor,
             off64_t offset) noexcept {
  static auto* const real = Real<void*(void*, size_t, int, int, int, off64_t)>("mmap64");
  if (descriptor >= 0 && (protection & PROT_EXEC) == 0 && Fails(kMap)) {
    return errno = ENOMEM, MAP_FAILED;
  }
  return real(address, size, protection, flags, descriptor, offset);
}

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) noexcept {
  if (size >= kLarge && Fails(kAlloc)) return errno = ENOMEM, nullptr;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) noexcept {
  size_t bytes = 0;
  const bool large = !__builtin_mul_overflow(count, size, &bytes) && bytes >= kLarge;
  if (large && Fails(kAlloc)) return errno = ENOMEM, nullptr;
  return __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) noexcept {
  if (size >= kLarge && Fails(kAlloc)) return errno = ENOMEM, nullptr;
  return __libc_realloc(old, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  if (size >= kLarge && Fails(kAlloc)) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result != nullptr ? 0 : ENOMEM;
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  if (size >= kLarge && Fails(kAlloc)) return errno = ENOMEM, nullptr;
  return __libc_memalign(alignment, size);
}

}  // extern "C"
