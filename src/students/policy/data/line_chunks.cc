#include "students/policy/data/line_chunks.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "io/bytes/byte_sink.h"
#include "io/bytes/byte_source.h"

namespace kibitz::policy {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
constexpr size_t kReadBytes = 1 << 20;
constexpr int kMaxPackers = 4;  // Threads; unpacking is no faster.

}  // namespace

LineChunks::LineChunks(std::string folder, std::string path, uint64_t chunk_bytes)
    : folder_(std::move(folder)), path_(std::move(path)), chunk_bytes_(chunk_bytes) {
  MakeFolder(folder_);
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

std::string LineChunks::PathOf(uint64_t chunk) const {
  return fmt::format("{}/lines-{:06}.jsonl.zst", folder_, chunk);
}

LineChunks::State LineChunks::Read() const {
  const std::string path = folder_ + "/state.json";
  if (!std::filesystem::exists(path)) return {};
  const auto json = LoadConfig(path).tree;
  try {
    return {json.at("chunks").get<uint64_t>(), json.at("done").get<bool>()};
  } catch (const nlohmann::json::exception& error) {
    throw Error("{}: {}; remove the folder and run again", path, error.what());
  }
}

void LineChunks::Write(const State& state) const {
  const nlohmann::ordered_json json = {{"chunks", state.chunks}, {"done", state.done}};
  WriteFileAtomically(folder_ + "/state.json", json.dump() + "\n");
}

std::optional<std::string> LineChunks::At(uint64_t chunk) {
  if (!Has(chunk)) return std::nullopt;
  if (std::filesystem::exists(PathOf(chunk))) return PathOf(chunk);
  throw Error("{}: was used and removed; remove the folder {} to unpack {} again", PathOf(chunk),
              folder_, path_);
}

bool LineChunks::Has(uint64_t chunk) {
  while (true) {
    const State state = Read();
    if (chunk < state.chunks) return true;
    if (state.done) return false;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
    }
    ThrowIfInterrupted();
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void LineChunks::Run(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested() && !Read().done) {
      if (const auto lock = WriteLock::TryOfFolder(folder_)) {
        if (!Read().done) Unpack(stop);
      } else {
        std::this_thread::sleep_for(kBetweenLooks);
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
}

// The cuts depend on the text alone, so that chunks made before the last kill are passed over.
void LineChunks::Unpack(const std::stop_token& stop) {
  State state = Read();
  const auto source = io::OpenBytes(path_);
  LogInfo("{}: cannot be cut; unpacks it for all shards", path_);
  const int threads = std::min(HardwareThreads(), kMaxPackers);
  std::string text;
  uint64_t chunk = 0;
  const auto put = [&](size_t bytes) {
    if (chunk >= state.chunks) {
      io::ByteSink sink(PathOf(chunk), {.level = 1, .threads = threads});
      sink.Write(std::string_view(text).substr(0, bytes));
      sink.Commit();
      state.chunks = chunk + 1;
      Write(state);
    }
    ++chunk;
    text.erase(0, bytes);
  };
  while (!stop.stop_requested()) {
    const size_t before = text.size();
    text.resize(before + kReadBytes);
    const size_t count = source->Read(text.data() + before, kReadBytes);
    text.resize(before + count);
    if (count == 0) {
      if (!text.empty()) put(text.size());
      state.done = true;
      Write(state);
      return;
    }
    while (text.size() >= chunk_bytes_) {
      const size_t line = text.find('\n', chunk_bytes_ - 1);
      if (line == std::string::npos) break;
      put(line + 1);
    }
  }
}

}  // namespace kibitz::policy
