// A library to preload: lets one system call of a program fail.
//
//   KIBITZ_FAULT=write:17   the 17th write to a regular file fails (no space left)
//   KIBITZ_FAULT_LOG=FILE   how many calls of each kind there were, written at the end
//   KIBITZ_FAULT_SERVER=1   the program is loaded once and runs many times, see below
//
// A server takes lines "FAULT ERR WORD ..." from standard input, with tabs between. For each it
// forks and runs main with these words, this fault ("-": none) and its messages in the file ERR,
// and writes the exit code to standard output. A program that starts itself anew finds it cannot.
//
// Kinds: write, sync, rename, mmap (of files), alloc (of 64 kB or more). Calls are counted from
// main on, over all threads of the process: what libraries do before main cannot be caught.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
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
bool g_forked = false;
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

// A line without its end; false at the end of the input.
bool ReadLine(char* line, size_t size) {
  size_t count = 0;
  while (count + 1 < size && read(STDIN_FILENO, line + count, 1) == 1) {
    if (line[count] == '\n') {
      line[count] = '\0';
      return true;
    }
    ++count;
  }
  return false;
}

void Redirect(int descriptor, const char* path, int flags) {
  const int opened = open(path, flags | O_CLOEXEC, 0666);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
}

[[noreturn]] void RunForked(char* line) {
  constexpr int kMaxWords = 64;
  char* words[kMaxWords + 1] = {};
  int count = 0;
  char* rest = line;
  while (count < kMaxWords && rest != nullptr) words[count++] = strsep(&rest, "\t");
  if (count < 3) _exit(126);
  if (std::strcmp(words[0], "-") != 0) setenv("KIBITZ_FAULT", words[0], 1);
  Redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
  Redirect(STDOUT_FILENO, "/dev/null", O_WRONLY);
  Redirect(STDERR_FILENO, words[1], O_WRONLY | O_CREAT | O_APPEND);
  g_forked = true;
  g_in_main = true;
  std::exit(g_main(count - 2, words + 2, environ));
}

int Serve() {
  static char line[1 << 14];
  while (ReadLine(line, sizeof(line))) {
    const pid_t child = fork();
    if (child == 0) RunForked(line);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    dprintf(STDOUT_FILENO, "%d\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return 0;
}

int CountedMain(int count, char** words, char** environment) {
  if (std::getenv("KIBITZ_FAULT_SERVER") != nullptr) return Serve();
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

int execv(const char* path, char* const* words) noexcept {
  static auto* const real = Real<int(const char*, char* const*)>("execv");
  if (g_forked) return errno = ENOSYS, -1;
  return real(path, words);
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
