#include "bench/bench.h"

#include <fmt/format.h>
#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace kibitz::bench {

Bench::Bench(std::string name, int argc, char** argv, const std::vector<PathOption>& options)
    : name_(std::move(name)) {
  std::string usage = fmt::format("usage: {} [--quick] [--json]", name_);
  std::string help = "  --quick  under a minute\n  --json   one object a line\n";
  for (const PathOption& option : options) {
    usage += fmt::format(" [--{} PATH]", option.name);
    help += fmt::format("  --{} PATH  {}\n", option.name, option.help);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto option = std::ranges::find_if(
        options, [&](const PathOption& known) { return word == "--" + known.name; });
    if (option != options.end() && i + 1 < argc) {
      paths_[option->name] = argv[++i];
      continue;
    }
    if (word == "--json") {
      json_ = true;
    } else if (word == "--quick") {
      quick_ = true;
    } else {
      fmt::print(word == "--help" ? stdout : stderr, "{}\n{}example: build/bench/{} --quick\n",
                 usage, help, name_);
      std::exit(word == "--help" ? 0 : 2);
    }
  }
}

std::string Bench::PathOf(const std::string& name) const {
  const auto found = paths_.find(name);
  return found == paths_.end() ? "" : found->second;
}

void Bench::Report(const Result& result) {
  std::optional<double> ratio;
  if (result.yardstick && *result.yardstick > 0) ratio = result.value / *result.yardstick;
  if (json_) {
    using Json = nlohmann::ordered_json;
    const Json object = {{"name", name_ + ": " + result.name},
                         {"value", result.value},
                         {"unit", result.unit},
                         {"yardstick", result.yardstick ? Json(*result.yardstick) : Json()},
                         {"ratio", ratio ? Json(*ratio) : Json()},
                         {"signature", fmt::format("{:016x}", result.signature)}};
    fmt::print("{}\n", object.dump());
  } else {
    fmt::print("{:34} {:>8} {:10}", result.name, HumanCount(result.value), result.unit);
    if (ratio) {
      fmt::print("  {:.2f}x {} ({})", *ratio, result.yardstick_name, HumanCount(*result.yardstick));
    }
    fmt::print("  signature {:016x}\n", result.signature);
  }
  std::fflush(stdout);
  if (result.promised_ratio && ratio && *ratio < *result.promised_ratio) {
    Fail(fmt::format("{}: ratio {:.2f} is below the promised {:.2f}", result.name, *ratio,
                     *result.promised_ratio));
  }
}

void Bench::Say(std::string_view text) const {
  if (!json_) fmt::print("{}\n", text);
  std::fflush(stdout);
}

void Bench::Fail(std::string_view reason) {
  fmt::print(stderr, "{}: {}\n", name_, reason);
  failed_ = true;
}

int Bench::Finish() const { return failed_ ? 1 : 0; }

double SecondsOf(const std::function<void()>& work) {
  const Timer timer;
  work();
  return timer.Seconds();
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void Signature::Add(uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    hash_ = (hash_ ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3;
  }
}

void Signature::Add(std::string_view bytes) {
  for (char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
}

std::string DataFolder() {
  const char* folder = std::getenv("KIBITZ_DATA");
  return folder != nullptr ? folder : std::string(KIBITZ_SOURCE_DIR) + "/../shared/data";
}

std::string MadeDataFolder() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto folder = program.parent_path().parent_path() / "bench-data";
  std::filesystem::create_directories(folder);
  return folder.string();
}

namespace {

double StatusMegabytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  double kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == name && status >> kilobytes) break;
  }
  return kilobytes / 1024;
}

}  // namespace

double ResidentMegabytes() { return StatusMegabytes("VmRSS:"); }

PeakMemory::PeakMemory() : start_(ResidentMegabytes()) {
  std::ofstream("/proc/self/clear_refs") << "5";  // The peak starts anew.
}

double PeakMemory::ExtraMegabytes() const { return StatusMegabytes("VmHWM:") - start_; }

}  // namespace kibitz::bench
