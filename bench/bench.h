// What all benches share: options, timing, and one way to report. A bench prints for people, or
// with --json one object a line: name, value, unit, yardstick, ratio, signature. --quick takes
// under a minute. Ratios come from one run on one machine, so noise hits both sides alike; the
// signature is a hash of the results, so that a faster wrong answer shows.
//
//   int main(int argc, char** argv) {
//     kibitz::bench::Bench bench("perft", argc, argv);
//     ...
//     bench.Report({.name = "start depth 6", .value = rate, .unit = "nodes/s",
//                   .yardstick = stockfish, .signature = nodes});
//     return bench.Finish();
//   }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::bench {

struct Result {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> yardstick = {};  // The same figure of what we compare with.
  std::string yardstick_name = {};
  uint64_t signature = 0;
  // The ratio value / yardstick that the project promises; nothing when none is.
  std::optional<double> promised_ratio = {};
};

// An option of one bench: --name PATH.
struct PathOption {
  std::string name;
  std::string help;
};

class Bench {
 public:
  // Reads --json, --quick, --help and `options`; exits with 2 on anything else.
  Bench(std::string name, int argc, char** argv, const std::vector<PathOption>& options = {});

  bool quick() const { return quick_; }
  // What was given with --name; "" when nothing was.
  std::string PathOf(const std::string& name) const;
  void Report(const Result& result);
  // A remark for people; silent with --json.
  void Say(std::string_view text) const;
  // The exit code: 1 if a promised ratio was missed or Fail was called.
  int Finish() const;
  void Fail(std::string_view reason);

 private:
  std::string name_;
  bool json_ = false;
  bool quick_ = false;
  bool failed_ = false;
  std::map<std::string, std::string> paths_;
};

class Timer {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double SecondsOf(const std::function<void()>& work);
// The upper of the two in the middle. There is at least one.
double Median(std::vector<double> values);

// Folds values into a signature: FNV-1a over the bytes.
class Signature {
 public:
  void Add(uint64_t value);
  void Add(std::string_view bytes);
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// $KIBITZ_DATA, or ../shared/data beside the source.
std::string DataFolder();
// Where benches keep what they make once: build/bench-data. Made when missing.
std::string MadeDataFolder();

// Memory that this process holds now, in MB.
double ResidentMegabytes();
// The most memory held since this was made, beyond what was held then.
class PeakMemory {
 public:
  PeakMemory();
  double ExtraMegabytes() const;

 private:
  double start_;
};

}  // namespace kibitz::bench
